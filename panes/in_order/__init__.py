"""Rows in the order of their event time."""

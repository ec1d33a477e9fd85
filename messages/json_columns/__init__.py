"""Texts of JSON as columns of known types."""

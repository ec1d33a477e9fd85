"""Queries that write a table, or a topic."""

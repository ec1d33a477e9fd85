"""Aggregates of each row over the rows of its key in a period before it."""

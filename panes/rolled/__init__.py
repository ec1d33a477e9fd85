"""Rows with aggregates over the period before each, corrected by rows that come late."""

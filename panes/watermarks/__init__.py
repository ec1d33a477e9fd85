"""Watermarks, the strategies that compute them from rows, the intake of the rows that they judge."""

"""The net difference of two tables: rows of one of them alone, rows that both have with other values."""

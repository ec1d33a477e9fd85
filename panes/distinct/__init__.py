"""The first row of each id."""

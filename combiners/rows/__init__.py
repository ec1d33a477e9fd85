"""Columns of rows and what is computed of them: groups, key codes, sums by group, sorting, hashing."""

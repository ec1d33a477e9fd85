"""Columns of rows and the arrays computed from them: groups, key codes, sums by group, sorting, hashing."""

"""Arithmetic beyond a float's precision: double doubles, exact pieces, decimals, logarithms."""

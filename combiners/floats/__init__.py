"""Arithmetic with more precision than a float: double doubles, exact pieces, decimals, logarithms."""

"""Approximate combiners of small state: distinct counts, quantiles, heavy hitters."""

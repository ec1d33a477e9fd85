"""Accumulators as columns of DataFrames and files: their layout, their makers, and functions over them."""

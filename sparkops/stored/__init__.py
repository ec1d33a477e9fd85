"""Accumulators as columns of DataFrames or files: their layout, their makers, functions over them."""

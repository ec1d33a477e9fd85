"""Accumulators as columns of DataFrames and files: how they are made, named and read back."""

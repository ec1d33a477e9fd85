"""Checkpoints of queries as values, which show the state in them."""

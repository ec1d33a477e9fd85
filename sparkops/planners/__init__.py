"""Planners of the batches of a stream, in place of Spark's own sources."""

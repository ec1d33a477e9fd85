"""The results of whole groups, straight from the columns of their rows.

A grouped-aggregate UDF of Spark sees each group once and whole, so it needs no state that others could be merged with.
A kernel of this room gives the same result as `add` and `extract` do, to the last bit, in a few microseconds. It
declines a group that it does not cover, such as one with NaN, and then `add` and `extract` compute it.
"""

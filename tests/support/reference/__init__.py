"""The grouping operator once more, row at a time, with dicts and loops, to compare the columnar one with."""

"""The number of different values in each range, in one pass.

A value counts in a range if it is the first of its equals there: the row before it with the same value has left, it has
come, and it has not left. Ranges never go back, so it counts in a run of them: it is added where the run begins, and
subtracted where it ends. The work does not depend on the size of the ranges.

Guarded by tests/lookbacks/test_ways.py.
"""

from __future__ import annotations

import numpy as np

from ..combiners.rows.groups import Groups
from .sorted_rows import Ranges


def count_different(values: Groups, ranges: Ranges) -> np.ndarray:
    """The number of groups of equal values in each range; rows of two keys are never in one group.

    >>> import numpy as np
    >>> values = Groups(np.array([0, 1, 0, 0]), 2)
    >>> count_different(values, Ranges(low=np.array([0, 0, 2]), high=np.array([2, 3, 4])))
    array([2, 2, 1])
    """
    rows, count = len(values), len(ranges)
    order = values.order
    earlier = np.full(rows, -1)
    earlier[order[1:]] = np.where(values.codes[order[1:]] == values.codes[order[:-1]], order[:-1], -1)
    left = np.cumsum(np.bincount(ranges.low, minlength=rows + 1))
    come = np.cumsum(np.bincount(ranges.high, minlength=rows + 1))[:rows]
    # The first range that each row is in, and from which the row before it has left; and the first that it has left.
    first = np.maximum(come, np.where(earlier < 0, 0, left[earlier]))
    last = left[:rows]
    counted = first < last
    change = np.bincount(first[counted], minlength=count + 1) - np.bincount(last[counted], minlength=count + 1)
    return np.cumsum(change)[:count]


__all__ = ["count_different"]

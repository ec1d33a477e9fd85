"""Sets of equal rows: groups by hashes of 128 bits, and rows whose weights are added up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.rows.group_sums import sum_counts
from ...combiners.rows.groups import Groups, group_rows


def groups_of(low: np.ndarray, high: np.ndarray) -> tuple[Groups, np.ndarray]:
    """The groups of equal hashes by first appearance, and the first row of each.

    >>> import numpy as np
    >>> groups, first = groups_of(np.array([7, 7, 7], np.uint64), np.array([1, 2, 1], np.uint64))
    >>> groups.codes, first
    (array([0, 1, 0]), array([0, 1]))
    """
    groups, first = group_rows([pa.array(low)], len(low))
    if len(first) < len(low) and not np.array_equal(high[first][groups.codes], high):
        return group_rows([pa.array(low), pa.array(high)], len(low))
    return groups, first


def netted(low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> tuple[Groups, np.ndarray, np.ndarray]:
    """The groups of equal rows, the first row of each, and the sum of its weights.

    >>> low, high = np.array([5, 5, 6], np.uint64), np.zeros(3, np.uint64)
    >>> netted(low, high, np.array([2, -3, 1]))[1:]
    (array([0, 2]), array([-1,  1]))
    """
    groups, first = groups_of(low, high)
    return groups, first, sum_counts(groups, weights)


__all__ = ["groups_of", "netted"]

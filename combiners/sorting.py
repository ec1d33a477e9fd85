"""Sorting rows inside their groups: first by group (radix), then each group by itself.

Groups of one size are laid side by side as the rows of a matrix, so that one call of numpy sorts many of
them, and short rows, which is what most groups are, by sorting networks. The work is n log(group size)
instead of n log n. The loop is over the different sizes, of which n rows can have at most sqrt(2 n), and
over blocks that fit the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .groups import Groups, stable_order

_BLOCK = 1 << 15


def sort_in_groups(groups: Groups, keys: np.ndarray) -> np.ndarray:
    """The keys in the order of (group, key).

    >>> sort_in_groups(Groups(np.array([1, 0, 1]), 2), np.array([9, 5, 7]))
    array([5, 7, 9])
    """
    ordered = keys[groups.order]
    for places in _blocks(groups):
        block = ordered[places]
        block.sort(axis=-1)
        ordered[places] = block
    return ordered


def argsort_in_groups(groups: Groups, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows in the order of (group, key), rows of equal key in any order, and their keys.

    >>> argsort_in_groups(Groups(np.array([1, 0, 1]), 2), np.array([9, 5, 7]))
    (array([1, 2, 0]), array([5, 7, 9]))
    """
    order = groups.order.copy()
    ordered = keys[order]
    for places in _blocks(groups):
        moved = ordered[places].argsort(axis=-1)
        moved += places.start if isinstance(places, slice) else places[:, :1]
        order[places], ordered[places] = order[moved], ordered[moved]
    return order, ordered


def _blocks(groups: Groups) -> Iterator[np.ndarray | slice]:
    """Where the groups of two rows and more lie: a matrix of places, a group a row, or one group's slice."""
    starts = groups.starts
    members = np.bincount(groups.sizes)
    by_size = stable_order(groups.sizes, len(members))
    ends = np.cumsum(members)
    for size in np.flatnonzero(members[2:]) + 2:
        chosen = starts[by_size[ends[size] - members[size] : ends[size]]]
        if len(chosen) == 1 or size >= _BLOCK:
            for start in chosen.tolist():
                yield slice(start, start + int(size))
            continue
        columns = np.arange(size)
        step = _BLOCK // int(size)
        for first in range(0, len(chosen), step):
            yield chosen[first : first + step, None] + columns

"""Sorting rows inside their groups: first by group (radix), then each group by itself.

Groups of like size are laid side by side as the rows of a matrix, so that one call of numpy sorts them all. The work
is n log(group size) instead of n log n, and there is no loop over groups: only one over powers of two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .groups import Groups
from .ordering import Keys

_LAST = np.int64(2**63 - 1)


def sort_in_groups(groups: Groups, keys: Keys) -> tuple[np.ndarray, np.ndarray]:
    """The group codes and keys in the order of (group, key)."""
    order = groups.order
    sizes = groups.sizes
    by_group = keys.keys[order]
    for places, matrix, real in _matrices(sizes, groups.starts, by_group):
        matrix.sort(axis=1)
        by_group[places[real]] = matrix[real]
    return np.repeat(np.arange(groups.count), sizes), by_group


def argsort_in_groups(groups: Groups, keys: Keys) -> np.ndarray:
    """The rows in the order of (group, key), rows of equal key in their own order."""
    order = groups.order
    sorted_order = order.copy()
    for places, matrix, real in _matrices(groups.sizes, groups.starts, keys.keys[order]):
        moved = np.take_along_axis(places, matrix.argsort(axis=1, kind="stable"), axis=1)
        sorted_order[places[real]] = order[moved[real]]
    return sorted_order


def _matrices(
    sizes: np.ndarray, starts: np.ndarray, by_group: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Groups of at least two rows by size class: their places, their keys padded with the greatest, what is real."""
    classes = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    for width_class in np.unique(classes):
        if width_class == 0:
            continue
        chosen = np.flatnonzero(classes == width_class)
        width = int(sizes[chosen].max())
        column = np.arange(width)
        real = column < sizes[chosen][:, None]
        places = np.minimum(starts[chosen][:, None] + column, len(by_group) - 1)
        matrix = np.where(real, by_group[places], _LAST)
        yield places, matrix, real

"""Sorting rows inside their groups.

Rows are sorted at once, as numbers that have the group, the key and, where it is asked for, the row in their bits.
A few bits of the key may be left out; the rows that differ in them alone are sorted again.
Where 63 bits are far too few, or the order of the rows by group is known, each group is sorted by itself: groups of one
size are the rows of a matrix, so that one call of numpy sorts many groups, and short rows, as those of most groups
are, by sorting networks. The work is n log(group size) instead of n log n. The loop is over the different sizes, of
which n rows can have at most sqrt(2 n), and over blocks that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .groups import Groups, stable_order
from .numbering import bits_below, sort_alike, starts_of_runs

_BLOCK = 1 << 15

_HIDDEN = 8
"""Up to so many bits of the keys may be left out of the numbers, if few rows differ in them alone."""


def sort_in_groups(groups: Groups, keys: np.ndarray) -> np.ndarray:
    """The keys in the order of (group, key).

    >>> sort_in_groups(Groups(np.array([1, 0, 1]), 2), np.array([9, 5, 7]))
    array([5, 7, 9])
    """
    packed = _RowNumbers.of(groups, keys, 0)
    if packed is not None:
        packed.numbers.sort()
        return packed.keys().astype(keys.dtype, copy=False)
    ordered = keys[groups.order]
    for size, _, starts in blocks(groups.sizes, 2):
        rows = windows(ordered, size)
        block = rows[starts]
        block.sort(axis=1)
        rows[starts] = block
    return ordered


def argsort_in_groups(groups: Groups, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows in the order of (group, key), rows of equal key in any order, and their keys.

    >>> argsort_in_groups(Groups(np.array([1, 0, 1]), 2), np.array([9, 5, 7]))
    (array([1, 2, 0]), array([5, 7, 9]))
    """
    row_bits = bits_below(len(keys))
    packed = _RowNumbers.of(groups, keys, row_bits, _HIDDEN)
    if packed is not None:
        np.bitwise_or(packed.numbers, np.arange(len(keys)), out=packed.numbers)
        packed.numbers.sort()
        order = packed.numbers & ((1 << row_bits) - 1)
        if not packed.hidden:
            return order, packed.keys().astype(keys.dtype, copy=False)
        ordered = keys.take(order, mode="clip")
        if sort_alike(packed.numbers >> row_bits, order, ordered, most=len(keys) // 8):
            return order, ordered
    order = groups.order.copy()
    ordered = keys[order]
    for size, _, starts in blocks(groups.sizes, 2):
        rows = windows(ordered, size)
        moved = rows[starts].argsort(axis=1)
        moved += starts[:, None]
        windows(order, size)[starts], rows[starts] = order[moved], ordered[moved]
    return order, ordered


@dataclass(frozen=True)
class _RowNumbers:
    """A number for each row, whose bits are its group, its key less the least one, and bits that are free.

    The lowest bits of the key are `hidden` where the number has no room for them.
    """

    numbers: np.ndarray
    low: int
    bits: int
    free: int
    hidden: int

    @classmethod
    def of(cls, groups: Groups, keys: np.ndarray, free: int, most_hidden: int = 0) -> _RowNumbers | None:
        """None if 63 bits are too few, for fewer than two rows, and where only the order by group is known."""
        if len(keys) < 2 or groups.in_runs:
            return None
        low = int(keys.min())
        bits = (int(keys.max()) - low).bit_length()
        hidden = max((groups.count - 1).bit_length() + bits + free - 63, 0)
        if hidden > most_hidden or bits > 63:
            return None
        numbers = np.left_shift(groups.codes, bits - hidden, dtype=np.int64)
        above = keys.astype(np.int64, copy=False) - low
        above >>= hidden
        numbers += above
        numbers <<= free
        return cls(numbers=numbers, low=low, bits=bits, free=free, hidden=hidden)

    def keys(self) -> np.ndarray:
        """The keys of the numbers, in place of them, if no bits are hidden."""
        numbers = self.numbers
        numbers >>= self.free
        numbers &= (1 << self.bits) - 1
        numbers += self.low
        return numbers


def run_starts(groups: Groups, ordered: np.ndarray) -> np.ndarray:
    """True where a key differs from the one before it or a group starts, in the order of (group, key)."""
    fresh = starts_of_runs(ordered)
    fresh[groups.starts[groups.sizes > 0]] = True
    return fresh


def refine(order: np.ndarray, fresh: np.ndarray, keys: Callable[[np.ndarray], np.ndarray]) -> None:
    """Sort, in place, the rows that are equal so far by the further keys that `keys` gives for them.

    >>> order, fresh = np.array([2, 0, 1]), np.array([True, True, False])
    >>> refine(order, fresh, np.array([7, 5, 7]).take)
    >>> order, fresh
    (array([2, 1, 0]), array([ True,  True,  True]))
    """
    starts = np.flatnonzero(fresh)
    sizes = np.diff(starts, append=len(order))
    several = sizes > 1
    if not several.any():
        return
    tied = np.flatnonzero(np.repeat(several, sizes))
    rows = order[tied]
    count = int(several.sum())
    runs = Groups(np.repeat(np.arange(count), sizes[several]), count)
    moved, ordered = argsort_in_groups(runs, keys(rows))
    order[tied], fresh[tied] = rows[moved], run_starts(runs, ordered)


def blocks(sizes: np.ndarray, smallest: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Groups that lie one after the other, some of one size at a time: the size, the groups, and their starts.

    Groups of less than `smallest` rows are left out.
    """
    starts = np.cumsum(sizes) - sizes
    members = np.bincount(sizes, minlength=smallest)
    by_size = stable_order(sizes, len(members))
    ends = np.cumsum(members)
    for size in (np.flatnonzero(members[smallest:]) + smallest).tolist():
        chosen = by_size[ends[size] - members[size] : ends[size]]
        step = max(_BLOCK // size, 1)
        for first in range(0, len(chosen), step):
            some = chosen[first : first + step]
            yield size, some, starts[some]


def windows(values: np.ndarray, size: int) -> np.ndarray:
    """A matrix whose row i is `values[i : i + size]`, without a copy: to read or write stretches of one size."""
    step = values.itemsize
    return np.ndarray((len(values) - size + 1, size), values.dtype, values, strides=(step, step))

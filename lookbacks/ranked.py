"""The k-th least value of each range, by a wavelet matrix over the ranks of the values of each key.

Values are numbered by their rank in their key. Level by level, from the highest bit of the ranks, the rows of each key
are parted into those without the bit and those with it, in their order. The number of rows without the bit before
each place then moves a range, and the rank that is asked for, into one of both parts. n log(rows of a key) for all
ranges at once, whatever they hold.

The method is that of Claude and Navarro, "The Wavelet Matrix" (SPIRE 2012).

Guarded by tests/lookbacks/test_ways.py.
"""

from __future__ import annotations

import numpy as np

from ..combiners.rows.groups import Groups
from ..combiners.rows.sorting import argsort_in_groups
from .sorted_rows import Ranges

_BLOCK = 1 << 15
"""Ranges that are moved at once, so that they stay in the cache."""


class RankedKeys:
    """The values of keys, each a run of rows, by their ranks.

    >>> import numpy as np
    >>> ranked = RankedKeys(np.array([30, 10, 20, 7]), np.array([0, 3, 4]))
    >>> ranges = Ranges(low=np.array([0, 1, 3]), high=np.array([3, 3, 4]))
    >>> ranked.places(ranges, np.array([0, 0, 1]), np.array([1, 0, 0]))
    array([2, 1, 3])
    """

    def __init__(self, values: np.ndarray, bounds: np.ndarray) -> None:
        sizes, rows = np.diff(bounds), len(values)
        groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        self._by_rank = argsort_in_groups(groups, values)[0]
        self._bounds = bounds
        starts = np.repeat(bounds[:-1], sizes).astype(np.int32)
        row = np.arange(rows, dtype=np.int32)
        ranks = np.empty(rows, np.int32)
        ranks[self._by_rank] = row - starts
        self._levels: list[np.ndarray] = []
        for bit in range(int(sizes.max(initial=1) - 1).bit_length() - 1, -1, -1):
            without = (ranks >> bit) & 1 == 0
            before = np.zeros(rows + 1, np.int32)
            np.cumsum(without, out=before[1:])
            self._levels.append(before)
            if bit == 0:
                break
            zeros = before[:-1] - np.repeat(before[bounds[:-1]], sizes)
            split = np.repeat((bounds[:-1] + np.diff(before[bounds])).astype(np.int32), sizes)
            parted = np.empty(rows, np.int32)
            parted[np.where(without, starts + zeros, split + (row - starts - zeros))] = ranks
            ranks = parted

    def places(self, ranges: Ranges, keys: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """The row that holds the value of a rank, from 0, of each range: none is empty, and each is in its key."""
        out = np.empty(len(ranges), np.int64)
        for start in range(0, len(ranges), _BLOCK):  # one turn a block of ranges
            part = slice(start, start + _BLOCK)
            out[part] = self._placed(ranges.low[part], ranges.high[part], keys[part], ranks[part])
        return self._by_rank.take(out)

    def _placed(self, low: np.ndarray, high: np.ndarray, keys: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """The places by rank, over all keys, of the values of the ranks."""
        starts, stops = (self._bounds[keys + end].astype(np.int32) for end in (0, 1))
        low, high, wanted = (numbers.astype(np.int32) for numbers in (low, high, ranks))
        rank = np.zeros(len(low), np.int32)
        for before in self._levels:  # one turn a bit of the ranks
            first = before.take(starts)
            zeros_low, zeros_high = before.take(low) - first, before.take(high) - first
            zeros = zeros_high - zeros_low
            with_bit = wanted >= zeros
            rank = 2 * rank + with_bit
            split = before.take(stops) - first
            low = np.where(with_bit, low + split - zeros_low, starts + zeros_low)
            high = np.where(with_bit, high + split - zeros_high, starts + zeros_high)
            wanted -= np.where(with_bit, zeros, 0).astype(np.int32)
        return starts.astype(np.int64) + rank


__all__ = ["RankedKeys"]

"""Each range as the end of one half and the beginning of the next, so that nothing outside of it has any effect.

A range of more than one place contains the start of exactly one block of the greatest power of two that it can: the
middle. To the left of each middle values are added up backwards, to the right forwards, as far as the longest range
goes; a range is one of the sums on each side. This is the disjoint sparse table, made only as far as it is read: about
three additions a place for ranges of one length, and n log n at most. No value that has left is ever subtracted, so
floats keep no error of it.

Guarded by tests/lookbacks/test_ways.py.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..combiners.rows.numbering import starts_of_runs
from .sorted_rows import Ranges

_SHORT = 24

_BLOCK = 1 << 18
"""The least number of ranges that are folded at once, so that what is made for them stays in the cache."""

_DENSE = 6
"""Up to so many places a range, a level is made for all places, and not for the windows around its middles."""

_LEAST = 5
"""The bits of a block from which on its halves are long enough to be added up one by one."""


def fold(values: np.ndarray, ranges: Ranges, combine: np.ufunc, nothing: int | float) -> np.ndarray:
    """The values of each range combined by an associative ufunc; `nothing` for an empty range.

    >>> import numpy as np
    >>> ranges = Ranges(low=np.array([0, 0, 1]), high=np.array([0, 2, 3]))
    >>> fold(np.array([1e16, 1.0, 2.0]), ranges, np.add, 0.0)
    array([0.e+00, 1.e+16, 3.e+00])
    """
    out = np.full(len(ranges), nothing, values.dtype)
    # No fewer ranges than the longest has places: else values would be added up again for each block.
    size = max(_BLOCK, int(ranges.sizes.max(initial=0)))
    for start in range(0, len(ranges), size):  # one turn a block of ranges
        part = slice(start, start + size)
        _fold(values, ranges.low[part], ranges.high[part] - 1, combine, out[part])
    return out


def _fold(values: np.ndarray, low: np.ndarray, last: np.ndarray, combine: np.ufunc, out: np.ndarray) -> None:
    """Fold the ranges from `low` to `last` into `out`, which has the value of an empty range."""
    # The exponent of the float is the number of bits, for a row number is below 2**53.
    levels = ((low ^ last).astype(np.float64).view(np.int64) >> 52) - 1022
    np.maximum(levels, 0, out=levels)
    levels[last < low] = -1
    alone = np.flatnonzero(levels == 0)
    out[alone] = values[low[alone]]
    first, stop = int(low.min()), int(last.max()) + 1
    for level in np.flatnonzero(np.bincount(levels[levels > 0], minlength=1)).tolist():  # at most 63
        chosen = np.flatnonzero(levels == level)
        here = low.take(chosen), last.take(chosen)
        if level < _LEAST or _DENSE * len(chosen) < stop - first:
            out[chosen] = _over_middles(values, *here, level - 1, combine)
        else:
            start = first >> level << level
            sums = _level(values[start : ((stop - 1 >> level) + 1) << level], level, combine)
            with np.errstate(over="ignore", invalid="ignore"):
                out[chosen] = combine(*(sums.take(places - start, mode="clip") for places in here))


def _level(values: np.ndarray, level: int, combine: np.ufunc) -> np.ndarray:
    """For each place, all values from it to the middle of its block of 2**level places."""
    lacking = -len(values) % (1 << level)
    if lacking:
        values = np.concatenate([values, np.zeros(lacking, values.dtype)])
    blocks = values.reshape(-1, 2, 1 << (level - 1))
    out = np.empty_like(blocks)
    with np.errstate(over="ignore", invalid="ignore"):
        combine.accumulate(blocks[:, 0, ::-1], axis=1, out=out[:, 0, ::-1])
        combine.accumulate(blocks[:, 1], axis=1, out=out[:, 1])
    return out.reshape(-1)


def _over_middles(values: np.ndarray, low: np.ndarray, last: np.ndarray, bits: int, combine: np.ufunc) -> np.ndarray:
    """Ranges over the start of a block of 2**bits places, in order."""
    middle = (last >> bits) << bits
    fresh = starts_of_runs(middle)
    middles, row = middle[fresh], np.cumsum(fresh) - 1
    back, ahead = middle - low - 1, last - middle
    left = _windows(values, middles - int(back.max()) - 1, int(back.max()) + 1)[:, ::-1]
    right = _windows(values, middles, int(ahead.max()) + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = _scanned(left, combine), _scanned(right, combine)
        return np.asarray(combine(left[row, back], right[row, ahead]))


def _scanned(rows: np.ndarray, combine: np.ufunc) -> np.ndarray:
    """Each value of a row combined with all before it; a column at a time for short rows, for which numpy is slow."""
    if rows.shape[1] > _SHORT:
        return np.asarray(combine.accumulate(rows, axis=1))
    for place in range(1, rows.shape[1]):
        combine(rows[:, place - 1], rows[:, place], out=rows[:, place])
    return rows


def _windows(values: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """The values from each start on, as rows of a matrix; places after the last value are any."""
    over = int(starts[-1]) + size - len(values)
    if over > 0:
        values = np.concatenate([values, np.zeros(over, values.dtype)])
    return sliding_window_view(values, size)[starts]


__all__ = ["fold"]

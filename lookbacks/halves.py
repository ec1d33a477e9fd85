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


def fold(values: np.ndarray, ranges: Ranges, combine: np.ufunc, nothing: int | float) -> np.ndarray:
    """The values of each range combined by an associative ufunc; `nothing` for an empty range.

    >>> import numpy as np
    >>> ranges = Ranges(low=np.array([0, 0, 1]), high=np.array([0, 2, 3]))
    >>> fold(np.array([1e16, 1.0, 2.0]), ranges, np.add, 0.0)
    array([0.e+00, 1.e+16, 3.e+00])
    """
    out = np.full(len(ranges), nothing, values.dtype)
    low, last = ranges.low, ranges.high - 1
    # The exponent of the float is the number of bits, for a row number is below 2**53.
    levels = np.frexp((low ^ last).astype(np.float64))[1]
    levels[last < low] = -1
    alone = np.flatnonzero(levels == 0)
    out[alone] = values[low[alone]]
    for level in np.flatnonzero(np.bincount(levels[levels > 0], minlength=1)):  # at most 63
        chosen = np.flatnonzero(levels == level)
        out[chosen] = _over_middles(values, low[chosen], last[chosen], int(level) - 1, combine)
    return out


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

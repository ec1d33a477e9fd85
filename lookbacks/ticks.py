"""Ticks: the multiples of a length of time since 1970 UTC at which a key has rows in a look-back, and the one after.

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..combiners.rows.numbering import starts_of_runs
from ..errors import InvalidArgument, OutOfRange
from ..windows.times import LAST
from .lookback import LookBack
from .sorted_rows import SortedRows

_MOST = 2**31


def ticks_of(rows: SortedRows, lookbacks: Sequence[LookBack], every: int) -> tuple[np.ndarray, np.ndarray]:
    """The keys and instants of the ticks at which something is in a look-back, or was at the tick before.

    >>> from uncombine.combiners.rows.groups import Groups
    >>> rows = SortedRows.of(Groups.single(2), np.array([3, 41]))
    >>> ticks_of(rows, [LookBack(micros=15)], every=10)[1]
    array([10, 20, 50, 60])
    """
    codes, ticks = _near(rows, max(one.longest for one in lookbacks), every)
    holds = np.zeros(len(ticks), np.bool_)
    for lookback in lookbacks:
        holds |= rows.ranges_at(codes, ticks, lookback).sizes > 0
    follows = np.zeros(len(ticks), np.bool_)
    follows[1:] = holds[:-1] & (codes[1:] == codes[:-1]) & (ticks[1:] == ticks[:-1] + every)
    return codes[holds | follows], ticks[holds | follows]


def require_ticks(lookbacks: Sequence[LookBack]) -> None:
    """Raise for look-backs that are never empty again."""
    if any(one.ever or one.rows for one in lookbacks):
        raise InvalidArgument(
            "rolling(every=) gives ticks while something is in the period, which a look-back of rows=, or of None, "
            "always has: give period= a length of time"
        )


def _near(rows: SortedRows, longest: int, every: int) -> tuple[np.ndarray, np.ndarray]:
    """The ticks from each row on until it has surely left, each once a key, in order."""
    first = rows.times // every
    last = np.minimum(rows.times + longest + min(every, LAST), LAST) // every
    # A row repeats no tick of the row before it.
    fresh = starts_of_runs(rows.codes)
    first[1:] = np.where(fresh[1:], first[1:], np.maximum(first[1:], last[:-1] + 1))
    counts = np.maximum(last - first + 1, 0)
    total = float(counts.sum(dtype=np.float64))
    if total >= _MOST:
        raise OutOfRange(
            f"rolling(every=) would give about {total:.0e} ticks, and 2**31 are too many: make every= longer"
        )
    before = np.cumsum(counts) - counts
    ticks = np.repeat(first - before, counts) + np.arange(int(total))
    return np.repeat(rows.codes, counts), ticks * every


__all__ = ["require_ticks", "ticks_of"]

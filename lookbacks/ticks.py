"""Ticks: the multiples of a length of time since 1970 UTC at which a key has rows in a look-back, and the one after.

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..combiners.rows.numbering import starts_of_runs
from ..errors import InvalidArgument, OutOfRange
from ..windows.times import FIRST, LAST, MAX_TIME, MIN_TIME
from .lookback import LookBack
from .sorted_rows import SortedRows

_MOST = 2**31


def ticks_of(
    rows: SortedRows, lookbacks: Sequence[LookBack], every: int, low: int = MIN_TIME, high: int = MAX_TIME
) -> tuple[np.ndarray, np.ndarray]:
    """The keys and instants of the ticks at which something is in a look-back, or was at the tick before.

    They lie from `low` to before `high`.

    >>> from uncombine.combiners.rows.groups import Groups
    >>> rows = SortedRows.of(Groups.single(2), np.array([3, 41]))
    >>> ticks_of(rows, [LookBack(micros=15)], every=10)[1]
    array([10, 20, 50, 60])
    """
    codes, ticks = ticks_near(rows, lookbacks, every, low, high)
    some = there_is(rows, codes, ticks, lookbacks, every)
    return codes[some], ticks[some]


def there_is(
    rows: SortedRows, codes: np.ndarray, ticks: np.ndarray, lookbacks: Sequence[LookBack], every: int
) -> np.ndarray:
    """True for the ticks, in order, at which something is in a look-back, or was at the tick before."""
    holds = _holds(rows, codes, ticks, lookbacks)
    follows = np.zeros(len(ticks), np.bool_)
    adjoins = np.zeros(len(ticks), np.bool_)
    adjoins[1:] = (codes[1:] == codes[:-1]) & (ticks[1:] == ticks[:-1] + every)
    follows[1:] = holds[:-1] & adjoins[1:]
    first = np.flatnonzero(~adjoins)
    follows[first] = _holds(rows, codes[first], ticks[first] - every, lookbacks)
    return holds | follows


def _holds(rows: SortedRows, codes: np.ndarray, ticks: np.ndarray, lookbacks: Sequence[LookBack]) -> np.ndarray:
    holds = np.zeros(len(ticks), np.bool_)
    for lookback in lookbacks:
        holds |= rows.ranges_at(codes, ticks, lookback).sizes > 0
    return holds


def require_ticks(lookbacks: Sequence[LookBack]) -> None:
    """Raise for look-backs that are never empty again."""
    if any(one.ever or one.rows for one in lookbacks):
        raise InvalidArgument(
            "rolling(every=) gives ticks while something is in the period, which a look-back of rows=, or of None, "
            "always has: give period= a length of time"
        )


def ticks_near(
    rows: SortedRows, lookbacks: Sequence[LookBack], every: int, low: int = MIN_TIME, high: int = MAX_TIME
) -> tuple[np.ndarray, np.ndarray]:
    """The ticks from each row on until it has surely left, each once a key, in order."""
    low, high = max(low, FIRST), min(max(high, FIRST), LAST + 1)
    first = np.maximum(-(-rows.times // every), -(-low // every))
    last = np.minimum(last_ticks(rows.times, lookbacks, every) // every, (high - 1) // every)
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


def last_ticks(times: np.ndarray, lookbacks: Sequence[LookBack], every: int) -> np.ndarray:
    """The last tick that each row may have an effect on."""
    longest = max(one.longest for one in lookbacks)
    return np.minimum(times + longest + min(every, LAST), LAST) // every * every


__all__ = ["last_ticks", "require_ticks", "there_is", "ticks_near", "ticks_of"]

"""The rows of each id that are shown: the first, then the next that is far enough from the one before, and so on.

Guarded by tests/panes/distinct/test_distinct.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def chain(codes: np.ndarray, times: np.ndarray, ties: Sequence[np.ndarray], reach: int) -> np.ndarray:
    """A mask of the rows that are shown, by code, time and `ties`; a shown row hides those less than `reach` after it.

    The rows may be in any order. The chain of all codes is followed at once, in steps of 1, 2, 4, ... rows.

    >>> chain(np.array([0, 0, 0, 1]), np.array([5, 14, 15, 5]), [np.arange(4)], reach=10)
    array([ True, False,  True,  True])
    """
    shown = np.ones(len(codes), np.bool_)
    several = np.flatnonzero((np.bincount(codes) > 1)[codes]) if len(codes) else np.empty(0, np.int64)
    if len(several) == 0:
        return shown
    codes, times = codes[several], times[several]
    order = np.lexsort((*(tie[several] for tie in reversed(ties)), times, codes))
    codes, times = codes[order], times[order]
    starts = np.ones(len(codes), np.bool_)
    starts[1:] = codes[1:] != codes[:-1]
    shown[several[order]] = (
        starts if int(times.max()) - int(times.min()) < reach else _chained(codes, times, starts, reach)
    )
    return shown


def _chained(codes: np.ndarray, times: np.ndarray, starts: np.ndarray, reach: int) -> np.ndarray:
    count = len(codes)
    instants = np.unique(times)
    room = len(instants) + 1
    following = np.searchsorted(
        codes * room + np.searchsorted(instants, times), codes * room + np.searchsorted(instants, times + reach)
    )
    last = np.append(np.flatnonzero(starts)[1:], count)[np.cumsum(starts) - 1]
    jump = np.append(np.where(following < last, following, count), count)
    shown = np.append(starts, False)
    while (jump[:-1] < count).any():
        shown[jump[shown]] = True
        shown[count] = False
        jump = jump[jump]
    return shown[:count]


def near(
    codes: np.ndarray, times: np.ndarray, known_codes: np.ndarray, known_times: np.ndarray, reach: int
) -> np.ndarray:
    """True for rows that are less than `reach` before or after a known row of their code.

    >>> near(np.array([0, 0, 1]), np.array([1, 9, 9]), np.array([0]), np.array([10]), reach=9)
    array([False,  True, False])
    """
    instants = np.unique(known_times)
    room = len(instants) + 1
    points = np.sort(known_codes * room + np.searchsorted(instants, known_times))
    first = codes * room + np.searchsorted(instants, times - reach, side="right")
    stop = codes * room + np.searchsorted(instants, times + reach, side="left")
    return np.searchsorted(points, first) < np.searchsorted(points, stop)


__all__ = ["chain", "near"]

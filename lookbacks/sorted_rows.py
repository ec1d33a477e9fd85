"""The rows of a table by key and time, and the ranges of them that are seen from each row or tick.

Guarded by tests/lookbacks/test_rolling.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..combiners.rows.groups import Groups
from ..combiners.rows.numbering import starts_of_runs
from ..combiners.rows.sorting import argsort_in_groups
from .lookback import LookBack

_ROOM = 2**62

_LONG = 128
"""The number of instants a key from which on each key is searched alone."""


@dataclass(frozen=True)
class Ranges:
    """The sorted rows from `low` to before `high`, for each row or tick that asks.

    Those of a look-back never go back.

    >>> import numpy as np
    >>> ranges = Ranges(low=np.array([0, 1]), high=np.array([2, 2]))
    >>> ranges.pairs(np.array([7, 8]), order=np.array([5, 4]))
    (array([7, 7, 8]), array([5, 4, 4]))
    """

    low: np.ndarray
    high: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        return self.high - self.low

    def __len__(self) -> int:
        return len(self.low)

    def slice(self, start: int, stop: int) -> Ranges:
        return Ranges(low=self.low[start:stop], high=self.high[start:stop])

    def take(self, places: np.ndarray) -> Ranges:
        """Some of the ranges, in their order."""
        return Ranges(low=self.low[places], high=self.high[places])

    def within(self, kept: np.ndarray) -> Ranges:
        """The same ranges of the rows that are kept, which are fewer."""
        before = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=before[1:])
        return Ranges(low=before[self.low], high=before[self.high])

    def pairs(self, asking: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of an asking row and a row of its range; `asking` and `order` have their numbers."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        places = np.arange(int(ends[-1]) if len(ends) else 0)
        places += np.repeat(self.low - (ends - sizes), sizes)
        return np.repeat(asking, sizes), order.take(places, mode="clip")

    def any(self, chosen: np.ndarray) -> np.ndarray:
        """True where one of the rows of the range is chosen."""
        return self.within(chosen).sizes > 0


@dataclass(frozen=True)
class SortedRows:
    """Rows in the order of key, time and, among rows of one time, their own order.

    >>> import numpy as np
    >>> rows = SortedRows.of(Groups(np.array([0, 1, 0]), 2), np.array([5, 5, 3]))
    >>> rows.order, rows.times
    (array([2, 0, 1]), array([3, 5, 5]))
    >>> rows.ranges(LookBack(micros=2)).low
    array([0, 1, 2])
    """

    order: np.ndarray
    times: np.ndarray
    bounds: np.ndarray
    """The place at which each key starts, and the number of rows."""

    @cached_property
    def codes(self) -> np.ndarray:
        """The key of each row."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    @classmethod
    def of(cls, groups: Groups, times: np.ndarray, then: np.ndarray | None = None) -> SortedRows:
        """The rows by key and time; `then` are numbers by which rows of one key and time are sorted."""
        order = groups.order
        rows = cls(order=order, times=groups.run(times), bounds=np.append(groups.starts, len(order)))
        if then is not None:
            order = np.lexsort((then, times, groups.codes))
        elif not (times[1:] >= times[:-1]).all():
            ordered, fresh = rows.times, starts_of_runs(rows.codes)
            if not ((ordered[1:] >= ordered[:-1]) | fresh[1:]).all():
                order, ordered = argsort_in_groups(groups, times)
                tied = (ordered[1:] == ordered[:-1]) & ~fresh[1:]
                if (order[1:] < order[:-1])[tied].any():
                    order = np.lexsort((times, groups.codes))
        return rows if order is rows.order else replace(rows, order=order, times=times.take(order))

    def __len__(self) -> int:
        return len(self.order)

    def where(self, chosen: np.ndarray) -> SortedRows:
        """Those of the rows for which a mask is true, in the same order; the keys keep their codes."""
        before = np.append(0, np.cumsum(chosen))
        return SortedRows(order=self.order[chosen], times=self.times[chosen], bounds=before[self.bounds])

    @cached_property
    def fresh(self) -> np.ndarray:
        """True for the first row of each key and time."""
        fresh = starts_of_runs(self.times)
        fresh[self.bounds[:-1][np.diff(self.bounds) > 0]] = True
        return fresh

    @cached_property
    def _search(self) -> tuple[np.ndarray, np.ndarray | None, int, int]:
        """Numbers that sort as key and time do, the different times if these had no room, the least time, the room."""
        if len(self) == 0:
            return self.times, None, 0, 1
        low, different = int(self.times.min()), None
        room = int(self.times.max()) - low + 2
        since = self.times - low
        if room * len(self.bounds) >= _ROOM:
            different, since = np.unique(self.times, return_inverse=True)
            low, room = 0, len(different) + 1
        return self.codes * room + since, different, low, room

    def first_at(self, codes: np.ndarray, instants: np.ndarray) -> np.ndarray:
        """The place of the first row of each key at an instant or after it."""
        numbers, different, low, room = self._search
        if different is None:
            since = np.clip(instants, low, low + room - 1) - low
        else:
            since = np.searchsorted(different, instants)
        return np.searchsorted(numbers, codes * room + since)

    def first_in_runs(self, bounds: np.ndarray, instants: np.ndarray) -> np.ndarray:
        """The same for instants that lie key after key; `bounds` has the place where those of each key start."""
        keys = len(self.bounds) - 1
        if keys * _LONG > len(instants):
            return self.first_at(np.repeat(np.arange(keys), np.diff(bounds)), instants)
        out = np.empty(len(instants), np.int64)
        starts, asked = self.bounds.tolist(), bounds.tolist()
        # One turn a key, which has many instants: no numbers are made of keys and times, and the times of a key are
        # found in the cache.
        for key in range(keys):
            here = slice(asked[key], asked[key + 1])
            np.add(self.times[starts[key] : starts[key + 1]].searchsorted(instants[here]), starts[key], out=out[here])
        return out

    @cached_property
    def _ties(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of the first row of the same key and time, and that after the last."""
        if self.fresh.all():
            places = np.arange(len(self) + 1)
            return places[:-1], places[1:]
        starts = np.append(np.flatnonzero(self.fresh), len(self))
        sizes = np.diff(starts)
        return np.repeat(starts[:-1], sizes), np.repeat(starts[1:], sizes)

    def ranges(self, lookback: LookBack, places: np.ndarray | None = None) -> Ranges:
        """The rows that are seen from each row, or from those at some places, which ascend."""
        bounds, codes, times = self.bounds, self.codes, self.times
        if places is not None:
            bounds, codes, times = np.searchsorted(places, bounds), codes[places], times[places]
        if lookback.rows:
            high = np.arange(1, len(self) + 1) if places is None else places + 1
            return Ranges(low=np.maximum(high - lookback.rows, self.bounds[codes]), high=high)
        high = self._ties[1 if lookback.sees_ties else 0]
        high = high if places is None else high[places]
        low = self.bounds[codes] if lookback.ever else self.first_in_runs(bounds, lookback.starts(times))
        return Ranges(low=np.minimum(low, high), high=high)

    def ranges_at(self, codes: np.ndarray, ticks: np.ndarray, lookback: LookBack) -> Ranges:
        """The rows that are seen from each tick of a key; ticks in order, key after key."""
        runs = np.searchsorted(codes, np.arange(len(self.bounds)))
        high = self.first_in_runs(runs, ticks + 1 if lookback.sees_ties else ticks)
        low = self.bounds[codes] if lookback.ever else self.first_in_runs(runs, lookback.starts(ticks))
        return Ranges(low=np.minimum(low, high), high=high)


__all__ = ["Ranges", "SortedRows"]

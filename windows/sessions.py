"""Windows that follow the data: sessions, and windows of the user's own making."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .merging import Merged, union_intervals
from .spans import Span, positive
from .window import Assigned, Window, plus


@dataclass(frozen=True, repr=False)
class Sessions(Window):
    """Bursts of rows of a key, ended by a gap without any.

    Each row opens `[time, time + gap)`; windows of a key that overlap become one, windows that only touch do not.

    >>> import numpy as np
    >>> from uncombine.windows import Sessions
    >>> s = Sessions("1 minute")
    >>> w = s.assign(np.array([0, 59_000_000, 119_000_000]))
    >>> s.merge(np.zeros(3, int), w.start, w.end).end.tolist()
    [119000000, 179000000]
    """

    gap: Span | str | timedelta
    merging = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", positive(self.gap, "the gap of Sessions"))

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        return Assigned(None, times, plus(times, int(self.gap)))  # type: ignore[arg-type]


@dataclass(frozen=True, init=False, repr=False)
class Custom(Window):
    """Windows by the user's own functions over arrays of microseconds.

    `assign(times)` gives three int64 arrays (row, start, end), in which a row may have any number of windows.
    `merge`, if windows merge, is "overlap" or a function of (code, start, end) that gives each window the number of the
    merged window it belongs to; a merged window is the hull of its parts.

    >>> import numpy as np
    >>> def unit(times):
    ...     return np.arange(len(times)), times, times + 1
    >>> Custom(unit).assign(np.array([7])).end.tolist()
    [8]
    """

    assign_rows: Callable[[np.ndarray], tuple[Any, Any, Any]]
    merge_windows: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | str | None
    end_follows_start = False

    def __init__(
        self,
        assign: Callable[[np.ndarray], tuple[Any, Any, Any]],
        merge: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | str | None = None,
    ) -> None:
        object.__setattr__(self, "assign_rows", assign)
        object.__setattr__(self, "merge_windows", merge)
        if not callable(self.assign_rows):
            raise InvalidArgument(f"Custom takes a function of times that gives (row, start, end), not {self.assign_rows!r}")
        if self.merge_windows is not None and self.merge_windows != "overlap" and not callable(self.merge_windows):
            raise InvalidArgument(f"Custom's merge is 'overlap', a function or None, not {self.merge_windows!r}")

    def __repr__(self) -> str:
        names = [getattr(f, "__qualname__", repr(f)) for f in (self.assign_rows, self.merge_windows) if f is not None]
        return f"Custom({', '.join(names)})"

    @property
    def merging(self) -> bool:  # type: ignore[override]
        return self.merge_windows is not None

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        given = self.assign_rows(times)
        if not isinstance(given, tuple) or len(given) != 3:
            raise InvalidArgument(f"the assign function of {self!r} must give three arrays: row, start, end")
        row, start, end = (np.asarray(part, dtype=np.int64) for part in given)
        if not len(row) == len(start) == len(end):
            raise InvalidArgument(f"the assign function of {self!r} gave arrays of unequal length")
        if len(row) and (row.min() < 0 or row.max() >= len(times)):
            raise InvalidArgument(f"the assign function of {self!r} named a row that is not there")
        if (end <= start).any():
            raise InvalidArgument(f"the assign function of {self!r} gave a window that does not end after its start")
        return Assigned(row, start, end)

    def merge(self, codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Merged:
        if self.merge_windows == "overlap" or not callable(self.merge_windows):
            return union_intervals(codes, start, end)
        given = np.asarray(self.merge_windows(codes, start, end))
        if len(given) != len(codes):
            raise InvalidArgument(f"the merge function of {self!r} must give one number a window")
        _, first, number = np.unique(given, return_index=True, return_inverse=True)
        if (codes[first][number] != codes).any():
            raise InvalidArgument(f"the merge function of {self!r} joined windows of different keys")
        low, high = start[first].copy(), end[first].copy()
        np.minimum.at(low, number, start)
        np.maximum.at(high, number, end)
        return Merged(number, codes[first], low, high)

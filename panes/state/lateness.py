"""Lateness: how far the watermark had passed the end of a row's window when the row came.

A row is late if the watermark from before its bundle has reached the end of its window, whether it is still taken in or
not: `allowed_lateness` is what this length is compared with. A row of several windows counts in each that has ended.
Only groupings measure it. A session ends where the rows of one bundle end it.

Guarded by tests/panes/state/test_lateness.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...windows.times import MAX_TIME, MIN_TIME

BOUNDS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800)
"""The upper bounds of the classes of lateness in seconds, each of which is part of its class; the last has none."""

LONGEST = 1 << 62
"""The longest lateness in microseconds; what is longer counts as this."""

_MICROS = np.array(BOUNDS, np.int64) * 1_000_000


@dataclass(frozen=True)
class Lateness:
    """The numbers of late rows by the class of their lateness, and the sum of their lateness in whole seconds.

    >>> import numpy as np
    >>> ends, counts = np.array([0, 59_000_000, 90_000_000]), np.array([3, 2, 5])
    >>> late = Lateness.of(ends, counts, watermark=60_000_000)
    >>> late.rows, late.seconds
    ((2, 0, 3, 0, 0, 0, 0, 0, 0), 182)
    >>> (late + Lateness()) == late
    True
    """

    rows: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    seconds: int = 0

    @classmethod
    def of(cls, ends: np.ndarray, counts: np.ndarray, watermark: int) -> Lateness:
        """The lateness of numbers of rows, by the ends of their windows and the watermark before them."""
        late = ends <= watermark
        if watermark in (MIN_TIME, MAX_TIME) or not late.any():
            return _NONE
        by = watermark - np.maximum(ends[late], max(watermark - LONGEST, MIN_TIME))
        counts = counts[late]
        rows = np.bincount(np.searchsorted(_MICROS, by), weights=counts, minlength=len(BOUNDS) + 1)
        return cls(tuple(map(int, rows)), int((by / 1e6 * counts).sum()))

    def __add__(self, other: Lateness) -> Lateness:
        rows = tuple(a + b for a, b in zip(self.rows, other.rows, strict=True))
        return Lateness(rows, self.seconds + other.seconds)


_NONE = Lateness()

__all__ = ["BOUNDS", "Lateness"]

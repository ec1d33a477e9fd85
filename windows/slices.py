"""The slices of sliding windows: the parts of time inside which no window starts or ends.

`tests/windows/test_aligned.py` guards them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .grid import grid_bounds, grid_numbers
from .window import Bounds, RowWindows


@dataclass(frozen=True)
class Slices:
    """The periods of sliding windows, each cut in two where an earlier window ends inside it.

    A window starts with its period, has `whole` periods, and then the first `head` microseconds of the next one. So
    there are at most two slices a period, whatever the lengths have in common. Times are those of rows: the numbers of
    periods at the ends of time do not fit 64 bits.

    >>> import numpy as np
    >>> from uncombine.windows import Sliding
    >>> slices = Sliding("90 seconds", "1 minute").slices
    >>> slices.whole, slices.head, slices.assign(np.array([0, 30_000_000])).start.tolist()
    (1, 30000000, [0, 30000000])
    """

    size: int
    """The size of a window."""
    period: int
    origin: int
    """The start of one of the windows; at least 0 and less than the period."""

    @property
    def whole(self) -> int:
        """The number of whole periods in a window."""
        return self.size // self.period

    @property
    def head(self) -> int:
        """The length of the first slice of a period that is cut; 0 if periods are whole."""
        return self.size % self.period

    def assign(self, times: np.ndarray) -> RowWindows:
        """The slice of each time."""
        number = grid_numbers(times, self.period, self.origin)
        if not self.head:
            return RowWindows.numbered(number, partial(grid_bounds, step=self.period, origin=self.origin))
        # The difference of a time and the start of its period fits 64 bits, also where the start wraps around.
        tail = times - (number * self.period + self.origin) >= self.head
        return RowWindows.numbered(2 * number + tail, self._halves)

    def periods(self, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of the period of each slice with these starts, and a mask of the slices that are heads."""
        number = grid_numbers(start, self.period, self.origin)
        return number, start - (number * self.period + self.origin) < self.head

    def windows(self, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a slice with this start and a window that has it: its place, and the number of the window's period.

        They are by slice, and by window. A slice between two windows is in none.
        """
        number, is_head = self.periods(start)
        count = self.whole + is_head.astype(np.int64)
        place = np.repeat(np.arange(len(start)), count)
        before = np.repeat(np.cumsum(count), count) - 1 - np.arange(len(place))
        # A tail is in the windows that started last, and a head in one more.
        return place, number[place] - before

    def bounds(self, number: np.ndarray) -> Bounds:
        """The start and the end of the windows that start with these periods, cut off at the ends of time."""
        return grid_bounds(number, self.period, self.origin, self.size)

    def _halves(self, number: np.ndarray) -> Bounds:
        heads = grid_bounds(number >> 1, self.period, self.origin, self.head)
        later, origin = divmod(self.origin + self.head, self.period)
        tails = grid_bounds((number >> 1) + later, self.period, origin, self.period - self.head)
        is_tail = number & 1 == 1
        return np.where(is_tail, tails[0], heads[0]), np.where(is_tail, tails[1], heads[1])

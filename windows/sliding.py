"""Windows of one size that start every period, and the slices that they share."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from .fixed import Fixed
from .grid import earlier, later, since_grid
from .spans import NOTHING, Length, Span, positive, span
from .window import Assigned, Window, settle


@dataclass(frozen=True, init=False, repr=False)
class Sliding(Window):
    """Windows of one size that start every `period`; a row is in each that spans its time.

    With a period longer than the size, times between the windows have none.

    >>> import numpy as np
    >>> from uncombine.windows import Sliding
    >>> Sliding("2 minutes", "1 minute").assign(np.array([60_000_000])).start.tolist()
    [0, 60000000]
    """

    size: Span
    period: Span
    offset: Span = NOTHING

    def __init__(self, size: Length, period: Length, offset: Length = NOTHING) -> None:
        settle(
            self,
            size=positive(size, "the size of Sliding"),
            period=positive(period, "the period of Sliding"),
            offset=span(offset),
        )

    def first_start(self, after: int) -> int:
        """That of the first window of the grid which has not ended."""
        ended = after - int(self.size)
        return ended + int(self.period) - (ended - int(self.offset)) % int(self.period)

    @property
    def slices(self) -> Fixed:
        """Fixed windows that no bound falls inside of: their size divides both size and period.

        Rows that are combined by slice first need not be copied into every window, slices are.

        >>> from uncombine.windows import Sliding
        >>> Sliding("1 hour", "10 minutes", offset="25 minutes").slices
        Fixed('10 minutes', offset='5 minutes')
        """
        step = gcd(self.size, self.period)
        return Fixed(Span(step), Span(self.offset % step))

    def windows_of_slices(self, slice_start: np.ndarray) -> Assigned:
        """The windows that contain each slice; `row` numbers the slices.

        >>> import numpy as np
        >>> from uncombine.windows import Sliding
        >>> Sliding("2 minutes", "1 minute").windows_of_slices(np.array([0])).start.tolist()
        [-60000000, 0]
        """
        # No bound lies inside a slice, so its windows are those of its first instant.
        return self.assign(slice_start)

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        """The windows of each row, by increasing start; `row` is absent where each row has exactly one."""
        size, period = int(self.size), int(self.period)
        since = since_grid(times, period, int(self.offset))
        most = -(-size // period)
        if size % period == 0:
            if most == 1:
                return Assigned(None, earlier(times, since), later(times, size - since))
            count: int | np.ndarray = most
            nth = np.tile(np.arange(most - 1, -1, -1), len(times))
        else:
            count = (size - 1 - since) // period + 1
            behind = np.cumsum(count)
            nth = np.repeat(behind, count) - 1 - np.arange(int(count.sum()))
        row = np.repeat(np.arange(len(times)), count)
        # `nth` counts back from the window that started last; its age is less than the size, so nothing
        # wraps.
        age = since[row] + nth * period
        times = times[row]
        return Assigned(row, earlier(times, age), later(times, size - age))

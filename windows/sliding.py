"""Windows of one size that start every period, and the slices that they share.

`tests/windows/test_aligned.py` guards them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .grid import earlier, later, since_grid
from .slices import Slices
from .spans import ZERO, Length, Span, positive, span
from .window import RowWindows, Window, settle


@dataclass(frozen=True, init=False, repr=False)
class Sliding(Window):
    """Windows of one size that start every `period`; a row is in each window that contains its time.

    If the period is longer than the size, times between two windows have no window.

    Parameters
    ----------
    size
        The length of each window, such as "1 hour".
    period
        The time from one start to the next, such as "10 minutes".
    offset
        The time by which all windows are shifted.

    Examples
    --------
    >>> import numpy as np
    >>> from uncombine.windows import Sliding
    >>> Sliding("2 minutes", "1 minute").assign(np.array([60_000_000])).start.tolist()
    [0, 60000000]
    """

    size: Span
    period: Span
    offset: Span = ZERO

    def __init__(self, size: Length, period: Length, offset: Length = ZERO) -> None:
        settle(
            self,
            size=positive(size, "Sliding", "size"),
            period=positive(period, "Sliding", "period"),
            offset=span(offset),
        )

    def first_start(self, after: int) -> int:
        """The start of the first window that ends after the instant."""
        ended = after - int(self.size)
        return ended + int(self.period) - (ended - int(self.offset)) % int(self.period)

    @property
    def slices(self) -> Slices:
        """The slices: the periods, each cut in two where windows end inside it.

        No window starts or ends inside a slice. Rows are combined by slice first, so that slices and not rows are
        copied into every window.

        >>> import numpy as np
        >>> from uncombine.windows import Sliding
        >>> place, number = Sliding("2 minutes", "1 minute").slices.windows(np.array([0]))
        >>> place.tolist(), number.tolist()
        ([0, 0], [-1, 0])
        """
        return Slices(size=int(self.size), period=int(self.period), origin=int(self.offset) % int(self.period))

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """The windows of each row, by increasing start; `row` is None where each row has exactly one window."""
        size, period = int(self.size), int(self.period)
        since = since_grid(times, period, int(self.offset))
        most = -(-size // period)
        if size % period == 0:
            if most == 1:
                return RowWindows(None, earlier(times, since), later(times, size - since))
            count: int | np.ndarray = most
            nth = np.tile(np.arange(most - 1, -1, -1), len(times))
        else:
            count = (size - 1 - since) // period + 1
            total = np.cumsum(count)
            nth = np.repeat(total, count) - 1 - np.arange(int(count.sum()))
        row = np.repeat(np.arange(len(times)), count)
        # `nth` counts back from the window that started last. Ages are less than the size, so nothing wraps around.
        age = since[row] + nth * period
        times = times[row]
        return RowWindows(row, earlier(times, age), later(times, size - age))

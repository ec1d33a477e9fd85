"""Sessions: bursts of rows that end with a gap.

This module has only the window that each row opens. `windows/merging.py` merges windows that share an instant. Over a
changelog sessions may split again, in `panes/operators/grouping/split_sessions.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .grid import later
from .spans import Length, Span, positive
from .window import Assigned, Window, settle


@dataclass(frozen=True, init=False, repr=False)
class Sessions(Window):
    """Bursts of rows of a key; a gap without rows ends a session.

    A row opens the window `[time, time + gap)`. Windows of a key that overlap become one. Windows that only touch
    stay apart.

    Parameters
    ----------
    gap
        The time without rows after which a session ends, such as "10 minutes".

    Examples
    --------
    >>> import numpy as np
    >>> from uncombine.windows import Sessions
    >>> sessions = Sessions("1 minute")
    >>> rows = sessions.assign(np.array([0, 59_000_000, 119_000_000]))
    >>> sessions.merge(np.zeros(3, int), rows.start, rows.end).end.tolist()
    [119000000, 179000000]
    """

    gap: Span

    def __init__(self, gap: Length) -> None:
        settle(self, gap=positive(gap, "Sessions", "gap"))

    @property
    def merging(self) -> bool:
        """True: sessions of a key merge."""
        return True

    @property
    def end_follows_start(self) -> bool:
        """False: a session may grow at its end."""
        return False

    def first_start(self, after: int) -> int:
        """The start of the window of a row whose gap ends just after the instant."""
        return after + 1 - int(self.gap)

    def first_end(self, start: np.ndarray) -> np.ndarray:
        """The end of the window of the first row."""
        return later(start, int(self.gap))

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        """The window that each row opens, before any merge."""
        gap = int(self.gap)
        return Assigned.numbered(times, lambda number: (number, later(number, gap)))

"""Sessions: bursts of rows that end with a gap.

This module has only the window that each row opens. `windows/hulls.py` merges windows that share an instant. Over a
changelog sessions may split again, in `panes/grouping/split_sessions.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .from_rows import OfRows, check_length, lengths
from .grid import later
from .spans import Length, Span, positive
from .window import RowWindows, Window, settle


@dataclass(frozen=True, init=False, repr=False)
class Sessions(Window):
    """Bursts of rows of a key; a gap without rows ends a session.

    A row opens the window `[time, time + gap)`. Windows of a key that overlap become one. Windows that only touch
    stay apart.

    Parameters
    ----------
    gap
        The time without rows after which a session ends, such as "10 minutes". Or an expression such as
        `uc.col("gap")`, a duration that each row brings. A row whose gap is null, zero or less has no window and
        is counted as unassigned.

    Examples
    --------
    >>> import numpy as np
    >>> from uncombine.windows import Sessions
    >>> sessions = Sessions("1 minute")
    >>> rows = sessions.assign(np.array([0, 59_000_000, 119_000_000]))
    >>> sessions.merge(np.zeros(3, int), rows.start, rows.end).end.tolist()
    [119000000, 179000000]
    """

    gap: Span | OfRows

    def __init__(self, gap: Length | OfRows) -> None:
        settle(self, gap=gap if isinstance(gap, OfRows) else positive(gap, "Sessions", "gap"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the gap is computed from."""
        return self.gap.columns if isinstance(self.gap, OfRows) else ()

    def check(self, schema: pa.Schema) -> None:
        """Raise if rows of this schema have no gap."""
        super().check(schema)
        if isinstance(self.gap, OfRows):
            check_length(self.gap, schema, "Sessions(gap)")

    @property
    def merging(self) -> bool:
        """True: sessions of a key merge."""
        return True

    @property
    def end_follows_start(self) -> bool:
        """False: a session may grow at its end."""
        return False

    def first_start(self, after: int) -> int | None:
        """The start of the window of a row whose gap ends just after the instant; None if rows bring their gaps."""
        return None if isinstance(self.gap, OfRows) else after + 1 - int(self.gap)

    def first_end(self, start: np.ndarray) -> np.ndarray:
        """The end of the window of the first row; the least that there can be if rows bring their gaps."""
        return later(start, 1 if isinstance(self.gap, OfRows) else int(self.gap))

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """The window that each row opens, before any merge."""
        if isinstance(self.gap, OfRows):
            if rows is None:
                raise InvalidArgument(f"{self!r} cannot assign windows without the columns of the rows")
            gaps = lengths(self.gap, rows)
            if bool((gaps > 0).all()):
                return RowWindows(None, times, later(times, gaps))
            row = np.flatnonzero(gaps > 0)
            return RowWindows(row, times[row], later(times[row], gaps[row]))
        gap = int(self.gap)
        return RowWindows.numbered(times, lambda number: (number, later(number, gap)))

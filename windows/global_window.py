"""All of time as one window; `tests/windows/test_aligned.py` guards it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .times import MAX_TIME, MIN_TIME
from .window import Bounds, RowWindows, Window


@dataclass(frozen=True, repr=False)
class Global(Window):
    """All of time as one window, which ends at the end of time; only a final watermark reaches that.

    >>> from uncombine.windows import Global
    >>> Global()
    Global()
    """

    @property
    def may_be_endless(self) -> bool:
        """True: the window has no end."""
        return True

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """The one window for each row."""

        def bounds(number: np.ndarray) -> Bounds:
            return np.full(len(number), MIN_TIME), np.full(len(number), MAX_TIME)

        return RowWindows.numbered(np.zeros(len(times), np.int64), bounds)

"""All of time as one window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .times import MAX_TIME, MIN_TIME
from .window import Assigned, Window


@dataclass(frozen=True, repr=False)
class Global(Window):
    """All of time as one window; its end is the end of time, which only a final watermark reaches.

    >>> from uncombine.windows import Global
    >>> Global()
    Global()
    """

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        """The one window, for each row."""
        return Assigned(None, np.full(len(times), MIN_TIME), np.full(len(times), MAX_TIME))

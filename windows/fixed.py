"""Windows of one size, one after the other; `tests/windows/test_aligned.py` guards them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from .grid import earlier, grid_bounds, grid_numbers, later, since_grid
from .spans import ZERO, Length, Span, positive, span
from .window import RowWindows, Window, settle


@dataclass(frozen=True, init=False, repr=False)
class Fixed(Window):
    """Windows of one size, one after the other: `start = t - floormod(t - offset, size)`.

    Parameters
    ----------
    size
        The length of each window, such as "1 minute".
    offset
        The time by which all windows are shifted.
    per_key_phase
        True to shift the windows of each key by a stable hash of the key, modulo the size. The windows of
        different keys then end, and fire, at different times.

    Examples
    --------
    >>> import numpy as np
    >>> from uncombine.windows import Fixed
    >>> Fixed("1 minute").assign(np.array([-1, 61_000_000])).start.tolist()
    [-60000000, 60000000]
    >>> Fixed("1 day", offset="6 hours")
    Fixed('1 day', offset='6 hours')
    """

    size: Span
    offset: Span = ZERO
    per_key_phase: bool = False

    def __init__(self, size: Length, offset: Length = ZERO, per_key_phase: bool = False) -> None:
        settle(
            self,
            size=positive(size, "Fixed", "size"),
            offset=span(offset),
            per_key_phase=bool(per_key_phase),
        )

    @property
    def needs_key_hash(self) -> bool:
        """True if the windows of a key depend on its hash."""
        return self.per_key_phase

    @property
    def stride(self) -> int:
        """The size of a window."""
        return int(self.size)

    def first_start(self, after: int) -> int:
        """The start of the window that contains the instant."""
        size = int(self.size)
        return after + 1 - size if self.per_key_phase else after - (after - int(self.offset)) % size

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """One window for each row; without hashes (for rows without a key) windows have no phase."""
        size = int(self.size)
        origin = int(self.offset) % size
        if not self.per_key_phase or key_hash is None:
            return RowWindows.numbered(
                grid_numbers(times, size, origin), partial(grid_bounds, step=size, origin=origin)
            )
        phase = (key_hash % np.uint64(size)).view(np.int64)
        # Both are below the size, and the sum of the two may not fit into 64 bits.
        since = since_grid(times, size, np.where(phase >= size - origin, phase - (size - origin), phase + origin))
        return RowWindows(None, earlier(times, since), later(times, size - since))

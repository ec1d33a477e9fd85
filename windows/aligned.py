"""Windows that are the same for every key: all of time, fixed, sliding."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from math import gcd

import numpy as np

from ..errors import InvalidArgument
from .spans import Span, positive, span
from .times import MAX_TIME, MIN_TIME
from .window import Assigned, Window, floor, plus


def _zero() -> Span:
    return Span(0)


@dataclass(frozen=True, repr=False)
class Global(Window):
    """All of time as one window; its end is reached only by a final watermark.

    >>> from uncombine.windows import Global
    >>> Global()
    Global()
    """

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        return Assigned(None, np.full(len(times), MIN_TIME), np.full(len(times), MAX_TIME))


@dataclass(frozen=True, repr=False)
class Fixed(Window):
    """Windows of one size, one behind the other, starting at `offset` after the epoch.

    With `per_key_phase`, each key's windows are shifted by a stable hash of the key, so that not all fire at once.

    >>> import numpy as np
    >>> from uncombine.windows import Fixed
    >>> Fixed("1 minute").assign(np.array([-1, 61_000_000])).start.tolist()
    [-60000000, 60000000]
    """

    size: Span | str | timedelta
    offset: Span | str | timedelta = field(default_factory=_zero)
    per_key_phase: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive(self.size, "the size of Fixed"))
        object.__setattr__(self, "offset", span(self.offset))

    @property
    def needs_key_hash(self) -> bool:  # type: ignore[override]
        return self.per_key_phase

    @property
    def end_follows_start(self) -> bool:  # type: ignore[override]
        return True

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        size, offset = int(self.size), int(self.offset)  # type: ignore[arg-type]
        if self.per_key_phase and key_hash is not None:
            phase = (key_hash % np.uint64(size)).astype(np.int64)
            start = times - np.mod(times - offset - phase, size)
        else:
            start = floor(times, size, offset)
        return Assigned(None, start, plus(start, size))


@dataclass(frozen=True, repr=False)
class Sliding(Window):
    """Windows of one size that start every `period`; a row is in each that spans its time.

    With a period longer than the size, times between windows have none.

    >>> import numpy as np
    >>> from uncombine.windows import Sliding
    >>> Sliding("2 minutes", "1 minute").assign(np.array([60_000_000])).start.tolist()
    [0, 60000000]
    """

    size: Span | str | timedelta
    period: Span | str | timedelta
    offset: Span | str | timedelta = field(default_factory=_zero)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive(self.size, "the size of Sliding"))
        object.__setattr__(self, "period", positive(self.period, "the period of Sliding"))
        object.__setattr__(self, "offset", span(self.offset))

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        return self._containing(times, 1)

    @property
    def slices(self) -> Fixed:
        """Fixed windows so small that each sliding window is made of whole ones: combine by slice, then by window."""
        size, period = int(self.size), int(self.period)  # type: ignore[arg-type]
        step = gcd(size, period)
        return Fixed(Span(step), Span(int(self.offset) % step))  # type: ignore[arg-type]

    def windows_of_slices(self, start: np.ndarray) -> Assigned:
        """The windows that contain slices starting at these times."""
        return self._containing(start, int(self.slices.size))  # type: ignore[arg-type]

    def _containing(self, times: np.ndarray, length: int) -> Assigned:
        size, period, offset = int(self.size), int(self.period), int(self.offset)  # type: ignore[arg-type]
        last = floor(times, period, offset)
        first = floor(times + (length - 1) - size, period, offset) + period
        count = np.maximum((last - first) // period + 1, 0)
        row = np.repeat(np.arange(len(times)), count)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        start = first[row] + nth * period
        return Assigned(row, start, plus(start, size))


@dataclass(frozen=True, repr=False)
class Inherit(Window):
    """The windows that rows already have in their column `window`, as the stage before assigned them.

    >>> from uncombine.windows import Inherit
    >>> Inherit()
    Inherit()
    """

    end_follows_start = False

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        raise InvalidArgument("Inherit() takes windows from the column 'window' and cannot assign any itself")

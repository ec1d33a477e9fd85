"""What every kind of window gives: windows for the times of rows, and whether they merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np

from .merging import Merged, union_intervals
from .times import MAX_TIME, MIN_TIME


@dataclass(frozen=True)
class Assigned:
    """Windows of rows: entry i says that row `row[i]` is in [start[i], end[i]); no `row` means one window a row."""

    row: np.ndarray | None
    start: np.ndarray
    end: np.ndarray


class Window(ABC):
    """A way to cut event time into windows; a value."""

    merging = False
    """Whether overlapping windows of a key become one."""
    needs_key_hash = False
    """Whether `assign` wants a hash of each row's key."""
    end_follows_start = True
    """Whether two windows with the same start have the same end."""

    @abstractmethod
    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        """The windows of rows with these times, microseconds UTC."""

    def merge(self, codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Merged:
        """Windows of each key joined where they overlap."""
        return union_intervals(codes, start, end)

    def __repr__(self) -> str:
        parts = []
        for f in fields(self):  # type: ignore[arg-type]
            given = getattr(self, f.name)
            default = f.default_factory() if callable(f.default_factory) else f.default
            if given == default:
                continue
            parts.append(repr(given) if not parts and f is fields(self)[0] else f"{f.name}={given!r}")  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(parts)})"


def floor(times: np.ndarray, size: int, offset: int) -> np.ndarray:
    """The last instant `offset + k * size` that is not after each time."""
    return times - np.mod(times - offset, size)


def plus(times: np.ndarray, length: int) -> np.ndarray:
    """Times later by a positive length, at most the end of time."""
    return np.where(times > MAX_TIME - length, MAX_TIME, times + length) if _near(times, length) else times + length


def _near(times: np.ndarray, length: int) -> bool:
    return len(times) > 0 and (int(times.max()) > MAX_TIME - length or int(times.min()) < MIN_TIME + length)

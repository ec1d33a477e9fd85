"""What every kind of window gives: windows for the times of rows, and whether they merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TypeAlias

import numpy as np

from .merging import Merged, union_intervals

Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]


class Assigned:
    """Windows of rows: row `row[i]` is in [start[i], end[i]). Without `row`, each row has one, in order."""

    row: np.ndarray | None = None
    number: np.ndarray | None = None
    """Where windows are numbered in the order of time, the number of each: cheaper to work with than bounds are."""
    bounds_of: Callable[[np.ndarray], Bounds]
    """The bounds of windows of these numbers."""

    def __init__(self, row: np.ndarray | None, start: np.ndarray, end: np.ndarray) -> None:
        self.row = row
        self._bounds: Bounds | None = (start, end)

    @classmethod
    def numbered(cls, number: np.ndarray, bounds_of: Callable[[np.ndarray], Bounds]) -> Assigned:
        """One window for each row; its bounds are worked out from its number when somebody asks."""
        self = cls.__new__(cls)
        self.number, self.bounds_of, self._bounds = number, bounds_of, None
        return self

    @property
    def start(self) -> np.ndarray:
        """Where each window starts."""
        return self._all()[0]

    @property
    def end(self) -> np.ndarray:
        """Where each window ends; it is not in it."""
        return self._all()[1]

    def bounds(self, places: np.ndarray) -> Bounds:
        """Start and end of some of the windows."""
        if self.number is not None:
            return self.bounds_of(self.number.take(places, mode="clip"))
        return self.start.take(places, mode="clip"), self.end.take(places, mode="clip")

    def _all(self) -> Bounds:
        if self._bounds is None:
            assert self.number is not None
            self._bounds = self.bounds_of(self.number)
        return self._bounds


@dataclass(frozen=True, repr=False)
class Window(ABC):
    """A way to cut event time into half-open windows; a value, equal to one of the same kind and settings."""

    @property
    def merging(self) -> bool:
        """Whether windows of a key may become one."""
        return False

    @property
    def inherits(self) -> bool:
        """Whether rows bring their windows with them, so that none are assigned."""
        return False

    @property
    def needs_key_hash(self) -> bool:
        """Whether `assign` wants a hash of each row's key."""
        return False

    @property
    def end_follows_start(self) -> bool:
        """Whether two windows of a key with the same start have the same end."""
        return True

    @property
    def may_be_endless(self) -> bool:
        """Whether a window may last to the end of time, and not only as its calendar or its numbers end there."""
        return False

    @property
    def merges_by_overlap(self) -> bool:
        """Whether windows that merge become the hulls of those that overlap."""
        return self.merging

    def first_start(self, after: int) -> int | None:
        """The least start of windows that end after an instant, before any merge; None where it is not known."""
        return None

    def first_end(self, start: np.ndarray) -> np.ndarray:
        """For merged windows, the least end that the window of one of their rows may have."""
        return start + 1

    @abstractmethod
    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        """The windows of rows with these times; one that the ends of time cut starts or ends there."""

    def merge(self, codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Merged:
        """Windows of each key joined where they overlap; keys are numbers from 0."""
        return union_intervals(codes, start, end)

    def __repr__(self) -> str:
        parts = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.default is MISSING:
                parts.append(repr(value))
            elif value != f.default:
                parts.append(f"{f.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def settle(value: Window, **settings: object) -> None:
    """Set the fields of a frozen value that is being made."""
    for name, setting in settings.items():
        object.__setattr__(value, name, setting)

"""The base of every kind of window: it assigns windows to the times of rows, and merges windows.

`tests/windows/test_values.py` guards it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ..errors import NamedOptions, require_column
from .hulls import Hulls, union_intervals

Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]


class RowWindows:
    """The windows of rows: row `row[i]` is in [start[i], end[i]). If `row` is None, each row has one, in order."""

    row: np.ndarray | None = None
    number: np.ndarray | None = None
    """The number of each window, if windows are numbered in the order of time; numbers are cheaper than bounds."""
    bounds_of: Callable[[np.ndarray], Bounds]
    """The bounds of the windows with given numbers."""

    def __init__(self, row: np.ndarray | None, start: np.ndarray, end: np.ndarray) -> None:
        self.row = row
        self._bounds: Bounds | None = (start, end)

    @classmethod
    def numbered(cls, number: np.ndarray, bounds_of: Callable[[np.ndarray], Bounds]) -> RowWindows:
        """One window for each row; its bounds are computed from its number at first use."""
        self = cls.__new__(cls)
        self.number, self.bounds_of, self._bounds = number, bounds_of, None
        return self

    @property
    def start(self) -> np.ndarray:
        """The start of each window."""
        return self._all()[0]

    @property
    def end(self) -> np.ndarray:
        """The end of each window, which is not part of it."""
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
class Window(NamedOptions, ABC):
    """A way to cut event time into half-open windows, as a value: windows of one kind and settings are equal."""

    @property
    def merging(self) -> bool:
        """True if windows of a key may become one."""
        return False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that `assign` sees, beside their times."""
        return ()

    @property
    def needs_key_hash(self) -> bool:
        """True if `assign` needs a hash of each row's key."""
        return False

    @property
    def end_follows_start(self) -> bool:
        """True if two windows of a key with the same start have the same end."""
        return True

    @property
    def may_be_endless(self) -> bool:
        """True if a window may last to the end of time by its kind, and not only because its numbers end there."""
        return False

    @property
    def stride(self) -> int:
        """The microseconds, about, from one window of a key to the next; 0 if that is not known."""
        return 0

    @property
    def merges_by_overlap(self) -> bool:
        """True if windows that overlap merge into their hull."""
        return self.merging

    def first_start(self, after: int) -> int | None:
        """The least start of the windows that end after an instant, before any merge; None if it is not known."""
        return None

    def first_end(self, start: np.ndarray) -> np.ndarray:
        """The least end of the window of the first row, for merged windows with these starts."""
        return start + 1

    def check(self, schema: pa.Schema) -> None:
        """Raise if rows of this schema do not have what `assign` needs."""
        for name in self.columns:
            require_column(name, schema.names, f"window={self!r}")

    @abstractmethod
    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """The windows of rows with these times, cut off at the ends of time.

        `rows` is a table that has the `columns` of the rows; it may be None if there are none.
        """

    def merge(self, codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Hulls:
        """The windows of each key, merged where they overlap; `codes` numbers the keys from 0."""
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


def settle(value: object, **settings: object) -> None:
    """Set the fields of a frozen value in its `__init__`."""
    for name, setting in settings.items():
        object.__setattr__(value, name, setting)

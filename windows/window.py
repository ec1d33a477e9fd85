"""What every kind of window gives: windows for the times of rows, and whether they merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields

import numpy as np

from .merging import Merged, union_intervals


@dataclass(frozen=True, eq=False)
class Assigned:
    """Windows of rows: row `row[i]` is in [start[i], end[i]). Without `row`, each row has one, in order."""

    row: np.ndarray | None
    start: np.ndarray
    end: np.ndarray


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

"""Cells: the rows of a bundle combined by (key, window), before they meet the windows in hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...combiners import Plan
from ...combiners.algebra import Accumulators
from ...combiners.rows.group_sums import extreme, sum_counts, sum_int64
from ...combiners.rows.groups import Groups
from ...windows.times import MAX_TIME, MIN_TIME

Pairs: TypeAlias = tuple[np.ndarray, np.ndarray]

NUMBERS = ("start", "end", "weight", "earliest", "latest")


def _no_rows() -> Pairs:
    return np.empty(0, np.int64), np.empty(0, np.int64)


@dataclass(frozen=True)
class Cells:
    """Columns with one cell for each (key, window)."""

    keys: list[pa.Array]
    start: np.ndarray
    end: np.ndarray
    acc: Accumulators
    count: np.ndarray
    weight: np.ndarray
    earliest: np.ndarray
    latest: np.ndarray
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    of_row: Callable[[], Pairs] = _no_rows
    """Pairs (row, cell) of a row and a cell that it is in; computed when called."""
    unassigned: int = 0
    bad: int = 0

    def __len__(self) -> int:
        return len(self.start)

    def take(self, mask: np.ndarray) -> Cells:
        """The cells where this mask is true."""
        places = np.flatnonzero(mask)
        at = pa.array(places)

        def of_row() -> Pairs:
            row, cell = self.of_row()
            number = np.cumsum(mask) - 1
            return row[mask[cell]], number[cell[mask[cell]]]

        return replace(
            self,
            keys=[k.take(at) for k in self.keys],
            acc=tuple(a.take(at) for a in self.acc),
            count=self.count[places],
            facts={name: values[places] for name, values in self.facts.items()},
            of_row=of_row,
            **{name: getattr(self, name)[places] for name in NUMBERS},
        )

    def counted(self, output_watermark: int) -> Cells:
        """The cells with `latest` over the rows that are not before the output watermark.

        It is the latest time of all rows of the cell, or there is no such row. In a window without end each row counts.
        """
        counts = (self.latest >= output_watermark) | (self.end == MAX_TIME)
        return self if counts.all() else replace(self, latest=np.where(counts, self.latest, MIN_TIME))

    def joined(self, other: Cells) -> Cells:
        """These cells and others after them, without the pairs of rows and cells."""
        numbers: dict[str, Any] = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in NUMBERS}
        return Cells(
            [pa.concat_arrays([x, y]) for x, y in zip(self.keys, other.keys, strict=True)],
            acc=tuple(pa.concat_arrays([x, y]) for x, y in zip(self.acc, other.acc, strict=True)),
            count=np.concatenate([self.count, other.count]),
            facts={n: np.concatenate([values, other.facts[n]]) for n, values in self.facts.items()},
            **numbers,
        )

    def summed(self, plan: Plan, groups: Groups, hull: bool = False) -> Cells:
        """The cells of each group made one, with the bounds of the first of them, or with their hull."""
        first = np.full(groups.count, len(self))
        np.minimum.at(first, groups.codes, np.arange(len(self)))
        at = pa.array(first)

        def of_row() -> Pairs:
            row, cell = self.of_row()
            return row, groups.codes[cell]

        return Cells(
            keys=[k.take(at) for k in self.keys],
            start=extreme(groups, self.start, MAX_TIME, np.minimum) if hull else self.start[first],
            end=extreme(groups, self.end, MIN_TIME, np.maximum) if hull else self.end[first],
            acc=plan.merge(groups, self.acc),
            count=sum_int64(groups, self.count),
            weight=sum_counts(groups, self.weight),
            earliest=extreme(groups, self.earliest, MAX_TIME, np.minimum),
            latest=extreme(groups, self.latest, MIN_TIME, np.maximum),
            facts={name: sum_int64(groups, values) for name, values in self.facts.items()},
            of_row=of_row,
            unassigned=self.unassigned,
            bad=self.bad,
        )

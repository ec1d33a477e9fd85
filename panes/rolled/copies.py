"""The copies of rows that a changelog leaves of those in the state and those of a bundle.

Guarded by tests/panes/rolled/test_rolled.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.groups import Groups
from ..rows.equal_rows import netted
from ..rows.options import AdmittedRows, Columns


@dataclass(frozen=True)
class Copies:
    """Places among the rows of the state and, after them, those of the bundle; each copy of a row stands alone."""

    stay: np.ndarray
    """Copies of the state that stay."""
    come: np.ndarray
    """The row of each copy that comes; a row of weight 2 comes twice."""
    go: np.ndarray
    """Copies of the state that are retracted."""
    awaited: np.ndarray
    """Rows that were retracted more often than they came."""
    lacking: np.ndarray
    """The negative weight of each of these."""

    @classmethod
    def added(cls, old: int, new: int) -> Copies:
        """Rows that only come.

        >>> Copies.added(2, 1).come
        array([2])
        """
        none = np.zeros(0, np.int64)
        return cls(stay=np.arange(old), come=np.arange(old, old + new), go=none, awaited=none, lacking=none)

    def at(self, places: np.ndarray, others: np.ndarray) -> Copies:
        """The same copies of the rows at these places, beside other rows of the state, which stay.

        >>> Copies.added(1, 1).at(np.array([3, 7]), others=np.array([0])).stay
        array([0, 3])
        """
        return Copies(
            stay=np.concatenate([others, places[self.stay]]),
            come=places[self.come],
            go=places[self.go],
            awaited=places[self.awaited],
            lacking=self.lacking,
        )

    @classmethod
    def netted(cls, low: np.ndarray, high: np.ndarray, weights: np.ndarray, old: int) -> Copies:
        """Rows by their hashes, the first `old` of them from the state, where a copy has weight 1.

        >>> low, high = np.array([5, 5, 6, 5], np.uint64), np.zeros(4, np.uint64)
        >>> copies = Copies.netted(low, high, np.array([1, 1, -1, -1]), old=3)
        >>> copies.stay, copies.go, copies.awaited
        (array([0]), array([1]), array([2]))
        """
        groups, first, sums = netted(low, high, weights)
        copy = np.flatnonzero(weights[:old] > 0)
        held = Groups(groups.codes[copy], groups.count)
        number = np.empty(len(copy), np.int64)
        number[held.order] = np.arange(len(copy)) - np.repeat(held.starts, held.sizes)
        stays = number < sums[held.codes]
        more = np.maximum(np.maximum(sums, 0) - held.sizes, 0)
        awaits = sums < 0
        return cls(
            stay=copy[stays], come=np.repeat(first, more), go=copy[~stays], awaited=first[awaits], lacking=sums[awaits]
        )


def copies_of(columns: Columns, rows: pa.Table, stored: pa.Table, bundle: AdmittedRows) -> tuple[Copies, np.ndarray]:
    """The copies of rows, stored ones and those of a bundle; and the places of retractions that are looked at again."""
    if bundle.weights is None:
        return Copies.added(len(stored), len(bundle)), np.empty(0, np.int64)
    weights, times = (np.asarray(flat(table)) for table in (stored["weight"], rows["event_time"].cast(pa.int64())))
    # Only rows of one time can be equal.
    near = np.isin(times[: len(stored)], bundle.times)
    places = np.concatenate([np.flatnonzero(near), np.arange(len(stored), len(rows))])
    low, high = columns.row_hashes(rows.take(pa.array(places)))
    weighed = np.concatenate([weights[near], bundle.weights])
    copies = Copies.netted(low, high, weighed, int(np.count_nonzero(near)))
    return copies.at(places, np.flatnonzero(~near & (weights > 0))), np.flatnonzero(near & (weights < 0))


__all__ = ["Copies", "copies_of"]

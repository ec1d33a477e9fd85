"""The results that rows have: those that the state keeps of them, and those that are computed again.

Columns of the state are read where they are needed, and not put in the order of the rows in hand.

Guarded by tests/panes/rolled/test_rolled.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

NONE = -1
"""The place of a row without results."""


@dataclass(frozen=True)
class ShownResults:
    """Columns of results, and the place in them of each row in hand.

    >>> results = ShownResults.of([pa.array([7, 8])]).at(np.array([1, NONE, 0]))
    >>> [column.to_pylist() for column in results.with_new(np.array([0]), [pa.array([9])]).take(np.arange(3))]
    [[9, None, 7]]
    """

    kept: Sequence[pa.Array]
    """Those of the rows that were read from the state, in their order."""
    columns: Sequence[pa.Array]
    """The same, and after them those that are new."""
    places: np.ndarray

    @classmethod
    def of(cls, kept: Sequence[pa.Array]) -> ShownResults:
        """The results of the rows that were read from the state."""
        return cls(kept=kept, columns=kept, places=np.zeros(0, np.int64))

    def at(self, places: np.ndarray) -> ShownResults:
        """The same for rows in hand, with the place of each among those read; `NONE` for a row that is new."""
        return replace(self, places=places)

    def with_new(self, rows: np.ndarray, columns: Sequence[pa.Array]) -> ShownResults:
        """The same with new results of some of the rows in hand."""
        places = self.places.copy()
        places[rows] = len(self.columns[0]) + np.arange(len(rows))
        every = [pa.concat_arrays(pair) if len(pair[0]) else pair[1] for pair in zip(self.kept, columns, strict=True)]
        return replace(self, columns=every, places=places)

    def take(self, rows: np.ndarray, nulls: int = 0) -> list[pa.Array]:
        """The results of some of the rows in hand, and then some nulls."""
        places = self.places[rows]
        if nulls:
            places = np.append(places, np.full(nulls, NONE))
        return _taken(self.columns, places)

    def before(self, read: np.ndarray) -> list[pa.Array]:
        """The results that were shown of rows that were read."""
        return _taken(self.kept, read)


def _taken(columns: Sequence[pa.Array], places: np.ndarray) -> list[pa.Array]:
    missing = places == NONE
    chosen = pa.array(places, mask=missing if missing.any() else None)
    return [column.take(chosen) for column in columns]


__all__ = ["NONE", "ShownResults"]

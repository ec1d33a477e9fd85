"""Some rows of a store, by hash or by clock: their hashes and clocks at once, their columns when they are needed.

Guarded by tests/panes/state/test_store.py and tests/panes/join/test_join_cases.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from .store import Places, Store


@dataclass(frozen=True)
class StoreRows:
    """Rows of a store, numbered in the order of its chunks."""

    store: Store
    places: Places

    @classmethod
    def of(cls, store: Store | None, touched: np.ndarray, clocks: dict[str, int], schema: pa.Schema) -> StoreRows:
        """The rows whose hash may be in `touched` or that are due."""
        store = Store(schema) if store is None else store
        return cls(store, store.places(touched, clocks))

    def __len__(self) -> int:
        return sum(map(len, self.places))

    @property
    def starts(self) -> np.ndarray:
        """The number of the first row of each chunk, and at the end the number of rows."""
        return np.cumsum([0, *map(len, self.places)])

    def clock(self, name: str) -> np.ndarray:
        """One clock of each row."""
        parts = [chunk.wake[name][at] for chunk, at in zip(self.store.chunks, self.places, strict=True)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def hashes(self) -> np.ndarray:
        """The hash of each row."""
        parts = [chunk.hashes[at] for chunk, at in zip(self.store.chunks, self.places, strict=True)]
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Some columns of the rows, or all."""
        names = self.store.schema.names if columns is None else columns
        empty = self.store.schema.empty_table().select(names)
        pairs = zip(self.store.chunks, self.places, strict=True)
        parts = [_taken(chunk.table.select(names), at) for chunk, at in pairs if len(at)]
        return pa.concat_tables([empty, *parts]) if len(parts) != 1 else parts[0]

    def where(self, chosen: np.ndarray) -> StoreRows:
        """The rows where a mask is true."""
        starts = self.starts
        parts = (at[chosen[starts[i] : starts[i + 1]]] for i, at in enumerate(self.places))
        return replace(self, places=tuple(parts))

    def removed(self) -> Store:
        """The store without these rows."""
        return self.store.without(self.places)


def _taken(table: pa.Table, places: np.ndarray) -> pa.Table:
    """The rows at these places; the table itself if they are all its rows in order."""
    if len(places) == table.num_rows and bool(np.all(places[1:] > places[:-1])):
        return table
    return table.take(pa.array(places))

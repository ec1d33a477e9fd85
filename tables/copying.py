"""Tables whose files are written again: the rows whose keys do not change are copied, and new rows follow.

Guarded by tests/tables/test_tables_parquet.py and tests/tables/test_tables_iceberg.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import Column
from ..combiners.rows.hashing import hash_rows_128
from .changes import Changes
from .layout import CHANGE


class ChangedKeys:
    """The keys of changes, by hashes of 128 bits, and those that the rows of a table have."""

    def __init__(self, changes: Changes) -> None:
        self.keys = changes.layout.keys
        parts = [(*_hashed(batch, self.keys), np.asarray(batch.column(CHANGE))) for batch in changes.batches()]
        low, high, change = (np.concatenate(some) for some in zip(*parts, strict=True)) if parts else [np.array([])] * 3
        order = np.argsort(low, kind="stable")
        self.low, self.high, self.change = low[order], high[order], change[order]
        self.seen = np.zeros(len(low), np.int64)

    def meets(self, rows: pa.RecordBatch) -> bool:
        """True if the key of a row changes; the keys that rows have are noted."""
        places = self._places(rows)
        np.add.at(self.seen, places[places >= 0], 1)
        return bool((places >= 0).any())

    def left(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows whose keys do not change."""
        other = self._places(rows) < 0
        return rows if other.all() else rows.filter(pa.array(other))

    def _places(self, rows: pa.RecordBatch) -> np.ndarray:
        """The place of the change of each row's key; -1 if it does not change."""
        if not len(self.low) or not rows.num_rows:
            return np.full(rows.num_rows, -1)
        low, high = _hashed(rows, self.keys)
        place = np.minimum(np.searchsorted(self.low, low), len(self.low) - 1)
        return np.where((self.low[place] == low) & (self.high[place] == high), place, -1)

    @property
    def fitting(self) -> int:
        """The number of changes that fit the rows so far: a new row has none before it, and another one has one."""
        return int((self.seen == (self.change <= 0)).sum())


def _hashed(rows: pa.RecordBatch, keys: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    return hash_rows_128([Column(rows.column(name)) for name in keys])


def new_rows(changes: Changes) -> Iterator[pa.RecordBatch]:
    """The rows that changes add, or put in the place of others."""
    for batch in changes.batches():
        some = np.asarray(batch.column(CHANGE)) >= 0
        rows = batch.select(changes.layout.schema.names)
        yield rows if some.all() else rows.filter(pa.array(some))


__all__ = ["ChangedKeys", "new_rows"]

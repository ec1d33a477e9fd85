"""The versions that sent the values of rows, in the state, for rows with values of versions before their own.

Guarded by tests/panes/upserts/test_unsent.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...windows.times import NEVER
from ..rows.equal_rows import groups_of
from ..state.store import Store
from ..state.store_rows import StoreRows

SENT = pa.schema([("low", pa.uint64()), ("high", pa.uint64()), ("versions", pa.list_(pa.int64()))])
"""The hash of a key, and the numbers of the version of each value that may be left out."""


@dataclass(frozen=True)
class SentVersions:
    """The entries of some keys, and perhaps of others that are found by mistake."""

    rows: StoreRows
    table: pa.Table
    shape: tuple[int, int]
    """The number of values that may be left out, and of the numbers of a version."""

    @classmethod
    def of(cls, store: Store, touched: np.ndarray, shape: tuple[int, int]) -> SentVersions:
        """The entries of keys whose hash may be among these."""
        rows = StoreRows.of(store, touched, {}, SENT)
        return cls(rows, rows.read(), shape)

    def over(self, own: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, bool]:
        """The versions of the values of rows, which are their own but for those with an entry; True if one has."""
        entry = self._entries(low, high)
        there = entry >= 0
        if not there.any():
            return own, False
        lists = self.table["versions"].combine_chunks().take(pa.array(entry[there]))
        own = own.copy()
        own[there] = lists.flatten().to_numpy().reshape(-1, *self.shape)
        return own, True

    def replaced(self, low: np.ndarray, high: np.ndarray, versions: np.ndarray, has: np.ndarray) -> Store:
        """The store with these versions of the rows of keys, of which only some have an entry."""
        entries = self._entries(low, high)
        gone = np.zeros(len(self.rows), np.bool_)
        gone[entries[entries >= 0]] = True
        store = self.rows.where(gone).removed() if gone.any() else self.rows.store
        if not has.any():
            return store
        size = self.shape[0] * self.shape[1]
        count = int(np.count_nonzero(has))
        offsets = pa.array(np.arange(count + 1) * size, pa.int32())
        lists = pa.ListArray.from_arrays(offsets, pa.array(versions[has].reshape(-1)))
        table = pa.Table.from_arrays([pa.array(low[has]), pa.array(high[has]), lists], schema=SENT)
        return store.put(low[has], table, {"event": np.full(count, NEVER)})

    def _entries(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The place of the entry of each key; -1 where there is none."""
        entries = np.full(len(low), -1)
        if not len(self.rows) or not len(low):
            return entries
        both = [np.concatenate([self.table[name].to_numpy(), keys]) for name, keys in (("low", low), ("high", high))]
        codes = groups_of(*both)[0].codes
        place = np.full(codes.max() + 1, -1)
        place[codes[: len(self.rows)]] = np.arange(len(self.rows))
        return place[codes[len(self.rows) :]]


__all__ = ["SENT", "SentVersions"]

"""Deposits: large contents of windows stay in a store of their own, and a window in hand has what came since.

A multiset of millions of values, or a long text, would have to be written again whenever a row came to its window. So
contents above a size are put aside as a deposit, which does not change, and the window goes on from nothing. The
deposits of a window are added up when its contents are read (`contents.py`). Here are their places only.

Guarded by tests/panes/grouping/test_deposits.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..state.store_rows import StoreRows
from .intervals import equal_pairs


@dataclass(frozen=True)
class Deposits:
    """The deposits of windows in hand, numbered as they were found in their store."""

    rows: StoreRows
    sizes: np.ndarray
    """The bytes of each deposit."""
    owner: np.ndarray
    """The window in hand that has each deposit; -1 where no window has it any more."""

    def take(self, windows: np.ndarray) -> Deposits:
        """The deposits of the windows at these places, each of them named once."""
        number = np.full(max(int(self.owner.max(initial=-1)), int(windows.max(initial=-1))) + 2, -1)
        number[windows] = np.arange(len(windows))
        return replace(self, owner=number[self.owner])  # the last entry is that of -1

    def regrouped(self, into: np.ndarray) -> Deposits:
        """The deposits of other windows; `into` is the one in which each window goes on."""
        return replace(self, owner=np.append(into, -1)[self.owner])

    def without(self, windows: np.ndarray) -> Deposits:
        """The same, where windows for which the mask is true have no deposits."""
        return replace(self, owner=np.where(np.append(windows, True)[self.owner], -1, self.owner))

    def of_windows(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The deposits of some windows: which of these windows has each, and its number."""
        order = np.argsort(self.owner, kind="stable")
        return equal_pairs(windows, self.owner[order], order)

    def read(self, numbers: np.ndarray) -> list[list[pa.Array]]:
        """The chunks of each divisible accumulator column, over the deposits with these numbers, which increase."""
        store = self.rows.store
        names = [name for name in store.schema.names if name.startswith("acc.")]
        chosen = np.zeros(len(self.owner), np.bool_)
        chosen[numbers] = True
        parts = zip(store.chunks, self.rows.where(chosen).places, strict=True)
        tables = [_rows(chunk.table.select(names), at) for chunk, at in parts if len(at)]
        return [[part for table in tables for part in table[name].chunks] for name in names]


def _rows(table: pa.Table, at: np.ndarray) -> pa.Table:
    """The rows at these places; they are not copied where they are next to each other."""
    if int(at[-1]) - int(at[0]) == len(at) - 1 and bool(np.all(at[1:] > at[:-1])):
        return table.slice(int(at[0]), len(at))
    return table.take(pa.array(at))

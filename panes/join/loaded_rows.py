"""The rows of one side that a step looks at: those of the store, those that the bundle changes, and witnesses.

Guarded by tests/panes/join/test_join.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, int64_column
from ..state.store_rows import StoreRows
from .compiled import Side
from .side_changes import ChangedRows


@dataclass(frozen=True)
class LoadedRows:
    """Rows of a side, numbered: first those of the store that do not change, then those that do, then the witnesses.

    Witnesses count as matches and are in no pair: no row that is in time is within their reach.
    """

    store_rows: StoreRows
    changed: ChangedRows
    keys: list[pa.Array]
    times: np.ndarray
    before: np.ndarray
    after: np.ndarray
    is_changed: np.ndarray
    """True where the weight after the bundle is not that before it."""
    leaves: np.ndarray
    """True where the row leaves in this step."""

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(
        cls, side: Side, store_rows: StoreRows, changed: ChangedRows, witnesses: StoreRows | None, watermark: int
    ) -> LoadedRows:
        """Read what every row is needed for: key, time and weights."""
        tables = [store_rows.read(side.narrow), changed.table.select(side.narrow)]
        tables += [] if witnesses is None else [witnesses.read(side.narrow)]
        tables = [table for table in tables if table.num_rows] or tables[:1]
        every = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        weights = int64_column(every["weight"])
        before, after, is_changed = weights, weights, np.zeros(len(weights), np.bool_)
        if len(changed) == len(weights):
            before, after, is_changed = changed.before, changed.after, changed.before != changed.after
        elif len(changed):
            place = slice(len(store_rows), len(store_rows) + len(changed))
            before, after = weights.copy(), weights.copy()
            before[place], after[place] = changed.before, changed.after
            is_changed[place] = changed.before != changed.after
        leaves = np.zeros(len(weights), np.bool_)
        leaves[: len(store_rows)] = store_rows.clock("event") <= watermark
        leaves[len(store_rows) : len(store_rows) + len(changed)] = changed.expiry <= watermark
        keys = [flat(every[f"key.{i}"]) for i in range(len(side.keys))]
        return cls(
            store_rows=store_rows,
            changed=changed,
            keys=keys,
            times=int64_column(every["time"]),
            before=before,
            after=after,
            is_changed=is_changed,
            leaves=leaves,
        )

    def values(self, rows: np.ndarray, names: Sequence[str]) -> pa.Table:
        """Columns of the rows with these numbers (ascending), none of which is a witness."""
        cut = int(np.searchsorted(rows, len(self.store_rows)))
        chosen = np.zeros(len(self.store_rows), np.bool_)
        chosen[rows[:cut]] = True
        old = self.store_rows.where(chosen).read(names)
        places = rows[cut:] - len(self.store_rows)
        new = self.changed.table.select(names)
        if len(places) != len(self.changed):
            new = new.take(pa.array(places))
        return pa.concat_tables([old, new]) if old.num_rows else new

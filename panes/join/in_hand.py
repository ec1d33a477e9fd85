"""The rows of one side that a step looks at: found in the state, changed by the bundle, and witnesses.

Guarded by tests/panes/join/test_join.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, int64_column
from ..state.found import Found
from .compiled import Side
from .netting import Changed


@dataclass(frozen=True)
class InHand:
    """Rows of a side, numbered: first those found and unchanged, then those changed, then the witnesses.

    Witnesses count as matches and are in no pair: no row that is in time is within their reach.
    """

    found: Found
    changed: Changed
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
    def of(cls, side: Side, found: Found, changed: Changed, witnesses: Found, watermark: int) -> InHand:
        """Read what every row is needed for: key, time and weights."""
        tables = [found.read(side.narrow), changed.table.select(side.narrow), witnesses.read(side.narrow)]
        tables = [table for table in tables if table.num_rows] or tables[:1]
        every = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        weights = int64_column(every["weight"])
        before, after, is_changed = weights, weights, np.zeros(len(weights), np.bool_)
        if len(changed):
            place = slice(len(found), len(found) + len(changed))
            before, after = weights.copy(), weights.copy()
            before[place], after[place] = changed.before, changed.after
            is_changed[place] = changed.before != changed.after
        leaves = np.zeros(len(weights), np.bool_)
        leaves[: len(found)] = found.clock("event") <= watermark
        leaves[len(found) : len(found) + len(changed)] = changed.expiry <= watermark
        keys = [flat(every[f"key.{i}"]) for i in range(len(side.keys))]
        return cls(found, changed, keys, int64_column(every["time"]), before, after, is_changed, leaves)

    def values(self, rows: np.ndarray, names: Sequence[str]) -> pa.Table:
        """Columns of the rows with these numbers (ascending), none of which is a witness."""
        cut = int(np.searchsorted(rows, len(self.found)))
        chosen = np.zeros(len(self.found), np.bool_)
        chosen[rows[:cut]] = True
        old = self.found.where(chosen).read(names)
        places = rows[cut:] - len(self.found)
        new = self.changed.table.select(names)
        if len(places) != len(self.changed):
            new = new.take(pa.array(places))
        return pa.concat_tables([old, new]) if old.num_rows else new

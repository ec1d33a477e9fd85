"""The last right row of each key that the watermark has passed, which left rows that still come may meet.

No right row comes before it any longer, and it is not retracted, so that earlier rows of its key are of no use. Two
times are kept of each key where a left row can pass over the last one: looking both ways, at a row of its own time.

Guarded by tests/panes/join_asof/test_join_asof.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, int64_column
from ...combiners.rows.groups import group_rows
from ...lookbacks.sorted_rows import SortedRows
from ...windows.grid import later
from ...windows.times import MAX_TIME, NEVER
from ..join.compiled import Side
from ..join.ranges import FAR
from ..join.side_changes import ChangedRows
from ..state.hashes import lookup
from ..state.store import Store
from ..state.store_rows import StoreRows
from .candidates import in_order, tie_columns
from .join_asof import JoinAsof

LAST = "right_last"
"""The store of these rows."""


def last_rows(
    asof: JoinAsof, side: Side, store: Store | None, due: StoreRows, changed: ChangedRows, watermark: int
) -> Store:
    """The last rows after those of the state that are due, and those of the bundle that are passed at once."""
    if store is None or watermark == MAX_TIME:
        return Store(side.stored)
    store = store.without_due({"event": watermark})
    passed = (changed.sums > 0) & (changed.expiry <= watermark)
    if not len(due) and not passed.any():
        return store
    hashes = np.concatenate([due.hashes(), changed.hashes[passed]])
    held = StoreRows.of(store, lookup(hashes), {}, side.stored)
    every = pa.concat_tables([held.read(), due.read(), changed.table.filter(pa.array(passed))]).combine_chunks()
    times = int64_column(every["time"])
    expiry = np.full(len(times), NEVER)
    if asof.kept_for is not None:
        expiry = later(times, min(int(asof.kept_for), FAR) + side.lateness + 1)
    kept = _last(asof, side, every, times)
    kept &= expiry > watermark
    cut = len(held)
    store = held.where(~kept[:cut]).removed()
    kept[:cut] = False
    table = every.filter(pa.array(kept)).combine_chunks()
    clocks = {"event": expiry[kept], "hold": times[kept]}
    return store.put(np.concatenate([held.hashes(), hashes])[kept], table, clocks)


def _last(asof: JoinAsof, side: Side, every: pa.Table, times: np.ndarray) -> np.ndarray:
    """True for the last row of each key, or for the last ones of its two last times."""
    groups, _ = group_rows([flat(every[f"key.{i}"]) for i in range(len(side.keys))], every.num_rows)
    ties = tie_columns(asof, side)
    ordered = in_order(SortedRows.of(groups, times), ties, lambda rows: every.select(ties).take(pa.array(rows)))
    of_time = np.append(ordered.fresh[1:], np.ones(1, np.bool_))
    rows = ordered.order[of_time]
    codes = groups.codes[rows]
    chosen = np.ones(len(rows), np.bool_)
    back = 2 if asof.direction == "nearest" and not asof.allow_exact else 1
    chosen[:-back] = codes[back:] != codes[:-back]
    kept = np.zeros(len(times), np.bool_)
    kept[rows[chosen]] = True
    return kept


__all__ = ["LAST", "last_rows"]

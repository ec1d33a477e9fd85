"""The broadcast rows of `process`: rows without a key, which go to every shard and are called in one order in each.

Guarded by tests/panes/process/test_broadcast.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.hashing import require_hash
from ...windows import time_column
from ..parcels import AT, Parcel
from ..row_lift import RowLift
from ..rows.equal_rows import netted
from ..rows.options import AdmittedRows, Columns, RowOptions
from .shared import Shared

PORTS = ("keyed", "broadcast")
"""The names of the inputs of a step with broadcast rows."""


@dataclass(frozen=True)
class BroadcastInput:
    """The columns of event time and weights of broadcast rows."""

    time: str
    diff: str | None = None

    def columns(self, schema: pa.Schema) -> Columns:
        """The columns of broadcast rows of this schema; raises if they do not fit."""
        who = "process(broadcast=)"
        columns = RowOptions(time=self.time, diff=self.diff, max_future=None).columns(schema, who)
        for field in columns.user:
            require_hash(field.type, who, field.name)
        return columns


@dataclass(frozen=True)
class BroadcastRows:
    """The broadcast rows of a bundle in the order of their calls, and the state that they change."""

    rows: AdmittedRows
    shared: Shared
    calls_keys: bool
    """True if each row is a call for every key that has state too."""


def in_order(rows: AdmittedRows, columns: Columns) -> AdmittedRows:
    """The rows by event time, retractions first, and then by a hash; those of a changelog netted.

    So the order does not depend on how rows reach a shard, and all shards come to the same state.
    """
    low, high = columns.row_hashes(rows.rows)
    times, weights = rows.times, rows.weights
    if weights is None:
        places = np.lexsort((low, high, times))
    else:
        _, first, sums = netted(low, high, weights)
        nonzero = np.flatnonzero(sums)
        first, sums = first[nonzero], sums[nonzero]
        order = np.lexsort((low[first], high[first], sums > 0, times[first]))
        places, weights = first[order], sums[order]
    table = rows.rows.take(pa.array(places))
    return AdmittedRows(rows=table, times=times[places], weights=weights, late=rows.late, bad=rows.bad)


class BroadcastLift(RowLift):
    """Makes a parcel of rows for each shard; rows without a usable time go to the first one, which counts them.

    >>> import pyarrow as pa
    >>> from uncombine.panes.process.broadcast import BroadcastLift
    >>> rows = pa.table({"ts": pa.array([5, None], pa.timestamp("us")), "x": [1, 2]})
    >>> [(shard, parcel.table["x"].to_pylist()) for shard, parcel in BroadcastLift("ts", 2)(rows, at=7)]
    [(0, [1, 2]), (1, [1])]
    """

    def __init__(self, time: str, shards: int) -> None:
        super().__init__((), shards)
        self.time = time

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        times = np.full(rows.num_rows, at) if isinstance(at, int) else at
        table = rows.append_column(AT, pa.array(times, pa.int64()))
        usable = time_column(flat(rows[self.time]))[1]
        good = table if usable.all() else table.filter(pa.array(usable))
        parts = [table, *[good] * (self.shards - 1)]
        return [(shard, Parcel("rows", part)) for shard, part in enumerate(parts) if part.num_rows]


__all__ = ["PORTS", "BroadcastInput", "BroadcastLift", "BroadcastRows", "in_order"]

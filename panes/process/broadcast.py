"""The broadcast rows of `process`: rows without a key, which go to every shard and are called in one order in each.

Guarded by tests/panes/process/test_broadcast.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.hashing import require_hash
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


__all__ = ["PORTS", "BroadcastInput", "BroadcastRows", "in_order"]

"""The lift of a step over single rows: rows travel as they are, each to the shard of its key or to all shards.

Guarded by tests/sparkops/test_steps.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import flat
from ..combiners.rows.groups import stable_order
from ..combiners.rows.key_codes import normal_keys
from ..windows import time_column
from .parcels import AT, Parcel
from .state.hashes import key_hashes
from .state.operator import StatefulOperator


class RowLift:
    """Makes parcels of rows for a number of shards, by the hash of some columns; without columns, for one shard.

    >>> import pyarrow as pa
    >>> from uncombine.panes.row_lift import RowLift
    >>> rows = pa.table({"k": ["a", "b", "a"]})
    >>> [(shard, parcel.table["k"].to_pylist()) for shard, parcel in RowLift(["k"], 1)(rows, at=5)]
    [(0, ['a', 'b', 'a'])]
    """

    whole_keys = True
    """All rows of a key are in one shard."""
    near = 0

    def __init__(self, keys: Sequence[str], shards: int) -> None:
        self.keys, self.shards = keys, shards

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        """Make parcels of rows that arrived `at`: one time for all, or one for each."""
        if rows.num_rows == 0:
            return []
        times = np.full(rows.num_rows, at) if isinstance(at, int) else at
        table = rows.append_column(AT, pa.array(times, pa.int64()))
        return [(shard, Parcel("rows", part)) for shard, part in split(table, self._shards(rows), self.shards)]

    def routes(self, operator: StatefulOperator, store: str, rows: pa.Table) -> np.ndarray:
        """The hash by which each row of a store of the step belongs to a shard."""
        return operator.routes(store, rows)

    def _shards(self, rows: pa.Table) -> np.ndarray:
        keys = [normal_keys(flat(rows[name])) for name in self.keys]
        return shard_of(key_hashes(keys, rows.num_rows), self.shards)


class EveryShardLift(RowLift):
    """Makes a parcel of rows for each shard; rows without a usable time go to the first one, which counts them.

    >>> import pyarrow as pa
    >>> from uncombine.panes.row_lift import EveryShardLift
    >>> rows = pa.table({"ts": pa.array([5, None], pa.timestamp("us")), "x": [1, 2]})
    >>> [(shard, parcel.table["x"].to_pylist()) for shard, parcel in EveryShardLift("ts", 2)(rows, at=7)]
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


def shard_of(hashes: np.ndarray, shards: int) -> np.ndarray:
    """The shard of each hash."""
    mixed = (hashes * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return (mixed % np.uint64(shards)).astype(np.int64)


def split(table: pa.Table, codes: np.ndarray, count: int) -> list[tuple[int, pa.Table]]:
    """The rows of each code, in their order."""
    if table.num_rows == 0:
        return []
    if count == 1:
        return [(0, table)]
    ordered = table.take(pa.array(stable_order(codes, count)))
    sizes = np.bincount(codes, minlength=count)
    ends = np.cumsum(sizes)
    return [
        (code, ordered.slice(int(ends[code] - sizes[code]), int(sizes[code])))
        for code in np.flatnonzero(sizes).tolist()
    ]


__all__ = ["EveryShardLift", "RowLift", "shard_of", "split"]

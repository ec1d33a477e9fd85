"""The changes of a batch: netted where the rows are, and brought to the driver as Arrow bytes, a part at a time.

Guarded by tests/sparkops/tables/test_live_table.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ..combiners.rows.decoded_sizes import cut, fixed_bytes
from ..flows.flow import Flow
from ..flows.graph import Step
from ..panes.grouping.stage import GroupingStage
from ..panes.parcels import Parcel
from ..panes.selection import Select
from ..panes.transforms import Transform, Where, WithColumns, applied
from ..tables import Changes, Layout, changes_of, new_table, write_once
from .inputs import DataFrameInput, column, wire_map
from .routes.base import Route
from .routes.streaming import StreamRoute
from .session import shuffle_partitions
from .wire import payloads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKED = pa.schema([("rows", pa.int64()), ("small", pa.bool_()), ("payload", pa.binary())])
PACKED_DDL = "rows bigint, small boolean, payload binary"

INLINE = 32 << 20
"""The bytes of changes that the driver takes at once; those of a larger batch come partition by partition."""

PIECE_ROWS, PIECE_BYTES = 1 << 16, 8 << 20
"""The rows and bytes of changes that travel together."""


@dataclass(frozen=True)
class NetRows:
    """Nets the rows of a partition, which has all rows of its keys."""

    layout: Layout
    room: int
    """The bytes that the partition may send to the driver at once."""

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        full = [table for table in tables if table.num_rows]
        if not full:
            return
        rows = pa.concat_tables(full)
        del full
        changes = changes_of(rows, self.layout)
        del rows
        fixed = sum(map(fixed_bytes, changes.schema.types))
        small = changes.nbytes <= self.room
        for piece in cut(changes, fixed, PIECE_ROWS, PIECE_BYTES) if changes.num_rows else ():
            for batch in piece.combine_chunks().to_batches():
                values = [[batch.num_rows], [small], [batch.serialize().to_pybytes()]]
                yield pa.record_batch([pa.array(v, f.type) for v, f in zip(values, PACKED, strict=True)], schema=PACKED)


@dataclass(frozen=True)
class NetPanes:
    """Nets the panes that the shards of a partition give."""

    after: Sequence[Transform]
    net: NetRows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = self.net.layout.rows.names
        tables = (applied(self.after, Parcel.unpack(payload).table) for _, _, payload in payloads(batches))
        yield from self.net(table.select(names) for table in tables)


def packed_changes(flow: Flow, layout: Layout, route_of: Callable[[Flow], Route]) -> DataFrame:
    """The changes of a settled flow, packed: of each batch if it is a stream, or of all rows."""
    keyed = keeps_keys(flow, layout)
    if keyed and flow.source.streaming:
        route = route_of(flow)
        assert isinstance(route, StreamRoute)
        route = replace(route, parcels=True)
        (end,) = route.graph.ends
        assert isinstance(end.origin, Step)
        panes = route.run_step(end.origin, route.packed(end.origin), None)
        return changes_of_panes(panes, end.transforms, layout, len(route.ids))
    rows = route_of(flow).df() if flow.source.streaming else flow.df
    return changes_of_rows(rows, layout, keyed)


def changes_of_panes(panes: DataFrame, after: Sequence[Transform], layout: Layout, shards: int) -> DataFrame:
    """The changes of packed panes, packed, where all rows of a key come from one shard."""
    return wire_map(panes, NetPanes(after, NetRows(layout, INLINE // shards)), PACKED_DDL)


def changes_of_rows(rows: DataFrame, layout: Layout, keyed: bool) -> DataFrame:
    """The changes of rows, packed; `keyed` is true if all rows of a key are in one partition."""
    if not keyed:
        rows = rows.repartition(*map(column, key_columns(layout)))
    input = DataFrameInput(rows)
    parts = shuffle_partitions(input.spark)
    return input.mapped(NetRows(layout, INLINE // parts), layout.rows.names, None, PACKED_DDL, str)


def keeps_keys(flow: Flow, layout: Layout) -> bool:
    """True if all rows of a key of the table come from one shard: those of a grouping by these keys, or fewer."""
    last = flow.stages[-1] if flow.stages else None
    if not isinstance(last, GroupingStage):
        return False
    parts = {*last.grouping.by, "window"}
    for step in flow.transforms:
        if isinstance(step, WithColumns):
            parts -= set(step.columns)
        elif not isinstance(step, Select | Where):
            return False
    keys = {_column_of(name, layout) for name in layout.keys}
    return {*last.grouping.by, "window"} == parts and parts <= keys


def key_columns(layout: Layout) -> list[str]:
    """The columns of the flow that the keys of a table are made of."""
    return list(dict.fromkeys(_column_of(name, layout) for name in layout.keys))


def _column_of(key: str, layout: Layout) -> str:
    """The column of the flow that a key column is made of."""
    return key if key in layout.rows.names else "window"


def changes_in(packed: DataFrame, layout: Layout) -> Changes:
    """The changes of a DataFrame that is persisted; it is computed here, in parallel, and only once."""
    small = F.col("small")
    packed_rows = packed.select("rows", "small", F.when(small, F.col("payload")).alias("payload")).collect()
    large = any(not row["small"] for row in packed_rows)

    def batches() -> Iterator[pa.RecordBatch]:
        for row in packed_rows:
            if row["small"]:
                yield _unpacked(row["payload"], layout)
        if large:
            for row in packed.where(~small).select("payload").toLocalIterator():
                yield _unpacked(row["payload"], layout)

    return Changes(layout=layout, rows=sum(row["rows"] for row in packed_rows), batches=batches)


def write_table(flow: Flow, target: str, keys: str | Sequence[str] | None, route_of: Callable[[Flow], Route]) -> None:
    """Write the result of a bounded flow into a table."""
    place, settled, layout = new_table(flow, target, keys)
    packed = packed_changes(settled, layout, route_of)
    packed.persist()
    try:
        write_once(place, changes_in(packed, layout))
    finally:
        packed.unpersist()


def _unpacked(payload: bytes, layout: Layout) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(payload), layout.changes)


__all__ = [
    "NetPanes",
    "NetRows",
    "changes_in",
    "changes_of_panes",
    "changes_of_rows",
    "keeps_keys",
    "key_columns",
    "packed_changes",
    "write_table",
]

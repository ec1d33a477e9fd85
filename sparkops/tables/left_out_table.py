"""The table of the rows that the query of a live table leaves out, each with the batch in which it came.

It takes the rows of a batch once, as the live table its changes: both know the number of the batch. So it has exactly
the rows that are missing in the live table, which a second query over the same source would not have. In one database
both take a batch in one transaction.

Guarded by tests/sparkops/tables/test_left_out_table.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from ...changelogs.json_out import text_of
from ...combiners.rows.columns import flat
from ...combiners.rows.plain_types import plain_table
from ...flows.left_out import LEFT_OUT, left_out_schema
from ...tables import Keeper, Layout
from ..batches import INLINE, PACKED_DDL, NetRows, changes_of_rows
from ..inputs import DataFrameInput, column
from ..session import shuffle_partitions
from .table_query import apply_packed, apply_packed_both

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART = 1 << 40
"""More rows than a partition has."""

_OWN = pa.schema([("batch", pa.int64()), ("place", pa.int64())])

_SHOWN = [field.with_type(pa.string()) if field.name == "row" else field for field in left_out_schema(pa.struct([]))]

LAYOUT = Layout(rows=pa.schema([*_OWN, *_SHOWN]), keys=tuple(_OWN.names))
"""The columns of `left_out`, of which `row` is JSON; no two rows share a batch and a place in it."""


@dataclass(frozen=True)
class WithLeftOut:
    """Gives a batch to a live table, and the rows that were left out, which are beside its rows, to their table."""

    layout: Layout
    keyed: bool
    """True if all rows of a key of the live table come from one shard."""

    def __call__(self, keepers: Sequence[Keeper], rows: DataFrame, batch: int) -> None:
        left_out, table = keepers
        rows.persist()
        try:
            rows.count()  # before a table takes anything, so that both have the batch or none
            lost = changes_left_out(rows, batch)
            given = rows.where(column(LEFT_OUT).isNull()).select(*map(column, self.layout.rows.names))
            changes = changes_of_rows(given, self.layout, self.keyed)
            if table.writer.shares(left_out.writer):
                apply_packed_both(table, changes, left_out, lost, batch)
            else:
                # A batch that the live table has may not be run again, and then the other one has it too.
                apply_packed(left_out, lost, batch)
                apply_packed(table, changes, batch)
        finally:
            rows.unpersist()


def changes_left_out(rows: DataFrame, batch: int) -> DataFrame:
    """The rows of a batch that were left out, packed as changes of their table."""
    task = NumberedRows(batch, NetRows(LAYOUT, INLINE // shuffle_partitions(rows.sparkSession)))
    return DataFrameInput(rows).mapped(task, [LEFT_OUT], None, PACKED_DDL, str)


@dataclass(frozen=True)
class NumberedRows:
    """Packs the rows that were left out in a partition, each with its place in the batch."""

    batch: int
    net: NetRows

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from self.net(self._numbered(tables, context.partitionId() * _PART))

    def _numbered(self, tables: Iterable[pa.Table], place: int) -> Iterator[pa.Table]:
        for table in tables:
            whole = flat(table[LEFT_OUT]).drop_null()
            rows = pa.Table.from_struct_array(whole)
            places = pa.array(np.arange(place, place + len(whole)))
            place += len(whole)
            own = {"batch": pa.repeat(pa.scalar(self.batch, pa.int64()), len(whole)), "place": places}
            yield pa.table(
                [own[name] if name in own else _shown(rows, name) for name in LAYOUT.rows.names], LAYOUT.rows
            )


def _shown(rows: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    """A column of rows that were left out, as their table has it."""
    if name != "row":
        return rows[name]
    column = flat(plain_table(rows.select([name]))[name])
    return pc.if_else(column.is_valid(), text_of(column), pa.scalar(None, pa.string()))


__all__ = ["LAYOUT", "NumberedRows", "WithLeftOut", "changes_left_out"]

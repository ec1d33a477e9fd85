"""Rows that come to no step: the tasks that bring them to the result, and the counts of what is left out on the way.

A step counts the rows that it leaves out in its state. Here is no state, so each task sends a row beside those of the
result, with the numbers of files, rows and messages that it could not read. Spark adds them up as a metric of the batch
and drops them.

Guarded by tests/sparkops/routes/test_pass_through.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...flows.left_out import LeftOut, beside
from ...panes.transforms import Transform, applied
from ..inputs import Input, Metric, column
from ..naming import FILES
from ..sql_types import spark_schema
from .tasks import alone, batches_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOST = ("files_skipped", "rows_unreadable", "rows_bad", "offsets_lost")
"""The counts of a task, in the order of its numbers."""


@dataclass(frozen=True)
class Through:
    """Applies the transforms of a flow to rows that come to no step."""

    transforms: Sequence[Transform]
    result: pa.Schema
    """The columns of the result."""
    left_out: LeftOut | None = None
    """The form of rows that are left out, if they are shown beside the result."""
    counted: pa.Schema | None = None
    """The columns of the rows that it gives, with the one for the counts at the end; None if nobody sees the counts."""

    @property
    def unreadable(self) -> Callable[[pa.Table], Iterator[pa.RecordBatch]] | None:
        """Shows rows of files that could not be read."""
        return None if self.left_out is None else self._unreadable

    def _unreadable(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        assert self.left_out is not None
        yield from self._beside(self.left_out.unreadable(rows, 0))

    def bad(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Counts messages that cannot be read, and shows them if they are shown."""
        if self.left_out is not None:
            yield from self._beside(self.left_out.bad(rows))
        yield from self.count_lost("rows_bad", rows.num_rows)

    def count_lost(self, what: str, number: int) -> Iterator[pa.RecordBatch]:
        """The row that has a count."""
        if self.counted is None:
            return
        text = " ".join(str(number if name == what else 0) for name in LOST)
        *none, _ = (pa.nulls(1, kind) for kind in self.counted.types)
        yield from batches_of(pa.Table.from_arrays([*none, pa.array([text])], schema=self.counted))

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        form = None if self.left_out is None else self.left_out.schema
        for table in tables:
            yield from self._given(alone(applied(self.transforms, table), form))

    def _beside(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self._given(beside(self.result.empty_table(), rows))

    def _given(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        if self.counted is not None:
            rows = rows.append_column(self.counted.field(-1), pa.nulls(rows.num_rows, pa.string()))
        yield from batches_of(rows)


def passed_through(input: Input, through: Through, columns: list[str], schema: pa.Schema, metric: Metric) -> DataFrame:
    """The rows of an input as those of a result with these columns; a stream counts what it leaves out."""
    if not (input.streaming and input.may_lose):
        return input.mapped(through, columns, None, spark_schema(schema), metric)
    name = _free_name(schema)
    counted = pa.schema([*schema, pa.field(name, pa.string())])
    rows = input.mapped(replace(through, counted=counted), columns, None, spark_schema(counted), metric)
    numbers = F.split(column(name), " ").cast("array<bigint>")
    sums = (F.coalesce(F.sum(numbers[i]), F.lit(0)).alias(lost) for i, lost in enumerate(LOST))
    return rows.observe(metric(FILES), *sums).where(column(name).isNull()).drop(column(name))


def _free_name(schema: pa.Schema) -> str:
    """A name that no column has, whatever its case."""
    name, taken = "counted", {name.casefold() for name in schema.names}
    while name in taken:
        name += "_"
    return name


__all__ = ["LOST", "Through", "passed_through"]

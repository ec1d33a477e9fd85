"""Where the rows of a flow come from, and how a task gets at them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ..errors import TypeMismatch
from ..panes.shard.malloc import keep_memory
from ..panes.shard.parcels import AT
from .sql_types import arrow_type
from .wire import WIRE_DDL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Task = Callable[[Iterable[pa.Table]], Iterator[pa.RecordBatch]]

Metric = Callable[[str], str]
"""The name of a flow's metric for a part of it."""


class Input(ABC):
    """Rows of a known schema, and a way to let a task run over them where they are."""

    spark: SparkSession
    schema: pa.Schema
    streaming: bool

    @abstractmethod
    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        """The task over the rows of each partition, with these columns, giving rows of this schema.

        `at` is None, or the column with each row's processing time, or "" for that of the batch; the task then finds
        it in the column `AT`, microseconds. `metric` names what the source observes.
        """

    def with_row(self, packed: DataFrame, shard: int, payload: bytes) -> DataFrame:
        """Packed rows with one more, which is there even where the input has no partitions."""
        values = (F.lit(shard), F.lit(0), F.lit(bytearray(payload)))
        kinds = [field.split() for field in WIRE_DDL.split(", ")]
        row = self.spark.range(0, 1, 1, 1).select(
            *(value.cast(kind).alias(name) for value, (name, kind) in zip(values, kinds, strict=True))
        )
        return packed.union(row)

    @abstractmethod
    def describe(self) -> str:
        """The input, for people."""


@dataclass(frozen=True, eq=False)
class DataFrameInput(Input):
    """Any DataFrame; rows cross from the JVM to Python."""

    df: DataFrame
    instant: str | None = None
    """A column in which all rows have the first instant of 1970, which is not sent where other columns are."""

    @property
    def spark(self) -> SparkSession:
        return self.df.sparkSession

    @property
    def schema(self) -> pa.Schema:
        fields = []
        for field in self.df.schema:
            with suppress(TypeMismatch):  # a column that nobody asks for may have any type
                fields.append(pa.field(field.name, arrow_type(field.dataType, f"column {field.name!r}")))
        return pa.schema(fields)

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.df.isStreaming

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        known = self.schema
        fields = [known.field(name) for name in columns if name in known.names]
        instant = next((field for field in fields if field.name == self.instant and len(fields) > 1), None)
        if instant is not None:
            fields.remove(instant)
        # Spark finds no columns with a dot in their name on the way to Python, so they go there by number.
        chosen = [column(field.name).alias(f"c{i}") for i, field in enumerate(fields)]
        if at is not None:
            local = bool(at) and known.field(at).type.tz is None
            chosen.append(processing_time(at, local).alias(AT))
            fields.append(pa.field(AT, pa.int64()))
        types = pa.schema(fields)

        def lift(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_memory()
            tables = (fitted(batch, types) for batch in batches)
            if instant is None:
                return task(tables)
            return task(table.append_column(instant, _instants(table.num_rows, instant.type)) for table in tables)

        return self.df.select(*chosen).mapInArrow(lift, schema)

    def describe(self) -> str:
        return "a DataFrame"


def _instants(count: int, kind: pa.DataType) -> pa.Array:
    return pa.array(np.zeros(count, np.int64)).view(kind)


def processing_time(at: str, local: bool = False) -> Column:
    """Microseconds of a column (where it is null, of the batch), or of the batch, the same when it is repeated.

    A `local` time names no zone, and is taken as UTC like every such time, whatever the session's zone is.
    """
    batch = F.unix_micros(F.current_timestamp())
    time = column(at) if at else F.lit(None)
    if local:
        parts = [part(time) for part in (F.year, F.month, F.dayofmonth, F.hour, F.minute)]
        time = F.make_timestamp(*parts, F.extract(F.lit("SECOND"), time), F.lit("UTC"))
    return F.coalesce(F.unix_micros(time), batch) if at else batch


def column(name: str) -> Column:
    """A column by its name, whatever characters that has."""
    return F.col("`" + name.replace("`", "``") + "`")


def wire_map(df: DataFrame, task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: Any) -> Any:
    """The task over the packed rows of each partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_memory()
        return task(batches)

    return df.mapInArrow(run, schema)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """What Spark hands over, with the names and types that the plan was made for, times in UTC."""
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)

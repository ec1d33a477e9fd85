"""Inputs: they give the rows of a flow to the tasks that combine them, with event times that the tasks compute.

Guarded by tests/sparkops/test_event_times.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ..combiners.rows.columns import flat
from ..errors import TypeMismatch
from ..flows.changelog_reading import Reading
from ..flows.event_time import EventTime
from ..panes.parcels import AT
from ..panes.watermarks.watermarks import Read
from ..windows import time_column
from ..windows.times import MAX_TIME, MIN_TIME
from .session import BATCH_BYTES, NO_LIMIT, setting
from .sql_types import arrow_type
from .tuning.thin_function import thin_function
from .tuning.worker import ready
from .wire import WIRE_DDL, wire_batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from .planners.planner import Planner

Task = Callable[[Iterable[pa.Table]], Iterator[pa.RecordBatch]]

Hold = Callable[[int, int], Iterator[tuple[int, int, bytes]]]
"""Gives the packed rows that say how far the watermark may go, at a processing time; a task with steps has one."""

WAKING = (MAX_TIME, MIN_TIME)
"""A hold that holds nothing, at no time: a shard that gets it does what its state asks for, and no timer fires."""

ReadTo = Callable[[Mapping[str, Read], int], Iterator[tuple[int, int, bytes]]]
"""Gives the packed rows that say how far each source is read, at a processing time; a task with steps has one."""

Metric = Callable[[str], str]
"""Gives the name of the metric for a part of a flow."""


class OuterTask(ABC):
    """A task that gives another one rows of other columns. It asks and shows what that one does.

    A task can name the columns whose texts can stay dictionaries (`coded`), those that it needs for its result, beside
    such as it shows (`needed`; None means all), can show rows of files that cannot be read (`unreadable`), can say that
    they are counted elsewhere (`counts`), or count them itself where no step does (`count_lost`), and can send the time
    that the watermark waits for (`hold`), or how far each source is read (`read_to`).
    """

    task: Task

    @abstractmethod
    def reads(self, columns: Iterable[str]) -> Iterable[str]:
        """The columns of its own rows from which these columns of the other task's are made."""

    @property
    def needed(self) -> frozenset[str] | None:
        needed = getattr(self.task, "needed", None)
        return None if needed is None else frozenset(self.reads(needed))

    @property
    def unreadable(self) -> Callable[[pa.Table], Iterator[pa.RecordBatch]] | None:
        return getattr(self.task, "unreadable", None)

    @property
    def counts(self) -> bool:
        return getattr(self.task, "counts", True)

    @property
    def count_lost(self) -> Callable[[str, int], Iterator[pa.RecordBatch]] | None:
        return getattr(self.task, "count_lost", None)

    @property
    def hold(self) -> Hold | None:
        return getattr(self.task, "hold", None)

    @property
    def read_to(self) -> ReadTo | None:
        return getattr(self.task, "read_to", None)


class Input(ABC):
    """Rows of a known schema, over which tasks can run."""

    spark: SparkSession
    schema: pa.Schema
    streaming: bool
    reading: Reading | None = None
    """The way in which messages of a changelog become these rows."""
    planner: Planner | None = None
    """The planner of the library that knows which of its parts are read; None if Spark does."""

    @abstractmethod
    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        """Run the task over these columns of each partition; the result has rows of `schema`.

        `at` is None, or the column with the processing time of each row, or "" for that of the batch. The task gets
        this time in the column `AT`, in microseconds. `metric` names the metrics that the input observes.
        """

    @property
    def strict(self) -> bool:
        """True if a message that cannot be read is an error."""
        return not self.streaming

    @property
    def may_lose(self) -> bool:
        """True if it leaves out files, rows or messages that cannot be read."""
        return False

    def with_row(self, packed: DataFrame, shard: int, payload: bytes) -> DataFrame:
        """Add one packed row, which exists even if the input has no partitions."""
        values = (F.lit(shard), F.lit(0), F.lit(bytearray(payload)))
        kinds = [field.split() for field in WIRE_DDL.split(", ")]
        row = self.spark.range(0, 1, 1, 1).select(
            *(value.cast(kind).alias(name) for value, (name, kind) in zip(values, kinds, strict=True))
        )
        return packed.union(row)

    def over(self, change: Callable[[Input], Input]) -> Input:
        """This input over others than those that it takes its rows from."""
        return self

    def replayed(self) -> Input:
        """This input for a replay, in which messages that cannot be read are bad rows, as in a stream."""
        return self

    def slowed(self) -> tuple[str, ...]:
        """The reasons why its rows come slowly to Python, each with the remedy."""
        return ()

    @abstractmethod
    def describe(self) -> str:
        """A text that names the input."""


@dataclass(frozen=True, eq=False)
class DataFrameInput(Input):
    """Any DataFrame. Its rows cross from the JVM to Python."""

    df: DataFrame
    instant: str | None = None
    """A column with the first instant of 1970 in all rows. It is not sent if there are other columns."""
    text: str = "a DataFrame"
    """The words for it."""
    native: bool = True
    """True if Spark's own aggregation may run over it."""
    files: bool = True
    """True if its files may be read instead, if it is nothing but a scan of them."""
    before: DataFrame | None = None
    """The DataFrame to which the column `instant` was added."""

    @property
    def spark(self) -> SparkSession:
        return self.df.sparkSession

    @property
    def schema(self) -> pa.Schema:
        fields = []
        for field in self.df.schema:
            with suppress(TypeMismatch):  # a column that the flow does not use may have any type
                fields.append(pa.field(field.name, arrow_type(field.dataType, f"column {field.name!r}")))
        return pa.schema(fields)

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.df.isStreaming

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        own = self.schema
        fields = [own.field(name) for name in columns if name in own.names]
        instant = next((field for field in fields if field.name == self.instant and len(fields) > 1), None)
        if instant is not None:
            fields.remove(instant)
        # Spark cannot send a column with a dot in its name to Python, so columns get numbers as names.
        chosen = [column(field.name).alias(f"c{i}") for i, field in enumerate(fields)]
        if at is not None:
            local = bool(at) and own.field(at).type.tz is None
            chosen.append(processing_time(at, local).alias(AT))
            fields.append(pa.field(AT, pa.int64()))
        types = pa.schema(fields)

        def lift(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            ready()
            tables = (fitted(batch, types) for batch in batches)
            if instant is None:
                return task(tables)
            return task(table.append_column(instant, instants(table.num_rows, instant.type)) for table in tables)

        return self.df.select(*chosen).mapInArrow(thin_function(lift), schema)

    def replayed(self) -> Input:
        """This input for a replay, in which messages that cannot be read are bad rows, as in a stream."""
        return self

    def slowed(self) -> tuple[str, ...]:
        if setting(self.spark, BATCH_BYTES) == NO_LIMIT:
            return ()
        return (f"slow: Spark measures its batches after each row, so set {BATCH_BYTES} to {NO_LIMIT}",)

    def describe(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class TimedInput(Input):
    """The rows of an input with event times that an expression computes."""

    rows: Input
    event_time: EventTime

    @property
    def spark(self) -> SparkSession:
        return self.rows.spark

    @property
    def schema(self) -> pa.Schema:
        return self.event_time.schema

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.rows.streaming

    @property
    def planner(self) -> Planner | None:  # type: ignore[override]
        return self.rows.planner

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        own = self.event_time.needs(columns)
        timed = task if own == columns else WithTimes(task, self.event_time, tuple(columns))
        return self.rows.mapped(timed, own, at, schema, metric)

    @property
    def may_lose(self) -> bool:
        return self.rows.may_lose

    def over(self, change: Callable[[Input], Input]) -> Input:
        return replace(self, rows=change(self.rows))

    def replayed(self) -> Input:
        return replace(self, rows=self.rows.replayed())

    def slowed(self) -> tuple[str, ...]:
        return self.rows.slowed()

    def describe(self) -> str:
        return self.rows.describe()


@dataclass(frozen=True)
class WithTimes(OuterTask):
    """Runs a task over rows with their event times."""

    task: Task
    event_time: EventTime
    columns: tuple[str, ...]

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return self.task(map(self._timed, tables))

    def reads(self, columns: Iterable[str]) -> Iterable[str]:
        return self.event_time.needs(columns)

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts can stay dictionaries."""
        return getattr(self.task, "coded", frozenset[str]()) - {*self.event_time.value.columns}

    def _timed(self, table: pa.Table) -> pa.Table:
        at = [AT] if AT in table.column_names else []
        return self.event_time(table).select([*self.columns, *at])


def instants(count: int, kind: pa.DataType) -> pa.Array:
    """The first instant of 1970, a number of times."""
    return pa.array(np.zeros(count, np.int64)).view(kind)


def processing_time(at: str, local: bool = False) -> Column:
    """Microseconds of a column (of the batch where it is null), or of the batch; a repeated batch has the same time.

    A `local` time has no zone. It counts as UTC, whatever the zone of the session is.
    """
    batch = F.unix_micros(F.current_timestamp())
    time = column(at) if at else F.lit(None)
    if local:
        parts = [part(time) for part in (F.year, F.month, F.dayofmonth, F.hour, F.minute)]
        time = F.make_timestamp(*parts, F.extract(F.lit("SECOND"), time), F.lit("UTC"))
    return F.coalesce(F.unix_micros(time), batch) if at else batch


def times_of_rows(table: pa.Table, at: str, batch_time: int) -> np.ndarray:
    """The processing time of each row of a task: from column `at`, or that of the batch where it is null or no name."""
    if not at:
        return np.full(table.num_rows, batch_time)
    times, valid = time_column(flat(table[at]))
    return np.where(valid, times, batch_time)


def woken(task: Task) -> Iterator[pa.RecordBatch]:
    """The packed rows of a first batch without anything to read, which reach each shard behind a task."""
    send: Hold | None = getattr(task, "hold", None)
    if send is not None:
        yield wire_batch(send(*WAKING))


def column(name: str) -> Column:
    """A column by its name, which may have any characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def wire_map(df: DataFrame, task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: Any) -> Any:
    """Run the task over the packed rows of each partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        return task(batches)

    return df.mapInArrow(thin_function(run), schema)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """A batch of Spark with the names and types of `schema`, times in UTC."""
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)

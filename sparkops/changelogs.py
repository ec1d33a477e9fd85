"""Changelogs of other systems on Spark: messages read as rows in the tasks that combine them, and rows as messages.

Guarded by tests/sparkops/test_changelogs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..changelogs.flows import UnreadSource
from ..combiners.column_names import PLACES
from ..combiners.rows.columns import flat, int64_column
from ..errors import InvalidArgument, TypeMismatch
from ..flows.changelog_reading import Reading, divided
from ..flows.event_time import EventTime
from ..flows.settings import Settings
from ..panes.parcels import AT
from ..windows import time_column
from .files_input import FilesInput
from .inputs import DataFrameInput, Input, Metric, OuterTask, Task, TimedInput
from .pieces import pieces
from .routes.tasks import batches_of
from .source import SparkSource
from .sql_types import spark_schema
from .topics.topics_input import TopicsInput
from .wire import WIRE_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .planners.planner import Planner


def opened_over(input: Input, settings: Settings) -> UnreadSource:
    """An input, ready to be read as rows or as messages."""

    def source(reading: Reading | None, event_time: EventTime | None) -> SparkSource:
        if reading is None:
            return SparkSource(input if event_time is None else TimedInput(input, event_time))
        if reading.upserted is not None and not reading.upserted.order:
            raise InvalidArgument(
                f"{reading.words} with keys= needs order= on Spark, whose tasks give rows in no fixed order: name the "
                "column by which one version of a row is later than another, such as an offset"
            )
        placed = replace(input, format=input.format.with_places) if isinstance(input, FilesInput) else input
        return SparkSource(ChangelogInput(placed, reading))

    return UnreadSource(input.schema, source, strict=input.strict and not settings.replay)


@dataclass(frozen=True, eq=False)
class ChangelogInput(Input):
    """The rows of the messages of an input."""

    messages: Input
    reading: Reading

    @property
    def spark(self) -> SparkSession:
        return self.messages.spark

    @property
    def schema(self) -> pa.Schema:
        return self.reading.schema

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.messages.streaming

    @property
    def planner(self) -> Planner | None:  # type: ignore[override]
        return self.messages.planner

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        reading = self.reading
        own = at if at and at not in (reading.beside.names if reading.own else reading.message_schema.names) else None
        row_columns = list(dict.fromkeys([*columns, *([own] if own else [])]))
        counted = schema == WIRE_DDL
        read = ReadChanges(
            task=task, reading=reading, row_columns=tuple(row_columns), columns=tuple(columns), at=own, counted=counted
        )
        needs = [*reading.needs(row_columns), *(name for name in PLACES if name in self.messages.schema.names)]
        return self.messages.mapped(read, needs, "" if own else at, schema, metric)

    @property
    def may_lose(self) -> bool:
        return not self.reading.strict or self.messages.may_lose

    def over(self, change: Callable[[Input], Input]) -> Input:
        return replace(self, messages=change(self.messages))

    def replayed(self) -> Input:
        messages = self.messages.replayed()
        strict = isinstance(messages, FilesInput | TopicsInput) and messages.strict
        return replace(self, messages=messages, reading=replace(self.reading, strict=strict))

    def slowed(self) -> tuple[str, ...]:
        return self.messages.slowed()

    def describe(self) -> str:
        return f"{self.messages.describe()}, read by {self.reading.words}"


@dataclass(frozen=True)
class ReadChanges(OuterTask):
    """Runs a task over the rows of messages."""

    task: Task
    reading: Reading
    row_columns: tuple[str, ...]
    columns: tuple[str, ...]
    at: str | None
    """A column of the rows with their processing time, if the messages have none beside them."""
    counted: bool
    """True if a step counts bad rows; otherwise the task itself does, if it can."""

    def __call__(self, messages: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        bad_rows: list[pa.Table] = []
        yield from self.task(self._rows(messages, bad_rows))
        bad = getattr(self.task, "bad", None)
        if bad is not None and any(rows.num_rows for rows in bad_rows):
            yield from bad(pa.concat_tables(bad_rows))

    def _rows(self, messages: Iterable[pa.Table], bad_rows: list[pa.Table]) -> Iterator[pa.Table]:
        for table in messages:
            rows = self.reading(table, self._with_weight)
            if not self.counted:
                rows, bad = divided(rows, self.reading.weight)
                bad_rows.append(bad.select(self.columns))
            if self.at is not None:
                times, valid = time_column(flat(rows[self.at]))
                at = pa.array(np.where(valid, times, int64_column(rows[AT])))
                rows = rows.set_column(rows.column_names.index(AT), AT, at)
            yield rows.select([*self.columns, *([AT] if AT in rows.column_names else [])])

    def reads(self, columns: Iterable[str]) -> Iterable[str]:
        return self.reading.needs(list(columns))

    @property
    def _with_weight(self) -> list[str]:
        return list(dict.fromkeys([*self.row_columns, self.reading.weight]))


def written(df: DataFrame, write: Callable[[pa.Table], pa.Table]) -> DataFrame:
    """The rows of a DataFrame as the messages that a function makes of tables of them."""
    schema = DataFrameInput(df).schema
    if missing := [name for name in df.columns if name not in schema.names]:
        raise TypeMismatch(
            f"column {missing[0]!r} has a type that Arrow lacks: leave it out before the changelog is written"
        )
    kinds = write(schema.empty_table()).schema

    def task(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for piece in pieces(tables):
            yield from batches_of(write(piece))

    return DataFrameInput(df).mapped(task, schema.names, None, spark_schema(kinds), str)


__all__ = ["ChangelogInput", "opened_over", "written"]

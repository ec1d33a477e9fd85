"""Event times that tasks compute on Spark, before they combine the rows of an input.

Guarded by tests/sparkops/test_event_times.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..flows.event_time import EventTime
from ..panes.parcels import AT
from .inputs import Input, Metric, OuterTask, Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        own = self.event_time.needs(columns)
        timed = task if own == columns else WithTimes(task, self.event_time, tuple(columns))
        return self.rows.mapped(timed, own, at, schema, metric)

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


__all__ = ["TimedInput"]

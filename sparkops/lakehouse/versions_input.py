"""The versions of a table as an input: a planner names the files that they change, and tasks read these.

No row enters the JVM, and no jar is needed.

Guarded by tests/sparkops/lakehouse/test_table_streams.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...lakehouse.changed_files import Part
from ...lakehouse.table_changes import TableChanges
from ...lakehouse.table_rows import TableRows
from ...local.table_versions import parts_now
from ...panes.parcels import AT
from ...windows.times import MIN_TIME
from ..inputs import Input, Metric, Task, processing_time, times_of_rows, woken
from ..planners.data_source import planned
from ..planners.version_planner import ROWS, VersionPlanner, rows_of_parts
from ..tuning.thin_function import thin_function
from ..tuning.worker import ready

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, eq=False)
class VersionsInput(Input):
    """The rows and changes of a table."""

    spark: SparkSession
    changes: TableChanges
    table_rows: TableRows
    streaming: bool
    planner: VersionPlanner | None = None
    cores: int = 1
    last: int | None = None
    """The version with which a bounded flow ends, if it was named before."""

    @property
    def schema(self) -> pa.Schema:
        return self.table_rows.schema

    def named(self) -> VersionsInput:
        """The input up to the version that there is now."""
        return replace(self, last=self.changes.last(self.table_rows.versions))

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        given = [name for name in columns if name in self.schema.names]
        wanted = [*given, *([at] if at and at not in given else [])]
        reading = ReadVersions(table_rows=self.table_rows, task=task, columns=tuple(wanted), given=tuple(given), at=at)
        named = self._now() if self.planner is None else planned(self.spark, self.planner)
        if at is not None:
            named = named.withColumn(AT, processing_time(""))
        return named.mapInArrow(thin_function(reading), schema)

    def _now(self) -> DataFrame:
        """The parts that there are now, as rows."""
        tasks = rows_of_parts(parts_now(self.changes, self.table_rows, self.last), self.cores)
        rows = pa.Table.from_batches(tasks, schema=ROWS)
        return self.spark.createDataFrame(rows).repartition(max(len(tasks), 1))

    def describe(self) -> str:
        return f"{self.changes.words}, read by the tasks that combine their rows"


@dataclass(frozen=True)
class ReadVersions:
    """Runs a task over the rows of the parts that Spark names."""

    table_rows: TableRows
    task: Task
    columns: tuple[str, ...]
    """The columns that are read."""
    given: tuple[str, ...]
    """The columns that the task gets."""
    at: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        names = list[str | None]()
        yield from self.task(self._tables(batches, names))
        if None in names:
            yield from woken(self.task)

    def _tables(self, batches: Iterable[pa.RecordBatch], names: list[str | None]) -> Iterator[pa.Table]:
        """The rows of the parts; `names` gets the texts of all parts, and None for a row that names none."""
        for batch in batches:
            batch_time = batch.column(AT)[0].as_py() if self.at is not None else MIN_TIME
            names += batch.column("part").to_pylist()  # few: one a part
            for text in batch.column("part").drop_null().to_pylist():
                for table in self.table_rows(Part.of_text(text), self.columns):
                    rows = table.select(list(self.given))
                    if self.at is not None:
                        times = times_of_rows(table, self.at, batch_time)
                        rows = rows.append_column(AT, pa.array(times, pa.int64()))
                    yield rows


__all__ = ["ReadVersions", "VersionsInput"]

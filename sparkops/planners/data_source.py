"""The data source of Spark that asks a planner, and gives the rows that name the parts of each batch.

The rows of the parts are not read here: the tasks that combine them do that.

Guarded by tests/sparkops/planners/test_data_source.py.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from ..spark_private import pickled
from .planner import Offset, Planner

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow

    LIMITS = True
except ImportError:  # before 4.2 Spark takes all that a source offers as one batch
    LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A source that is told when a query takes what is there now."""


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "uncombine_planned"
"""The name by which a session knows the data source."""

OPTION = "planner_secret"
"""The option that has the planner. Spark shows no value of an option of this name in a plan: it may have a password."""

_sessions: WeakSet[SparkSession] = WeakSet()


class TaskRows(InputPartition):
    """The rows that one task gets."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        super().__init__(None)
        self.rows = rows


class PlannedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Answers Spark by a planner.

    It travels with the planner closed, which the tasks that give rows never open: its modules take longest to load.
    """

    def __init__(self, planner: Planner | str) -> None:
        self._closed = planner if isinstance(planner, str) else closed(planner)
        if not isinstance(planner, str):
            self.planner = planner
        self.last: Offset | None = None
        """The end of the last batch that Spark asked for, which it does not name before 4.2."""

    def __reduce__(self) -> tuple[Any, ...]:
        return PlannedReader, (self._closed,)

    @cached_property
    def planner(self) -> Planner:
        return opened(self._closed)

    def initialOffset(self) -> Offset:  # noqa: N802
        return self.planner.begin()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        most = self.planner.most
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802
        return self.planner.after(start or self.last or self.planner.begin(), getattr(limit, "max_files", None))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.planner.freeze()

    def commit(self, end: Offset) -> None:
        self.planner.note(end)

    def partitions(self, start: Offset, end: Offset) -> Sequence[TaskRows]:
        self.last, planner = end, self.planner
        if start != end:
            return [TaskRows(rows) for rows in planner.tasks(start, end)]
        # Only a first batch has no rows at all to Spark; that of a state which is there already must show what it has.
        return [TaskRows(rows) for rows in planner.waking()] if planner.follows and start == planner.begin() else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TaskRows)
        yield partition.rows


class PlannedSource(DataSource):
    """The data source over a planner, which travels as an option."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return opened(self.options[OPTION]).columns

    def streamReader(self, schema: Any) -> PlannedReader:  # noqa: N802
        return PlannedReader(self.options[OPTION])


def closed(planner: Planner) -> str:
    """A planner as a text."""
    return b64encode(pickled(planner)).decode()


def opened(text: str) -> Planner:
    """The planner that a text has."""
    planner: Planner = pickle.loads(b64decode(text))
    return planner


def planned(spark: SparkSession, planner: Planner) -> DataFrame:
    """The rows that name the parts of a stream, each batch as the planner says."""
    if spark not in _sessions:
        spark.dataSource.register(PlannedSource)
        _sessions.add(spark)
    # With the columns beside it Spark need not open the planner to begin with, in a process of its own.
    reader = spark.readStream.format(NAME).schema(planner.columns)
    return reader.option(OPTION, closed(planner)).load()


__all__ = ["LIMITS", "NAME", "OPTION", "PlannedReader", "PlannedSource", "planned"]

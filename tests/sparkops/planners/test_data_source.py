"""The data source of a planner, as the versions of Spark call it."""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from uncombine.panes.parcels import AT
from uncombine.sparkops.files_input import ReadFiles
from uncombine.sparkops.lakehouse.versions_input import ReadVersions
from uncombine.sparkops.planners import file_planner, topic_planner, version_planner
from uncombine.sparkops.planners.data_source import LIMITS, OPTION, PlannedReader, PlannedSource, planned
from uncombine.sparkops.planners.planner import Offset, Planner
from uncombine.sparkops.topics.topics_input import ReadTopics
from uncombine.windows.times import MAX_TIME, MIN_TIME


class Counting(Planner):
    """Numbers, of which a batch has some; an offset says how many."""

    columns = "n bigint"
    rows = pa.schema({"n": pa.int64()})

    def __init__(self, there: int, most: int | None = None) -> None:
        self.there, self.most, self.first = there, most, {"n": 0, "new": 0}
        self.limit: int | None = None

    def freeze(self) -> None:
        self.limit = self.there

    def after(self, offset: Offset, most: int | None) -> Offset:
        there = self.there if self.limit is None else self.limit
        end = min(there, offset["n"] + (there if most is None else most))
        return offset if end == offset["n"] else {"n": end, "new": end - offset["n"]}

    def tasks(self, start: Offset, end: Offset) -> Sequence[pa.RecordBatch]:
        return [pa.RecordBatch.from_pydict({"n": [n]}) for n in range(start["n"], end["n"])]


def rows(reader: PlannedReader, start: Offset, end: Offset) -> list[int]:
    """The numbers that all tasks of a batch give, each task in another process."""
    tasks = pickle.loads(pickle.dumps(list(reader.partitions(start, end))))
    return [row["n"] for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]


@pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")
def test_spark_names_the_start_and_the_limit() -> None:
    reader = PlannedReader(Counting(5, most=2))
    start, got = reader.initialOffset(), list[list[int]]()
    while (end := json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))) != start:
        got.append(rows(reader, start, end))
        start = end
    assert got == [[0, 1], [2, 3], [4]]
    assert rows(reader, start, start) == []


@pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")
def test_without_a_limit_a_batch_has_all_that_is_there() -> None:
    reader = PlannedReader(Counting(5))
    assert reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit()) == {"n": 5, "new": 5}


def test_spark_4_1_names_no_start() -> None:
    """The reader knows it from the last batch, or from the empty one that Spark plans after a restart."""
    source = Counting(5)
    reader = PlannedReader(source)
    end = reader.latestOffset()
    assert rows(reader, reader.initialOffset(), end) == [0, 1, 2, 3, 4]
    source.there = 7
    assert reader.latestOffset() == {"n": 7, "new": 2}
    restarted = PlannedReader(Counting(9))
    assert restarted.partitions({"n": 8, "new": 3}, {"n": 8, "new": 3}) == []
    assert restarted.latestOffset() == {"n": 9, "new": 1}


def test_only_a_first_batch_after_another_query_wakes_its_shards() -> None:
    new, later = PlannedReader(Counting(5)), PlannedReader(Counting(5).begun({"n": 3, "new": 1}))
    begun = later.initialOffset()
    assert new.partitions(new.initialOffset(), new.initialOffset()) == []
    assert rows(later, begun, begun) == [None]
    assert rows(later, begun, {"n": 5, "new": 2}) == [3, 4]
    assert rows(later, {"n": 5, "new": 2}, {"n": 5, "new": 2}) == []


@dataclass
class Holding:
    """A task that notes the holds that it is asked to send."""

    holds: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        assert list(tables) == []
        yield from ()

    def hold(self, time: int, at: int) -> Iterator[tuple[int, int, bytes]]:
        self.holds.append((time, at))
        yield 0, 0, b""


@pytest.mark.parametrize("kind", ["files", "topics", "versions"])
def test_a_row_that_names_nothing_reaches_each_shard(kind: str) -> None:
    task, columns = Holding(), ("ts",)
    form: Any = SimpleNamespace(schema=pa.schema({"ts": pa.int64()}), on_bad_file="error")
    nothing: Any = None
    reader: Any = {
        "files": lambda: ReadFiles(format=form, task=task, columns=columns, at=""),
        "topics": lambda: ReadTopics(
            kafka=nothing,
            message_rows=SimpleNamespace(needs=lambda _: ()),  # type: ignore[arg-type]
            task=task,
            columns=columns,
            given=columns,
            at="",
            leaves_out=False,
        ),
        "versions": lambda: ReadVersions(table_rows=nothing, task=task, columns=columns, given=columns, at=""),
    }[kind]()
    schema = {"files": file_planner.ROWS, "topics": topic_planner.ROWS, "versions": version_planner.ROWS}[kind]
    planner = Counting(0)
    planner.rows = schema
    (row,) = planner.waking()
    assert len(list(reader([row.append_column(AT, pa.array([7]))]))) == 1
    assert task.holds == [(MAX_TIME, MIN_TIME)]


def test_a_query_of_what_is_there_takes_nothing_that_comes_later() -> None:
    source = Counting(3)
    reader = PlannedReader(source)
    reader.prepareForTriggerAvailableNow()
    source.there = 9
    assert reader.latestOffset(reader.initialOffset()) == {"n": 3, "new": 3}


def test_the_planner_travels_as_an_option() -> None:
    options: dict[str, Any] = {OPTION: b64encode(pickle.dumps(Counting(4))).decode()}
    source = PlannedSource(options)
    assert source.schema() == "n bigint"
    assert source.streamReader(None).latestOffset() == {"n": 4, "new": 4}


def test_no_plan_shows_a_planner(spark: SparkSession) -> None:
    """It may have the password of a cluster."""
    plan = planned(spark, Counting(4))._jdf.queryExecution().toString()
    assert f"{OPTION}=*********(redacted)" in plan
    assert b64encode(pickle.dumps(Counting)).decode()[:12] not in plan

"""The data source of a planner, as the versions of Spark call it."""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from uncombine.sparkops.planners.data_source import LIMITS, OPTION, PlannedReader, PlannedSource, planned
from uncombine.sparkops.planners.planner import Offset, Planner


class Counting(Planner):
    """Numbers, of which a batch has some; an offset says how many."""

    columns = "n bigint"

    def __init__(self, there: int, most: int | None = None) -> None:
        self.there, self.most = there, most
        self.limit: int | None = None

    def begin(self) -> Offset:
        return {"n": 0, "new": 0}

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


@pytest.mark.skipif(not LIMITS, reason="Spark 4.1 has no limits")
def test_spark_names_the_start_and_the_limit() -> None:
    reader = PlannedReader(Counting(5, most=2))
    start, got = reader.initialOffset(), list[list[int]]()
    while (end := json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))) != start:
        got.append(rows(reader, start, end))
        start = end
    assert got == [[0, 1], [2, 3], [4]]
    assert rows(reader, start, start) == []


@pytest.mark.skipif(not LIMITS, reason="Spark 4.1 has no limits")
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

"""Topics on Spark: each message once in batches and streams, and a watermark that waits for each partition."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from kafka_broker import Broker
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from streams import changed

import uncombine as uc
from uncombine.flows.flow import Flow
from uncombine.sparkops.planners.data_source import LIMITS

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
NOON = 1_714_564_800_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ONCE = {"availableNow": True}
limited = pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    with changed(spark):
        yield


def row(n: int, after: int = 0, k: str = "a") -> dict[str, Any]:
    return {"ts": NOON + after, "k": k, "n": n}


def stream(broker: Broker, spark: SparkSession, topic: Any, watermark: Any = "0 seconds", **options: Any) -> Flow:
    kafka = uc.Kafka(broker.servers, topic, **{"value": ROW, **options})
    return uc.flow(kafka, spark=spark, streaming=True, watermark=watermark)


def hours(flow: Flow) -> Flow:
    return flow.window("1 hour").combine(by="k", n=uc.Count(), total=uc.Sum("n"))


def run(flow: Flow, folder: Path, trigger: Any = ONCE, **options: Any) -> Any:
    """Run a query until it has taken all that is there."""
    out, checkpoint = folder / "out", folder / "checkpoint"
    writer = flow.write_stream(checkpoint=str(checkpoint), **options)
    query = writer.format("parquet").option("path", str(out)).trigger(**trigger).start()
    query.awaitTermination()
    return query


def rows_of(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = spark.read.parquet(str(folder / "out")).toArrow().to_pylist()
    return rows


def counts(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    assert len({(one["k"], one["window"]["start"]) for one in rows}) == len(rows)
    return {(one["k"], int(one["window"]["start"].timestamp() * 1000)): (one["n"], one["total"]) for one in rows}


def by_hour(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    df = pd.DataFrame(rows)
    df["hour"] = df["ts"] // HOUR * HOUR
    grouped = df.groupby(["k", "hour"])["n"].agg(["count", "sum"])
    return {(k, int(hour)): (int(n), int(total)) for (k, hour), n, total in grouped.itertuples()}


def test_a_batch_has_the_result_of_pandas(broker: Broker, spark: SparkSession) -> None:
    topic, r = broker.topic(3), random.Random(7)
    rows = [row(r.randrange(100), r.randrange(5 * HOUR), r.choice("abc")) for _ in range(3_000)]
    for partition in range(3):
        broker.send(topic, rows[partition::3], partition)
    flow = uc.flow(uc.Kafka(broker.servers, topic, value=ROW, min_partitions=5), spark=spark)
    assert counts(hours(flow).df.toArrow().to_pylist()) == by_hour(rows)
    plain = uc.flow(
        uc.Kafka(broker.servers, topic, value=ROW, columns=["partition", "offset"], end={topic: {0: 2, 1: 0, 2: 1}}),
        spark=spark,
    )
    assert sorted((one["partition"], one["offset"], one["n"]) for one in plain.df.toArrow().to_pylist()) == [
        (0, 0, rows[0]["n"]),
        (0, 1, rows[3]["n"]),
        (2, 0, rows[2]["n"]),
    ]


def test_a_stream_takes_each_message_once_over_restarts(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic, r = broker.topic(2), random.Random(11)
    sent: list[dict[str, Any]] = []
    limit = {"max_rows_per_batch": 40} if LIMITS else {}
    for turn in range(3):
        rows = [row(r.randrange(100), turn * 3 * HOUR + r.randrange(3 * HOUR), r.choice("ab")) for _ in range(100)]
        for partition in range(2):
            broker.send(topic, rows[partition::2], partition)
        sent += rows
        flow = hours(stream(broker, spark, topic, watermark="3 hours", **limit))
        query = run(flow, tmp_path)
        assert sum(uc.progress(one).stages[0].rows_in for one in query.recentProgress) == 100
        assert sum(uc.progress(one).stages[0].rows_dropped for one in query.recentProgress) == 0
        if LIMITS:
            assert max(uc.progress(one).stages[0].rows_in for one in query.recentProgress) <= 40
    end = [row(0, 100 * DAY, "end") for _ in range(2)]
    for partition in range(2):
        broker.send(topic, [end[partition]], partition)
    run(hours(stream(broker, spark, topic, watermark="3 hours", **limit)), tmp_path)
    assert counts(rows_of(spark, tmp_path)) == by_hour(sent)


def test_rule_75_nothing_of_a_partition_three_days_behind_is_lost(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    """The same rows by one watermark for all lose those of the partition that is behind.

    Spark's watermark is one batch behind, so that it takes the first of these batches.
    """
    topic, limit = broker.topic(2), {"max_rows_per_batch": 60} if LIMITS else {}
    quick = [row(1, day * DAY + hour * HOUR, "quick") for day in range(3) for hour in range(24)]
    behind = [row(1, -3 * DAY + day * DAY + hour * HOUR, "behind") for day in range(3) for hour in range(24)]
    end = [row(0, 100 * DAY, "end")]
    broker.send(topic, quick, 0)
    flow = hours(stream(broker, spark, topic, **limit))
    run(flow, tmp_path)
    assert rows_of(spark, tmp_path) == []  # the partition without a row holds the watermark
    broker.send(topic, behind[:30], 1)
    run(flow, tmp_path)
    broker.send(topic, behind[30:], 1)
    broker.send(topic, end, 0)
    run(flow, tmp_path)
    broker.send(topic, end, 1)
    query = run(flow, tmp_path)
    assert sum(uc.progress(one).stages[0].rows_dropped for one in query.recentProgress) == 0
    assert counts(rows_of(spark, tmp_path)) == by_hour(quick + behind)
    assert _lost_by_one_watermark(spark, tmp_path, quick, behind[:30], behind[30:]) == len(behind[30:])


def _lost_by_one_watermark(spark: SparkSession, folder: Path, *batches: list[dict[str, Any]]) -> int:
    """The rows that Spark's own aggregation under `withWatermark` drops of the same batches."""
    source = folder / "files"
    source.mkdir()
    for place, rows in enumerate(batches):
        times = [datetime.fromtimestamp(one["ts"] / 1000, UTC) for one in rows]
        pd.DataFrame({"ts": times, "k": [one["k"] for one in rows]}).to_parquet(source / f"{place}.parquet")
    schema = spark.read.parquet(str(source)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
    df = reader.parquet(str(source)).withWatermark("ts", "0 seconds")
    counted = df.groupBy(F.window("ts", "1 hour"), "k").count()
    query = counted.writeStream.format("memory").queryName("one_watermark").outputMode("append")
    started = query.option("checkpointLocation", str(folder / "one")).trigger(**ONCE).start()
    started.awaitTermination()
    kept = spark.table("one_watermark").where("k = 'behind'").count()
    return len(batches[1]) + len(batches[2]) - kept


def test_an_idle_partition_holds_nothing_and_one_that_lags_does(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.topic(3)
    broker.send(topic, [row(1), row(2, 2 * HOUR)], 0)
    broker.send(topic, [row(1, 3 * HOUR, "b")], 1)
    run(hours(stream(broker, spark, topic, idle_after="1 hour")), tmp_path)
    sources = uc.checkpoint(str(tmp_path / "checkpoint")).sources().to_pylist()
    assert {one["source"]: (one["offset"], one["end"], one["idle"]) for one in sources} == {
        f"{topic}/0": (2, 2, False),
        f"{topic}/1": (1, 1, False),
        f"{topic}/2": (0, 0, False),
    }
    why = uc.why(str(tmp_path / "checkpoint"), window="2024-05-01 12:00", k="a")
    assert f"because source {topic}/2 has not reported a time yet" in why
    time.sleep(1)
    flow = hours(stream(broker, spark, topic, idle_after="1 second"))
    query = run(flow, tmp_path)  # a batch without a message, which says that all are idle
    assert counts(rows_of(spark, tmp_path)) == {("a", NOON): (1, 1), ("a", NOON + 2 * HOUR): (1, 2)}
    sources = uc.progress(query).stages[0].sources
    assert {(one.name, one.idle, one.behind) for one in sources} == {(f"{topic}/{i}", True, 0) for i in range(3)}
    broker.send(topic, [row(7, 5 * HOUR)], 0)
    broker.send(topic, [row(9, 0, "late")], 2)  # one that wakes with an old time does not move the watermark back
    query = run(flow, tmp_path)
    assert sum(uc.progress(one).stages[0].rows_dropped for one in query.recentProgress) == 1


def test_a_new_partition_is_read_from_its_beginning(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, [row(1)])
    flow = hours(stream(broker, spark, topic, start="latest"))
    run(flow, tmp_path)
    broker.send(topic, [row(2), row(3, 5 * HOUR)])
    broker.grow(topic, 2)
    broker.send(topic, [row(4, HOUR)], 1)
    query = run(flow, tmp_path)
    sources = {one.name: one.offset for one in uc.progress(query).stages[0].sources}
    assert sources == {f"{topic}/0": 3, f"{topic}/1": 1}
    broker.send(topic, [row(0, 100 * DAY)], 0)
    broker.send(topic, [row(0, 100 * DAY)], 1)
    run(flow, tmp_path)
    assert counts(rows_of(spark, tmp_path)) == {
        ("a", NOON): (1, 2),
        ("a", NOON + HOUR): (1, 4),
        ("a", NOON + 5 * HOUR): (1, 3),
    }

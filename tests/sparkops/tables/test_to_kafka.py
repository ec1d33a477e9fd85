"""Flows on Spark that are written to a topic: batches and streams, with restarts, beside pandas."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from kafka_broker import Broker, committed
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streams import changed

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
NOON, HOUR = 1_714_564_800_000, 3_600_000
ONCE = {"availableNow": True}


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    with changed(spark):
        yield


def rows_of(first: int, last: int) -> list[dict[str, Any]]:
    return [{"ts": NOON + n % 3 * HOUR, "k": "abcde"[n % 5], "n": n} for n in range(first, last)]


def hours(broker: Broker, spark: SparkSession, source: str) -> uc.Flow:
    kafka = uc.Kafka(broker.servers, source, value=ROW, wait="5 minutes")
    flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds")
    windows = flow.window("1 hour", "every 1 row", mode="retracting", allowed_lateness="1 day")
    return windows.combine(by="k", n=uc.Count(), total=uc.Sum("n"))


def want(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    df = pd.DataFrame(rows)
    grouped = df.groupby(["k", df["ts"] // HOUR * HOUR])["n"].agg(["count", "sum"])
    return {(k, int(hour)): (int(n), int(total)) for (k, hour), n, total in grouped.itertuples()}


def parsed(broker: Broker, topic: str) -> list[tuple[Any, Any]]:
    return [
        (json.loads(key or b"null"), None if value is None else json.loads(value))
        for key, value in committed(broker, topic)
    ]


def place(key: Any) -> tuple[str, int]:
    return key["k"], int(pd.Timestamp(key["window"]["start"]).timestamp() * 1000)


def upserted(broker: Broker, topic: str) -> dict[tuple[str, int], tuple[int, int]]:
    """The last row of each key, which never comes twice."""
    seen, last = set(), dict[Any, Any]()
    for key, value in parsed(broker, topic):
        assert (place(key), value["n"]) not in seen
        seen.add((place(key), value["n"]))
        last[place(key)] = (value["n"], value["total"])
    return last


def test_a_batch_on_spark_is_written_by_its_shards(broker: Broker, spark: SparkSession) -> None:
    topic, rows = broker.topic(3), rows_of(0, 500)
    table = pa.Table.from_pylist([{**row, "ts": row["ts"] * 1000} for row in rows]).cast(
        pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "n": pa.int64()})
    )
    flow = uc.flow(table, spark=spark).window("1 hour").combine(by="k", n=uc.Count(), total=uc.Sum("n"))
    assert flow.to_kafka(broker.servers, topic) is None
    found = parsed(broker, topic)
    assert {place(key): (value["n"], value["total"]) for key, value in found} == want(rows)
    assert len(found) == len(want(rows))
    with pytest.raises(InvalidArgument, match="of a bounded flow writes once: leave checkpoint= out"):
        flow.to_kafka(broker.servers, topic, checkpoint="folder")


def test_a_stream_writes_each_batch_once_and_goes_on_after_a_restart(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    source, topic, dead, rows = broker.topic(2), broker.topic(2), broker.topic(), rows_of(0, 60)
    for part in range(3):
        broker.send(source, rows[part * 20 : part * 20 + 20], part % 2)
        broker.send(source, [f"no JSON {part}"], part % 2)
        flow = hours(broker, spark, source)
        options: Any = {"changelog": "kafka", "checkpoint": str(tmp_path / "c"), "trigger": ONCE, "left_out": dead}
        flow.to_kafka(broker.servers, topic, **options).awaitTermination()
        assert upserted(broker, topic) == want(rows[: part * 20 + 20])
    assert [value["text"] for _, value in parsed(broker, dead)] == ["no JSON 0", "no JSON 1", "no JSON 2"]
    broker.delete(f"{topic}.uncombine")
    with pytest.raises(StateMismatch, match=f"'{topic}.uncombine' has no markers of this checkpoint"):
        hours(broker, spark, source).to_kafka(broker.servers, topic, **options)


def test_a_batch_that_spark_has_forgotten_is_not_written_again(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    source, topic, rows = broker.topic(2), broker.topic(2), rows_of(0, 60)
    options: Any = {"changelog": "diff", "checkpoint": str(tmp_path / "c"), "trigger": ONCE}
    broker.send(source, rows)
    hours(broker, spark, source).to_kafka(broker.servers, topic, **options).awaitTermination()
    before = parsed(broker, topic)
    for note in (tmp_path / "c" / "commits").iterdir():
        note.unlink()
    with changed(spark, {"spark.sql.shuffle.partitions": "3"}):
        hours(broker, spark, source).to_kafka(broker.servers, topic, **options).awaitTermination()
    assert parsed(broker, topic) == before
    assert len(before) == len(want(rows))


def test_rows_without_steps_and_deleted_keys(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    source, topic = broker.topic(), broker.topic(2, cleanup_policy="compact")
    row = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "n": pa.int64()})
    one, two = ({"ts": NOON * 1000, "k": k, "n": 1} for k in "ab")
    flow = uc.flow(
        uc.Kafka(broker.servers, source, value="string"),
        spark=spark,
        streaming=True,
        watermark="0 seconds",
        changelog=uc.changelog.Debezium(schema=row),
    )
    options: Any = {"changelog": "kafka", "checkpoint": str(tmp_path / "c"), "trigger": ONCE}
    with pytest.raises(InvalidArgument, match="changelog='kafka' writes the last row of each key: give keys="):
        flow.to_kafka(broker.servers, topic, **options)
    with pytest.raises(InvalidArgument, match=r"to_kafka\(\) of a stream needs checkpoint="):
        flow.to_kafka(broker.servers, topic, "k", changelog="kafka")
    broker.send(source, [{"op": "c", "before": None, "after": one}, {"op": "c", "before": None, "after": two}])
    flow.to_kafka(broker.servers, topic, "k", **options).awaitTermination()
    broker.send(
        source, [{"op": "u", "before": one, "after": {**one, "n": 9}}, {"op": "d", "before": two, "after": None}]
    )
    flow.to_kafka(broker.servers, topic, "k", **options).awaitTermination()
    found = [(key["k"], None if value is None else value["n"]) for key, value in parsed(broker, topic)]
    assert [n for k, n in found if k == "a"] == [1, 9]
    assert [n for k, n in found if k == "b"] == [1, None]


def test_a_broker_that_restarts_in_the_middle_loses_and_doubles_nothing(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    source, topic, rows = broker.topic(2), broker.topic(2), rows_of(0, 60)
    options: Any = {"changelog": "kafka", "checkpoint": str(tmp_path / "c"), "wait": "5 minutes"}
    broker.send(source, rows[:20], acks="all")
    query = hours(broker, spark, source).to_kafka(broker.servers, topic, **options)
    try:
        query.processAllAvailable()
        for part in (20, 40):
            broker.send(source, rows[part : part + 20], acks="all")
            away = threading.Timer(1, broker.start)
            broker.kill()
            away.start()
            away.join()
            query.processAllAvailable()
    finally:
        query.stop()
    assert upserted(broker, topic) == want(rows)


def test_a_row_that_is_too_large_fails_the_query_with_its_key(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    source, topic = broker.topic(max_message_bytes="9000000"), broker.topic()
    broker.send(source, [{"ts": NOON, "k": "y" * 1_500_000, "n": 1}], message_max_bytes=9_000_000)
    flow = uc.flow(uc.Kafka(broker.servers, source, value=ROW), spark=spark, streaming=True, watermark="0 s")
    query = flow.to_kafka(broker.servers, topic, "n", checkpoint=str(tmp_path / "c"), trigger=ONCE)
    with pytest.raises(StreamingQueryException, match="is larger than the client's limit of 1,000,000"):
        query.awaitTermination()
    assert committed(broker, topic) == []

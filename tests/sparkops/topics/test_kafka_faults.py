"""Topics on Spark where something goes wrong: a broker that is killed, messages that are gone or cannot be read."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pyarrow as pa
import pytest
from kafka_broker import Broker
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streams import changed

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.flows.flow import Flow
from uncombine.sparkops.planners.data_source import LIMITS

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
NOON, HOUR = 1_714_564_800_000, 3_600_000
ONCE = {"availableNow": True}


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    with changed(spark):
        yield


def row(n: int, after: int = 0) -> dict[str, Any]:
    return {"ts": NOON + after, "k": "a", "n": n}


def stream(broker: Broker, spark: SparkSession, topic: Any, **options: Any) -> Flow:
    kafka = uc.Kafka(broker.servers, topic, **{"value": ROW, **options})
    return uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds")


def hours(flow: Flow) -> Flow:
    return flow.window("1 hour", "every 1 row", mode="retracting").combine(by="k", n=uc.Count(), total=uc.Sum("n"))


def run(flow: Flow, folder: Path, **options: Any) -> Any:
    """Run a query until it has taken all that is there."""
    writer = flow.write_stream(checkpoint=str(folder / "checkpoint"), **options).format("parquet")
    query = writer.option("path", str(folder / "out")).trigger(**ONCE).start()
    query.awaitTermination()
    return query


def totals(spark: SparkSession, *folders: Path) -> dict[int, tuple[int, int]]:
    """The panes that are shown and not retracted, by the hour of the day."""
    shown = Counter[tuple[int, int, int]]()
    for folder in folders:
        for pane in spark.read.parquet(str(folder / "out")).toArrow().to_pylist():
            shown[pane["window"]["start"].hour, pane["n"], pane["total"]] += pane["diff"]
    assert set(shown.values()) <= {0, 1}
    there = [pane for pane, count in shown.items() if count]
    assert len({hour for hour, *_ in there}) == len(there)
    return {hour: (n, total) for hour, n, total in there}


def test_a_broker_that_is_killed_and_comes_back_loses_and_doubles_nothing(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.topic(2)
    flow = stream(broker, spark, topic, wait="5 minutes")
    broker.send(topic, [row(n) for n in range(50)], 0, acks="all")
    writer = flow.write_stream(checkpoint=str(tmp_path / "checkpoint")).format("parquet")
    query = writer.option("path", str(tmp_path / "out")).start()
    try:
        query.processAllAvailable()
        broker.kill()
        away = threading.Timer(3, broker.start)
        away.start()
        away.join()
        broker.send(topic, [row(n) for n in range(50, 100)], 1, acks="all")
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert sorted(rows["n"].to_pylist()) == list(range(100))


def test_offsets_that_are_gone_fail_a_query_or_are_counted(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, [row(n) for n in range(4)])
    run(hours(stream(broker, spark, topic)), tmp_path)
    broker.send(topic, [row(n) for n in range(4, 10)])
    for future in broker.admin.delete_records([ck.TopicPartition(topic, 0, 7)]).values():
        future.result(30)
    with pytest.raises(StreamingQueryException, match=f"3 offsets of {topic}/0, from 4 to 6, are not in the cluster"):
        run(hours(stream(broker, spark, topic)), tmp_path)
    query = run(hours(stream(broker, spark, topic, on_lost="count")), tmp_path)
    assert sum(flow.offsets_lost for one in query.recentProgress for flow in uc.progress(one).flows.values()) == 3
    assert totals(spark, tmp_path) == {12: (7, sum([0, 1, 2, 3, 7, 8, 9]))}


def test_a_seed_goes_on_where_its_query_was_and_a_group_knows_how_far(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.topic(2)
    broker.send(topic, [row(1), "{", row(2)], 0)
    flow = hours(stream(broker, spark, topic, group=f"of-{topic}"))
    query = run(flow, tmp_path / "first")
    assert sum(uc.progress(one).rows_unreadable for one in query.recentProgress) == 1
    if not LIMITS:  # before Spark 4.2 a run notes what the run before it has done
        run(flow, tmp_path / "first")
    kafka = uc.Kafka(broker.servers, topic, value="string", start="group", group=f"of-{topic}")
    assert uc.flow(kafka, time="timestamp").run().num_rows == 0
    seed = uc.checkpoint(str(tmp_path / "first" / "checkpoint")).seed(str(tmp_path / "seed"))
    broker.send(topic, [row(4)], 1)
    run(flow, tmp_path / "second", start=seed)
    assert totals(spark, tmp_path / "first", tmp_path / "second") == {12: (3, 7)}
    with pytest.raises(InvalidArgument, match="so does start= of uc"):
        run(hours(stream(broker, spark, topic, start="latest")), tmp_path / "third", start=seed)


def test_a_history_is_a_bounded_topic_and_the_stream_goes_on_after_it(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.topic(2)
    broker.send(topic, [row(1), row(2, HOUR)], 0)
    flow = hours(stream(broker, spark, topic))
    seed = flow.seed(uc.Kafka(broker.servers, topic, value=ROW), to=str(tmp_path / "seed"))
    broker.send(topic, [row(4)], 1)
    query = run(flow, tmp_path, start=seed)
    assert sum(uc.progress(one).stages[0].rows_in for one in query.recentProgress) == 1
    assert totals(spark, tmp_path) == {12: (2, 5), 13: (1, 2)}


def test_a_changelog_of_a_topic_is_a_stream(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic = broker.topic()
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "n": pa.int64()})
    one, other = ({"ts": NOON * 1000, "k": "a", "n": n} for n in (1, 5))
    broker.send(topic, [{"op": "c", "before": None, "after": one}, {"op": "u", "before": one, "after": other}, None])
    flow = uc.flow(
        uc.Kafka(broker.servers, topic, value="string"),
        spark=spark,
        streaming=True,
        watermark="0 seconds",
        changelog=uc.changelog.Debezium(schema=schema),
    )
    assert flow.schema.names == ["ts", "k", "n", "diff"]
    run(hours(flow), tmp_path)
    assert totals(spark, tmp_path) == {12: (1, 5)}


def test_messages_that_are_left_out_are_counted_where_no_step_follows(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.topic(1)
    broker.send(topic, [row(1), "no JSON", row(2), '{"n": "many"}'])
    flow = stream(broker, spark, topic).filter(uc.col("n") > 1)
    query = run(flow, tmp_path)
    assert sum(uc.progress(one).rows_unreadable for one in query.recentProgress) == 2
    assert spark.read.parquet(str(tmp_path / "out")).toArrow()["n"].to_pylist() == [2]

"""Queries of topics that are changed, with the topic as the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pyarrow as pa
import pytest
from kafka_broker import Broker
from pyspark.sql import SparkSession
from streams import changed

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.flows.flow import Flow

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
NOON = 1_714_564_800_000


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    with changed(spark):
        yield


def send(broker: Broker, topic: str, numbers: Any, partition: int = 0) -> None:
    broker.send(topic, [{"ts": NOON + n, "k": "a", "n": n} for n in numbers], partition)


def hours(flow: Flow, **more: Any) -> Flow:
    return flow.window("1 hour", "every 1 row", mode="retracting").combine(by="k", n=uc.Count(), **more)


def run(flow: Flow, folder: Path) -> None:
    writer = flow.write_stream(checkpoint=str(folder)).foreachBatch(lambda df, batch: df.collect())
    writer.trigger(availableNow=True).start().awaitTermination()


def shown(folder: Path) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = uc.checkpoint(str(folder)).rows(1)["results"].to_pylist()
    return results


def test_the_history_of_a_changed_query_is_all_that_it_has_read(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic, other = broker.topic(2), broker.topic(1)
    source = uc.flow(uc.Kafka(broker.servers, topic, value=ROW), spark=spark, streaming=True, watermark="1 hour")
    send(broker, topic, range(1, 6))
    run(hours(source), tmp_path / "first")
    send(broker, topic, [10], 1)
    changed = hours(source, total=uc.Sum("n"))

    def evolve(name: str, topic: str = topic, **options: Any) -> list[dict[str, Any]]:
        history = uc.Kafka(broker.servers, topic, value=ROW, **options)
        uc.evolve(str(tmp_path / "first"), changed, to=str(tmp_path / name), history=history)
        run(changed, tmp_path / name)
        return shown(tmp_path / name)

    assert evolve("whole") == [{"n": 6, "total": 25}]
    send(broker, other, range(1, 6))
    assert evolve("elsewhere", other) == [{"n": 6, "total": 25}]
    for future in broker.admin.delete_records([ck.TopicPartition(topic, 0, 2)]).values():
        future.result(30)
    with pytest.raises(StateMismatch, match=f"2 offsets of {topic}/0, from 0 to 1, are not in the cluster any more"):
        evolve("lost")
    assert not (tmp_path / "lost").exists()
    with pytest.raises(StateMismatch, match=f"has read {topic}/0 up to offset 5, and the history ends at 4"):
        evolve("short", end={f"{topic}/0": 4, f"{topic}/1": 0}, on_lost="count")
    assert evolve("counted", on_lost="count") == [{"n": 4, "total": 22}]
    assert evolve("said", start={f"{topic}/0": 2, f"{topic}/1": 0}) == [{"n": 4, "total": 22}]

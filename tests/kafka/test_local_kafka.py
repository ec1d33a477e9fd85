"""Topics of a real broker in this process: each message once, whatever lies between."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import count
from typing import Any

import confluent_kafka as ck
import pandas as pd
import pyarrow as pa
import pytest
from kafka_broker import Broker
from random_avro import avro_message
from registry_server import framed, registry_server

import uncombine as uc
from uncombine.errors import InvalidArgument, MessagesLost, UnreadableMessage
from uncombine.kafka.partitions import Partition, commit

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
NOON = 1_714_564_800_000


def row(n: int, k: str = "a", after: int = 0) -> dict[str, Any]:
    return {"ts": NOON + after, "k": k, "n": n}


def read(broker: Broker, topic: Any, **options: Any) -> list[dict[str, Any]]:
    rows = uc.flow(uc.Kafka(broker.servers, topic, **{"value": "string", **options}), time="timestamp").run()
    return [
        {name: value for name, value in one.items() if name not in ("timestamp", "step")} for one in rows.to_pylist()
    ]


def values(broker: Broker, topic: Any, **options: Any) -> list[Any]:
    return sorted(one["value"] for one in read(broker, topic, **options))


def test_a_flow_has_the_result_of_pandas(broker: Broker) -> None:
    topic, r = broker.topic(3), random.Random(5)
    rows = [row(r.randrange(-50, 50), r.choice("abc"), r.randrange(10**7)) for _ in range(5_000)]
    for partition in range(3):
        broker.send(topic, rows[partition::3], partition)
    flow = uc.flow(uc.Kafka(broker.servers, topic, value=ROW))
    found = flow.window("1 hour").combine(by="k", total=uc.Sum("n"), largest=uc.Max("n")).run()
    df = pd.DataFrame(rows)
    df["start"] = pd.to_datetime(df["ts"], unit="ms", utc=True).dt.floor("h")
    expected = df.groupby(["k", "start"])["n"].agg(["sum", "max"])
    assert {(one["k"], one["window"]["start"]): (one["total"], one["largest"]) for one in found.to_pylist()} == {
        key: tuple(both) for key, both in zip(expected.index, expected.to_numpy().tolist(), strict=True)
    }


def test_rule_74_transactions_leave_gaps_and_their_marks_are_no_messages(broker: Broker) -> None:
    topic = broker.topic()
    broker.transaction(topic, ["a", "b"])
    broker.transaction(topic, ["x", "y"], commit=False)
    broker.transaction(topic, ["c"])
    assert [(one["value"], one["offset"]) for one in read(broker, topic, columns="offset")] == [
        ("a", 0),
        ("b", 1),
        ("c", 6),
    ]
    assert values(broker, topic, start={f"{topic}/0": 3}) == ["c"]
    assert values(broker, topic, end={f"{topic}/0": 6}) == ["a", "b"]


def test_rule_74_a_flow_ends_before_a_transaction_that_is_open(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, ["a"])
    producer = broker.producer(transactional_id="open")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"b")
    producer.flush(30)
    broker.send(topic, ["c"])
    assert values(broker, topic) == ["a"]
    producer.commit_transaction(30)
    assert values(broker, topic) == ["a", "b", "c"]


def test_keys_headers_and_all_else_that_a_message_has(broker: Broker) -> None:
    topic = broker.topic(2)
    producer = broker.producer()
    headers = [("trace", b"7"), ("trace", None)]
    producer.produce(topic, b"one", key=b"k", partition=1, timestamp=NOON, headers=headers)
    producer.produce(topic, None, partition=1, timestamp=NOON + 1)
    producer.flush(30)
    around = ("headers", "offset", "partition", "timestamp", "topic")
    flow = uc.flow(uc.Kafka(broker.servers, topic, value="binary", key="string", columns=around), time="timestamp")
    first, second = flow.run().to_pylist()
    assert (first["key"], first["value"], first["partition"], first["offset"]) == ("k", b"one", 1, 0)
    assert first["headers"] == [{"key": "trace", "value": b"7"}, {"key": "trace", "value": None}]
    assert first["timestamp"].timestamp() * 1000 == NOON
    assert first["topic"] == topic
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)


def test_start_and_end_by_word_time_and_offset(broker: Broker) -> None:
    topic = broker.topic(2)
    producer = broker.producer()
    for n in range(10):
        producer.produce(topic, str(n).encode(), partition=n % 2, timestamp=NOON + 1000 * n)
    producer.flush(30)
    five = "2024-05-01T12:00:05Z"
    assert values(broker, topic, start=five) == list("56789")
    assert values(broker, topic, end=five) == list("01234")
    assert values(broker, topic, start="2024-05-01T12:00:09.0005Z") == []
    assert values(broker, topic, start="latest") == []
    assert values(broker, topic, start={f"{topic}/0": 4, f"{topic}/1": 5}) == ["8"]
    assert values(broker, topic, start={topic: {0: 5, 1: 4}}) == ["9"]
    assert values(broker, topic, end={topic: {0: 1, 1: 0}}) == ["0"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": {"{t}/0": 1}}, "no offset of {t}/1: name one of each partition"),
        ({"start": {"{t}/0": 1, "{t}/7": 0, "{t}/1": 0}}, "'{t}/7', which is no partition"),
        ({"start": {"{t}/0": 9, "{t}/1": 0}}, "offset 9 of {t}/0, which ends at 0"),
        ({"end": {"{t}/0": 9, "{t}/1": 0}}, "offset 9 of {t}/0, which ends at 0"),
    ],
)
def test_offsets_that_are_not_there_are_refused(broker: Broker, options: Any, words: str) -> None:
    topic = broker.topic(2)
    named = {name: {key.format(t=topic): value for key, value in offsets.items()} for name, offsets in options.items()}
    with pytest.raises(InvalidArgument, match=words.format(t=topic)):
        read(broker, topic, **named)


def test_several_topics_and_a_pattern(broker: Broker) -> None:
    name = broker.topic()
    other, strange = broker.topic(name=f"{name}-b"), broker.topic(name=f"x{name}")
    for topic, value in ((name, "a"), (other, "b"), (strange, "c")):
        broker.send(topic, [value])
    assert values(broker, [name, strange]) == ["a", "c"]
    assert values(broker, f"^{name}.*") == ["a", "b"]
    assert values(broker, f"^{name}") == ["a"]
    assert values(broker, "^no-such.*") == []


def test_a_group_says_where_reading_begins(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, ["a", "b"], 0)
    broker.send(topic, ["c"], 1)
    kafka = uc.Kafka(broker.servers, topic, value="string")
    commit(kafka.cluster, f"of-{topic}", {Partition(topic, 0): 1})
    assert values(broker, topic, start="group", group=f"of-{topic}") == ["b", "c"]


def test_a_message_that_cannot_be_read_is_an_error_or_left_out(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [row(1), '{"ts": "no time"', row(2), None, '{"n": "x"}'])
    with pytest.raises(UnreadableMessage, match=f"offset 1 of {topic}/0 cannot be read"):
        uc.flow(uc.Kafka(broker.servers, topic, value=ROW)).window("1 hour").combine(n=uc.Count()).run()
    flow = uc.flow(uc.Kafka(broker.servers, topic, value=ROW, on_bad_row="leave_out"))
    result = flow.window("1 hour").combine(total=uc.Sum("n")).run()
    assert result["total"].to_pylist() == [3]
    left = result.left_out.select(["why", "file", "line", "text"]).to_pylist()
    assert [(one["why"], one["file"], one["line"]) for one in left] == [
        ("unreadable", f"{topic}/0", n) for n in (1, 3, 4)
    ]
    assert [one["text"] for one in left] == ['{"ts": "no time"', None, '{"n": "x"}']
    causes = result.left_out["cause"].to_pylist()
    assert "no value" in causes[1]
    assert "'n' is no int64" in causes[2]


def test_keys_by_a_format_and_null_keys(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, ["x", "y", "z"], keys=[b'{"id": 7}', None, b"{"])
    key = pa.schema({"id": pa.int64()})
    flow = uc.flow(uc.Kafka(broker.servers, topic, value="string", key=key, on_bad_row="leave_out"), time="timestamp")
    result = flow.run()
    assert [(one["id"], one["value"]) for one in result.to_pylist()] == [(7, "x"), (None, "y")]
    assert result.left_out["line"].to_pylist() == [2]


def test_offsets_that_are_gone_are_refused_or_counted(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    topic = broker.topic()
    broker.send(topic, list("abcde"))
    _delete_before(broker, topic, 3)
    start = {f"{topic}/0": 1}
    with pytest.raises(MessagesLost, match=f"2 offsets of {topic}/0, from 1 to 2, are not in the cluster any more"):
        values(broker, topic, start=start)
    assert values(broker, topic, start=start, on_lost="count") == ["d", "e"]
    assert f"lost: 2 offsets of {topic}/0, from 1 to 2," in capfd.readouterr().err
    assert values(broker, topic) == ["d", "e"]


def _delete_before(broker: Broker, topic: str, offset: int) -> None:
    for future in broker.admin.delete_records([ck.TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def test_a_compacted_topic_has_gaps(broker: Broker) -> None:
    topic = broker.topic(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="100"
    )
    until = time.monotonic() + 60
    for n in count():
        broker.send(topic, [f"{n}"] * 20, keys=[f"k{i}" for i in range(20)])
        found = Counter(values(broker, topic))
        assert found[f"{n}"] == 20
        if found["0"] == 0:
            break
        assert time.monotonic() < until


def test_large_messages(broker: Broker) -> None:
    topic = broker.topic(max_message_bytes="60000000")
    large = bytes(50 << 20)
    broker.send(topic, [b"small", large, b"after"], message_max_bytes=60_000_000)
    flow = uc.flow(uc.Kafka(broker.servers, topic, value="binary"), time="timestamp")
    assert [len(value) for value in flow.run()["value"].to_pylist()] == [5, 50 << 20, 5]


def test_debezium_and_upserts_read_messages_as_they_are(broker: Broker) -> None:
    topic = broker.topic()
    before, after = {"ts": NOON * 1000, "id": "a", "n": 1}, {"ts": NOON * 1000, "id": "a", "n": 5}
    broker.send(
        topic, [{"op": "c", "before": None, "after": before}, {"op": "u", "before": before, "after": after}, None]
    )
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.string(), "n": pa.int64()})
    flow = uc.flow(uc.Kafka(broker.servers, topic, value="string"), changelog=uc.changelog.Debezium(schema=schema))
    totals = flow.window("1 hour").combine(total=uc.Sum("n")).run()
    assert totals["total"].to_pylist() == [5]
    upserts = broker.topic()
    rows = [{"ts": NOON * 1000, "n": n} for n in (1, 2, 3)]
    broker.send(upserts, [*rows, None], keys=["a", "b", "a", "b"])
    flow = uc.flow(
        uc.Kafka(broker.servers, upserts, value="binary"),
        changelog=uc.changelog.KafkaUpsert("id", schema=schema),
    )
    assert flow.window("1 hour").combine(n=uc.Count(), total=uc.Sum("n")).run().select(["n", "total"]).to_pylist() == [
        {"n": 1, "total": 3}
    ]


def test_a_topic_that_is_not_there_and_a_pipeline_that_is_a_stream(broker: Broker) -> None:
    topic = broker.topic(name="many-orders")
    with pytest.raises(InvalidArgument, match="did you mean 'many-orders'"):
        uc.flow(uc.Kafka(broker.servers, "many-order", value="string"))
    with pytest.raises(InvalidArgument, match="streaming=True needs spark="):
        uc.flow(uc.Kafka(broker.servers, topic, value="string"), streaming=True)
    with pytest.raises(InvalidArgument, match="max_rows_per_batch= is for a stream"):
        uc.flow(uc.Kafka(broker.servers, topic, value="string", max_rows_per_batch=5))


def test_a_replay_leaves_bad_messages_out(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [row(1), "{", row(2, after=7_200_000)])
    kafka = uc.Kafka(broker.servers, topic, value=ROW)
    flow = uc.flow(kafka, watermark="1 minute", processing_time="timestamp", max_future=None)
    flow = flow.replay(close_at_end=True)
    result = flow.window("1 hour").combine(total=uc.Sum("n")).run()
    assert sorted(result["total"].to_pylist()) == [1, 2]
    assert result.left_out["line"].to_pylist() == [1]


def test_debezium_in_avro_with_a_registry(broker: Broker) -> None:
    """The envelope is in the value, a tombstone says nothing, and an order lies inside the envelope."""
    long = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [{"name": "ts", "type": long}, {"name": "id", "type": "string"}, {"name": "n", "type": "long"}]
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", {"type": "record", "name": "Value", "fields": fields}]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "op", "type": "string"},
            {"name": "source", "type": source},
        ],
    }
    one, two = ({"ts": NOON * 1000, "id": "a", "n": n} for n in (1, 5))
    other = {**one, "id": "b"}
    changes = [("c", None, one), ("u", one, two), ("c", None, other), ("d", other, None)]
    topic = broker.topic()
    with registry_server() as registry:
        number = registry.register(f"{topic}-value", envelope)
        rows = [
            {"op": op, "before": before, "after": after, "source": {"lsn": place}}
            for place, (op, before, after) in enumerate(changes)
        ]
        messages = [framed(number, avro_message(envelope, row)) for row in rows]
        broker.send(topic, [*messages, None])
        avro = uc.messages.Avro(registry=uc.SchemaRegistry(registry.address))
        for changelog in (uc.changelog.Debezium(), uc.changelog.Debezium(keys="id", order="source.lsn")):
            flow = uc.flow(uc.Kafka(broker.servers, topic, value=avro), changelog=changelog)
            assert {"id", "n", "offset"} <= {*flow.source_schema.names}
            sums = flow.window("1 hour").combine(by="id", n=uc.Sum("n")).run()
            assert sums.select(["id", "n"]).to_pylist() == [{"id": "a", "n": 5}]
            assert sums.left_out.num_rows == 0

"""Topics of Kafka: what the client gives at most, and what reading and decoding add to it.

A broker on this machine has messages of three columns in four partitions, as JSON and as Avro. `consume()` alone is
compared with messages as Arrow tables, and with these decoded, in processor time of one partition. librdkafka fetches
in threads of its own, whose time counts on both sides.

The same topics are then read by the library on Spark, and by Spark's own connector, into the same windows: a stream
until it has taken all that is there, by the clock, in turn.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from contenders.environments import Contender
from harness import Row, pair, wall

import uncombine as uc
from uncombine.cli.kafka_broker import LocalBroker, copy_jars

TITLE = "Topics"

MESSAGES = int(os.environ.get("MESSAGES", "2000000"))
"""The messages of a topic."""
ROUNDS = int(os.environ.get("ROUNDS", "3"))
PARTITIONS, KEYS = 4, 1_000
NOON = 1_714_564_800_000

PLACE = Path(__file__).resolve().parents[1] / "out" / "kafka"
ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.int64(), "v": pa.int64()})
TIME = {"type": "long", "logicalType": "timestamp-millis"}
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "ts", "type": TIME}, {"name": "k", "type": "long"}, {"name": "v", "type": "long"}],
}


def rows() -> Iterator[Row]:
    copy_jars(PLACE / "jars")
    folder = Path(tempfile.mkdtemp(prefix="uncombine-bench-"))
    broker = LocalBroker(folder, PLACE / "jars")
    broker.start()
    try:
        for form, write in (("json", of_json), ("avro", of_avro)):
            fill(broker.servers, form, write)
        yield from client(broker.servers)
        yield from on_spark(broker.servers)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def of_json(i: int) -> bytes:
    return b'{"ts":%d,"k":%d,"v":%d}' % (NOON + i * 10, i * 7919 % KEYS, i % 97)


def of_avro(i: int) -> bytes:
    return b"".join(map(_varint, (NOON + i * 10, i * 7919 % KEYS, i % 97)))


def _varint(number: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    number, out = number << 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def fill(servers: str, topic: str, write: Callable[[int], bytes]) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    new = NewTopic(topic, PARTITIONS, config={"retention.ms": "-1"})
    for made in admin.create_topics([new]).values():
        made.result(120)
    producer = Producer({"bootstrap.servers": servers, "log_level": 2, "linger.ms": 50, "batch.size": 1_000_000})
    for i in range(MESSAGES):
        while True:
            try:
                producer.produce(topic, write(i), partition=i % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if i % 1000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0


def client(servers: str) -> Iterator[Row]:
    """The rate of the client in this process: processor time of one partition."""
    from uncombine.kafka.client import Cluster
    from uncombine.kafka.partitions import Part, Partition
    from uncombine.kafka.reading import read_parts

    cluster, part = Cluster(servers), Part(Partition("json", 0), 0, MESSAGES // PARTITIONS)

    def consumed() -> list[Any]:
        from confluent_kafka import TopicPartition

        messages = list[Any]()
        with cluster.consumer() as consumer:
            consumer.assign([TopicPartition("json", 0, 0)])
            count = 0
            while count < part.last:
                messages = consumer.consume(10_000, 1.0)
                count += len(messages)
        return messages

    def tables(topic: str = "json") -> pa.Table:
        one = Part(Partition(topic, 0), 0, part.last)
        return pa.concat_tables(read_parts(cluster, [one], ["value", "offset"]))

    def decoded(topic: str, form: Any) -> Callable[[], Any]:
        return lambda: form.decode(tables(topic)["value"].combine_chunks())

    size = f"{part.last:,} messages"
    yield pair(f"{size} as Arrow tables", tables, consumed, "bare consume()", None, ROUNDS)
    for topic, form in (("json", uc.messages.Json(ROW)), ("avro", uc.messages.Avro(AVRO))):
        yield pair(f"{size} of {topic}, decoded", decoded(topic, form), consumed, "bare consume()", None, ROUNDS)


def on_spark(servers: str) -> Iterator[Row]:
    """The library beside Spark's connector, both on the newest Spark for which Maven has it."""
    with Contender("connector") as spark:

        def run(task: str) -> Callable[[], Any]:
            return lambda: spark.run(task, servers)

        for form in ("json", "avro"):
            what = f"{MESSAGES:,} messages of {form} into windows, on Spark {spark.version}"
            for way, other in (("combined", "the connector, and this library"), ("native", "the connector, and Spark")):
                yield wall(what, run(f"ours {form}"), run(f"{way} {form}"), other, 1 / 1.3, ROUNDS, before=1)

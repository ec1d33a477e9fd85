"""A broker of Kafka for tests, from the jars that Maven copies: one process on loopback, with a folder of its own."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from uncombine.cli.kafka_broker import LocalBroker, why_no_broker

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / "out" / "kafka" / "jars"


def why_not() -> str | None:
    """The reason why there can be no broker here, in a sentence; None if there can."""
    return why_no_broker(JARS)


class Broker(LocalBroker):
    """A broker with what tests do to it."""

    login: Mapping[str, str] = {}
    """The options with which a client logs in."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, JARS)

    def start(self) -> None:
        super().start()
        self.admin.list_topics(timeout=60)

    def kill(self) -> None:
        """End the broker at once, as a machine that is switched off."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 2, **self.login})

    def topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """A new topic, which keeps messages of any time."""
        name = name or f"t{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in {"retention_ms": "-1", **config}.items()}
        for future in self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
            future.result(60)
        self._until(lambda: len(self.admin.list_topics(timeout=30).topics[name].partitions) == partitions)
        return name

    def delete(self, topic: str) -> None:
        for future in self.admin.delete_topics([topic]).values():
            future.result(60)
        self._until(lambda: topic not in self.admin.list_topics(timeout=30).topics)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        for future in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result(60)
        self._until(lambda: len(self.admin.list_topics(timeout=30).topics[topic].partitions) == partitions)

    def send(
        self, topic: str, values: Iterable[Any], partition: int = 0, keys: Sequence[Any] | None = None, **options: Any
    ) -> None:
        """Messages in a partition; values that are mappings become JSON."""
        producer = self.producer(**options)
        for place, value in enumerate(values):
            key = None if keys is None else keys[place]
            while True:
                try:
                    producer.produce(topic, _bytes(value), key=_bytes(key), partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(60) == 0

    def producer(self, **options: Any) -> ck.Producer:
        named = {name.replace("_", "."): value for name, value in options.items()}
        return ck.Producer({"bootstrap.servers": self.servers, "log_level": 2, **self.login, **named})

    def transaction(self, topic: str, values: Iterable[Any], partition: int = 0, commit: bool = True) -> None:
        producer = self.producer(transactional_id=uuid.uuid4().hex)
        producer.init_transactions(60)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, _bytes(value), partition=partition)
        producer.flush(60)
        (producer.commit_transaction if commit else producer.abort_transaction)(60)

    def begin_of(self, topic: str, partition: int = 0) -> int:
        """The first offset that a partition still has."""
        options = {"bootstrap.servers": self.servers, "group.id": "a test", "log_level": 2, **self.login}
        consumer = ck.Consumer(options)
        begin, _ = consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), timeout=30)
        consumer.close()
        return int(begin)

    def _until(self, true: Any) -> None:
        until = time.monotonic() + 60
        while not _quiet(true):
            assert time.monotonic() < until
            time.sleep(0.05)


PASSWORD = "Kafka-password-7f31"

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class SecuredBroker(Broker):
    """A broker that takes nobody without a password (SASL/PLAIN)."""

    protocol = "SASL_PLAINTEXT"
    settings = f"""
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={_PLAIN} username="broker" password="of the broker" \\
  user_broker="of the broker" user_reader="{PASSWORD}";
"""
    login: Mapping[str, str] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": PASSWORD,
    }


def committed(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """The keys and values of all messages of a topic that a reader of committed messages sees, by partition."""
    options = {
        "bootstrap.servers": broker.servers,
        "group.id": "a reader",
        "log_level": 2,
        "enable.partition.eof": True,
    }
    consumer = ck.Consumer({**options, "isolation.level": "read_committed", "enable.auto.commit": False})
    out = list[tuple[bytes | None, bytes | None]]()
    for number in sorted(broker.admin.list_topics(timeout=30).topics[topic].partitions):
        end = consumer.get_watermark_offsets(ck.TopicPartition(topic, number), timeout=30)[1]
        consumer.assign([ck.TopicPartition(topic, number, ck.OFFSET_BEGINNING)])
        until = time.monotonic() + 120
        while consumer.position([ck.TopicPartition(topic, number)])[0].offset < end and end:
            assert time.monotonic() < until, f"a transaction is open in {topic}/{number}"
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                out.append((message.key(), message.value()))
            elif message is not None and message.offset() >= end:
                break
    consumer.close()
    return out


def _quiet(true: Any) -> bool:
    try:
        return bool(true())
    except (KeyError, ck.KafkaException):
        return False


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, Mapping):
        value = json.dumps(value)
    return value.encode() if isinstance(value, str) else value

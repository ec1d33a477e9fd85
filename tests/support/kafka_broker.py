"""A broker of Kafka for tests, from the jars that Maven copies: one process on loopback, with a folder of its own."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / "out" / "kafka" / "jars"
POM = Path(__file__).parent / "kafka" / "pom.xml"

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=4194304
log.initial.task.delay.ms=500
log.retention.check.interval.ms=300
log.cleaner.backoff.ms=300
log.segment.delete.delay.ms=100
message.max.bytes=60000000
"""

HEAP = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def why_not() -> str | None:
    """The reason why there can be no broker here, in a sentence; None if there can."""
    if shutil.which("java") is None:
        return "a broker of Kafka needs Java, and there is none: install Java 17 or newer"
    if not JARS.is_dir() and shutil.which("mvn") is None:
        return "the jars of Kafka come by Maven, and there is no mvn: install it, or leave make kafka out"
    return None


def copy_jars() -> None:
    """Copy the jars of Kafka to `out/`, if they are not there."""
    if JARS.is_dir():
        return
    part = JARS.with_name(f"jars-{uuid.uuid4().hex}")
    command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    subprocess.run(command, check=True)
    part.rename(JARS)


class Broker:
    """A broker, which is also the controller of its cluster."""

    def __init__(self, folder: Path) -> None:
        copy_jars()
        self.folder, self.process = folder, None
        self.port, self.controller = _free_ports()
        folder.mkdir(parents=True, exist_ok=True)
        settings = SETTINGS.format(port=self.port, controller=self.controller, folder=folder)
        (folder / "server.properties").write_text(settings)
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._run("kafka.tools.StorageTool", "format", "-t", name, "-c", f"{folder}/server.properties")

    process: subprocess.Popen[bytes] | None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        log = (self.folder / "log.txt").open("ab")
        command = [*_java(), "kafka.Kafka", f"{self.folder}/server.properties"]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            assert self.process.poll() is None, (self.folder / "log.txt").read_text()[-3000:]
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    break
            except OSError:
                time.sleep(0.1)
        self.admin.list_topics(timeout=60)

    def kill(self) -> None:
        """End the broker at once, as a machine that is switched off."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 2})

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
        return ck.Producer({"bootstrap.servers": self.servers, "log_level": 2, **named})

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
        options = {"bootstrap.servers": self.servers, "group.id": "a test", "log_level": 2}
        consumer = ck.Consumer(options)
        begin, _ = consumer.get_watermark_offsets(ck.TopicPartition(topic, partition), timeout=30)
        consumer.close()
        return int(begin)

    def _until(self, true: Any) -> None:
        until = time.monotonic() + 60
        while not _quiet(true):
            assert time.monotonic() < until
            time.sleep(0.05)

    def _run(self, main: str, *arguments: str) -> None:
        done = subprocess.run([*_java(), main, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def _quiet(true: Any) -> bool:
    try:
        return bool(true())
    except (KeyError, ck.KafkaException):
        return False


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, Mapping):
        value = json.dumps(value)
    return value.encode() if isinstance(value, str) else value


def _java() -> list[str]:
    return ["java", *HEAP, "-cp", f"{JARS}/*"]


def _free_ports() -> list[int]:
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports

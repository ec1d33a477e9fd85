"""The messages of parts of partitions, as Arrow tables.

A part ends at its last offset, or at the end of its partition: transactions and compaction leave gaps, so a message of
every offset need not come.

Guarded by tests/kafka/test_local_kafka.py and tests/sparkops/topics/test_kafka_faults.py.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from ..errors import MessagesLost
from ..windows.times import UTC_MICROS
from .client import BACK_WITHIN, ONE_TRY, PAUSE, Cluster
from .partitions import Part, Partition

OnLost: TypeAlias = Literal["error", "count"]
"""The treatment of offsets that a cluster has no more: an error, or a count of them."""

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

MESSAGE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", UTC_MICROS),
        ("headers", HEADERS),
    ]
)
"""The columns of messages. A message without a key, a value, a time or headers has null."""

MOST_MESSAGES = 10_000
"""The most messages that the client gives at once."""

FIRST_MESSAGES = 500
"""The messages that the client gives at once before their size is known."""

BYTES_AT_ONCE = 32 << 20
"""The bytes of messages, roughly, that the client gives at once."""

TABLE_BYTES = 64 << 20
"""The bytes of values in a table; one value may have more."""

_TICK = 0.1
"""The seconds for which the client is asked at once."""


def read_parts(
    cluster: Cluster,
    parts: Iterable[Part],
    columns: Sequence[str] = MESSAGE.names,
    on_lost: OnLost = "error",
    lost: Callable[[int], None] = lambda count: None,
) -> Iterator[pa.Table]:
    """The messages of some parts, one part after the other, with these columns of `MESSAGE`.

    `lost` gets the number of offsets that the cluster has no more, if they are counted.
    """
    parts = [part for part in parts if part.first < part.last]
    if not parts:
        return
    with cluster.consumer() as consumer:
        for part in parts:
            yield from _Reader(cluster, consumer, columns, on_lost, lost).tables(part)


class _Reader:
    """Reads parts by a client."""

    def __init__(
        self, cluster: Cluster, consumer: Any, columns: Sequence[str], on_lost: OnLost, lost: Callable[[int], None]
    ) -> None:
        self.cluster, self.consumer = cluster, consumer
        self.columns, self.on_lost, self.lost = columns, on_lost, lost
        self.most = FIRST_MESSAGES
        self.missed: float | None = None
        """The time since which the cluster does not know the partition, or the next offset of it."""

    def tables(self, part: Part) -> Iterator[pa.Table]:
        """The messages of a part."""
        from confluent_kafka import KafkaError

        self._assign(part.partition, part.first)
        self.missed, place, silent_since = None, part.first, time.monotonic()
        while place < part.last:
            messages, good = self._consumed(), list[Any]()
            if _all_of(part, messages):  # nearly always, and without a loop in Python
                good, messages, place = messages, [], messages[-1].offset() + 1
            for message in messages:
                fault = message.error()
                if fault is None:
                    if part.first <= message.offset() < part.last and message.topic() == part.partition.topic:
                        good.append(message)
                    place = max(place, message.offset() + 1)
                    continue
                silent = fault.code() == KafkaError._PARTITION_EOF and message.offset() >= part.last
                if silent:
                    place = part.last
                elif fault.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                    place = self._skipped(part, place)
                elif fault.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
                    self._wait_for(part.partition, place)
                elif fault.code() != KafkaError._PARTITION_EOF and not fault.retriable() and not _is_away(fault):
                    raise self.cluster.refusal(f"give the messages of {part.partition.name}", fault)
            if good:
                self.missed, silent_since = None, time.monotonic()
                yield from self._in_tables(part.partition, good)
            elif time.monotonic() - silent_since > self.cluster.wait:
                raise self.cluster.silence(f"read {part.partition.name} from offset {place} on")

    def _consumed(self) -> list[Any]:
        """The next messages, as far as they are there.

        Python would look for cycles again and again while so many objects are made, for as long as the making takes;
        a message is in none.
        """
        collects = gc.isenabled()
        gc.disable()
        try:
            messages: list[Any] = self.consumer.consume(self.most, _TICK)
            return messages
        finally:
            if collects:
                gc.enable()

    def _assign(self, partition: Partition, offset: int) -> None:
        from confluent_kafka import TopicPartition

        self.consumer.assign([TopicPartition(*partition, offset)])

    def _wait_for(self, partition: Partition, place: int) -> None:
        """Go on at an offset that the cluster does not know, as a broker that starts may say; raise after a while."""
        now = time.monotonic()
        self.missed = self.missed or now
        if now - self.missed > BACK_WITHIN:
            raise gone(partition, place)
        time.sleep(PAUSE)
        self._assign(partition, place)

    def _skipped(self, part: Part, place: int) -> int:
        """The offset at which a part goes on whose next messages are gone; raises unless they are counted."""
        from confluent_kafka import TopicPartition

        begin, _ = self.cluster.asked(
            f"tell where {part.partition.name} begins",
            lambda: self.consumer.get_watermark_offsets(TopicPartition(*part.partition), timeout=ONE_TRY),
        )
        if begin <= place:  # it is not the beginning that moved
            self._wait_for(part.partition, place)
            return place
        after = min(begin, part.last)
        note_lost(part.partition, place, after, self.on_lost)
        self.lost(after - place)
        if after < part.last:
            self._assign(part.partition, after)
        return after

    def _in_tables(self, partition: Partition, messages: list[Any]) -> Iterator[pa.Table]:
        from confluent_kafka import Message

        values = list(map(Message.value, messages))
        sizes = [0 if value is None else len(value) for value in values]
        total = sum(sizes)
        self.most = min(max(BYTES_AT_ONCE * len(messages) // max(total, len(messages)), 1), MOST_MESSAGES)
        if total <= TABLE_BYTES:
            yield _table(partition, messages, values, self.columns)
            return
        first = 0
        while first < len(messages):
            size, stop = 0, first
            while stop < len(messages) and (stop == first or size + sizes[stop] <= TABLE_BYTES):
                size, stop = size + sizes[stop], stop + 1
            yield _table(partition, messages[first:stop], values[first:stop], self.columns)
            first = stop


def note_lost(partition: Partition, first: int, last: int, on_lost: OnLost) -> None:
    """Raise for messages that a cluster has no more, or say how many they are."""
    which = f"{last - first:,} offsets of {partition.name}, from {first} to {last - 1},"
    if on_lost == "error":
        raise MessagesLost(
            f"{which} are not in the cluster any more, because their time or the size of the topic is over: start from "
            "a new checkpoint, or count them and go on with on_lost='count'"
        )
    sys.stderr.write(f"lost: {which} are not in the cluster any more\n")


def gone(partition: Partition, place: int) -> MessagesLost:
    """The error for a partition that is not the one that was read before."""
    return MessagesLost(
        f"{partition.name} has no offset {place}, which was read or promised before: the topic was deleted, and "
        "perhaps made again, so start from a new checkpoint"
    )


def _is_away(fault: Any) -> bool:
    """True if another try may succeed, because a broker is away."""
    from confluent_kafka import KafkaError

    return fault.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)


def _table(partition: Partition, messages: Sequence[Any], values: list[Any], columns: Sequence[str]) -> pa.Table:
    made: dict[str, pa.Array] = {}
    count = len(messages)
    for name in columns:
        match name:
            case "value":
                made[name] = pa.array(values, pa.binary())
            case "key":
                made[name] = pa.array([message.key() for message in messages], pa.binary())
            case "topic":
                made[name] = pa.repeat(partition.topic, count)
            case "partition":
                made[name] = pa.repeat(pa.scalar(partition.number, pa.int32()), count)
            case "offset":
                made[name] = pa.array(_offsets(messages), pa.int64())
            case "timestamp":
                made[name] = _times(messages)
            case "headers":
                made[name] = pa.array([_headers(message) for message in messages], HEADERS)
    return pa.table(made, schema=pa.schema([MESSAGE.field(name) for name in columns]))


def _all_of(part: Part, messages: Sequence[Any]) -> bool:
    """True if all that the client gave are messages of a part, in their order."""
    from confluent_kafka import Message

    if not messages or any(map(Message.error, messages)):
        return False
    offsets, topic = _offsets(messages), part.partition.topic
    in_order = part.first <= offsets[0] and offsets[-1] < part.last and bool((np.diff(offsets) > 0).all())
    return in_order and set(map(Message.topic, messages)) == {topic}


def _offsets(messages: Sequence[Any]) -> np.ndarray:
    from confluent_kafka import Message

    return np.fromiter(map(Message.offset, messages), np.int64, len(messages))


def _times(messages: Sequence[Any]) -> pa.Array:
    """The time of each message; of one that has none, null."""
    pairs = [message.timestamp() for message in messages]
    millis = [at if kind and at >= 0 else None for kind, at in pairs]
    return pa.array(millis, pa.timestamp("ms", "UTC")).cast(UTC_MICROS)


def _headers(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    if headers is None:
        return None
    return [{"key": key, "value": value.encode() if isinstance(value, str) else value} for key, value in headers]


__all__ = ["HEADERS", "MESSAGE", "OnLost", "gone", "note_lost", "read_parts"]

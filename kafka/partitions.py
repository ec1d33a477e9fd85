"""The partitions of topics, and where each begins and ends.

A partition ends at its last stable offset: messages of a transaction that is open are behind it, and so is all that
came after them.

Guarded by tests/kafka/test_local_kafka.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidArgument, nearest
from .client import FIRST_ANSWER, ONE_TRY, Cluster


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    @property
    def name(self) -> str:
        """The name of the partition, as a source of the watermark.

        >>> Partition("orders", 3).name
        'orders/3'
        """
        return f"{self.topic}/{self.number}"


class Part(NamedTuple):
    """The messages of a partition from an offset on, and before another."""

    partition: Partition
    first: int
    last: int


class Bounds(NamedTuple):
    """The first offset that a partition still has, and the one after the last that may be read."""

    begin: int
    end: int


def partition_of(name: str) -> Partition:
    """The partition of this name.

    >>> partition_of("orders/3")
    Partition(topic='orders', number=3)
    """
    topic, _, number = name.rpartition("/")
    return Partition(topic, int(number))


def is_pattern(topic: str) -> bool:
    """True for a pattern of topics, which begins as no name of a topic does."""
    return topic.startswith("^")


def partitions_of(cluster: Cluster, topics: Sequence[str], wait: float | None = None) -> list[Partition]:
    """All partitions of topics and patterns, in order; raises for a topic that is not there."""
    there = cluster.asked("list its topics", lambda: cluster.admin.list_topics(timeout=ONE_TRY).topics, wait)
    names: dict[str, None] = {}
    for topic in topics:
        if is_pattern(topic):
            names.update(dict.fromkeys(sorted(name for name in there if re.fullmatch(topic, name))))
        elif topic in there:
            names[topic] = None
        else:
            own = [name for name in there if not name.startswith("__")]
            raise InvalidArgument(f"topic {topic!r} is not in the cluster {cluster.servers}: {nearest(topic, own)}")
    return [Partition(name, number) for name in names for number in sorted(there[name].partitions)]


def bounds_of(cluster: Cluster, partitions: Iterable[Partition], wait: float | None = None) -> dict[Partition, Bounds]:
    """The beginning and the end of each partition."""
    from confluent_kafka.admin import OffsetSpec

    partitions = list(partitions)
    begins = _offsets(cluster, dict.fromkeys(partitions, OffsetSpec.earliest()), wait)
    ends = _offsets(cluster, dict.fromkeys(partitions, OffsetSpec.latest()), wait)
    return {one: Bounds(begins[one], max(ends[one], begins[one])) for one in partitions}


def open_ends(cluster: Cluster, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The end of each partition with the messages of open transactions."""
    from confluent_kafka.admin import OffsetSpec

    return _offsets(cluster, dict.fromkeys(partitions, OffsetSpec.latest()), None, committed=False)


def offsets_at(
    cluster: Cluster, bounds: Mapping[Partition, Bounds], micros: int, wait: float | None = None
) -> dict[Partition, int]:
    """The first offset of each partition whose message is of a time or later, by the timestamps of messages."""
    from confluent_kafka.admin import OffsetSpec

    millis = -(-micros // 1000)
    if millis < 0:
        return {one: bound.begin for one, bound in bounds.items()}
    found = _offsets(cluster, {one: OffsetSpec.for_timestamp(millis) for one in bounds}, wait)
    return {one: bound.end if found[one] < 0 else min(found[one], bound.end) for one, bound in bounds.items()}


def committed_offsets(
    cluster: Cluster, bounds: Mapping[Partition, Bounds], group: str, wait: float | None = None
) -> dict[Partition, int]:
    """The offsets that a consumer group has committed; the beginning of a partition of which it has none."""
    from confluent_kafka import TopicPartition

    with cluster.consumer(**{"group.id": group}) as consumer:
        asked = [TopicPartition(*one) for one in bounds]
        told = cluster.asked(
            f"tell the offsets of group {group!r}", lambda: consumer.committed(asked, timeout=ONE_TRY), wait
        )
    found = {Partition(one.topic, one.partition): one.offset for one in told}
    return {one: found[one] if found.get(one, -1) >= 0 else bound.begin for one, bound in bounds.items()}


def commit(cluster: Cluster, group: str, offsets: Mapping[Partition, int]) -> None:
    """Note in a consumer group, which has no members, how far partitions are read."""
    from confluent_kafka import TopicPartition

    with cluster.consumer(**{"group.id": group}) as consumer:
        told = [TopicPartition(*one, offset) for one, offset in offsets.items()]
        cluster.asked(
            f"take the offsets of group {group!r}",
            lambda: consumer.commit(offsets=told, asynchronous=False),
            FIRST_ANSWER,
        )


def _offsets(
    cluster: Cluster, specs: Mapping[Partition, Any], wait: float | None, committed: bool = True
) -> dict[Partition, int]:
    from confluent_kafka import IsolationLevel, TopicPartition

    if not specs:
        return {}
    asked = {TopicPartition(*one): spec for one, spec in specs.items()}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

    def ask() -> dict[Partition, int]:
        told = cluster.admin.list_offsets(asked, isolation_level=level, request_timeout=ONE_TRY)
        return {Partition(one.topic, one.partition): future.result().offset for one, future in told.items()}

    return cluster.asked("tell where its partitions begin and end", ask, wait)


__all__ = [
    "Bounds",
    "Part",
    "Partition",
    "bounds_of",
    "commit",
    "committed_offsets",
    "is_pattern",
    "offsets_at",
    "open_ends",
    "partition_of",
    "partitions_of",
]

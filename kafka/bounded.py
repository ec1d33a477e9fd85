"""The parts of partitions that a bounded flow reads, as they are when it runs.

Guarded by tests/kafka/test_local_kafka.py.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import StateMismatch
from .kafka import Kafka
from .partitions import Part, Partition, bounds_of, partitions_of
from .places import first_offsets, last_offsets


@dataclass(frozen=True)
class BoundedParts:
    """The part of each partition that there is, which may be empty, and how many offsets are lost before it."""

    parts: Sequence[Part]
    lost: int = 0


def parts_now(kafka: Kafka) -> BoundedParts:
    """The part of each partition that lies between the beginning and the end that the user named."""
    cluster = kafka.cluster
    bounds = bounds_of(cluster, partitions_of(cluster, kafka.topics))
    first, lost = first_offsets(kafka.begins, cluster, bounds, kafka.group, kafka.on_lost)
    last = last_offsets(kafka.ends, cluster, bounds)
    return BoundedParts([Part(one, first[one], max(first[one], last[one])) for one in bounds], lost)


def parts_before(kafka: Kafka, ends: Mapping[Partition, int]) -> list[Part]:
    """The part of each partition that a query has read, which went up to these offsets; topics of others are whole.

    Raises if the cluster has no more what the query has read.
    """
    topics, parts = {one.topic for one in ends}, parts_now(kafka).parts
    there = {part.partition for part in parts}
    missing = [one.name for one in ends if one not in there]
    if missing and any(one.topic in topics for one in there):
        raise _incomplete(f"the history has no {', '.join(missing)}")
    out = []
    for part in parts:
        one, last = part.partition, ends.get(part.partition, 0)
        if one.topic not in topics:
            out.append(part)
            continue
        if part.last < last:
            raise _incomplete(f"the query has read {one.name} up to offset {last}, and the history ends at {part.last}")
        if kafka.begins == "earliest" and part.first > 0 and last:
            _note_begin(kafka, one, min(part.first, last))
        out.append(Part(one, min(part.first, last), last))
    return out


def _note_begin(kafka: Kafka, partition: Partition, first: int) -> None:
    """Raise for messages at the begin of a partition that the cluster has no more, or say how many they are."""
    which = f"{first:,} offsets of {partition.name}, from 0 to {first - 1}, are not in the cluster any more"
    if kafka.on_lost == "error":
        raise _incomplete(which, ", say with start= where the query began, or count them with on_lost='count'")
    sys.stderr.write(f"lost: {which}\n")


def _incomplete(reason: str, more: str = "") -> StateMismatch:
    return StateMismatch(
        f"{reason}, so what the query saw cannot be computed again: give the rows of the past from another place{more}"
    )


def divided(parts: Sequence[Part], count: int) -> list[list[Part]]:
    """Parts for so many readers, each with as many offsets, or one for each offset if there are fewer.

    >>> from uncombine.kafka.partitions import Partition
    >>> one, other = Partition("t", 0), Partition("t", 1)
    >>> [[(part.first, part.last) for part in some] for some in divided([Part(one, 0, 9), Part(other, 0, 3)], 3)]
    [[(0, 4)], [(4, 8)], [(8, 9), (0, 3)]]
    """
    offsets = sum(part.last - part.first for part in parts)
    readers = max(min(count, offsets), 1)
    groups: list[list[Part]] = [[] for _ in range(readers if offsets else 0)]
    before = 0
    for part in parts:
        first = part.first
        while first < part.last:
            reader = before * readers // offsets
            stop = -(-(reader + 1) * offsets // readers)
            last = min(part.last, first + stop - before)
            groups[reader].append(Part(part.partition, first, last))
            before, first = before + last - first, last
    return groups


__all__ = ["BoundedParts", "divided", "parts_before", "parts_now"]

"""The parts of partitions that a bounded flow reads, as they are when it runs.

Guarded by tests/kafka/test_local_kafka.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .kafka import Kafka
from .partitions import Part, bounds_of, partitions_of
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


__all__ = ["BoundedParts", "divided", "parts_now"]

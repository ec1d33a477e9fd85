"""The parts of partitions that a bounded flow reads, as they are when it runs.

Guarded by tests/kafka/test_local_kafka.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .kafka import Kafka
from .partitions import Part, bounds_of, partitions_of
from .places import first_offsets, last_offsets


@dataclass(frozen=True)
class BoundedParts:
    """What there is of topics, and how many offsets are lost before it."""

    parts: Sequence[Part]
    lost: int = 0


def parts_now(kafka: Kafka) -> BoundedParts:
    """The part of each partition that lies between the beginning and the end that the user named."""
    cluster = kafka.cluster
    bounds = bounds_of(cluster, partitions_of(cluster, kafka.topics))
    first, lost = first_offsets(kafka.begins, cluster, bounds, kafka.group, kafka.on_lost)
    last = last_offsets(kafka.ends, cluster, bounds)
    return BoundedParts([Part(one, first[one], last[one]) for one in bounds if first[one] < last[one]], lost)


def divided(parts: Sequence[Part], count: int) -> list[list[Part]]:
    """Parts for at least so many readers, if they have so many offsets: each has about as many.

    >>> from uncombine.kafka.partitions import Partition
    >>> one, other = Partition("t", 0), Partition("t", 1)
    >>> [[(part.first, part.last) for part in some] for some in divided([Part(one, 0, 9), Part(other, 0, 1)], 3)]
    [[(0, 3)], [(3, 6)], [(6, 9), (0, 1)]]
    """
    offsets = sum(part.last - part.first for part in parts)
    size = -(-offsets // count) if offsets else 1
    if len(parts) < count:
        size = min(size, max(offsets // count, 1))
    pieces = []
    for part in parts:
        steps = max(round((part.last - part.first) / size), 1)
        cuts = [part.first + (part.last - part.first) * step // steps for step in range(steps + 1)]
        pieces += [Part(part.partition, first, last) for first, last in pairwise(cuts)]
    groups: list[list[Part]] = []
    filled = size
    for piece in pieces:
        length = piece.last - piece.first
        if (filled + length > size * 1.5 and len(groups) < max(count, 1)) or not groups:
            groups.append([])
            filled = 0
        groups[-1].append(piece)
        filled += length
    return groups


__all__ = ["BoundedParts", "divided", "parts_now"]

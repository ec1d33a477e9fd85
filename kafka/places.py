"""The places where reading begins and ends: a word, a time, or the offsets of each partition.

Guarded by tests/kafka/test_local_kafka.py and tests/kafka/test_kafka_value.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from ..errors import InvalidArgument, TypeMismatch
from ..windows import timestamp
from .client import Cluster
from .partitions import Bounds, Partition, committed_offsets, offsets_at, partition_of
from .reading import OnLost, note_lost

Place: TypeAlias = str | datetime | Mapping[str, Any]
"""A word, a time, or offsets by partition."""

Settled: TypeAlias = str | int | Mapping[Partition, int]
"""A word, a time in microseconds, or offsets by partition."""


def settled(place: Any, what: str, words: tuple[str, ...]) -> Settled:
    """A place as it was meant; raises if it is none.

    >>> settled("latest", "start=", ("earliest", "latest"))
    'latest'
    >>> settled({"orders": {0: 5}}, "start=", ()) == settled({"orders/0": 5}, "start=", ())
    True
    >>> settled("1970-01-01T00:00:01Z", "start=", ())
    1000000
    """
    if isinstance(place, Mapping):
        return _offsets(place, what)
    if isinstance(place, str) and place in words:
        return place
    if isinstance(place, str | datetime):
        try:
            return timestamp(place)
        except (ValueError, TypeError):
            pass
    raise InvalidArgument(
        f"{what} takes {', '.join(map(repr, words))}, a time, or offsets such as {{'orders/0': 5}}, but was given "
        f"{place!r}"
    )


def first_offsets(
    start: Settled,
    cluster: Cluster,
    bounds: Mapping[Partition, Bounds],
    group: str | None,
    on_lost: OnLost,
    wait: float | None = None,
) -> tuple[dict[Partition, int], int]:
    """The offset of each partition at which reading begins, and how many are lost before these, if they are counted."""
    match start:
        case "earliest":
            return {one: bound.begin for one, bound in bounds.items()}, 0
        case "latest":
            return {one: bound.end for one, bound in bounds.items()}, 0
        case "group":
            assert group is not None
            asked = committed_offsets(cluster, bounds, group, wait)
        case int():
            return offsets_at(cluster, bounds, start, wait), 0
        case _:
            assert isinstance(start, Mapping)
            asked = _named(start, bounds, "start=")
    lost, out = 0, {}
    for one, offset in asked.items():
        begin, end = bounds[one]
        if offset > end:
            raise InvalidArgument(f"start= names offset {offset} of {one.name}, which ends at {end}")
        if offset < begin:
            note_lost(one, offset, begin, on_lost)
            lost += begin - offset
        out[one] = max(offset, begin)
    return out, lost


def last_offsets(
    end: Settled, cluster: Cluster, bounds: Mapping[Partition, Bounds], wait: float | None = None
) -> dict[Partition, int]:
    """The offset of each partition before which reading ends."""
    if end == "latest":
        return {one: bound.end for one, bound in bounds.items()}
    if isinstance(end, int):
        return offsets_at(cluster, bounds, end, wait)
    assert isinstance(end, Mapping)
    named = _named(end, bounds, "end=")
    for one, offset in named.items():
        if offset > bounds[one].end:
            raise InvalidArgument(f"end= names offset {offset} of {one.name}, which ends at {bounds[one].end}")
    return named


def _named(offsets: Mapping[Partition, int], bounds: Mapping[Partition, Bounds], what: str) -> dict[Partition, int]:
    """The offsets, one of each partition; raises unless they are."""
    if other := [one.name for one in offsets if one not in bounds]:
        raise InvalidArgument(f"{what} names {other[0]!r}, which is no partition of the topics that are read")
    if missing := [one.name for one in bounds if one not in offsets]:
        raise InvalidArgument(f"{what} has no offset of {', '.join(missing)}: name one of each partition")
    return dict(offsets)


def _offsets(place: Mapping[str, Any], what: str) -> dict[Partition, int]:
    flat: dict[Partition, Any] = {}
    for name, offset in place.items():
        if isinstance(offset, Mapping):
            flat |= {Partition(str(name), int(number)): one for number, one in offset.items()}
            continue
        try:
            flat[partition_of(name)] = offset
        except (ValueError, AttributeError):
            raise InvalidArgument(f"{what} names partitions as {{'orders/0': 5}}, and not {name!r}") from None
    if wrong := [offset for offset in flat.values() if type(offset) is not int or offset < 0]:
        raise TypeMismatch(f"{what} takes offsets, which are whole numbers from 0 on, and not {wrong[0]!r}")
    return flat


__all__ = ["Place", "Settled", "first_offsets", "last_offsets", "settled"]

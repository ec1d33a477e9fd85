"""The planner of topics: it asks for all partitions and their ends, and divides a batch among them as far as each lags.

It says beside each batch how far all partitions are read, also those of which the batch has no message, and which are
idle: read to their ends for a while, without a message of an open transaction behind.

Guarded by tests/sparkops/planners/test_topic_planner.py and tests/sparkops/topics/test_kafka.py.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument, UncombineError
from ...kafka.bounded import divided
from ...kafka.client import BACK_WITHIN, PAUSE
from ...kafka.kafka import Kafka
from ...kafka.partitions import Bounds, Part, Partition, bounds_of, commit, open_ends, partitions_of
from ...kafka.places import first_offsets
from ...kafka.reading import gone, note_lost
from ...panes.watermarks.watermarks import Read
from .planner import Offset, Planner
from .topic_offset import Progress, TopicOffset

ROWS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("about", pa.string()),
    ]
)
"""A part of a partition, or a row without a topic that has what is known of all partitions, as JSON."""


class TopicPlanner(Planner):
    """Plans the messages of topics."""

    columns = "topic string, partition bigint, first bigint, last bigint, about string"
    rows = ROWS

    def __init__(self, kafka: Kafka, cores: int = 1) -> None:
        self.kafka, self.cores = kafka, cores
        self.most = kafka.max_rows_per_batch
        self.first = TopicOffset(initial=True).stored
        self._frozen: Mapping[Partition, Bounds] | None = None
        self._committed: Offset | None = None

    def freeze(self) -> None:
        self._frozen = self._there({})

    def after(self, offset: Offset, most: int | None) -> Offset:
        before = TopicOffset.of(offset)
        self.note(offset)
        if self._frozen is not None and _short(self._frozen, before.partitions):
            self._frozen = self._there(before.partitions)
        bounds = self._there(before.partitions) if self._frozen is None else self._frozen
        now = time.time_ns() // 1000
        places, lost = self._places(before, bounds)
        ends = _shares({one: (place, bounds[one].end) for one, place in places.items()}, most)
        partitions = {
            one: _progress(before.partitions.get(one), places[one], ends[one], bounds[one].end, now) for one in places
        }
        partitions = self._with_idle(partitions, now)
        for one, progress in before.partitions.items():
            if one not in bounds:
                lost += self._missing(one, progress)
                partitions[one] = replace(progress, first=None, gone=True, offset=max(progress.offset, progress.end))
        if not before.initial and _told(partitions) == _told(before.partitions):
            time.sleep(PAUSE)  # Spark asks again at once
            return offset
        return TopicOffset(partitions, lost).stored

    def tasks(self, start: Offset, end: Offset) -> Sequence[pa.RecordBatch]:
        before, after = TopicOffset.of(start), TopicOffset.of(end)
        known = {} if before.initial else before.partitions
        parts = []
        for one, progress in after.partitions.items():
            first = progress.first
            if one in known:
                first = known[one].offset if first is None else max(first, known[one].offset)
            if first is not None and first < progress.offset and not progress.gone:
                parts.append(Part(one, first, progress.offset))
        groups = divided(parts, max(self.cores, self.kafka.min_partitions or 1)) or [[]]
        tasks = [[_row(part) for part in group] for group in groups]
        tasks[0].insert(0, dict.fromkeys(ROWS.names) | {"about": about_of(after.partitions, after.lost)})
        return [pa.RecordBatch.from_pylist(rows, schema=ROWS) for rows in tasks]

    def _there(self, known: Mapping[Partition, Progress]) -> dict[Partition, Bounds]:
        """All partitions; one that is missing, or ends before what is read, has a while to come back."""
        cluster, until = self.kafka.cluster, 0.0
        while True:
            bounds, missing = dict[Partition, Bounds](), None
            try:
                bounds = bounds_of(cluster, partitions_of(cluster, self.kafka.topics))
                if not _short(bounds, known):
                    return bounds
            except InvalidArgument as error:
                missing = error
            now = time.monotonic()
            until = until or now + BACK_WITHIN  # the first answer may have taken long, as no broker was there
            if now >= until:
                if missing is not None:
                    raise missing
                return bounds
            time.sleep(PAUSE)

    def _places(self, before: TopicOffset, bounds: Mapping[Partition, Bounds]) -> tuple[dict[Partition, int], int]:
        """The next offset of each partition, and how many are lost before these."""
        kafka = self.kafka
        if before.initial:
            return first_offsets(kafka.begins, kafka.cluster, bounds, kafka.group, kafka.on_lost)
        places, lost = {}, 0
        for one, bound in bounds.items():
            known = before.partitions.get(one)
            place = bound.begin if known is None else known.offset
            if place > bound.end:
                raise gone(one, place)
            if place < bound.begin:
                note_lost(one, place, bound.begin, kafka.on_lost)
                lost += bound.begin - place
            places[one] = max(place, bound.begin)
        return places, lost

    def _missing(self, one: Partition, progress: Progress) -> int:
        """The number of offsets that are lost with a partition that is not there any more."""
        if progress.gone or progress.offset >= progress.end:
            return 0
        note_lost(one, progress.offset, progress.end, self.kafka.on_lost)
        return progress.end - progress.offset

    def _with_idle(self, partitions: dict[Partition, Progress], now: int) -> dict[Partition, Progress]:
        """The partitions, with those that are idle now: read to their ends for so long, and no transaction is open."""
        silent = [
            one
            for one, progress in partitions.items()
            if progress.since is not None and now - progress.since >= self.kafka.idle
        ]
        ends = open_ends(self.kafka.cluster, silent)
        idle = {one for one in silent if ends[one] == partitions[one].offset}
        return {one: replace(progress, idle=one in idle) for one, progress in partitions.items()}

    def note(self, offset: Offset) -> None:
        """Note in the consumer group how far partitions are read."""
        group, before = self.kafka.group, TopicOffset.of(offset)
        if group is None or before.initial or offset == self._committed:
            return
        offsets = {one: progress.offset for one, progress in before.partitions.items() if not progress.gone}
        try:
            commit(self.kafka.cluster, group, offsets)
            self._committed = offset
        except UncombineError as error:  # the query goes on by its checkpoint
            sys.stderr.write(f"group {group!r} is not told how far topics are read: {error}\n")


def _short(bounds: Mapping[Partition, Bounds], known: Mapping[Partition, Progress]) -> bool:
    """True if a partition is missing, or ends before what is read of it, as while its broker starts."""
    there = {one: progress.offset for one, progress in known.items() if not progress.gone}
    return any(one not in bounds or bounds[one].end < offset for one, offset in there.items())


def _progress(known: Progress | None, place: int, last: int, end: int, now: int) -> Progress:
    first = None if known is not None and known.offset == place else place
    if last < end:
        return Progress(offset=last, end=end, first=first)
    since = known.since if known is not None and known.offset == place == last else None
    return Progress(offset=last, end=end, since=now if since is None else since, first=first)


def _shares(places: Mapping[Partition, tuple[int, int]], most: int | None) -> dict[Partition, int]:
    """The offset before which each partition is read, so that the batch has at most so many: each as far as it lags.

    >>> one, other, last = (Partition("t", number) for number in range(3))
    >>> list(_shares({one: (0, 90), other: (5, 15), last: (7, 7)}, 10).values())
    [9, 6, 7]
    """
    behind = {one: end - place for one, (place, end) in places.items()}
    total = sum(behind.values())
    if most is None or total <= most:
        return {one: end for one, (_, end) in places.items()}
    shares = {one: many * most // total for one, many in behind.items()}
    left = most - sum(shares.values())
    for one in sorted(behind, key=lambda one: (-(behind[one] * most % total), one)):
        if left and shares[one] < behind[one]:
            shares[one], left = shares[one] + 1, left - 1
    return {one: place + shares[one] for one, (place, _) in places.items()}


def _told(partitions: Mapping[Partition, Progress]) -> dict[Partition, tuple[int, bool, bool]]:
    """The part of what is known of partitions for which a batch is made."""
    return {one: (progress.offset, progress.idle, progress.gone) for one, progress in partitions.items()}


def _row(part: Part) -> dict[str, Any]:
    topic, number = part.partition
    return {"topic": topic, "partition": number, "first": part.first, "last": part.last, "about": None}


def about_of(partitions: Mapping[Partition, Progress], lost: int = 0) -> str:
    """The text that says how far all partitions are read, and how many offsets are lost."""
    there = {one: progress for one, progress in partitions.items() if not progress.gone}
    reads = {one.name: [progress.offset, progress.end, progress.idle] for one, progress in there.items()}
    return json.dumps({"reads": reads, "lost": lost})


def reads_of(about: str) -> tuple[dict[str, Read], int]:
    """The place to which each partition is read, and the number of offsets that are lost, from a text."""
    values = json.loads(about)
    return {name: Read(*read) for name, read in values["reads"].items()}, values["lost"]


__all__ = ["ROWS", "TopicPlanner", "about_of", "reads_of"]

"""Markers: a compacted topic beside one that is written, which has the last batch of each shard of each query.

The marker of a batch is written in the transaction of the batch's messages, so one is there if and only if the others
are. A batch that is repeated looks for it, once the transaction of the earlier attempt has ended, and a shard that has
it writes nothing. Markers of a query have the number of its shards beside them, which is the one of its first batch.

Guarded by tests/kafka/test_sending.py and tests/sparkops/tables/test_topic_killed.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from ..errors import BrokerUnreachable, InvalidArgument, StateMismatch
from .client import BACK_WITHIN, ONE_TRY, PAUSE, Cluster
from .partitions import Part, Partition, bounds_of, open_ends
from .reading import read_parts
from .sending import LEAST_TIME, RECORD, Sender, setting_of

SUFFIX = ".uncombine"
"""The end of the name of the topic of markers, after that of the topic that is written."""

SOON = 1.0
"""The seconds in which transactions that others have open at the start of a query mostly end."""

_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "segment.ms": str(3_600_000),
    "min.cleanable.dirty.ratio": "0.1",
}
_COLUMNS = ("key", "value")


@dataclass(frozen=True)
class Markers:
    """The markers of a query, or of a run, in the topic beside the one that it writes.

    >>> markers = Markers(Cluster("host:9092"), "totals", "q")
    >>> markers.side, markers.transaction(3)
    ('totals.uncombine', 'uncombine-q-3')
    """

    cluster: Cluster
    topic: str
    owner: str

    @property
    def side(self) -> str:
        """The topic of the markers."""
        return f"{self.topic}{SUFFIX}"

    def transaction(self, shard: int) -> str:
        """The name of the transactions of a shard."""
        return f"uncombine-{self.owner}-{shard}"

    def begun(self, shards: int, done: int, planned: int) -> BegunMarkers:
        """The markers as they are when a query starts, of which `done` is the last batch that is known to be done.

        `shards` is the number of shards if this is the first batch, and `planned` the last batch that was begun.
        """
        if not self._there():
            if done >= 0:
                raise self._gone()
            self._make()
        if "compact" not in (setting_of(self.cluster, self.side, "cleanup.policy") or "compact"):
            raise InvalidArgument(
                f"topic {self.side!r} would lose the markers of batches, because it is not compacted: set its "
                "cleanup.policy to compact"
            )
        self._settle(shards)
        partition = Partition(self.side, 0)
        found, end = self.read(bounds_of(self.cluster, [partition])[partition].begin)
        if None not in found:
            if done >= 0:
                raise self._gone()
            self._write({None: shards})
            return BegunMarkers(self, shards, {}, end)
        shards, last = found.pop(None), {shard: batch for shard, batch in found.items() if shard is not None}
        if last and max(last.values()) > planned:
            raise StateMismatch(
                f"topic {self.topic!r} has batch {max(last.values())} of a query whose checkpoint has begun none after "
                f"{planned}: the checkpoint is an older copy, so start with a new one"
            )
        return BegunMarkers(self, shards, last, end)

    def read(self, since: int) -> tuple[dict[int | None, int], int]:
        """The last batch of each shard in the markers from an offset on, and the offset after them.

        The number of shards has None. All transactions that are open are waited for, so a batch whose earlier attempt
        has ended is there if it ever will be.
        """
        partition, end = Partition(self.side, 0), self._end_from(since)
        found: dict[int | None, int] = {}
        patient = Cluster(
            self.cluster.servers, self.cluster.options, max(self.cluster.wait, LEAST_TIME / 500), who=self.cluster.who
        )
        for table in read_parts(patient, [Part(partition, since, end)], _COLUMNS):
            for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):  # few
                about = json.loads(key)
                if about["owner"] == self.owner:
                    found.pop(about.get("shard"), None)
                    found |= {} if value is None else {about.get("shard"): int(json.loads(value))}
        return found, end

    def end(self) -> int:
        """The offset after all markers, also of transactions that are open."""
        partition = Partition(self.side, 0)
        return open_ends(self.cluster, [partition])[partition]

    def _end_from(self, since: int) -> int:
        """The offset after all markers, which is at least one that was there; raises if it stays before that."""
        until = time.monotonic() + BACK_WITHIN
        while (end := self.end()) < since:
            if time.monotonic() > until:
                raise self._gone()
            time.sleep(PAUSE)
        return end

    def record(self, shard: int | None, number: int | None) -> tuple[bytes, bytes | None]:
        """The message of a marker, or the one that deletes it."""
        key = {"owner": self.owner, **({} if shard is None else {"shard": shard})}
        return json.dumps(key).encode(), None if number is None else json.dumps(number).encode()

    def forget(self, shards: Iterable[int]) -> None:
        """Delete the markers of a run that is over."""
        self._write(dict.fromkeys([None, *shards]))

    def _write(self, numbers: Mapping[int | None, int | None]) -> None:
        sender = Sender(self.cluster, self.transaction(-1), 0)
        sender.begin()
        sender.send({self.side: records_of([self.record(*one) for one in numbers.items()])}, self.side)

    def _there(self) -> bool:
        topics = self.cluster.asked("list its topics", lambda: self.cluster.admin.list_topics(timeout=ONE_TRY).topics)
        return self.side in topics

    def _make(self) -> None:
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import NewTopic

        topics = self.cluster.asked("list its topics", lambda: self.cluster.admin.list_topics(timeout=ONE_TRY).topics)
        copies = len(topics[self.topic].partitions[0].replicas)
        new = NewTopic(self.side, 1, copies, config=_SETTINGS)

        def make() -> None:
            [future] = self.cluster.admin.create_topics([new], request_timeout=ONE_TRY).values()
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

        try:
            self.cluster.asked(f"make topic {self.side!r}", make)
        except BrokerUnreachable as error:
            raise BrokerUnreachable(f"{error}: make it yourself, with cleanup.policy=compact") from None
        until = time.monotonic() + self.cluster.wait
        while not self._there():
            if time.monotonic() > until:
                raise self.cluster.silence(f"show the new topic {self.side!r}")
            time.sleep(PAUSE)

    def _settle(self, shards: int) -> None:
        """End the transactions that a killed run of this query has left open, if some transactions are."""
        partition, until = Partition(self.side, 0), time.monotonic() + SOON
        while True:
            end = self.end()
            if bounds_of(self.cluster, [partition])[partition].end >= end:
                return
            if time.monotonic() >= until:
                break
            time.sleep(PAUSE)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda shard: Sender(self.cluster, self.transaction(shard), 0).begin(), range(-1, shards)))

    def _gone(self) -> StateMismatch:
        return StateMismatch(
            f"topic {self.side!r} has no markers of this checkpoint, which has done batches: they went to another "
            "topic, or the markers were deleted, so start with a new checkpoint"
        )


@dataclass(frozen=True)
class BegunMarkers:
    """The markers of a query as they are at a moment of it; a value that travels to the tasks."""

    markers: Markers
    shards: int
    last: Mapping[int, int] = field(default_factory=dict)
    """The last batch of each shard that has one."""
    since: int = 0
    """The offset from which on there may be later ones."""

    def batch_of(self, shard: int) -> int:
        """The last batch of a shard now, after its sender has begun; -1 for none."""
        later, _ = self.markers.read(self.since)
        return max(self.last.get(shard, -1), later.get(shard, -1))

    def after(self) -> BegunMarkers:
        """The markers for the next batch, when one is done: earlier markers say nothing of it."""
        return BegunMarkers(self.markers, self.shards, {}, self.markers.end())


def records_of(messages: Iterable[tuple[bytes | None, bytes | None]]) -> pa.Table:
    """Messages as a table."""
    keys, values = zip(*messages, strict=True)
    return pa.table([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=RECORD)


def send_batch(begun: BegunMarkers, shard: int, batch: int, records: Mapping[str, pa.Table]) -> bool:
    """Write the messages of a shard in a batch with its marker, once; False if they are there already."""
    markers = begun.markers
    sender = Sender(markers.cluster, markers.transaction(shard), sum(table.num_rows for table in records.values()))
    sender.begin()
    if begun.batch_of(shard) >= batch:
        return False
    sender.send({**records, markers.side: records_of([markers.record(shard, batch)])}, markers.side)
    return True


__all__ = ["SUFFIX", "BegunMarkers", "Markers", "records_of", "send_batch"]

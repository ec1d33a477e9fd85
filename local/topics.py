"""Topics of Kafka as the source of a run in this process: a thread for each part reads it, and combines its rows.

Guarded by tests/kafka/test_local_kafka.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..changelogs.flows import UnreadSource
from ..combiners.rows.plain_types import plain_table
from ..files.reading import LeaveOut, ignore
from ..flows.changelog_reading import Reading
from ..flows.engine import Source
from ..flows.event_time import EventTime
from ..flows.flow import Flow
from ..flows.settings import Settings
from ..kafka.bounded import divided, parts_now
from ..kafka.kafka import Kafka
from ..kafka.partitions import Part
from ..kafka.reading import read_parts
from ..kafka.rows import PARTITION, MessageRows, refuse
from ..panes.selection import Select
from ..panes.watermarks.watermark_strategies import BoundedLag, Monotonic, PerSource
from .read_source import MadeRows, ReadSource

READERS = 4
"""The readers among which the offsets are divided, if there are fewer partitions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalTopics(ReadSource):
    """The messages of topics."""

    kafka: Kafka
    message_rows: MessageRows
    leaves_out: bool

    def describe(self) -> str:
        return f"{self.kafka.words}{self.made.words}"

    def replayed(self) -> Source[Flow]:
        """The source for a replay, in which a message that cannot be read is left out, as in a stream."""
        leaves_out = self.kafka.leaves_out(True)
        return replace(self, leaves_out=leaves_out, made=self.made.strict(not leaves_out))

    def readers(
        self,
        columns: Sequence[str],
        coded: frozenset[str] = frozenset(),
        needed: frozenset[str] | None = None,
        leave_out: LeaveOut = ignore,
    ) -> list[Iterator[pa.Table]]:
        count = max(self.kafka.min_partitions or READERS, 1)
        return [self._read(parts, list(columns), leave_out) for parts in divided(parts_now(self.kafka).parts, count)]

    def _read(self, parts: Sequence[Part], columns: list[str], leave_out: LeaveOut) -> Iterator[pa.Table]:
        kafka, own = self.kafka, self.made.needs(columns)
        wanted = self.message_rows.needs(own)
        for part in parts:
            for messages in read_parts(kafka.cluster, [part], wanted, kafka.on_lost):
                rows, unreadable = self.message_rows(part.partition, messages, own)
                if unreadable.num_rows:
                    if not self.leaves_out:
                        refuse(unreadable)
                    leave_out(unreadable)
                yield self.made(plain_table(rows), columns)


def columns_named(settings: Settings) -> list[str]:
    """The columns that the options of a flow name, which may be such as messages have beside their values."""
    computed = () if settings.event_time is None else settings.event_time.value.columns
    return [name for name in (settings.time, settings.processing_time, *computed) if name is not None]


def by_partition(settings: Settings) -> Settings:
    """The options of a stream of topics: a watermark that follows event times follows those of each partition."""
    strategy = settings.strategy
    if isinstance(strategy, BoundedLag):
        return replace(settings, watermark=PerSource(PARTITION, lag=strategy.lag))
    return replace(settings, watermark=PerSource(PARTITION)) if isinstance(strategy, Monotonic) else settings


def is_by_partition(settings: Settings) -> bool:
    """True if the watermark is one of each partition."""
    return isinstance(settings.strategy, PerSource) and settings.strategy.column == PARTITION


def without_partition(flow: Flow) -> Flow:
    """The flow without the column that the watermark alone reads."""
    names = tuple(name for name in flow.source_schema.names if name != PARTITION)
    if len(names) == len(flow.source_schema) or flow.stages or flow.transforms:
        return flow
    return replace(flow, transforms=(Select(names),))


def topics_opened(kafka: Kafka, settings: Settings, changelog: bool) -> UnreadSource:
    """The topics, looked up, with the columns of their rows."""
    kafka.check_bounded()
    message_rows = kafka.opened(more=columns_named(settings), changelog=changelog)
    leaves_out = kafka.leaves_out(False)

    def source(reading: Reading | None, event_time: EventTime | None) -> LocalTopics:
        return LocalTopics(
            made=MadeRows(message_rows.schema, reading, event_time),
            streaming=settings.strategy is not None,
            kafka=kafka,
            message_rows=message_rows,
            leaves_out=leaves_out,
        )

    return UnreadSource(message_rows.schema, source, strict=not leaves_out)


__all__ = [
    "LocalTopics",
    "by_partition",
    "columns_named",
    "is_by_partition",
    "topics_opened",
    "without_partition",
]

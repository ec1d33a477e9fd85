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
from ..panes.grouping.grouping import EVENT_TIME
from ..panes.selection import Select
from ..panes.watermarks.watermark_strategies import BoundedLag, Monotonic, PerSource
from .sources import WithoutSpark
from .threads import in_threads

READERS = 4
"""The readers among which the offsets are divided, if there are fewer partitions."""


@dataclass(frozen=True, eq=False)
class LocalTopics(WithoutSpark):
    """The messages of topics."""

    kafka: Kafka
    message_rows: MessageRows
    schema: pa.Schema
    streaming: bool
    leaves_out: bool
    reading: Reading | None = None
    event_time: EventTime | None = None
    has_rows = many = True

    def describe(self) -> str:
        read_by = "" if self.reading is None else f", messages read by {self.reading.words}"
        return f"{self.kafka.words}{read_by}"

    def replayed(self) -> Source[Flow]:
        """The source for a replay, in which a message that cannot be read is left out, as in a stream."""
        leaves_out, reading = self.kafka.leaves_out(True), self.reading
        if reading is not None:
            reading = replace(reading, strict=not leaves_out)
        return replace(self, leaves_out=leaves_out, reading=reading)

    def whole(self, needed: frozenset[str] | None = None, leave_out: LeaveOut = ignore) -> pa.Table:
        readers = self.readers(self.schema.names, leave_out=leave_out)
        return pa.concat_tables([self.schema.empty_table(), *in_threads(lambda table: table, readers)])

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
        kafka, own = self.kafka, self._needs(columns)
        wanted = self.message_rows.needs(own)
        for part in parts:
            for messages in read_parts(kafka.cluster, [part], wanted, kafka.on_lost):
                rows, unreadable = self.message_rows(part.partition, messages, own)
                if unreadable.num_rows:
                    if not self.leaves_out:
                        refuse(unreadable)
                    leave_out(unreadable)
                yield self._made(plain_table(rows), columns)

    def _needs(self, columns: Sequence[str]) -> list[str]:
        """The columns of messages from which these columns are made."""
        if self.reading is not None:
            return self.reading.needs(columns)
        return list(columns) if self.event_time is None else self.event_time.needs(columns)

    def _made(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        if self.reading is not None:
            return self.reading(rows, columns)
        if self.event_time is None or EVENT_TIME not in columns:
            return rows.select(list(columns))
        return self.event_time(rows).select(list(columns))


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
        schema = message_rows.schema if event_time is None else event_time.schema
        return LocalTopics(
            kafka=kafka,
            message_rows=message_rows,
            schema=schema if reading is None else reading.schema,
            streaming=settings.strategy is not None,
            leaves_out=leaves_out,
            reading=reading,
            event_time=event_time,
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

"""Topics of Kafka as an input: a planner names parts of partitions, and the tasks that combine rows read them.

No message enters the JVM.

Guarded by tests/sparkops/topics/test_kafka.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...kafka.bounded import divided, parts_now
from ...kafka.kafka import Kafka
from ...kafka.partitions import Part, Partition
from ...kafka.reading import read_parts
from ...kafka.rows import MessageRows, refuse
from ...panes.parcels import AT
from ...panes.watermarks.watermarks import Read
from ...windows.times import MIN_TIME
from ..inputs import Input, Metric, ReadTo, Task, processing_time, times_of_rows, woken
from ..naming import FILES, query_of_task
from ..planners.data_source import planned
from ..planners.topic_offset import Progress
from ..planners.topic_planner import ROWS, TopicPlanner, about_of, reads_of
from ..tuning.thin_function import thin_function
from ..tuning.worker import ready
from ..wire import LOST, UNREADABLE, WIRE_DDL, wire_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, eq=False)
class TopicsInput(Input):
    """The messages of topics."""

    spark: SparkSession
    kafka: Kafka
    message_rows: MessageRows
    streaming: bool
    leaves_out: bool
    planner: TopicPlanner | None = None
    cores: int = 1
    partitioned: bool = False
    """True if the watermark is one of each partition."""
    parts: tuple[Part, ...] | None = None
    """The parts that a bounded flow reads, if they were named before."""

    @property
    def schema(self) -> pa.Schema:
        return self.message_rows.schema

    @property
    def strict(self) -> bool:
        return not self.leaves_out

    @property
    def may_lose(self) -> bool:
        return self.leaves_out or self.kafka.on_lost == "count"

    def replayed(self) -> Input:
        """The messages for a replay, in which one that cannot be read is left out, as in a stream."""
        return replace(self, leaves_out=self.kafka.leaves_out(True))

    def named(self) -> TopicsInput:
        """The input over the parts that there are now."""
        return replace(self, parts=tuple(parts_now(self.kafka).parts))

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        names = self.schema.names
        wanted = [name for name in columns if name in names]
        if at and at not in wanted:
            wanted.append(at)
        reading = ReadTopics(
            kafka=self.kafka,
            message_rows=self.message_rows,
            task=task,
            columns=tuple(wanted),
            given=tuple(name for name in columns if name in names),
            at=at,
            leaves_out=self.leaves_out,
            packed=schema == WIRE_DDL,
            partitioned=self.partitioned,
        )
        named = self._now() if self.planner is None else planned(self.spark, self.planner)
        if at is not None:
            named = named.withColumn(AT, processing_time(""))
        packed, lo = named.mapInArrow(thin_function(reading), schema), F.col("lo")
        if schema != WIRE_DDL:
            return packed

        def summed(kind: int, name: str) -> Any:
            number = F.when(lo == kind, F.col("payload").cast("string").cast("bigint"))
            return F.coalesce(F.sum(number), F.lit(0)).alias(name)

        counts = (summed(UNREADABLE, "rows_unreadable"), summed(LOST, "offsets_lost"))
        return packed.observe(metric(FILES), *counts).where(lo >= 0)

    def _now(self) -> DataFrame:
        """The parts that there are now, as rows."""
        parts = parts_now(self.kafka).parts if self.parts is None else self.parts
        groups = divided(parts, max(self.cores, self.kafka.min_partitions or 1))
        rows: list[dict[str, Any]] = [
            {"topic": part.partition.topic, "partition": part.partition.number, "first": part.first, "last": part.last}
            for group in groups
            for part in group
        ]
        if self.partitioned:
            rows.append({"about": about_of({part.partition: Progress(part.last, part.last) for part in parts})})
        return self.spark.createDataFrame(pa.Table.from_pylist(rows, schema=ROWS)).repartition(max(len(groups), 1))

    def describe(self) -> str:
        words = "read by the tasks that combine their rows"
        each = ", with a watermark for each partition" if self.partitioned else ""
        return f"{self.kafka.words}, {words}{each}"


@dataclass(frozen=True)
class ReadTopics:
    """Runs a task over the rows of the parts that Spark names."""

    kafka: Kafka
    message_rows: MessageRows
    task: Task
    columns: tuple[str, ...]
    """The columns that are read."""
    given: tuple[str, ...]
    """The columns that the task gets."""
    at: str | None
    leaves_out: bool
    packed: bool = True
    """True if the task gives packed rows, among which counts are."""
    partitioned: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        seen = _Seen()
        yield from self.task(self._tables(batches, seen))
        send: ReadTo | None = getattr(self.task, "read_to", None)
        if send is not None and self.partitioned:
            for reads, at in seen.reads:
                yield wire_batch(send(reads, at))
        if seen.waking:
            yield from woken(self.task)
        if seen.unreadable:
            yield from self._left_out(pa.concat_tables(seen.unreadable))
        if seen.lost:
            yield from self._counted(LOST, "offsets_lost", seen.lost)

    def _left_out(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The messages that could not be read, as far as the task shows them, and the number of them."""
        first = rows.slice(0, 1).to_pylist()[0]
        count = f"{rows.num_rows} message{'s' * (rows.num_rows > 1)}"
        sys.stderr.write(
            f"left out{query_of_task()}: {count} that cannot be read, the first at offset {first['line']} of "
            f"{first['file']}: {first['cause']}\n"
        )
        if (shown := getattr(self.task, "unreadable", None)) is not None:
            yield from shown(rows)
        yield from self._counted(UNREADABLE, "rows_unreadable", rows.num_rows)

    def _counted(self, kind: int, name: str, number: int) -> Iterator[pa.RecordBatch]:
        """The row that has a count, among packed rows or those of a task that counts itself."""
        if self.packed and getattr(self.task, "counts", True):
            yield wire_batch([(0, kind, str(number).encode())])
        elif (count_lost := getattr(self.task, "count_lost", None)) is not None:
            yield from count_lost(name, number)

    def _tables(self, batches: Iterable[pa.RecordBatch], seen: _Seen) -> Iterator[pa.Table]:
        kafka, wanted = self.kafka, self.message_rows.needs(self.columns)
        for batch in batches:
            batch_time = batch.column(AT)[0].as_py() if self.at is not None else MIN_TIME
            for row in batch.select(ROWS.names).to_pylist():  # few: one a part
                if row["about"] is not None:
                    reads, lost = reads_of(row["about"])
                    seen.reads.append((reads, batch_time))
                    seen.lost += lost
                    continue
                if row["topic"] is None:
                    seen.waking = True
                    continue
                part = Part(Partition(row["topic"], row["partition"]), row["first"], row["last"])
                for messages in read_parts(kafka.cluster, [part], wanted, kafka.on_lost, seen.count):
                    yield self._rows(part.partition, messages, batch_time, seen)

    def _rows(self, partition: Partition, messages: pa.Table, batch_time: int, seen: _Seen) -> pa.Table:
        table, unreadable = self.message_rows(partition, messages, self.columns)
        if unreadable.num_rows:
            if not self.leaves_out:
                refuse(unreadable)
            seen.unreadable.append(unreadable)
        rows = table.select(list(self.given))
        if self.at is None:
            return rows
        return rows.append_column(AT, pa.array(times_of_rows(table, self.at, batch_time), pa.int64()))


@dataclass
class _Seen:
    """The things that a task has seen beside rows."""

    reads: list[tuple[dict[str, Read], int]] = field(default_factory=list)
    unreadable: list[pa.Table] = field(default_factory=list)
    lost: int = 0
    waking: bool = False
    """True if the batch has nothing to read, and each shard must get word of it."""

    def count(self, lost: int) -> None:
        self.lost += lost


__all__ = ["ReadTopics", "TopicsInput"]

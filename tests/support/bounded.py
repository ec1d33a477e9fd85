"""A stand-in for Spark over bounded rows: the plans of flows run here, partition by partition, without a JVM."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from uncombine.changelogs.flows import flow_of
from uncombine.flows.flow import Flow
from uncombine.flows.settings import Settings
from uncombine.panes.parcels import AT
from uncombine.sparkops.inputs import Input
from uncombine.sparkops.source import SparkSource
from uncombine.sparkops.spark_private import arrow_of
from uncombine.sparkops.wire import WIRE, WIRE_DDL, murmur3

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Parts = list[list[pa.RecordBatch]]


@dataclass(frozen=True, eq=False)
class Frame:
    """A stand-in for a DataFrame: the batches of each partition."""

    partitions: Parts
    schema: pa.Schema
    random: random.Random
    again: Callable[[], Parts] | None = None
    """The batches of each partition as tasks that run again may get them, if it differs."""

    def repartition(self, count: int, name: str) -> Frame:
        """Spark's hash partitioning of an int column; what comes from several tasks comes in any order."""
        rows = self._rows()
        at = np.array([murmur3(value) % count for value in rows[name].to_pylist()], np.int64)

        def shuffled() -> Parts:
            parts = []
            for partition in range(count):
                places = np.flatnonzero(at == partition).tolist()
                self.random.shuffle(places)
                parts.append(self._batches(rows.take(pa.array(places, pa.int64()))))
            return parts

        return Frame(shuffled(), self.schema, self.random, shuffled)

    def sortWithinPartitions(self, *names: str) -> Frame:
        order = [(name, "ascending") for name in names]

        def ordered(parts: Parts) -> Parts:
            return [self._batches(pa.Table.from_batches(part, self.schema).sort_by(order)) for part in parts]

        again = self.again
        return Frame(
            ordered(self.partitions), self.schema, self.random, None if again is None else lambda: ordered(again())
        )

    def mapInArrow(self, function: Function, schema: Any) -> Frame:
        kind = WIRE if schema == WIRE_DDL else arrow_schema(schema)
        parts = [list(function(iter(part))) for part in self.partitions]
        if kind is WIRE:  # Spark fails a job if a task that runs again gives other rows to a shuffle
            for part, given in zip(parts, self.partitions if self.again is None else self.again(), strict=True):
                second = pa.Table.from_batches(list(function(iter(given))), WIRE)
                assert Counter(rows_of(second)) == Counter(rows_of(pa.Table.from_batches(part, WIRE)))
        for part in parts:
            for batch in part:
                assert batch.schema.names == kind.names
                assert [f.type for f in batch.schema] == [f.type for f in kind]
        return Frame(parts, kind, self.random)

    def union(self, other: Frame) -> Frame:
        assert [f.type for f in self.schema] == [f.type for f in other.schema]
        return Frame([*self.partitions, *other.partitions], self.schema, self.random)

    def toArrow(self) -> pa.Table:
        return self._rows()

    def _rows(self) -> pa.Table:
        return pa.Table.from_batches([batch for part in self.partitions for batch in part], self.schema)

    def _batches(self, table: pa.Table) -> list[pa.RecordBatch]:
        return table.combine_chunks().to_batches(max_chunksize=self.random.choice([1, 3, 1000]))


@dataclass(frozen=True, eq=False)
class Bounded(Input):
    """Rows that are there, cut into partitions."""

    parts: Sequence[pa.Table]
    schema: pa.Schema  # type: ignore[misc]
    seed: int = 0
    streaming: bool = False  # type: ignore[misc]
    spark: Any = field(default_factory=lambda: SimpleNamespace(conf={"spark.sql.shuffle.partitions": "2"}))

    def mapped(self, task: Any, columns: list[str], at: str | None, schema: Any, metric: Any) -> Any:
        draw = random.Random(self.seed)
        kind = pa.schema([self.schema.field(name) for name in columns if name in self.schema.names])
        given = []
        for part in self.parts:
            table = part.select(kind.names)
            if at is not None:
                table = table.append_column(AT, part[at].cast(pa.int64()))
            given.append(table.combine_chunks().to_batches(max_chunksize=draw.choice([2, 7, 1000])))
        whole = kind if at is None else kind.append(pa.field(AT, pa.int64()))
        tables = Frame(given, whole, draw)
        return tables.mapInArrow(lambda batches: task(pa.Table.from_batches([b], whole) for b in batches), schema)

    def with_row(self, packed: Any, shard: int, payload: bytes) -> Any:
        row = pa.RecordBatch.from_pylist([{"shard": shard, "lo": 0, "payload": payload}], packed.schema)
        return Frame([*packed.partitions, [row]], packed.schema, packed.random)

    def describe(self) -> str:
        return "rows of a test"


def rows_of(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of a table."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def arrow_schema(schema: Any) -> pa.Schema:
    """The Arrow types of a Spark schema, as Spark has them."""
    return pa.schema(list(arrow_of(schema)))


def cut(table: pa.Table, parts: int, seed: int) -> list[pa.Table]:
    """The rows in any order, cut into so many parts, of which some are empty."""
    draw = random.Random(seed)
    places = list(range(table.num_rows))
    draw.shuffle(places)
    ends = sorted(draw.choices(range(table.num_rows + 1), k=parts - 1))
    shuffled = table.take(pa.array(places, pa.int64()))
    return [shuffled.slice(a, b - a) for a, b in zip([0, *ends], [*ends, table.num_rows], strict=True)]


def bounded_flow(parts: Sequence[pa.Table], time: str, watermark: Any = None, seed: int = 0, **settings: Any) -> Flow:
    """A flow over rows in parts, for the stand-in."""
    return flow_of(SparkSource(Bounded(list(parts), parts[0].schema, seed)), Settings(time, watermark, **settings))


def rows() -> pa.Table:
    rng = np.random.default_rng(7)
    times = pa.array(np.sort(rng.integers(0, 6 * 3600, 400)) * 1_000_000).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "at": times, "k": rng.choice(["a", "b", "c"], 400), "x": rng.integers(0, 50, 400)})


def same(table: pa.Table) -> pa.Table:
    return table

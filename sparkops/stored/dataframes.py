"""DataFrames of accumulators: functions that make, merge, retract and extract them, key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from ...combiners.aggregate import weights_of
from ...combiners.column_names import key_names
from ...combiners.rows.groups import Groups, group_rows
from ...combiners.rows.key_codes import normal_keys
from ...errors import InvalidArgument, TypeMismatch, require_column
from ..pieces import pieces
from ..sql_types import arrow_type, conform, passed, spark_type
from ..tuning.thin_function import thin_function
from ..tuning.worker import ready
from . import column_expressions
from .codec import Maker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENOUGH = 100_000
"""The number of accumulators that a task holds before it merges them, or sends them on if none can be merged."""


def add(maker: Maker, name: str, rows: DataFrame, by: str | Sequence[str], diff: str | None) -> DataFrame:
    """The accumulators of the rows of each key. Each task combines the rows that it reads."""
    keys = _keys("add", rows, by, name)
    cells = Cells(keys=tuple(keys), name=name, maker=maker)
    needed = dict.fromkeys([*keys, *maker.bound.columns])
    if diff is not None:
        require_column(diff, rows.columns, "diff=")
        kind = arrow_type(rows.schema[diff].dataType, f"column {diff!r}")
        if not pa.types.is_integer(kind):
            raise TypeMismatch(f"diff= takes an integer column of weights, but {diff!r} is {kind}: cast it")
        needed[diff] = None
        maker.require_retractable("diff= can retract rows")

    def lift(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.combined(cells.added(table, diff) for table in tables)

    if not rows.columns:  # Spark sends no rows without a column to Python
        rows = rows.selectExpr("0 AS row")
    return _gathered(_through(rows, list(needed) or rows.columns[:1], lift, cells.schema(rows)), cells)


def merge(maker: Maker, name: str, stored: DataFrame, by: str | Sequence[str]) -> DataFrame:
    """The sum of the accumulators of each key."""
    cells = Cells(keys=tuple(_keys("merge", stored, by, name)), name=name, maker=maker)

    def lift(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.combined(map(cells.merged, tables))

    return _gathered(_through(stored, cells.names, lift, cells.schema(stored)), cells)


def uncombine(maker: Maker, name: str, stored: DataFrame, others: DataFrame, by: str | Sequence[str]) -> DataFrame:
    """The accumulators of each key without the rows of the others."""
    maker.require_retractable("Accumulator.uncombine retracts rows")
    for each in (stored, others):
        keys = _keys("uncombine", each, by, name)
    cells = Cells(keys=tuple(keys), name=name, maker=maker)

    def negate(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.combined(cells.negated(cells.merged(table)) for table in tables)

    negative = _through(others, cells.names, negate, cells.schema(others))
    return merge(maker, name, stored.select(*map(_quoted, cells.names)).unionByName(negative), keys)


def extract(maker: Maker, name: str, stored: DataFrame) -> DataFrame:
    """The DataFrame with results for accumulators, without the rows whose accumulator is of no rows."""
    has_rows = F.coalesce(F.col(_quoted(name))["rows"], F.lit(0)) != 0
    if not column_expressions.EXPRESSIONS:
        return _extracted_rows(maker, name, stored.where(has_rows))
    shown = [
        column_expressions.extract(maker, name, _quoted(name)) if other == name else F.col(_quoted(other))
        for other in stored.columns
    ]
    return stored.where(has_rows).select(*shown)


def _extracted_rows(maker: Maker, name: str, stored: DataFrame) -> DataFrame:
    """Results for accumulators in whole rows, which go through Python where Spark has no UDFs of Arrow columns."""
    result = StructField(name, spark_type(maker.bound.output, f"the result of {maker.bound.combiner!r}"))
    at, schema = stored.columns.index(name), StructType([result if f.name == name else f for f in stored.schema])

    def extract(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            column = maker.extract(conform(table[name], maker.type))
            yield from passed(table.set_column(at, name, column)).to_batches()

    return _through(stored, stored.columns, extract, schema)


@dataclass(frozen=True)
class Cells:
    """The work of tasks on tables of keys and accumulators, one row a key."""

    keys: tuple[str, ...]
    name: str
    maker: Maker

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [*self.keys, self.name]

    def schema(self, df: DataFrame) -> StructType:
        """The types of the columns: keys as they are in a DataFrame, and accumulators with their maker."""
        accumulator = StructField(self.name, self.maker.spark_type, metadata=self.maker.metadata)
        return StructType([*(df.schema[key] for key in self.keys), accumulator])

    def added(self, rows: pa.Table, diff: str | None) -> pa.Table:
        """Combine rows to accumulators."""
        keys, groups = self._groups(rows)
        weights = None if diff is None else weights_of(rows, diff)
        bound = self.maker.bound
        inputs = [conform(rows[name], bound.schema.field(name).type) for name in bound.columns]
        return pa.table([*keys, self.maker.add(groups, inputs, weights)], names=self.names)

    def merged(self, cells: pa.Table) -> pa.Table:
        """Merge accumulators to one row for each key, in the order in which keys first appear."""
        keys, groups = self._groups(cells)
        return pa.table([*keys, self.maker.merge(groups, self._stored(cells))], names=self.names)

    def negated(self, cells: pa.Table) -> pa.Table:
        """The inverse of all accumulators."""
        return cells.set_column(len(self.keys), self.name, self.maker.negate(self._stored(cells)))

    def combined(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Merge tables, in bounded memory, as long as that makes them smaller. A key may come more than once."""
        parts: list[pa.Table] = []
        count = 0
        for table in tables:
            parts.append(table)
            count += table.num_rows
            if count >= ENOUGH:
                merged = self.merged(pa.concat_tables(parts))
                parts, count = ([merged], merged.num_rows) if merged.num_rows < ENOUGH // 2 else ([], 0)
                if not parts:
                    yield from merged.to_batches()
        if parts:
            yield from (self.merged(pa.concat_tables(parts)) if len(parts) > 1 else parts[0]).to_batches()

    def gathered(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Merge tables in which equal keys are neighbours, to one row for each key that has rows."""
        last: pa.Table | None = None
        for table in tables:
            merged = self.merged(table if last is None else pa.concat_tables([last, table]))
            # The last key may continue in the next table.
            last = merged.slice(merged.num_rows - 1)
            yield from self._something(merged.slice(0, merged.num_rows - 1)).to_batches()
        if last is not None:
            yield from self._something(last).to_batches()

    def _something(self, cells: pa.Table) -> pa.Table:
        gone = self.maker.nothing(self._stored(cells))
        return cells.filter(pa.array(~gone)) if gone.any() else cells

    def _stored(self, cells: pa.Table) -> pa.Array:
        return conform(cells[self.name], self.maker.type)

    def _groups(self, table: pa.Table) -> tuple[list[pa.Array], Groups]:
        """The keys, each once, and the groups of rows that have them."""
        keys = [normal_keys(conform(table[name], table[name].type)) for name in self.keys]
        if not keys:
            return keys, Groups.single(table.num_rows)
        groups, first = group_rows(keys, table.num_rows)
        return [key.take(pa.array(first)) for key in keys], groups


def _gathered(lifted: DataFrame, cells: Cells) -> DataFrame:
    """Shuffle partial accumulators by key, and merge them."""

    def gather(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.gathered(tables)

    if not cells.keys:
        return _through(lifted.repartition(1), lifted.columns, gather, lifted.schema)
    # With sorted rows a task need not hold all keys of a partition, and Spark can spill a sort to disk.
    quoted = [_quoted(name) for name in cells.keys]
    sorted_by_key = lifted.repartition(*quoted).sortWithinPartitions(*quoted)
    return _through(sorted_by_key, lifted.columns, gather, lifted.schema)


def _through(
    df: DataFrame,
    names: Sequence[str],
    work: Callable[[Iterable[pa.Table]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """Apply a function of tables to some columns, under plain names, since Spark's `mapInArrow` takes no others."""
    plain = [f"_{i}" for i in range(len(schema))]
    inner = StructType([StructField(n, f.dataType, f.nullable, f.metadata) for n, f in zip(plain, schema, strict=True)])

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        tables = (pa.table(batch).rename_columns(list(names)) for batch in batches if batch.num_rows)
        return (batch.rename_columns(plain) for batch in work(pieces(tables)))

    chosen = df.select(*(F.col(_quoted(name)).alias(f"_{i}") for i, name in enumerate(names)))
    return chosen.mapInArrow(thin_function(run), inner).toDF(*schema.names)


def _keys(verb: str, df: DataFrame, by: str | Sequence[str], accumulator: str) -> list[str]:
    """The key columns of a bounded DataFrame."""
    if df.isStreaming:
        raise InvalidArgument(
            f"Accumulator.{verb} takes a bounded DataFrame, because it would see only one batch of a stream at a time: "
            "use a flow"
        )
    keys = key_names(by)
    for name in keys:
        require_column(name, df.columns, "by=")
        if name == accumulator:
            raise InvalidArgument(f"{name!r} is both a key column and the name of an accumulator: rename one of them")
        field = df.schema[name]
        try:
            group_rows([pa.array([], arrow_type(field.dataType, f"column {name!r}"))], 0)
        except TypeMismatch:
            raise TypeMismatch(
                f"by= takes columns that can be compared, but {name!r} is {field.dataType.simpleString()}: "
                "group by its parts"
            ) from None
    return keys


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

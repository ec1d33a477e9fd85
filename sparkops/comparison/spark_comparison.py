"""The comparison on Spark: rows of both sides meet by a shuffle of their keys, and tasks count what they find.

Only counts and examples come to the driver: a task keeps a few rows of each kind, and sends them with its counts.

Guarded by tests/sparkops/comparison/test_spark_comparison.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812

from ...combiners.rows.columns import flat
from ...errors import InvalidArgument
from ...tables.comparison.common_types import SIDES
from ...tables.comparison.comparison import CHANGED, EQUAL, KINDS, ONLY_NEW, ONLY_OLD, Comparison
from ...tables.comparison.local_comparison import chosen_examples, not_one_row
from ...tables.comparison.options import ComparisonOptions
from ..inputs import DataFrameInput
from ..sql_types import spark_schema
from .same_columns import same_values
from .spark_sides import WEIGHT, SparkSide, spark_sides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEVERAL, RETRACTED = len(KINDS), len(KINDS) + 2
"""The kinds of keys that do not identify a row: of the old side, and one more of the new side."""

_ALL_KINDS = RETRACTED + 2


def compared_on_spark(old: Any, new: Any, options: ComparisonOptions) -> Comparison:
    """The comparison of two sides of which Spark has at least one."""
    one, other, schema, options = spark_sides((old, new), options)
    groups = (_keyed if options.keys else _whole_rows)(one, other, schema, options)
    names = options.result_names(schema.names)[1:]
    result = result_schema(schema, options)
    summary = _summary(groups, options.examples, result)
    counts, changes, found = _counts(summary, len(options.values(schema.names)))
    examples = _examples(found, result)
    kinds = np.asarray(flat(found["kind"]))
    for kind in range(len(KINDS), _ALL_KINDS):
        if counts[kind]:
            at = int(np.flatnonzero(kinds == kind)[0])
            key = examples.select(list(options.keys)).slice(at, 1).to_pylist()[0]
            side = SIDES[(kind - SEVERAL) % 2]
            raise InvalidArgument(not_one_row(side, None if kind < RETRACTED else -1, key))
    words = pa.array(KINDS, pa.string()).take(pa.array(kinds))
    examples = examples.add_column(0, "difference", words)
    values = options.values(schema.names)
    return Comparison(
        equal=counts[EQUAL],
        changed=counts[CHANGED],
        only_old=counts[ONLY_OLD],
        only_new=counts[ONLY_NEW],
        examples=examples.take(pa.array(chosen_examples(kinds, options.examples))),
        keys=options.keys,
        changed_columns={name: count for name, count in zip(values, changes, strict=True) if count},
        frame=_difference(groups, names),
    )


def result_schema(schema: pa.Schema, options: ComparisonOptions) -> pa.Schema:
    """The columns of a difference, but for the one that says in which way a row differs."""
    if not options.keys:
        return schema.append(pa.field(options.result_names([])[-1], pa.int64()))
    fields = [schema.field(name) for name in options.keys]
    for name in options.values(schema.names):
        fields += [schema.field(name).with_name(f"{name}_{side}") for side in SIDES]
    return pa.schema(fields)


def _whole_rows(old: SparkSide, new: SparkSide, schema: pa.Schema, options: ComparisonOptions) -> DataFrame:
    """Each row with the number of times that both sides have it, and by which the new one has it more often."""
    names, zero, weight = [f"c{place}" for place in range(len(schema))], F.lit(0).cast("bigint"), F.col(WEIGHT)
    one = old.numbered(schema).select(*names, weight.alias("o"), zero.alias("n"))
    other = new.numbered(schema).select(*names, zero.alias("o"), weight.alias("n"))
    net = one.union(other).groupBy(*names).agg(F.sum("o").alias("o"), F.sum("n").alias("n"))
    more, least = F.col("n") - F.col("o"), F.least(F.abs("o"), F.abs("n"))
    return net.select(
        F.when(more == 0, EQUAL).when(more < 0, ONLY_OLD).otherwise(ONLY_NEW).alias("kind"),
        F.when((F.col("o") > 0) == (F.col("n") > 0), least).otherwise(0).alias("equal"),
        F.abs(more).alias("differ"),
        F.lit(None).cast("array<boolean>").alias("columns"),
        F.when(more != 0, F.struct(*names, more.alias("diff"))).alias("row"),
    )


def _keyed(old: SparkSide, new: SparkSide, schema: pa.Schema, options: ComparisonOptions) -> DataFrame:
    """Each key with its kind, and the rows that both sides have of it."""
    numbers = {name: f"c{place}" for place, name in enumerate(schema.names)}
    keys, values = [numbers[name] for name in options.keys], options.values(schema.names)
    row = F.struct(F.lit(True).alias("there"), *(numbers[name] for name in values)).alias("row")
    sides = [_net(side, schema, list(numbers.values())) for side in (old, new)]
    parts = [rows.select(*keys, row, WEIGHT, F.lit(place).alias("side")) for place, rows in enumerate(sides)]
    places = [F.col("side") == place for place in (0, 1)]
    pairs = parts[0].union(parts[1]).groupBy(*keys).agg(
        *(F.count(F.when(at, 1)).alias(f"count{place}") for place, at in enumerate(places)),
        *(F.max(F.when(at, F.col(WEIGHT))).alias(f"most{place}") for place, at in enumerate(places)),
        *(F.min(F.when(at, F.col(WEIGHT))).alias(f"least{place}") for place, at in enumerate(places)),
        *(F.first(F.when(at, F.col("row")), ignorenulls=True).alias(f"row{place}") for place, at in enumerate(places)),
    )  # fmt: skip
    halves = [[F.col(f"row{place}").getField(numbers[name]) for name in values] for place in (0, 1)]
    differ = [
        ~same_values(one, other, schema.field(name).type, options.tolerance)
        for name, one, other in zip(values, *halves, strict=True)
    ]
    pairs = pairs.withColumn("kind", _kind(differ))
    fields = [F.col(name) for name in keys] + [half for pair in zip(*halves, strict=True) for half in pair]
    numbered = [value.alias(f"f{place}") for place, value in enumerate(fields)]
    is_equal = F.col("kind") == EQUAL
    flags = F.array(*differ) if differ else F.lit(None)
    return pairs.select(
        F.col("kind"),
        F.when(is_equal, 1).otherwise(0).cast("bigint").alias("equal"),
        F.when(is_equal, 0).otherwise(1).cast("bigint").alias("differ"),
        F.when(F.col("kind") == CHANGED, flags).cast("array<boolean>").alias("columns"),
        F.when(~is_equal, F.struct(*numbered)).alias("row"),
    )


def _net(side: SparkSide, schema: pa.Schema, names: Sequence[str]) -> DataFrame:
    """The numbered rows of a side, each once if it has weights."""
    rows = side.numbered(schema)
    if side.weight is None:
        return rows
    return rows.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)


def _kind(differ: Sequence[Column]) -> Column:
    """The kind of a key: that of a key that does not identify a row comes first."""
    cases = [(F.col(f"least{place}") < 0, RETRACTED + place) for place in (0, 1)]
    cases += [((F.col(f"count{place}") > 1) | (F.col(f"most{place}") > 1), SEVERAL + place) for place in (0, 1)]
    cases += [(F.col("count1") == 0, ONLY_OLD), (F.col("count0") == 0, ONLY_NEW)]
    if differ:
        cases.append((reduce(lambda one, other: one | other, differ), CHANGED))
    return F.coalesce(*(F.when(case, kind) for case, kind in cases), F.lit(EQUAL))


@dataclass(frozen=True)
class CountKinds:
    """A task that counts the rows of each kind, and keeps some of them as examples."""

    examples: int
    """The number of rows of each kind to keep."""
    row: pa.DataType
    """The type of a row, in which every part may be null."""

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        counts, kept = np.zeros(_ALL_KINDS, np.int64), np.zeros(_ALL_KINDS, np.int64)
        changes: np.ndarray | None = None
        for table in tables:
            kinds = np.asarray(flat(table["kind"]))
            counts[EQUAL] += int(np.asarray(flat(table["equal"])).sum())
            np.add.at(counts, kinds, np.asarray(flat(table["differ"])))
            flags = flat(table["columns"])
            if changed := len(flags) - flags.null_count:
                sums = np.asarray(flags.flatten()).reshape(changed, -1).sum(axis=0)
                changes = sums if changes is None else changes + sums
            chosen = list[np.ndarray]()
            for kind in np.unique(kinds[kinds != EQUAL]):
                places = np.flatnonzero(kinds == kind)[: self.examples - kept[kind]]
                kept[kind] += len(places)
                chosen.append(places)
            if chosen and (places := np.concatenate(chosen)).size:
                some = table.select(["kind", "row"]).take(pa.array(places))
                yield from _batches(some["kind"], [0] * len(places), [None] * len(places), some["row"].cast(self.row))
        of_all = np.flatnonzero(counts)
        columns = [changes.tolist() if kind == CHANGED and changes is not None else None for kind in of_all]
        yield from _batches(pa.array(of_all, pa.int32()), counts[of_all], columns, pa.nulls(len(of_all), self.row))


def _batches(kinds: Any, rows: Any, columns: list[Any], examples: Any) -> Iterator[pa.RecordBatch]:
    table = {
        "kind": kinds,
        "rows": pa.array(rows, pa.int64()),
        "columns": pa.array(columns, pa.list_(pa.int64())),
        "row": examples,
    }
    yield from pa.table(table).combine_chunks().to_batches()


def _summary(groups: DataFrame, examples: int, result: pa.Schema) -> pa.Table:
    """The counts of all tasks, and the examples that they kept."""
    row = pa.struct([field.with_name(f"f{place}") for place, field in enumerate(result)])
    schema = spark_schema(
        pa.schema({"kind": pa.int32(), "rows": pa.int64(), "columns": pa.list_(pa.int64()), "row": row})
    )
    task = CountKinds(max(examples, 1), row)
    table: pa.Table = DataFrameInput(groups).mapped(task, groups.columns, None, schema, str).toArrow()
    return table


def _counts(summary: pa.Table, columns: int) -> tuple[list[int], list[int], pa.Table]:
    """The rows of each kind, the changed rows by column, and the examples."""
    is_example = summary["row"].is_valid()
    totals = summary.filter(pc.invert(is_example))
    counts = np.zeros(_ALL_KINDS, np.int64)
    np.add.at(counts, np.asarray(flat(totals["kind"])), np.asarray(flat(totals["rows"])))
    changes = np.zeros(columns, np.int64)
    for some in totals["columns"].to_pylist():  # one of each task
        if some is not None:
            changes += np.array(some, np.int64)
    return counts.tolist(), changes.tolist(), summary.filter(is_example)


def _examples(found: pa.Table, result: pa.Schema) -> pa.Table:
    """The examples in columns of their names and types."""
    parts = flat(found["row"]).flatten()
    columns = [part.cast(field.type) for part, field in zip(parts, result, strict=True)]
    return pa.table(columns, schema=result)


def _difference(groups: DataFrame, names: Sequence[str]) -> DataFrame:
    """All rows that differ."""
    fields = groups.schema["row"].dataType.names
    words = F.element_at(F.array(*map(F.lit, KINDS)), F.col("kind") + 1).alias("difference")
    columns = [F.col("row").getField(part).alias(name) for part, name in zip(fields, names, strict=True)]
    return groups.where(F.col("kind") != EQUAL).select(words, *columns)


__all__ = ["CountKinds", "compared_on_spark", "result_schema"]

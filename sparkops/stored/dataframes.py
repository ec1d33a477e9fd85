"""DataFrames of accumulators: functions that make, merge, retract and extract them, and check their makers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from ...combiners import Combiner
from ...combiners.aggregate import weights_of
from ...combiners.column_names import key_names
from ...combiners.rows.groups import Groups, group_rows
from ...combiners.rows.key_codes import normal_keys
from ...errors import InvalidArgument, TypeMismatch, require_column
from ..pieces import pieces
from ..sql_types import arrow_type, bind, conform
from ..tuning.worker import ready
from .codec import KEY, Maker, maker_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENOUGH = 100_000
"""The number of accumulators that a task holds before it merges them, or sends them on if none can be merged."""


def accumulate(
    df: DataFrame, by: str | Sequence[str] = (), diff: str | None = None, **combiners: Combiner
) -> DataFrame:
    """Combine the rows of each key to accumulators, which can be stored, merged and retracted later.

    Each task combines the rows that it reads, and only accumulators go through the shuffle.

    Parameters
    ----------
    df
        The rows, as a bounded DataFrame.
    by
        The key columns. Null is a key of its own, NaN equals NaN.
    diff
        A column of integer weights: -1 retracts a row.
    **combiners
        The name of each accumulator column, and its combiner.

    Returns
    -------
    pyspark.sql.DataFrame
        The keys and the accumulators. The metadata of each column names its combiner.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.sparkops import accumulate, extract_accumulated
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([("a", 3), ("a", 9), ("b", 5)], "user string, score long")
    >>> stored = accumulate(df, by="user", best=uc.Max("score"), mean=uc.Mean("score"))
    >>> extract_accumulated(stored).orderBy("user").show()
    +----+----+----+
    |user|best|mean|
    +----+----+----+
    |   a|   9| 6.0|
    |   b|   5| 5.0|
    +----+----+----+
    <BLANKLINE>
    """
    _require_batch(df, "accumulate")
    keys = _keys(df, by, combiners)
    if not combiners:
        raise InvalidArgument("accumulate needs at least one combiner, such as total=Sum('score')")
    makers = {name: Maker(bind(f"{name}=", combiner, df.schema)) for name, combiner in combiners.items()}
    needed = dict.fromkeys([*keys, *(c for maker in makers.values() for c in maker.bound.columns)])
    if diff is not None:
        require_column(diff, df.columns, "diff=")
        kind = arrow_type(df.schema[diff].dataType, f"column {diff!r}")
        if not pa.types.is_integer(kind):
            raise TypeMismatch(f"diff= takes an integer column of weights, but {diff!r} is {kind}: cast it")
        needed[diff] = None
        for maker in makers.values():
            maker.require_retractable("diff= can retract rows")
    cells = _Cells(tuple(keys), makers)

    def lift(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.combined(cells.added(table, diff) for table in tables)

    if not df.columns:  # Spark sends no rows without a column to Python
        df = df.selectExpr("0 AS row")
    lifted = _through(df, list(needed) or df.columns[:1], lift, _schema(df, keys, makers))
    return _gathered(lifted, keys, cells)


def merge_accumulated(df: DataFrame, by: str | Sequence[str] = (), **combiners: Combiner) -> DataFrame:
    """Merge the accumulators of each key: a roll-up to fewer keys, or of several stored parts.

    Parameters
    ----------
    df
        Keys and accumulators, such as the union of several results of `accumulate`. Other columns are left out.
    by
        The key columns.
    **combiners
        The combiner of each column. It is needed only if it cannot be read from the metadata, as with own functions.

    Returns
    -------
    pyspark.sql.DataFrame
        The keys and the accumulators. A key of which every row is retracted has no row.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.sparkops import accumulate, extract_accumulated, merge_accumulated
    >>> spark = uc.session()
    >>> rows = [(1, "a", 3), (1, "b", 9), (2, "a", 5)]
    >>> df = spark.createDataFrame(rows, "day int, user string, score long")
    >>> daily = accumulate(df, by=["day", "user"], median=uc.Median("score"))
    >>> extract_accumulated(merge_accumulated(daily, by="user")).orderBy("user").show()
    +----+------+
    |user|median|
    +----+------+
    |   a|   4.0|
    |   b|   9.0|
    +----+------+
    <BLANKLINE>
    """
    _require_batch(df, "merge_accumulated")
    keys = _keys(df, by)
    makers = _makers(df, keys, combiners)
    cells = _Cells(tuple(keys), makers)

    def lift(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.combined(map(cells.merged, tables))

    return _gathered(_through(df, [*keys, *makers], lift, _schema(df, keys, makers)), keys, cells)


def uncombine_accumulated(
    df: DataFrame, others: DataFrame, by: str | Sequence[str] = (), **combiners: Combiner
) -> DataFrame:
    """Retract the rows of the accumulators in `others` from those in `df`, key by key.

    Parameters
    ----------
    df
        Keys and accumulators.
    others
        The accumulators that are retracted, in columns of the same names and of the same combiners.
    by
        The key columns.
    **combiners
        The combiner of each column. It is needed only if it cannot be read from the metadata, as with own functions.

    Returns
    -------
    pyspark.sql.DataFrame
        The keys and the accumulators. A key of which every row is retracted has no row.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.sparkops import accumulate, extract_accumulated, uncombine_accumulated
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([(1, "a", 3), (2, "a", 9), (2, "b", 5)], "day int, user string, score long")
    >>> whole = accumulate(df, by="user", best=uc.Max("score"))
    >>> second = accumulate(df.where("day = 2"), by="user", best=uc.Max("score"))
    >>> extract_accumulated(uncombine_accumulated(whole, second, by="user")).show()
    +----+----+
    |user|best|
    +----+----+
    |   a|   3|
    +----+----+
    <BLANKLINE>
    """
    _require_batch(others, "uncombine_accumulated")
    keys = _keys(others, by)
    makers = _makers(df, keys, combiners)
    for name, maker in makers.items():
        require_column(name, others.columns, "uncombine_accumulated")
        maker.require_same(maker_of(name, others.schema[name], combiners.get(name)), name)
        maker.require_retractable("uncombine_accumulated retracts rows")
    cells = _Cells(tuple(keys), makers)

    def negate(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.combined(cells.negated(cells.merged(table)) for table in tables)

    wanted = [*keys, *makers]
    negative = _through(others, wanted, negate, _schema(others, keys, makers))
    both = df.select(*map(_quoted, wanted)).unionByName(negative)
    return merge_accumulated(both, keys, **{name: maker.bound.combiner for name, maker in makers.items()})


def extract_accumulated(df: DataFrame, **combiners: Combiner) -> DataFrame:
    """Replace all accumulators by their results; other columns are unchanged.

    Parameters
    ----------
    df
        Any columns, some of them accumulators.
    **combiners
        The combiner of each column. It is needed only if it cannot be read from the metadata, as with own functions.

    Returns
    -------
    pyspark.sql.DataFrame
        The same columns, with results for accumulators. A row is left out if all its accumulators are of no rows.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.sparkops import accumulate, extract_accumulated
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([(3,), (9,)], "score long")
    >>> extract_accumulated(accumulate(df, total=uc.Sum("score"))).show()
    +-----+
    |total|
    +-----+
    |   12|
    +-----+
    <BLANKLINE>
    """
    from pyspark.sql import functions as F  # noqa: N812

    from .columns import extract_udf

    makers = _makers(df, [], combiners)
    held = F.lit(False)
    for name in makers:
        held = held | (F.coalesce(F.col(_quoted(name))["rows"], F.lit(0)) != 0)
    columns = [
        extract_udf(makers[name].bound.combiner, makers[name].inputs)(_quoted(name)).alias(name)
        if name in makers
        else F.col(_quoted(name))
        for name in df.columns
    ]
    return df.where(held).select(*columns)


@dataclass(frozen=True)
class _Cells:
    """The work of tasks on tables of keys and accumulators, one row a key."""

    keys: tuple[str, ...]
    makers: Mapping[str, Maker]

    def added(self, rows: pa.Table, diff: str | None) -> pa.Table:
        """Combine rows to accumulators."""
        keys, groups, first = self._groups(rows)
        weights = None if diff is None else weights_of(rows, diff)
        columns = [key.take(first) for key in keys]
        for maker in self.makers.values():
            inputs = [conform(rows[name], maker.bound.schema.field(name).type) for name in maker.bound.columns]
            columns.append(maker.add(groups, inputs, weights))
        return pa.table(columns, names=[*self.keys, *self.makers])

    def merged(self, cells: pa.Table) -> pa.Table:
        """Merge accumulators to one row for each key, in the order in which keys first appear."""
        keys, groups, first = self._groups(cells)
        columns = [key.take(first) for key in keys]
        columns += [maker.merge(groups, conform(cells[name], maker.type)) for name, maker in self.makers.items()]
        return pa.table(columns, names=[*self.keys, *self.makers])

    def negated(self, cells: pa.Table) -> pa.Table:
        """The inverse of all accumulators."""
        columns = [conform(cells[key], cells[key].type) for key in self.keys]
        columns += [maker.negate(conform(cells[name], maker.type)) for name, maker in self.makers.items()]
        return pa.table(columns, names=[*self.keys, *self.makers])

    def combined(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Merge tables, in bounded memory, as long as that makes them smaller. A key may come more than once."""
        held: list[pa.Table] = []
        count = 0
        for table in tables:
            held.append(table)
            count += table.num_rows
            if count >= ENOUGH:
                merged = self.merged(pa.concat_tables(held))
                held, count = ([merged], merged.num_rows) if merged.num_rows < ENOUGH // 2 else ([], 0)
                if not held:
                    yield from merged.to_batches()
        if held:
            yield from (self.merged(pa.concat_tables(held)) if len(held) > 1 else held[0]).to_batches()

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
        gone = np.ones(cells.num_rows, np.bool_)
        for name, maker in self.makers.items():
            gone &= maker.nothing(conform(cells[name], maker.type))
        return cells.filter(pa.array(~gone)) if gone.any() else cells

    def _groups(self, table: pa.Table) -> tuple[list[pa.Array], Groups, pa.Array]:
        keys = [normal_keys(conform(table[name], table[name].type)) for name in self.keys]
        if not keys:
            return keys, Groups.single(table.num_rows), pa.array([0])
        groups, first = group_rows(keys, table.num_rows)
        return keys, groups, pa.array(first)


def _gathered(lifted: DataFrame, keys: Sequence[str], cells: _Cells) -> DataFrame:
    """Shuffle partial accumulators by key, and merge them."""

    def gather(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return cells.gathered(tables)

    if not keys:
        return _through(lifted.repartition(1), lifted.columns, gather, lifted.schema)
    # With sorted rows a task need not hold all keys of a partition, and Spark can spill a sort to disk.
    quoted = [_quoted(name) for name in keys]
    sorted_by_key = lifted.repartition(*quoted).sortWithinPartitions(*quoted)
    return _through(sorted_by_key, lifted.columns, gather, lifted.schema)


def _through(
    df: DataFrame,
    names: Sequence[str],
    work: Callable[[Iterable[pa.Table]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """Apply a function of tables to some columns, under plain names, since Spark's `mapInArrow` takes no others."""
    from pyspark.sql import functions as F  # noqa: N812

    plain = [f"_{i}" for i in range(len(schema))]
    inner = StructType([StructField(n, f.dataType, f.nullable, f.metadata) for n, f in zip(plain, schema, strict=True)])

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        tables = (pa.table(batch).rename_columns(list(names)) for batch in batches if batch.num_rows)
        return (batch.rename_columns(plain) for batch in work(pieces(tables)))

    chosen = df.select(*(F.col(_quoted(name)).alias(f"_{i}") for i, name in enumerate(names)))
    return chosen.mapInArrow(run, inner).toDF(*schema.names)


def _keys(df: DataFrame, by: str | Sequence[str], combiners: Iterable[str] = ()) -> list[str]:
    keys = key_names(by)
    for name in keys:
        require_column(name, df.columns, "by=")
        if name in combiners:
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


def _makers(df: DataFrame, keys: Sequence[str], combiners: Mapping[str, Combiner]) -> dict[str, Maker]:
    """The makers of the accumulator columns: those in metadata, and those in `combiners`."""
    for name in combiners:
        require_column(name, df.columns, f"{name}=")
    makers = {
        field.name: maker_of(field.name, field, combiners.get(field.name))
        for field in df.schema
        if field.name not in keys and (field.name in combiners or KEY in (field.metadata or {}))
    }
    if not makers:
        raise InvalidArgument("the DataFrame has no column of accumulators: make one with accumulate or add_udf")
    return makers


def _schema(df: DataFrame, keys: Sequence[str], makers: Mapping[str, Maker]) -> StructType:
    fields = [df.schema[name] for name in keys]
    return StructType([*fields, *(StructField(n, m.spark_type, metadata=m.metadata) for n, m in makers.items())])


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _require_batch(df: DataFrame, what: str) -> None:
    if df.isStreaming:
        raise InvalidArgument(
            f"{what} takes a bounded DataFrame, because it would see only one batch of a stream at a time: use a flow"
        )

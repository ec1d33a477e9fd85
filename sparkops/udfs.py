"""Combiners as Spark's grouped aggregates: in `groupBy().agg()`, in `.over(window)` and in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyspark
from pyspark.errors import PySparkNotImplementedError

from ..combiners import Combiner
from ..combiners.combiner import Bound
from ..combiners.rows.groups import Groups
from ..errors import InvalidArgument, OutOfRange, TypeMismatch
from .sql_types import AnySchema, bind, conform, scalar, spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Udf: TypeAlias = Callable[..., Any]
"""A function of Spark from columns to a column."""


def as_arrow_udf(combiner: Combiner, schema: AnySchema | None = None, *, batches: bool = False) -> Udf:
    """The combiner as a grouped-aggregate Arrow UDF of Spark, for `groupBy().agg()` and `.over(window)`.

    The UDF takes the input columns of the combiner by name (`f(x="height", y="weight")`), or in the order of
    `combiner.bind(schema).columns`. For a combiner that reads no column, such as `Count()`, it takes any one column and
    counts its rows.

    Parameters
    ----------
    combiner
        What to compute.
    schema
        The types of the input columns: the DataFrame, its schema, or text such as "score bigint".
    batches
        True combines a group batch by batch, so that it may be larger than the memory of a worker. Spark takes one such
        UDF in an `agg()` and none in a window, and none at all before 4.2.

    Returns
    -------
    A UDF of Spark.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([("a", 3), ("a", 9), ("b", 5)], "user string, score long")
    >>> best = uc.sparkops.as_arrow_udf(uc.TopK("score", 2), df.schema)
    >>> df.groupBy("user").agg(best("score").alias("best")).orderBy("user").show()
    +----+------+
    |user|  best|
    +----+------+
    |   a|[9, 3]|
    |   b|   [5]|
    +----+------+
    <BLANKLINE>
    """
    bound = _of_one_use("as_arrow_udf", combiner, schema)

    conformed = _conforming(bound)

    def aggregate(*columns: pa.Array, **named: pa.Array) -> pa.Scalar:
        return scalar(bound.whole(conformed(in_order(bound, columns, named))))

    def aggregate_batches(rows: Iterator[tuple[pa.Array, ...]]) -> pa.Scalar:
        # Spark passes one column as it is, and several columns as a tuple.
        batches = (conformed(in_order(bound, batch if isinstance(batch, tuple) else (batch,))) for batch in rows)
        first, second = next(batches), next(batches, None)
        if second is None:
            return scalar(bound.whole(first))
        state = bound.zero(1)
        for columns in chain((first, second), batches):
            added = bound.add(Groups.single(len(columns[0])), *(columns if bound.columns else ()))
            both = tuple(pa.concat_arrays(pair) for pair in zip(state, added, strict=True))
            state = bound.merge(Groups.single(2), both)
        return scalar(bound.extract(state)[0])

    if not batches:
        return arrow_udf_of(aggregate, bound, bound.output)
    try:
        return arrow_udf_of(aggregate_batches, bound, bound.output)
    except PySparkNotImplementedError:
        raise InvalidArgument(
            f"as_arrow_udf({combiner!r}, batches=True) needs pyspark 4.2 or newer, but this is {pyspark.__version__}: "
            "leave batches= out, or use combine_per_key where a group is too large for a worker's memory"
        ) from None


def as_pandas_udf(combiner: Combiner, schema: AnySchema | None = None) -> Udf:
    """The combiner as a grouped-aggregate pandas UDF of Spark, for use beside other pandas UDFs in one `agg()`.

    The UDF works like that of `as_arrow_udf`, within the limits of pandas. NaN counts as missing, in the input and in
    the result. Integers beyond 2**53 beside nulls are refused while the UDF runs, since pandas holds such a column as
    floats. Columns and results that are structs, maps or lists of them are refused when the UDF is made. Prefer
    `as_arrow_udf`, which is exact on all types and faster, unless you need pandas.

    Parameters
    ----------
    combiner
        What to compute.
    schema
        The types of the input columns: the DataFrame, its schema, or text such as "score bigint".

    Returns
    -------
    A UDF of Spark.

    Examples
    --------
    >>> import uncombine as uc
    >>> from pyspark.sql import Window
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([("a", 3), ("a", 9), ("b", 5)], "user string, score long")
    >>> total = uc.sparkops.as_pandas_udf(uc.Sum("score"), "score long")
    >>> df.select("user", "score", total("score").over(Window.partitionBy("user")).alias("total")).show()
    +----+-----+-----+
    |user|score|total|
    +----+-----+-----+
    |   a|    3|   12|
    |   a|    9|   12|
    |   b|    5|    5|
    +----+-----+-----+
    <BLANKLINE>
    """
    from pyspark.sql.functions import pandas_udf

    bound = _of_one_use("as_pandas_udf", combiner, schema)
    for what, kind in [*((f"column {f.name!r}", f.type) for f in bound.schema), ("the result", bound.output)]:
        if _beyond_pandas(kind):
            raise TypeMismatch(
                f"as_pandas_udf({combiner!r}) cannot take {what}, which is {kind}, through pandas: use as_arrow_udf"
            )

    def aggregate(*columns: pd.Series, **named: pd.Series) -> Any:
        given = in_order(bound, columns, named)
        arrays = [_from_pandas(series, field) for series, field in zip(given, bound.schema, strict=False)]
        value = bound.whole(arrays or [pa.nulls(len(given[0]))])
        if not value.is_valid:
            return None
        result = pa.array([value], bound.output)
        if pa.types.is_timestamp(result.type):
            result = result.cast(pa.timestamp("us"))
        elif pa.types.is_list(result.type) and pa.types.is_timestamp(result.type.value_type):
            result = result.cast(pa.list_(pa.timestamp("us")))
        # In a list numpy turns a null into a number, and pandas' missing time is not a missing span of time.
        if pa.types.is_list(result.type):
            return result[0].as_py()
        (value,) = result.to_pandas()
        return value

    aggregate.__name__ = type(combiner).__name__
    return pandas_udf(aggregate, spark_type(bound.output, f"the result of {combiner!r}"))


def register(spark: SparkSession, name: str, combiner: Combiner, schema: AnySchema | None = None) -> Udf:
    """Make the combiner a function of SQL, `SELECT name(x) FROM t GROUP BY k`.

    Parameters
    ----------
    spark
        The session whose SQL gets the function.
    name
        The name of the function.
    combiner
        What to compute.
    schema
        The types of the input columns: the DataFrame, its schema, or text such as "score bigint".

    Returns
    -------
    The UDF, as `as_arrow_udf` returns it.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> median = uc.sparkops.register(spark, "middle", uc.Median("score"), "score long")
    >>> spark.sql("SELECT middle(score) AS middle FROM VALUES (1), (2), (9) AS t(score)").show()
    +------+
    |middle|
    +------+
    |   2.0|
    +------+
    <BLANKLINE>
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidArgument(f"register takes a name for SQL such as 'total_score', but was given {name!r}")
    made = as_arrow_udf(combiner, schema)
    spark.udf.register(name, made)
    return made


def _of_one_use(who: str, combiner: Combiner, schema: AnySchema | None) -> Bound:
    """The combiner in its cheapest form, since an aggregate never retracts rows."""
    bound = bind(who, combiner, schema)
    return combiner.append_only().bind(bound.schema)


def arrow_udf_of(function: Callable[..., Any], bound: Bound, output: pa.DataType, name: str | None = None) -> Udf:
    """A function of Arrow columns as a UDF. Spark reads the kind of UDF from its annotations."""
    from pyspark.sql.functions import arrow_udf

    function.__name__ = name or type(bound.combiner).__name__
    return arrow_udf(function, spark_type(output, f"the result of {bound.combiner!r}"))


def _conforming(bound: Bound) -> Callable[[Sequence[pa.Array]], list[pa.Array]]:
    """The columns of a group in the types that the combiner reads, or any one column if it reads none."""
    kinds = bound.schema.types or [None]

    def conformed(columns: Sequence[pa.Array]) -> list[pa.Array]:
        return [
            column if kind is None or column.type == kind else conform(column, kind)
            for column, kind in zip(columns, kinds, strict=False)
        ]

    return conformed


def in_order(bound: Bound, columns: Sequence[Any], named: Mapping[str, Any] | None = None) -> list[Any]:
    """The arguments of a UDF, in the order in which the combiner reads them."""
    if not named and len(columns) == len(bound.columns) > 0:
        return list(columns)
    wanted = ", ".join(map(repr, bound.columns))
    if named:
        if columns or set(named) != set(bound.columns):
            raise InvalidArgument(
                f"{bound.combiner!r} takes the columns {wanted}, all by name or all by place, but was given "
                f"{', '.join(map(repr, named))} by name and {len(columns)} by place"
            )
        return [named[name] for name in bound.columns]
    if not columns:
        raise InvalidArgument(f"{bound.combiner!r} was given no column: give it any column, whose rows it counts")
    if bound.columns and len(columns) != len(bound.columns):
        raise InvalidArgument(f"{bound.combiner!r} takes {wanted}, in this order, but was given {len(columns)} columns")
    return list(columns)


def _beyond_pandas(kind: pa.DataType) -> bool:
    """True if pandas, or Spark's conversion to pandas, changes values of the type."""
    if pa.types.is_list(kind):
        return pa.types.is_nested(kind.value_type)
    return pa.types.is_nested(kind)


def _from_pandas(series: pd.Series, field: pa.Field) -> pa.Array:
    """The Arrow column from which Spark made the series."""
    kind = field.type
    floats = pa.types.is_integer(kind) and pd.api.types.is_float_dtype(series.dtype)
    if floats and bool((series.abs() >= 2.0**53).any()):
        raise OutOfRange(
            f"column {field.name!r} has nulls and integers above 2**53, which pandas cannot hold in one column: "
            "use as_arrow_udf"
        )
    if pa.types.is_timestamp(kind):
        # Spark removes the session's time zone from the input and adds it to the result.
        return pa.array(series, pa.timestamp("us"), from_pandas=True).cast(kind)
    return pa.array(series, kind, from_pandas=True)

"""Accumulators as Spark columns: functions that make, merge and retract them, and extract their results."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners import Combiner
from ...combiners.rows.groups import Groups
from ...errors import InvalidArgument, TypeMismatch
from ..sql_types import AnySchema, bind, scalar
from ..udfs import Udf, arrow_udf_of, in_order
from .codec import Maker


def add_udf(combiner: Combiner, schema: AnySchema | None = None, *, weights: bool = False) -> Udf:
    """A grouped aggregate from input columns to an accumulator: the combiner's state as a struct column.

    Parameters
    ----------
    combiner
        The combiner whose accumulators are made.
    schema
        The types of the input columns: the DataFrame, its schema, or text such as "score bigint".
    weights
        True takes one more column, the last, of integer weights: -1 retracts a row.

    Returns
    -------
    A UDF of Spark; the metadata of its column names the combiner.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([("a", 3), ("a", 9), ("b", 5)], "user string, score long")
    >>> add, extract = (f(uc.Max("score"), df) for f in (uc.sparkops.add_udf, uc.sparkops.extract_udf))
    >>> stored = df.groupBy("user").agg(add("score").alias("best"))
    >>> stored.select("user", extract("best").alias("best")).orderBy("user").show()
    +----+----+
    |user|best|
    +----+----+
    |   a|   9|
    |   b|   5|
    +----+----+
    <BLANKLINE>
    """
    maker = Maker(bind("add_udf", combiner, schema))
    if weights:
        maker.require_retractable("weights=True can retract rows")

    def add(*columns: pa.Array) -> pa.Scalar:
        *inputs, weighed = columns if weights else (*columns, None)
        if weights and not maker.bound.columns:
            inputs = [weighed]
        inputs = in_order(maker.bound, inputs)
        counted = None if weighed is None else _weights(weighed)
        return scalar(maker.add(Groups.single(len(inputs[0])), inputs[: len(maker.bound.columns)], counted)[0])

    return _noted(maker, arrow_udf_of(add, maker.bound, maker.type))


def merge_udf(combiner: Combiner, schema: AnySchema | None = None) -> Udf:
    """A grouped aggregate from accumulators to their sum; accumulators of another combiner are refused.

    Parameters
    ----------
    combiner
        The combiner that made the accumulators.
    schema
        The types of the columns from which the accumulators were made.

    Returns
    -------
    A UDF of Spark; the metadata of its column names the combiner. Null counts as the accumulator of no rows.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([("a", 3), ("a", 9), ("b", 5)], "user string, score long")
    >>> of = uc.Median("score"), df.schema
    >>> add, merge, extract = uc.sparkops.add_udf(*of), uc.sparkops.merge_udf(*of), uc.sparkops.extract_udf(*of)
    >>> by_user = df.groupBy("user").agg(add("score").alias("state"))
    >>> by_user.agg(merge("state").alias("state")).select(extract("state").alias("median")).show()
    +------+
    |median|
    +------+
    |   5.0|
    +------+
    <BLANKLINE>
    """
    maker = Maker(bind("merge_udf", combiner, schema))

    def merge(stored: pa.Array) -> pa.Scalar:
        return scalar(maker.merge(Groups.single(len(stored)), stored)[0])

    return _noted(maker, arrow_udf_of(merge, maker.bound, maker.type))


def uncombine_udf(combiner: Combiner, schema: AnySchema | None = None) -> Udf:
    """A function of two accumulators: the first without the rows of the second.

    Parameters
    ----------
    combiner
        The combiner that made the accumulators.
    schema
        The types of the columns from which the accumulators were made.

    Returns
    -------
    A UDF of Spark; the metadata of its column names the combiner. Null counts as the accumulator of no rows.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([("a", 1, 3), ("a", 2, 9), ("a", 2, 5)], "user string, day int, score long")
    >>> of = uc.Max("score"), df.schema
    >>> add, uncombine, extract = (getattr(uc.sparkops, f"{f}_udf")(*of) for f in ("add", "uncombine", "extract"))
    >>> whole = df.groupBy("user").agg(add("score").alias("a"))
    >>> second = df.where("day = 2").groupBy("user").agg(add("score").alias("b"))
    >>> whole.join(second, "user").select("user", extract(uncombine("a", "b")).alias("best of day 1")).show()
    +----+-------------+
    |user|best of day 1|
    +----+-------------+
    |   a|            3|
    +----+-------------+
    <BLANKLINE>
    """
    maker = Maker(bind("uncombine_udf", combiner, schema))
    maker.require_retractable("uncombine_udf retracts rows")

    def uncombine(stored: pa.Array, others: pa.Array) -> pa.Array:
        return maker.uncombine(stored, others)

    return _noted(maker, arrow_udf_of(uncombine, maker.bound, maker.type))


def extract_udf(combiner: Combiner, schema: AnySchema | None = None) -> Udf:
    """A function from an accumulator to its result; the result of null is null.

    Parameters
    ----------
    combiner
        The combiner that made the accumulators.
    schema
        The types of the columns from which the accumulators were made.

    Returns
    -------
    A UDF of Spark.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> df = spark.createDataFrame([(3,), (9,)], "score long")
    >>> add, extract = uc.sparkops.add_udf(uc.Mean("score"), df), uc.sparkops.extract_udf(uc.Mean("score"), df)
    >>> df.agg(add("score").alias("state")).select(extract("state").alias("mean")).show()
    +----+
    |mean|
    +----+
    | 6.0|
    +----+
    <BLANKLINE>
    """
    maker = Maker(bind("extract_udf", combiner, schema))

    def extract(stored: pa.Array) -> pa.Array:
        return maker.extract(stored)

    return arrow_udf_of(extract, maker.bound, maker.bound.output)


def _noted(maker: Maker, udf: Udf) -> Udf:
    """The UDF with its maker in the metadata of its column, also over a window.

    Spark keeps the metadata under another alias.
    """

    def name(column: Any) -> Any:
        return column.alias(repr(maker.bound.combiner), metadata=maker.metadata)

    @functools.wraps(udf)
    def noted(*columns: Any) -> Any:
        accumulator = udf(*columns)
        named = name(accumulator)
        # Spark takes no alias over a window, so the alias goes around the window.
        named.over = lambda window: name(accumulator.over(window))
        return named

    return noted


def _weights(column: pa.Array) -> np.ndarray:
    if not pa.types.is_integer(column.type):
        raise TypeMismatch(f"the last column must be integer weights, but is {column.type}: cast it")
    if column.null_count:
        raise InvalidArgument(f"the weights have {column.null_count} nulls: give every row a weight")
    return np.asarray(column.cast(pa.int64()))

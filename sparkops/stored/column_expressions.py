"""Expressions of Spark that make, merge, retract and extract accumulators; and the plain aggregate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

import numpy as np
import pyarrow as pa
import pyspark

from ...combiners.combiner import Bound
from ...combiners.rows.groups import Groups
from ...errors import InvalidArgument, TypeMismatch
from ..sql_types import conform, scalar, spark_type
from ..tuning.thin_function import thin_function
from .codec import Maker

try:
    from pyspark.sql.functions import arrow_udf

    EXPRESSIONS = True
except ImportError:  # Spark 4.0 has no UDFs of Arrow columns
    EXPRESSIONS = False

if TYPE_CHECKING:
    from pyspark.sql import Column

Udf: TypeAlias = "Callable[..., Column]"
"""A function of Spark from columns to a column."""


def add(maker: Maker, name: str, inputs: Sequence[Column | str], diff: Column | str | None) -> Column:
    """The accumulators of the rows of groups or frames."""
    bound, weighed = maker.bound, diff is not None
    if weighed:
        maker.require_retractable("diff= can retract rows")
    if not weighed or bound.columns:
        inputs = in_order(bound, inputs)

    def accumulate(*columns: pa.Array) -> pa.Scalar:
        weights = _weights(columns[-1]) if weighed else None
        read = list(columns[: len(bound.columns)])
        return scalar(maker.add(Groups.single(len(columns[0])), read, weights)[0])

    columns = (*inputs, diff) if weighed else inputs
    return _noted(maker, name, arrow_udf_of(accumulate, bound, maker.type)(*columns))


def merge(maker: Maker, name: str, stored: Column | str) -> Column:
    """The sums of the accumulators of groups or frames."""

    def merged(stored: pa.Array) -> pa.Scalar:
        return scalar(maker.merge(Groups.single(len(stored)), stored)[0])

    return _noted(maker, name, arrow_udf_of(merged, maker.bound, maker.type)(stored))


def uncombine(maker: Maker, name: str, stored: Column | str, others: Column | str) -> Column:
    """The accumulators of one column without the rows of another's."""
    maker.require_retractable("Accumulator.uncombine retracts rows")

    def rest(stored: pa.Array, others: pa.Array) -> pa.Array:
        return maker.uncombine(stored, others)

    return _noted(maker, name, arrow_udf_of(rest, maker.bound, maker.type)(stored, others))


def extract(maker: Maker, name: str, stored: Column | str) -> Column:
    """The results of accumulators."""

    def results(stored: pa.Array) -> pa.Array:
        return maker.extract(stored)

    return arrow_udf_of(results, maker.bound, maker.bound.output)(stored).alias(name)


def aggregate(bound: Bound) -> Udf:
    """A function from input columns to the results of groups or frames."""
    kinds = bound.schema.types or [None]

    def whole(*columns: pa.Array, **named: pa.Array) -> pa.Scalar:
        arrays = zip(in_order(bound, columns, named), kinds, strict=False)
        return scalar(bound.whole([column if kind is None else conform(column, kind) for column, kind in arrays]))

    return arrow_udf_of(whole, bound, bound.output)


def arrow_udf_of(function: Callable[..., Any], bound: Bound, output: pa.DataType) -> Udf:
    """A function of Arrow columns as a UDF. Spark reads the kind of UDF from its annotations."""
    if not EXPRESSIONS:
        raise InvalidArgument(
            f"accumulators as expressions of columns need Spark 4.1, and this is PySpark {pyspark.__version__}: give "
            "the verbs of uc.Accumulator DataFrames, such as extract(add(df, by='user'))"
        )
    thin: Any = thin_function(function)
    thin.__name__ = type(bound.combiner).__name__
    thin.__signature__, thin.__annotations__ = signature(function), get_type_hints(function)
    return arrow_udf(thin, spark_type(output, f"the result of {bound.combiner!r}"))


def in_order(bound: Bound, columns: Sequence[Any], named: Mapping[str, Any] | None = None) -> list[Any]:
    """The arguments of a function, in the order in which the combiner reads them."""
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
    if bound.columns and len(columns) != len(bound.columns):
        raise InvalidArgument(f"{bound.combiner!r} takes {wanted}, in this order, but was given {len(columns)} columns")
    if not columns:
        raise InvalidArgument(f"{bound.combiner!r} was given no column: give it any column, whose rows it counts")
    return list(columns)


def _noted(maker: Maker, name: str, accumulator: Any) -> Column:
    """The expression with its maker in the metadata of its column, also over a window.

    Spark keeps the metadata under another alias.
    """

    def noted(column: Any) -> Any:
        return column.alias(name, metadata=maker.metadata)

    named = noted(accumulator)
    # Spark takes no alias over a window, so the alias goes around the window.
    named.over = lambda window: noted(accumulator.over(window))
    return named


def _weights(column: pa.Array) -> np.ndarray:
    if not pa.types.is_integer(column.type):
        raise TypeMismatch(f"diff= takes an integer column of weights, but it is {column.type}: cast it")
    if column.null_count:
        raise InvalidArgument(f"the weights have {column.null_count} nulls: give every row a weight")
    return np.asarray(column.cast(pa.int64()))

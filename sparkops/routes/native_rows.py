"""Rows that Spark itself selects and filters, so that none of them crosses to Python.

Only expressions whose values are the same in Spark are native: columns, comparisons of whole numbers, texts, dates and
times, and conditions made of them. Guarded by tests/sparkops/test_native_rows.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from ...combiners.expressions.expr import Expr
from ...errors import TypeMismatch
from ...panes.flow import Flow
from ...panes.transforms import Select, Transform, Where, WithColumns
from ...windows.times import UTC_MICROS
from ..inputs import DataFrameInput, Input, column
from ..sql_types import spark_type
from .base import Route

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COMPARED = {
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
}
_LONG = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, eq=False)
class NativeRows(Route):
    """Runs a flow without a grouping as Spark's own selections and filters."""

    rows: DataFrame

    def df(self) -> DataFrame:
        return self.rows

    def explain(self) -> str:
        given = "Rows that Spark itself selects and filters" if self.flow.transforms else "Rows as they come"
        return self.explanation(f"{given}, and nothing grouped.")


def rows_by_spark(flow: Flow, input: Input) -> DataFrame | None:
    """The rows of a bounded flow without a grouping, if Spark itself can give them from a DataFrame."""
    if flow.stages or input.streaming or not isinstance(input, DataFrameInput) or not input.native:
        return None
    return native_rows(input.df, flow.transforms, flow.schema)


def native_rows(df: DataFrame, transforms: Sequence[Transform], schema: pa.Schema) -> DataFrame | None:
    """The rows after the transforms, with the columns of `schema`; None if Spark's own could differ."""
    folded = [name.casefold() for name in df.columns]
    if len(set(folded)) < len(folded):  # Spark can take one name for the other
        return None
    for transform in transforms:
        done = _applied(df, transform)
        if done is None:
            return None
        df = done
    given = DataFrameInput(df).schema
    if any(name not in given.names or given.field(name).type != schema.field(name).type for name in schema.names):
        return None
    return df.select(*map(column, schema.names))


def _applied(df: DataFrame, transform: Transform) -> DataFrame | None:
    match transform:
        case Select(names):
            return df.select(*map(column, names))
        case Where(Expr() as predicate):
            kept = _value(predicate, df)
            return None if kept is None else df.where(kept)
        case WithColumns(columns):
            for name, value in columns.items():
                computed = _value(value, df) if isinstance(value, Expr) else None
                if computed is None:
                    return None
                others = [other for other in df.columns if other != name]
                if name.casefold() in map(str.casefold, others):
                    return None
                made = computed.alias(name)
                kept = [made if other == name else column(other) for other in df.columns]
                df = df.select(*kept, *([] if name in df.columns else [made]))
            return df
    return None


def _value(expr: Expr, df: DataFrame) -> Column | None:
    """Spark's column for an expression, if it has the same values."""
    known = DataFrameInput(df).schema
    try:
        kind = expr.type(known)
    except TypeMismatch:
        return None
    match expr.op, expr.args:
        case "col", (name,):
            return column(name)
        case "lit", (value,):
            return _literal(value)
        case "is_null", (given,):
            inside = _value(given, df)
            return None if inside is None else inside.isNull()
        case "&" | "|" | "~", parts if pt.is_boolean(kind) and all(pt.is_boolean(part.type(known)) for part in parts):
            values = [_value(part, df) for part in parts]
            return None if any(value is None for value in values) else _condition(expr.op, values)
        case "isin", (given, choices):
            inside, found = _comparable(given, df), [_literal(choice) for choice in choices]
            if inside is None or any(choice is None for choice in found):
                return None
            if len({type(choice) for choice in choices} | {_python(given.type(known))}) > 1:
                return None
            return F.coalesce(inside.isin(*found), F.lit(False))
        case "%", (given, Expr("lit", (divisor,))) if pt.is_signed_integer(kind) and _whole(divisor) and divisor > 0:
            inside = _comparable(given, df)
            return (
                None if inside is None else F.pmod(inside.cast("bigint"), _literal(divisor)).cast(spark_type(kind, ""))
            )
        case op, (left, right) if op in _COMPARED:
            sides = [_comparable(side, df) for side in (left, right)]
            if any(side is None for side in sides) or not _same_kind(left.type(known), right.type(known)):
                return None
            return getattr(sides[0], _COMPARED[op])(sides[1])
    return None


def _condition(op: str, values: Sequence[Any]) -> Column:
    """Conditions joined with three values, as in SQL."""
    if op == "~":
        return ~values[0]
    return values[0] & values[1] if op == "&" else values[0] | values[1]


def _comparable(expr: Expr, df: DataFrame) -> Column | None:
    """Spark's column for an expression of a type whose values it compares alike."""
    kind = expr.type(DataFrameInput(df).schema)
    plain = pt.is_signed_integer(kind) or pt.is_date32(kind) or pt.is_boolean(kind) or kind == UTC_MICROS
    return _value(expr, df) if plain or (pt.is_string(kind) and _by_bytes(expr, df)) else None


def _by_bytes(expr: Expr, df: DataFrame) -> bool:
    """True if Spark compares the texts by their bytes: it pads those of char(n), and collations have other rules."""
    fields = [df.schema[name] for name in expr.columns]
    return all(field.dataType == StringType() and not field.metadata for field in fields)


def _same_kind(left: pa.DataType, right: pa.DataType) -> bool:
    return left == right or (pt.is_signed_integer(left) and pt.is_signed_integer(right))


def _python(kind: pa.DataType) -> type | None:
    """The class of the Python values of a type, of those that are compared with literals."""
    return int if pt.is_signed_integer(kind) else str if pt.is_string(kind) else bool if pt.is_boolean(kind) else None


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _literal(value: object) -> Column | None:
    if _whole(value):
        return F.lit(value).cast("bigint") if value in _LONG else None
    return F.lit(value) if isinstance(value, str | bool) else None


__all__ = ["NativeRows", "native_rows", "rows_by_spark"]

"""Rows that Spark itself selects and filters, so that none of them crosses to Python.

Only expressions whose values are the same in Spark are native: columns, comparisons of whole numbers, texts, dates and
times, conditions made of them, and some methods of texts and times (`native_texts.py`, `native_times.py`). Queries 2
and 3 of NEXMark take 1.3 to 1.5 times as long in Python.

Guarded by tests/sparkops/routes/test_native_rows.py and tests/sparkops/routes/test_native_expressions.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from ...combiners.expressions.expr import Expr
from ...combiners.expressions.text import Named
from ...errors import TypeMismatch, UnknownColumn
from ...flows.flow import Flow
from ...panes.selection import Rename, Select
from ...panes.transforms import Transform, Where, WithColumns
from ...windows.times import UTC_MICROS
from ..inputs import DataFrameInput, Input, column
from ..scans.scan import COMPARISONS
from ..session import setting
from ..sql_types import spark_type
from .base import Route
from .native_texts import joined_texts, text_method
from .native_times import arithmetic, date_method, time_method

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {**COMPARISONS, "!=": operator.ne}
_LONG = range(-(1 << 63), 1 << 63)
_LENGTH = pa.duration("us")


@dataclass(frozen=True, eq=False)
class NativeRows(Route):
    """Runs a flow without a grouping as Spark's own selections and filters."""

    in_python: ClassVar[bool] = False
    rows: DataFrame

    def df(self) -> DataFrame:
        return self.rows

    def explain(self) -> str:
        what = "Rows that Spark itself selects and filters" if self.flow.transforms else "Rows as they come"
        return self.explanation(f"{what}, and nothing grouped.")


def rows_by_spark(flow: Flow, input: Input) -> DataFrame | None:
    """The rows of a bounded flow without a grouping, if Spark itself can give them from a DataFrame."""
    if flow.stages or input.streaming or not isinstance(input, DataFrameInput) or not input.native:
        return None
    return native_rows(input.df, flow.transforms, flow.schema)


def native_rows(df: DataFrame, transforms: Sequence[Transform], schema: pa.Schema) -> DataFrame | None:
    """The rows after the transforms, with the columns of `schema`; None if Spark's own could differ."""
    if _alike(df.columns):
        return None
    for transform in transforms:
        done = _applied(df, transform)
        if done is None:
            return None
        df = done
    own = DataFrameInput(df).schema
    if any(name not in own.names or own.field(name).type != schema.field(name).type for name in schema.names):
        return None
    return df.select(*map(column, schema.names))


def _alike(names: Sequence[str]) -> bool:
    """True if two names differ at most by case, so that Spark can take one for the other."""
    return len({name.casefold() for name in names}) < len(names)


def _applied(df: DataFrame, transform: Transform) -> DataFrame | None:
    match transform:
        case Select(names):
            return df.select(*(column(name) for name in names if name in df.columns))
        case Rename():
            after = [transform.name_after(name) for name in df.columns]
            if _alike(after):
                return None
            return df.select(*(column(old).alias(new) for old, new in zip(df.columns, after, strict=True)))
        case Where(Expr() as predicate):
            condition = _Columns.of(df).condition(predicate)
            return None if condition is None else df.where(condition)
        case WithColumns(columns):
            own = _Columns.of(df)
            values = {name: own.value(value) if isinstance(value, Expr) else None for name, value in columns.items()}
            made = {name: value.alias(name) for name, value in values.items() if value is not None}
            after = list(dict.fromkeys([*df.columns, *made]))
            if len(made) < len(columns) or _alike(after):
                return None
            return df.select(*(made.get(name, column(name)) for name in after))
    return None


@dataclass(frozen=True)
class _Columns:
    """The columns of a DataFrame, over which expressions become columns of Spark."""

    schema: pa.Schema
    by_bytes: frozenset[str]
    """The texts that Spark compares by their bytes: it pads those of char(n), and collations have other rules."""
    session: SparkSession

    @classmethod
    def of(cls, df: DataFrame) -> _Columns:
        """The columns that rows of a flow can have."""
        texts = (field.name for field in df.schema if field.dataType == StringType() and not field.metadata)
        return cls(DataFrameInput(df).schema, frozenset(texts), df.sparkSession)

    def value(self, expr: Expr) -> Column | None:
        """Spark's column for an expression, if it has the same values."""
        try:
            kind = expr.type(self.schema)
        except (TypeMismatch, UnknownColumn):
            return None
        match expr.op, expr.args:
            case "col", (name,):
                return column(name)
            case "lit", (value,):
                return _literal(value)
            case "is_null", (operand,):
                inside = self.value(operand)
                return None if inside is None else inside.isNull()
            case "&" | "|" | "~", parts if all(pt.is_boolean(part.type(self.schema)) for part in parts):
                values = [self.value(part) for part in parts]
                return None if any(value is None for value in values) else _condition(expr.op, values)
            case "isin", (operand, choices):
                return self._isin(operand, choices)
            case "%", (operand, Expr("lit", (divisor,))) if (
                pt.is_signed_integer(kind) and _whole(divisor) and divisor > 0
            ):
                inside = self.comparable(operand)
                if inside is None:
                    return None
                return F.pmod(inside.cast("bigint"), _literal(divisor)).cast(spark_type(kind, repr(expr)))
            case op, (left, right) if op in _COMPARED and _same_kind(left.type(self.schema), right.type(self.schema)):
                sides = [self.comparable(side) for side in (left, right)]
                return None if any(side is None for side in sides) else _COMPARED[op](*sides)
            case "concat", _:
                return self._concat(expr.args)
            case op, (operand, *args) if op.startswith("str."):
                text = self._text(operand)
                return None if text is None else text_method(op, text, args)
            case op, (operand, *args) if op.startswith("dt."):
                return self._time_method(op, operand, *args)
            case op, sides if all(isinstance(side, Expr) for side in sides):
                return self._arithmetic(op, sides)
        return None

    def _concat(self, args: Sequence[Any]) -> Column | None:
        texts = [self._text(arg) for arg in args if isinstance(arg, Expr)]
        named = {arg.name: arg.value for arg in args if isinstance(arg, Named)}
        return None if any(text is None for text in texts) else joined_texts(texts, **named)

    def _text(self, expr: Expr) -> Column | None:
        return self.comparable(expr) if pt.is_string(expr.type(self.schema)) else None

    def _time_method(self, op: str, operand: Expr, every: str = "") -> Column | None:
        kind, inside = operand.type(self.schema), self.value(operand)
        if inside is None or not (kind == UTC_MICROS or pt.is_date32(kind)):
            return None
        return (time_method if kind == UTC_MICROS else date_method)(op, inside, every)

    def _arithmetic(self, op: str, sides: Sequence[Expr]) -> Column | None:
        """Spark's column for arithmetic of times, whose range it checks in ANSI mode alone."""
        function = arithmetic(op, [_word(side.type(self.schema)) for side in sides])
        values = [] if function is None else [self.value(side) for side in sides]
        if function is None or any(value is None for value in values):
            return None
        return None if setting(self.session, "spark.sql.ansi.enabled") == "false" else function(*values)

    def condition(self, expr: Expr) -> Column | None:
        """Spark's column for an expression by which rows are kept; a column of nulls alone is no condition there."""
        value = self.value(expr)
        return value if value is not None and pt.is_boolean(expr.type(self.schema)) else None

    def _isin(self, operand: Expr, choices: Sequence[object]) -> Column | None:
        inside, literals = self.comparable(operand), [_literal(choice) for choice in choices]
        types = {_python(operand.type(self.schema)), *map(type, choices)}
        if inside is None or any(choice is None for choice in literals) or len(types) > 1:
            return None
        return F.coalesce(inside.isin(*literals), F.lit(False))

    def comparable(self, expr: Expr) -> Column | None:
        """Spark's column for an expression of a type whose values it compares alike."""
        kind = expr.type(self.schema)
        plain = pt.is_signed_integer(kind) or pt.is_date32(kind) or pt.is_boolean(kind) or kind in (UTC_MICROS, _LENGTH)
        text = pt.is_string(kind) and self.by_bytes.issuperset(expr.columns)
        return self.value(expr) if plain or text else None


def _condition(op: str, values: Sequence[Any]) -> Column:
    """Conditions joined with three values, as in SQL."""
    if op == "~":
        return ~values[0]
    return values[0] & values[1] if op == "&" else values[0] | values[1]


def _word(kind: pa.DataType) -> str:
    """The word for a type in arithmetic of times."""
    words = {UTC_MICROS: "time", _LENGTH: "length"}
    return words.get(kind, "number" if pt.is_signed_integer(kind) else "")


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
    return F.lit(value) if isinstance(value, str | bool | timedelta) else None


__all__ = ["NativeRows", "native_rows", "rows_by_spark"]

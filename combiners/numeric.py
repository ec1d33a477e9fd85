"""Inputs of the statistics: columns of numbers, with decimals read as floats or taken exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from ..errors import TypeMismatch
from .combiner import Combiner
from .expressions.expr import Expr
from .inputs import Input, expression, input_type, refuse


def number_input(who: Combiner, given: Input, schema: pa.Schema) -> Expr:
    """An input as an expression over numbers of numpy."""
    kind = input_type(given, schema, who)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return expression(given)
    if pa.types.is_decimal(kind):
        return expression(given).cast(pa.float64())
    raise refuse(who, given, kind, "numbers")


@dataclass(frozen=True)
class ExactInput:
    """An input whose values are taken as integers or floats; a value is its number times `unit`."""

    expr: Expr
    kind: pa.DataType
    unit: Fraction

    @property
    def is_time(self) -> bool:
        return is_time(self.kind)


def exact_input(who: Combiner, given: Input, schema: pa.Schema) -> ExactInput:
    """An input of numbers, durations or timestamps for exact sums: decimals without their point."""
    kind = input_type(given, schema, who)
    if pa.types.is_decimal(kind):
        return ExactInput(expression(given), kind, Fraction(10) ** -kind.scale)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_time(kind):
        return ExactInput(expression(given), kind, Fraction(1))
    raise refuse(who, given, kind, "numbers")


def is_time(kind: pa.DataType) -> bool:
    """True for the type of a timestamp or a duration: an integer in a unit of time."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def refuse_time(who: Combiner, given: Input, kind: pa.DataType, result: str) -> TypeMismatch:
    """The error for a result in a unit that no column type has."""
    named = repr(given) if isinstance(given, str) else str(given)
    return TypeMismatch(
        f"{who!r} over {named} of type {kind} would be {result}, which has no type: cast {named} to int64"
    )


def as_float(expr: Expr, schema: pa.Schema) -> Expr:
    """The expression as float64."""
    return expr if expr.type(schema) == pa.float64() else expr.cast(pa.float64())

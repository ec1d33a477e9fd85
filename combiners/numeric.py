"""Inputs of the statistics: columns of numbers, with decimals read as floats or taken exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from ..errors import TypeMismatch
from .combiner import Combiner
from .expressions.expr import Expr
from .input_types import Input, expression, input_type, refuse


def number_input(who: Combiner, input: Input, schema: pa.Schema) -> Expr:
    """An input as an expression over numbers of numpy."""
    kind = input_type(input, schema, who)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return expression(input)
    if pa.types.is_decimal(kind):
        return expression(input).cast(pa.float64())
    raise refuse(who, input, kind, "numbers")


@dataclass(frozen=True)
class ExactInput:
    """An input whose values are taken as integers or floats; a value is its number times `unit`."""

    expr: Expr
    kind: pa.DataType
    unit: Fraction

    @property
    def is_time(self) -> bool:
        return is_time(self.kind)


def exact_input(who: Combiner, input: Input, schema: pa.Schema) -> ExactInput:
    """An input of numbers, durations or timestamps for exact sums: decimals without their point."""
    kind = input_type(input, schema, who)
    if pa.types.is_decimal(kind):
        return ExactInput(expr=expression(input), kind=kind, unit=Fraction(10) ** -kind.scale)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_time(kind):
        return ExactInput(expr=expression(input), kind=kind, unit=Fraction(1))
    raise refuse(who, input, kind, "numbers")


def is_time(kind: pa.DataType) -> bool:
    """True for the type of a timestamp or a duration: an integer in a unit of time."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def refuse_time(who: Combiner, input: Input, kind: pa.DataType, result: str) -> TypeMismatch:
    """The error for a result in a unit that no column type has."""
    named = repr(input) if isinstance(input, str) else str(input)
    return TypeMismatch(
        f"{who!r} over {named} of type {kind} would be {result}, which has no type: cast {named} to int64"
    )


def as_float(expr: Expr, schema: pa.Schema) -> Expr:
    """The expression as float64."""
    return expr if expr.type(schema) == pa.float64() else expr.cast(pa.float64())

"""What the statistics ask of their inputs: columns of numbers, decimals read as floats."""

from __future__ import annotations

import pyarrow as pa

from .combiner import Combiner, Input, expression, input_type, refuse
from .expressions import Expr


def number_input(who: Combiner, given: Input, schema: pa.Schema) -> Expr:
    """An input as an expression whose values numpy can compute with."""
    kind = input_type(given, schema, who)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return expression(given)
    if pa.types.is_decimal(kind):
        return expression(given).cast(pa.float64())
    raise refuse(who, given, kind, "numbers")


def as_float(expr: Expr, schema: pa.Schema) -> Expr:
    """The expression as float64; as it is, if it is that."""
    return expr if expr.type(schema) == pa.float64() else expr.cast(pa.float64())

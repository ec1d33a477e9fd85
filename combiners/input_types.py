"""Inputs of combiners: a column's name or an expression, and its type on a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set, Sized
from typing import TypeAlias

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch, require_column
from .expressions.expr import Expr, col
from .expressions.kernels import CAST

Input: TypeAlias = "str | Expr"
"""A column's name or an expression over columns."""


def expression(input: Input) -> Expr:
    """An input as an expression: a name becomes a column."""
    if isinstance(input, Expr):
        return input
    if isinstance(input, str):
        return col(input)
    raise InvalidArgument(f"an input must be a column's name or an expression such as col('x') + 1, but is {input!r}")


def is_ordered(values: object) -> bool:
    """True for values in an order: a list, a tuple, an array or a series, and no text.

    >>> is_ordered([0.5]), is_ordered({0.5}), is_ordered("0.5"), is_ordered(None)
    (True, False, False, False)
    """
    ordered = isinstance(values, Iterable) and isinstance(values, Sized)
    return ordered and not isinstance(values, str | bytes | Set | Mapping)


def input_type(input: Input, schema: pa.Schema, who: object) -> pa.DataType:
    """The type of an input on this schema; dictionaries count as their values."""
    expr = expression(input)
    for name in expr.columns:
        require_column(name, schema.names, f"{who!r}")
    kind = expr.type(schema)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def refuse(who: object, input: Input, kind: pa.DataType, wants: str) -> TypeMismatch:
    """The error for a combiner on a column type that it does not take."""
    named = repr(input) if isinstance(input, str) else str(input)
    remedy = "cast it"
    if pa.types.is_boolean(kind):
        remedy = f"count what is true with CountIf({input!r}), or cast it"
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        remedy = CAST
    return TypeMismatch(f"{who!r} takes {wants}, but {named} is {kind}: {remedy}, or name another column")

"""The part of a condition that is decided by the folders or statistics of a file, before its rows are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..combiners.expressions.expr import Expr
from ..errors import UncombineError
from ..windows.times import timestamp

_COMPARED = {
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The conditions that must all be true.

    >>> from uncombine import col
    >>> from uncombine.files.pushdown import conjuncts
    >>> conjuncts((col("a") > 1) & (col("b") > 2))
    [col('a') > 1, col('b') > 2]
    """
    if condition is None:
        return []
    if condition.op != "&":
        return [condition]
    return [one for side in condition.args for one in conjuncts(side)]


def folder_excluded(condition: Expr | None, folders: Mapping[str, pa.Scalar]) -> bool:
    """True if no row of a file in these folders can fulfil the condition."""
    if condition is None or not folders:
        return False
    row = pa.table({name: pa.array([value.as_py()], value.type) for name, value in folders.items()})
    names = set(folders)
    return any(
        not pc.all(pc.fill_null(one.evaluate(row), False)).as_py()
        for one in conjuncts(condition)
        if one.columns and names.issuperset(one.columns)
    )


def statistics_condition(condition: Expr | None, file: pa.Schema, schema: pa.Schema) -> pc.Expression | None:
    """An Arrow condition that is true for at least the rows that fulfil the condition; None if it is true for all.

    Floats are left out, since old writers put NaN, and zeros of either sign, into statistics.
    """
    if condition is None:
        return None
    op, args = condition.op, condition.args
    if op in ("&", "|"):
        left, right = (statistics_condition(side, file, schema) for side in args)
        if left is None or right is None:
            return (left if right is None else right) if op == "&" else None
        return left & right if op == "&" else left | right
    name = args[0].args[0] if args and isinstance(args[0], Expr) and args[0].op == "col" else None
    if name is None or file.names.count(name) != 1 or name not in schema.names:
        return None
    kind, field = file.field(name).type, pc.field(name)
    if op in _COMPARED and args[1].op == "lit":
        value = _value(args[1].args[0], kind, schema.field(name).type)
        return None if value is None else _COMPARED[op](field, value)
    if op == "isin":
        values = [_value(one, kind, schema.field(name).type) for one in args[1]]
        constants = [value.as_py() for value in values if value is not None]
        if constants and len(constants) == len(values):
            return field.isin(pa.array(constants, kind))
    return None


def _value(value: Any, kind: pa.DataType, schema_kind: pa.DataType) -> pa.Scalar | None:
    """The literal in the type of the file's column, if a comparison gives the same there as in the schema's type."""
    fits = (
        (pt.is_integer(kind) and pt.is_integer(schema_kind) and type(value) is int)
        or (pt.is_string(kind) and pt.is_string(schema_kind) and type(value) is str)
    )  # fmt: skip
    if fits:
        try:
            return pa.scalar(value, kind)
        except (pa.ArrowInvalid, OverflowError):
            return None
    if pt.is_timestamp(kind) and kind.unit == "us" and pt.is_timestamp(schema_kind) and schema_kind.unit == "us":
        try:
            return pa.scalar(timestamp(value), pa.int64()).cast(kind) if not isinstance(value, str | int) else None
        except UncombineError:
            return None
    return None

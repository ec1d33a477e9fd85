"""Values of JSON as values of Arrow's types: times as numbers or texts, decimals as numbers, texts or bytes.

Guarded by tests/panes/test_changelogs_json.py.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    InvalidOperation,
    pa.ArrowException,
    RecursionError,
)
"""The errors of texts and values that are not of their type."""


def array_of(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column that Arrow's reader gave, in its own type."""
    if column.type == kind:
        return column
    if pa.types.is_struct(kind):
        fields = [array_of(pc.struct_field(column, f.name), f.type) for f in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind):
        values = array_of(column.values, kind.value_type)
        return pa.Array.from_buffers(
            kind, len(column), column.buffers()[:2], column.null_count, column.offset, [values]
        )
    if pa.types.is_string(column.type):
        return times_of_texts(column, kind)
    return times_of_numbers(column, kind)


def times_of_numbers(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Whole numbers as times: a number counts units of the type, days for a date."""
    if kind.bit_width == 32:
        return column.cast(pa.int32()).view(kind)
    return column.cast(pa.int64()).view(kind)


def times_of_texts(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts as times; a text without a zone is in UTC."""
    if not (pa.types.is_timestamp(kind) and kind.tz):
        return column.cast(kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return column.cast(pa.timestamp(kind.unit)).cast(kind)


def value_of(value: Any, kind: pa.DataType) -> Any:
    """One value of JSON, whose fractions are texts, as a value of a type; raises one of `UNREADABLE`."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if isinstance(value, str):
            value = _parsed(value)
        return (
            {f.name: value_of(value.get(f.name), f.type) for f in kind} if isinstance(value, dict) else _no(value, kind)
        )
    if pa.types.is_list(kind):
        if isinstance(value, str):
            value = _parsed(value)
        return [value_of(one, kind.value_type) for one in value] if isinstance(value, list) else _no(value, kind)
    if pa.types.is_map(kind):
        return list(value.items()) if isinstance(value, dict) else _no(value, kind)
    if isinstance(value, dict | list):
        return _no(value, kind)
    if pa.types.is_boolean(kind):
        known = {True: True, False: False, "true": True, "false": False, "t": True, "f": False}
        return known[value]
    if isinstance(value, bool):
        return _no(value, kind)
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else _no(value, kind)
    if pa.types.is_integer(kind):
        return pa.scalar(int(value), kind).as_py()
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    if pa.types.is_binary(kind):
        return base64.b64decode(value, validate=True)
    if pa.types.is_temporal(kind):
        if isinstance(value, int):
            return times_of_numbers(pa.array([value], pa.int64()), kind)[0].as_py()
        return times_of_texts(pa.array([value], pa.string()), kind)[0].as_py()
    return _no(value, kind)


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=str)


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    """A decimal from a number or a text, or from the bytes in which Debezium sends one."""
    try:
        found = Decimal(value)
    except InvalidOperation:
        raw = base64.b64decode(value, validate=True)
        found = Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale)
    return pa.scalar(found, kind).as_py()


def _no(value: Any, kind: pa.DataType) -> Any:
    raise TypeError(f"{value!r} is no {kind}")


__all__ = ["UNREADABLE", "array_of", "value_of"]

"""Values of JSON as values of Arrow's types: times as numbers or texts, decimals as numbers, texts or bytes.

Guarded by tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.rows.decimal_casts import near
from ...files.conform import on_clocks
from .json_texts import LongNumber, parsed, plain_text

UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    pa.ArrowException,
    RecursionError,
)
"""The errors of texts and values that are not of their type."""


def storable(kind: pa.DataType) -> pa.DataType:
    """The type with whole numbers for times, of which Python has fewer than Arrow.

    >>> storable(pa.struct({"at": pa.timestamp("us"), "day": pa.date32(), "x": pa.string()}))
    StructType(struct<at: int64, day: int32, x: string>)
    """
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(storable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(storable(kind.value_type)))
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def array_of(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column that Arrow's reader gave, or one of a storable type, in its own type."""
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
    """Texts as times; a text without a zone is by the clocks of the type."""
    if not (pa.types.is_timestamp(kind) and kind.tz):
        return column.cast(kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return on_clocks(column, column.cast(pa.timestamp(kind.unit)), kind)


def value_of(value: Any, kind: pa.DataType) -> Any:
    """One value of JSON, whose fractions are texts, as a value of its storable type; raises one of `UNREADABLE`."""
    return reader_of(kind)(value)


@lru_cache(maxsize=1024)
def reader_of(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that reads values of a type, as `value_of` does."""
    read = _reader_of(kind)

    def whole(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, LongNumber):
            return value.nearest if pa.types.is_floating(kind) else _no(value, kind)
        return read(value)

    return whole


def _reader_of(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that reads values that are not null."""
    if pa.types.is_struct(kind):
        return partial(_struct, kind, [(f.name, reader_of(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return partial(_list, kind, reader_of(kind.value_type))
    if pa.types.is_map(kind):
        return lambda value: _items(value, kind) if isinstance(value, dict) else _no(value, kind)
    if pa.types.is_boolean(kind):
        return partial(_boolean, kind)
    return partial(_scalar, kind, _scalar_reader(kind))


def _struct(kind: pa.DataType, fields: list[tuple[str, Callable[[Any], Any]]], value: Any) -> Any:
    if isinstance(value, str):
        value = parsed(value)
    return {name: read(value.get(name)) for name, read in fields} if isinstance(value, dict) else _no(value, kind)


def _list(kind: pa.DataType, read: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, str):
        value = parsed(value)
    return [read(one) for one in value] if isinstance(value, list) else _no(value, kind)


_BOOLEANS = {True: True, False: False, "true": True, "false": False, "t": True, "f": False}


def _boolean(kind: pa.DataType, value: Any) -> Any:
    return _BOOLEANS[value] if not isinstance(value, dict | list) else _no(value, kind)


def _scalar(kind: pa.DataType, read: Callable[[Any], Any], value: Any) -> Any:
    return _no(value, kind) if isinstance(value, dict | list | bool) else read(value)


def _scalar_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_string(kind):
        return lambda value: plain_text(value) if isinstance(value, str) else _no(value, kind)
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return partial(_whole, *((-most, most) if pa.types.is_signed_integer(kind) else (0, 2 * most)))
    if pa.types.is_floating(kind):
        return lambda value: float(str(value))  # a number out of its range is an infinity, as in Arrow's reader
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind)
    if pa.types.is_binary(kind):
        return lambda value: base64.b64decode(value, validate=True)
    if pa.types.is_temporal(kind):
        return partial(_time, kind)
    return lambda value: _no(value, kind)


def _whole(least: int, end: int, value: Any) -> int:
    number = int(value)
    if not least <= number < end:
        raise OverflowError(f"{number} is out of range")
    return number


def _time(kind: pa.DataType, value: Any) -> Any:
    if isinstance(value, int):
        most = 1 << (kind.bit_width - 1)
        return _whole(-most, most, value)
    return times_of_texts(pa.array([value], pa.string()), kind).view(storable(kind))[0].as_py()


def _items(value: dict[str, Any], kind: pa.MapType) -> Any:
    """The pairs of a map, which are Arrow's own scalars, because a map has times in their own type."""
    return [
        tuple(
            array_of(pa.array([value_of(part, inner)], storable(inner)), inner)[0]
            for part, inner in zip(pair, (kind.key_type, kind.item_type), strict=True)
        )
        for pair in value.items()
    ]


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    """A decimal from a number or a text, or from the bytes in which Debezium sends one."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        raw = base64.b64decode(value, validate=True)
        number = Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale)
    return pa.scalar(near(number, kind), kind).as_py()


def _no(value: Any, kind: pa.DataType) -> Any:
    raise TypeError(f"a {type(value).__name__} is no {kind}")


__all__ = ["UNREADABLE", "array_of", "storable", "value_of"]

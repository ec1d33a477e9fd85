"""The Arrow types of Avro's types, and the values of their defaults.

Guarded by tests/messages/test_avro.py.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from ..errors import InvalidArgument
from .avro_schema import AvroType

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}

UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}


def arrow_type(kind: AvroType) -> pa.DataType:
    """The type of a column of values; every type may be null.

    A union of several types is a struct with a field for each, of which one is not null; one of `int` and `long` is
    `long`, and one of `float` and `double` is `double`.
    """
    if kind.kind == "record":
        return pa.struct([pa.field(one.name, arrow_type(one.type)) for one in kind.fields])
    if kind.kind == "array":
        return pa.list_(arrow_type(kind.parts[0]))
    if kind.kind == "map":
        return pa.map_(pa.string(), arrow_type(kind.parts[0]))
    if kind.kind == "union":
        one = union_value(kind)
        return arrow_type(one) if one is not None else pa.struct(_members(kind))
    if kind.logical == "decimal":
        if kind.precision > 38:
            raise InvalidArgument(
                f"a decimal of Avro has {kind.precision} digits, and a column has room for 38: leave the field out of "
                "the reader's schema"
            )
        return pa.decimal128(kind.precision, kind.scale)
    if kind.logical == "uuid":
        return pa.string()
    return time_type(kind.logical) if kind.logical else _PLAIN[kind.kind]


def time_type(logical: str) -> pa.DataType:
    """The type of a logical type of times."""
    word, _, unit = logical.rpartition("-")
    if word == "time":
        return pa.time32("ms") if unit == "millis" else pa.time64("us")
    if not word:
        return pa.date32()
    return pa.timestamp(UNITS[unit], None if word == "local-timestamp" else "UTC")


def union_value(kind: AvroType) -> AvroType | None:
    """The only type of a union beside null; None if there are several that are not one."""
    branches = [branch for branch in kind.parts if branch.kind != "null"]
    if not branches:
        return AvroType("null")
    if len(branches) == 1:
        return branches[0]
    kinds = {branch.kind for branch in branches}
    for wide, both in (("long", {"int", "long"}), ("double", {"float", "double"})):
        if kinds == both and not any(branch.logical for branch in branches):
            return AvroType(wide)
    return None


def member_names(kind: AvroType) -> list[str]:
    """The names of the fields of a union of several types: those of the types, as short as they differ."""
    branches = [branch for branch in kind.parts if branch.kind != "null"]
    short = [branch.short for branch in branches]
    return [
        name if short.count(name) == 1 else branch.name.replace(".", "_")
        for name, branch in zip(short, branches, strict=True)
    ]


def _members(kind: AvroType) -> list[pa.Field]:
    branches = [branch for branch in kind.parts if branch.kind != "null"]
    return [pa.field(name, arrow_type(branch)) for name, branch in zip(member_names(kind), branches, strict=True)]


def default_value(value: Any, kind: AvroType) -> Any:
    """The value of a default, from the JSON of a schema, as Arrow takes it; raises where it is none of the type."""
    if kind.kind == "union":
        return _default_of_union(value, kind)
    if kind.kind == "null":
        return None if value is None else _no_default(value, kind)
    if kind.kind == "record":
        if not isinstance(value, dict):
            _no_default(value, kind)
        return {one.name: default_value(value.get(one.name, one.default), one.type) for one in kind.fields}
    if kind.kind == "array":
        return (
            [default_value(one, kind.parts[0]) for one in value]
            if isinstance(value, list)
            else _no_default(value, kind)
        )
    if kind.kind == "map":
        if not isinstance(value, dict):
            _no_default(value, kind)
        return [(key, default_value(one, kind.parts[0])) for key, one in value.items()]
    if kind.kind == "boolean":
        return value if isinstance(value, bool) else _no_default(value, kind)
    if kind.kind in ("int", "long"):
        return (
            _time(value, kind) if isinstance(value, int) and not isinstance(value, bool) else _no_default(value, kind)
        )
    if kind.kind in ("float", "double"):
        special = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
        number = special.get(value, value) if isinstance(value, str) else value
        return float(number) if isinstance(number, int | float) else _no_default(value, kind)
    if not isinstance(value, str):
        _no_default(value, kind)
    if kind.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
        if kind.logical == "decimal":
            return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale)
        return str(UUID(bytes=raw)) if kind.logical == "uuid" else raw
    return value


def _time(value: int, kind: AvroType) -> Any:
    """A number as Arrow takes it in a column of times."""
    if not kind.logical:
        return value
    to = arrow_type(kind)
    if pa.types.is_date(to):
        return date(1970, 1, 1) + timedelta(value)
    return pa.array([value], pa.int32() if to.bit_width == 32 else pa.int64()).view(to)[0]


def _default_of_union(value: Any, kind: AvroType) -> Any:
    """A default is of the first branch; newer schemas may have one of another branch."""
    one = union_value(kind)
    names = iter(member_names(kind)) if one is None else None
    for branch in kind.parts:
        name = next(names) if names is not None and branch.kind != "null" else None
        try:
            inner = default_value(value, branch)
        except (InvalidArgument, ValueError, TypeError):
            continue
        return inner if name is None else {name: inner}
    return _no_default(value, kind)


def _no_default(value: Any, kind: AvroType) -> Any:
    raise InvalidArgument(f"a schema of Avro has the default {value!r} for a field of type {kind.short!r}")


__all__ = ["arrow_type", "default_value", "member_names", "time_type", "union_value"]

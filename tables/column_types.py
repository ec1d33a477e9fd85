"""The types of the columns of a table: those of Arrow that databases and file formats have too.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from ..combiners.rows.plain_types import plain_type
from ..errors import InvalidArgument, TypeMismatch

_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}

FLAT = (
    pt.is_boolean, pt.is_signed_integer, pt.is_floating, pt.is_decimal128,
    pt.is_string, pt.is_binary, pt.is_date32, pt.is_timestamp,
)  # fmt: skip
"""The types without fields that every target has, but for decimals of an odd scale and times in nanoseconds."""

DURATION = pa.duration("us")
"""Lengths of time, which a database has as intervals of microseconds alone, without months and days."""

TypeTest = Callable[[pa.DataType], bool]
"""True for a type that a target has."""


def table_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a table holds values of this type: signed, of microseconds, neither large nor a view.

    >>> import pyarrow as pa
    >>> table_type(pa.uint8()), table_type(pa.timestamp("ms")), table_type(pa.large_list(pa.uint64()))
    (DataType(int16), TimestampType(timestamp[us]), ListType(list<item: decimal128(20, 0)>))
    """
    kind = plain_type(kind)
    if kind in _SIGNED:
        return _SIGNED[kind]
    if pt.is_dictionary(kind):
        return table_type(kind.value_type)
    if pt.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pt.is_time(kind) and kind.unit != "ns":
        return pa.time64("us")
    if pt.is_duration(kind) and kind.unit != "ns":
        return DURATION
    if pt.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    if pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_struct(kind):
        return pa.struct([field.with_type(table_type(field.type)) for field in kind])
    if pt.is_map(kind):
        return pa.map_(table_type(kind.key_type), table_type(kind.item_type))
    if pt.is_list(kind) or pt.is_fixed_size_list(kind):
        return pa.list_(pa.field("item", table_type(kind.value_type)))
    return kind


def nested(test: TypeTest) -> TypeTest:
    """True for the types that a target has if it has the `test` ones, and structs and lists of them.

    >>> import pyarrow as pa
    >>> nested(flat_type)(pa.struct({"xs": pa.list_(pa.int64())})), nested(flat_type)(pa.list_(pa.null()))
    (True, False)
    """

    def has(kind: pa.DataType) -> bool:
        if pt.is_struct(kind):
            return kind.num_fields > 0 and all(has(field.type) for field in kind)
        return has(kind.value_type) if pt.is_list(kind) else test(kind)

    return has


def flat_type(kind: pa.DataType) -> bool:
    """True for a type without fields that every target has.

    >>> import pyarrow as pa
    >>> flat_type(pa.decimal128(5, 2)), flat_type(pa.decimal128(5, -2)), flat_type(pa.time64("us"))
    (True, False, False)
    """
    odd = pt.is_decimal(kind) and not 0 <= kind.scale <= kind.precision
    finer = pt.is_timestamp(kind) and kind.unit == "ns"
    return not (odd or finer) and any(is_kind(kind) for is_kind in FLAT)


def timed_type(kind: pa.DataType) -> bool:
    """True for a type without fields of a target that also has times of the day."""
    return flat_type(kind) or pt.is_time64(kind)


def with_durations(has: TypeTest) -> TypeTest:
    """True for the types of `has`, and for lengths of time as columns of their own.

    >>> import pyarrow as pa
    >>> has = with_durations(nested(timed_type))
    >>> has(pa.duration("us")), has(pa.duration("ns")), has(pa.list_(pa.duration("us")))
    (True, False, False)
    """
    return lambda kind: kind == DURATION or has(kind)


def require_types(schema: pa.Schema, has: TypeTest, who: str) -> None:
    """Raise for the first column of a type that the target does not have."""
    for field in schema:
        if not has(field.type):
            raise TypeMismatch(
                f"column {field.name!r} is {field.type}, a type that {who} does not have: leave it out with select(), "
                "or give it another type with with_columns()"
            )


def require_names_apart(schema: pa.Schema, who: str) -> None:
    """Raise for two columns that a target takes for one."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise InvalidArgument(
                f"{who} takes columns {other!r} and {name!r} for one, because they differ only in case: give one of "
                "them another name"
            )


__all__ = [
    "DURATION",
    "FLAT",
    "TypeTest",
    "flat_type",
    "nested",
    "require_names_apart",
    "require_types",
    "table_type",
    "timed_type",
    "with_durations",
]

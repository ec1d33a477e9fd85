"""The types in which two tables are compared: each holds the values of both sides as they are.

Whole numbers of two widths, decimals of two scales, floats of two widths and times of two units are compared by value.
Types of which no other one holds all values, such as int64 and float64, are refused.

Guarded by tests/tables/comparison/test_common_types.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from ...combiners.rows.plain_types import plain_type
from ...errors import InvalidArgument, TypeMismatch, UnknownColumn

SIDES = ("old", "new")
"""The names of both sides."""

MOST_DIGITS = 76
"""The most digits of a decimal of Arrow."""

MOST_NAMES = 8
"""The most columns that an advice lists."""

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The decimal digits of integers, by their bits."""

_UNITS = ("s", "ms", "us", "ns")
_INT_OF_FLOAT = 32
"""The bits of integers that a float64 holds as they are."""


def common_schema(old: pa.Schema, new: pa.Schema, most_digits: int = MOST_DIGITS) -> pa.Schema:
    """The columns of both sides, in the order of the old one; raises unless both have the same columns.

    >>> import pyarrow as pa
    >>> common_schema(pa.schema({"n": pa.int32()}), pa.schema({"n": pa.int64()})).types
    [DataType(int64)]
    """
    for schema, side in zip((old, new), SIDES, strict=True):
        for name in schema.names:
            if schema.names.count(name) > 1:
                raise InvalidArgument(f"{side} has two columns {name!r}: rename one of them")
    _check_names(old.names, new.names)
    if not old.names:
        raise UnknownColumn("the two sides have no columns but weights: give them the columns to compare")
    kinds = {}
    for field in old:
        other = new.field(field.name).type
        kinds[field.name] = _common(field.name, field.type, other, most_digits)
    return pa.schema(kinds)


def _check_names(old: Sequence[str], new: Sequence[str]) -> None:
    """Raise if one side has a column that the other lacks."""
    alone = [[name for name in some if name not in others] for some, others in ((old, new), (new, old))]
    told = [f"only {side} has {', '.join(map(repr, names))}" for side, names in zip(SIDES, alone, strict=True) if names]
    if told:
        side, *names = next([side, *names] for side, names in zip(SIDES, alone, strict=True) if names)
        windows = _of_windows(*alone)
        kept = [name for name in (old if side == SIDES[0] else new) if name not in names]
        listed = ", ".join(map(repr, kept[:MOST_NAMES])) + ", ..." * (len(kept) > MOST_NAMES)
        advice = "select" if windows else f"leave them out, as by {side}.select({listed}) of a flow, or select"
        raise UnknownColumn(
            f"old and new have different columns: {' and '.join(told)}: {advice} those to compare{windows}"
        )


def _of_windows(old: Sequence[str], new: Sequence[str]) -> str:
    """The advice where one side has windows, and the other one end of them."""
    sides = (old, new) if "window" in old else (new, old)
    ends = [name for name in ("window_start", "window_end") if name in sides[1]]
    if "window" not in sides[0] or len(ends) != 1:
        return ""
    part = ends[0].removeprefix("window_")
    return (
        "; a window is compared with window_start and window_end together, so give both, or write "
        f"flow.with_columns({ends[0]}=uc.col('window').field({part!r})).select({ends[0]!r}, ...)"
    )


def _common(name: str, one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    """The type of a column; the error names it."""
    kind = _wider(_simple(one), _simple(other), most_digits)
    if kind is None:
        if _simple(one) == _simple(other):
            raise TypeMismatch(
                f"column {name!r} is {one}, whose values are not compared: leave it out, or give its parts as columns"
            )
        raise TypeMismatch(f"column {name!r} is {one} in old and {other} in new, and no type holds both: cast one")
    return kind


def _simple(kind: pa.DataType) -> pa.DataType:
    """The type in one layout, without dictionaries."""
    plain = plain_type(kind)
    return plain.value_type if pt.is_dictionary(plain) else plain


def _wider(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    """The type that holds the values of two simple types; None if there is none."""
    if pt.is_null(one) or pt.is_null(other):
        kind = other if pt.is_null(one) else one
        return kind if pt.is_null(kind) else _wider(kind, kind, most_digits)
    for is_kind, join in _FAMILIES:
        if is_kind(one) and is_kind(other):
            return join(one, other, most_digits)
    return None


def _booleans(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    return one


def _integers(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    wide = max(one, other, key=lambda kind: kind.bit_width)
    if pt.is_signed_integer(one) == pt.is_signed_integer(other):
        return wide
    signed, unsigned = (one, other) if pt.is_signed_integer(one) else (other, one)
    bits = max(signed.bit_width, 2 * unsigned.bit_width)
    wider = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    return wider.get(bits) or pa.decimal128(_DIGITS[64], 0)


def _decimals(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    kinds = [
        (kind.precision, kind.scale) if pt.is_decimal(kind) else (_DIGITS[kind.bit_width], 0) for kind in (one, other)
    ]
    scale = max(scale for _, scale in kinds)
    digits = max(digits - own for digits, own in kinds) + scale
    if digits > most_digits:
        return None
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _floats(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    if any(pt.is_integer(kind) and kind.bit_width > _INT_OF_FLOAT for kind in (one, other)):
        return None
    single = all(pt.is_floating(kind) and kind.bit_width < 64 for kind in (one, other))
    return pa.float32() if single else pa.float64()


def _texts(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    return pa.string()


def _bytes(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    return pa.binary()


def _dates(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    return pa.date32()


def _timestamps(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    if (one.tz is None) != (other.tz is None):
        return None
    return pa.timestamp(_finer(one, other), None if one.tz is None else "UTC")


def _times(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    unit = _finer(one, other)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _durations(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType:
    return pa.duration(_finer(one, other))


def _finer(one: pa.DataType, other: pa.DataType) -> str:
    return max(one.unit, other.unit, key=_UNITS.index)


def _lists(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    value = _wider(one.value_type, other.value_type, most_digits)
    return None if value is None else pa.list_(value)


def _structs(one: pa.DataType, other: pa.DataType, most_digits: int) -> pa.DataType | None:
    if [field.name for field in one] != [field.name for field in other] or not one.num_fields:
        return None
    parts = [(a.name, _wider(a.type, b.type, most_digits)) for a, b in zip(one, other, strict=True)]
    return None if any(kind is None for _, kind in parts) else pa.struct(parts)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def _is_whole_or_decimal(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_decimal(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_fixed_size_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_fixed_size_list(kind))


_Join = Callable[[pa.DataType, pa.DataType, int], pa.DataType | None]
_FAMILIES: Sequence[tuple[Callable[[pa.DataType], bool], _Join]] = (
    (pt.is_boolean, _booleans),
    (pt.is_integer, _integers),
    (_is_whole_or_decimal, _decimals),
    (_is_number, _floats),
    (pt.is_string, _texts),
    (_is_binary, _bytes),
    (pt.is_date, _dates),
    (pt.is_timestamp, _timestamps),
    (pt.is_time, _times),
    (pt.is_duration, _durations),
    (_is_list, _lists),
    (pt.is_struct, _structs),
)
"""The types that are compared with each other; the first family that has both decides."""


__all__ = ["MOST_DIGITS", "SIDES", "common_schema"]

"""The operations of column expressions, computed on Arrow arrays and scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..rows.decimal_casts import cast_exactly
from . import lengths
from .calls import call
from .lengths import has_length
from .operands import filled, float_operand, require_no_overflow, value_type
from .text import Named
from .text_kernels import TEXT_KERNELS, concat
from .time_kernels import TIME_KERNELS
from .times import cast_time

CAST = "cast it (a column of files has the type that schema= of uc.Files gives it)"
"""The remedy for a text in the place of a number."""

ARROW_FAULTS = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    OverflowError,
)
"""The errors that Arrow raises when an operation does not fit its input."""


_WIDE = pa.decimal128(20, 0)
"""Holds every integer of 64 bits, signed or not."""


def run(op: str, args: list[Any]) -> Any:
    """The operation over its evaluated arguments."""
    named = {arg.name: arg.value for arg in args if isinstance(arg, Named)}
    return _KERNELS[op](*(arg for arg in args if not isinstance(arg, Named)), **named)


def scalar_of(value: Any) -> pa.Scalar:
    """A literal as an Arrow scalar; whole numbers from 2**63 on are uint64."""
    if isinstance(value, int) and 2**63 <= value < 2**64:
        return pa.scalar(value, pa.uint64())
    return pa.scalar(value)


def misfits(op: str, args: list[Any]) -> bool:
    """True if the operation fails on these types for all data, because it fails on nulls too."""
    arrays = [isinstance(a, pa.Array | pa.ChunkedArray) for a in args]
    if not any(arrays):
        return False
    try:
        run(op, [pa.nulls(1, a.type) if array else a for a, array in zip(args, arrays, strict=True)])
    except ARROW_FAULTS:
        return True
    return False


def _meet(*values: Any) -> list[Any]:
    """The values, with integers and decimals as float64 if another value is a float.

    Arrow's own promotion refuses integers beyond 2**53, and rounds decimals twice.
    """
    if not any(pa.types.is_floating(v.type) for v in values):
        return list(values)
    exact = [pa.types.is_integer(v.type) or pa.types.is_decimal(v.type) for v in values]
    return [float_operand(v) if e else v for v, e in zip(values, exact, strict=True)]


def _meeting(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: kernel(*_computed(*_meet(*args)))


def _or_lengths(numbers: Callable[..., Any], durations: Callable[..., Any]) -> Callable[..., Any]:
    """The operation over numbers, or another one if an operand is a duration."""
    return lambda *args: (durations if has_length(*args) else numbers)(*args)


def _add(a: Any, b: Any) -> Any:
    if all(pa.types.is_string(value_type(side.type)) for side in (a, b)):
        raise pa.ArrowTypeError("texts are joined by uc.concat(a, b)")
    return _meeting(pc.add_checked)(a, b)


def _comparing(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def compare(a: Any, b: Any) -> Any:
        a, b = _meet(a, b)
        if _beyond_int64(a, b) is not None:
            # Arrow would compare both as int64, which such values do not fit.
            a, b = (side.cast(_WIDE) if pa.types.is_integer(side.type) else side for side in (a, b))
        return kernel(a, b)

    return compare


def _computed(*values: Any) -> tuple[Any, ...]:
    """The integers; raises if one does not fit the type in which Arrow computes."""
    beyond = _beyond_int64(*values)
    if beyond is not None:
        raise pa.ArrowInvalid(
            f"uint64 with signed integers is computed as int64, but {beyond} does not fit int64: "
            "cast the uint64 to decimal128(20, 0)"
        )
    return values


def _beyond_int64(*values: Any) -> int | None:
    """A number of 2**63 or more where another value is a signed integer; None if there is none."""
    kinds = [value.type for value in values]
    if pa.uint64() not in kinds or not any(map(pa.types.is_signed_integer, kinds)):
        return None
    for value in values:
        if value.type == pa.uint64():
            most = value.as_py() if isinstance(value, pa.Scalar) else pc.max(value).as_py()
            if most is not None and most >= 2**63:
                return int(most)
    return None


def _divide(a: Any, b: Any) -> Any:
    """True division in float64, null where the divisor is zero, as in SQL."""
    a, b = float_operand(a), float_operand(b)
    return pc.divide(a, pc.if_else(pc.equal(b, 0.0), pa.scalar(None, pa.float64()), b))


def _whole_division(operation: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Floor division, or its remainder, as in Python; null for a divisor of zero."""

    def divide(a: Any, b: Any) -> Any:
        a, b = _computed(*_meet(a, b))
        kind = pc.add(a.slice(0, 0) if hasattr(a, "slice") else a, b.slice(0, 0) if hasattr(b, "slice") else b).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise pa.ArrowTypeError(f"it takes integers and floats, but was given {kind}")
        (x, some_x), (y, some_y) = filled(a, kind), filled(b, kind)
        some = some_x & some_y & (y != 0)
        if operation is np.floor_divide and pa.types.is_signed_integer(kind):
            require_no_overflow(x, y, some)
        # Zero divisors become null below; infinities give NaN where Python raises.
        with np.errstate(all="ignore"):
            out = operation(x, np.where(y == 0, y.dtype.type(1), y))
        if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar):
            return pa.scalar(out.item() if some.item() else None, kind)
        return pa.array(out, kind, mask=~some)

    return divide


def _is_in(value: Any, values: tuple[Any, ...]) -> Any:
    kind = value.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        value = value.cast(kind)
    if pa.types.is_integer(kind):
        # A whole number outside the range of the type equals none of its values.
        least, most = np.iinfo(kind.to_pandas_dtype()).min, np.iinfo(kind.to_pandas_dtype()).max
        values = tuple(v for v in values if not isinstance(v, int) or isinstance(v, bool) or least <= v <= most)
    members = pa.array(list(values), kind)
    if pa.types.is_floating(kind):
        # -0.0 + 0.0 is 0.0: both zeros are one value.
        zero = pa.scalar(0.0, kind)
        value, members = pc.add(value, zero), pc.add(members, zero)
    return pc.is_in(value, value_set=members, skip_nulls=True)


def _cast(value: Any, to: pa.DataType, strict: bool = True) -> Any:
    if not strict:
        _cast(pa.nulls(1, value.type), to)  # raises for types between which there is no cast
        return _cast_or_null(value, to)
    if pa.types.is_decimal(value.type) and pa.types.is_float64(to):
        return float_operand(value)
    if pa.types.is_decimal(to):
        return cast_exactly(value, to)
    # An integer too long for a float is rounded, as any sum of floats is; all else must fit.
    return value.cast(to, safe=not (pa.types.is_integer(value.type) and pa.types.is_floating(to)))


def _cast_or_null(value: Any, to: pa.DataType) -> Any:
    """The values as another type, with null for each that does not fit."""
    if isinstance(value, pa.ChunkedArray):
        return pa.chunked_array([_cast_or_null(chunk, to) for chunk in value.chunks], to)
    try:
        return _cast(value, to)
    except (pa.ArrowInvalid, OverflowError):
        if isinstance(value, pa.Scalar):
            return pa.scalar(None, to)
    if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
        coded = value.dictionary_encode()  # the texts that do not fit are often few, and equal
        return pa.concat_arrays(_cast_parts(coded.dictionary, to)).take(coded.indices)
    return pa.concat_arrays(_cast_parts(value, to))


def _cast_parts(values: pa.Array, to: pa.DataType) -> list[pa.Array]:
    """The values as another type, in parts: they are cut in halves until a part fits or is one value, which is null."""
    try:
        return [_cast(values, to)]
    except (pa.ArrowInvalid, OverflowError):
        if len(values) == 1:
            return [pa.nulls(1, to)]
    middle = len(values) // 2
    return [*_cast_parts(values.slice(0, middle), to), *_cast_parts(values.slice(middle), to)]


def _when(condition: Any, then: Any, otherwise: Any) -> Any:
    if not pa.types.is_boolean(condition.type):
        raise pa.ArrowTypeError(f"the condition must be boolean, but is {condition.type}")
    return pc.if_else(pc.coalesce(condition, pa.scalar(False)), *_computed(*_meet(then, otherwise)))


_KERNELS: dict[str, Callable[..., Any]] = {
    "|": pc.or_kleene,
    "&": pc.and_kleene,
    "~": pc.invert,
    "==": _comparing(pc.equal),
    "!=": _comparing(pc.not_equal),
    "<": _comparing(pc.less),
    "<=": _comparing(pc.less_equal),
    ">": _comparing(pc.greater),
    ">=": _comparing(pc.greater_equal),
    "+": _add,
    "-": _meeting(pc.subtract_checked),
    "*": _or_lengths(_meeting(pc.multiply_checked), lengths.multiply),
    "/": _or_lengths(_divide, lengths.divide),
    "//": _or_lengths(_whole_division(np.floor_divide), lengths.floor_divide),
    "%": _or_lengths(_whole_division(np.remainder), lengths.remainder),
    "neg": _or_lengths(pc.negate_checked, lengths.negate),
    "abs": pc.abs_checked,
    "is_null": pc.is_null,
    "is_nan": pc.is_nan,
    "isin": _is_in,
    "cast": _cast,
    "cast_time": cast_time,
    "field": pc.struct_field,
    "when": _when,
    "fill_null": _meeting(pc.coalesce),
    "coalesce": _meeting(pc.coalesce),
    "concat": concat,
    "call": call,
    **TEXT_KERNELS,
    **TIME_KERNELS,
}

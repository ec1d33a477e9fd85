"""Arithmetic of lengths of time, the durations of Arrow, as that of Python's `timedelta`.

A quotient of two is a float, rounded once. A product or quotient with a number is rounded to whole units, halves to the
even one. Division by zero gives null. Numbers that are no integers count as float64.

Guarded by tests/combiners/expressions/test_time_arithmetic.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from .operands import filled, float_operand, plain_operand, require_no_overflow

_UNITS = ("s", "ms", "us", "ns")
_EXACT = 1 << 53
"""Every whole number up to it is a float."""

_WHOLE, _FLOAT = pa.int64(), pa.float64()


def has_length(*values: Any) -> bool:
    """True if one of the values is a duration."""
    return any(pt.is_duration(value.type) for value in values)


def multiply(a: Any, b: Any) -> Any:
    """A duration times a number."""
    length, number = (a, b) if has_length(a) else (b, a)
    if pt.is_null(number.type) or pt.is_integer(number.type):
        return pc.multiply_checked(length, number.cast(_WHOLE) if pt.is_null(number.type) else number)
    _require_number(number)
    x, y, some = _pair(length, float_operand(number), _FLOAT)
    with np.errstate(all="ignore"):
        return _rounded(x * y, some, length, number)


def divide(a: Any, b: Any) -> Any:
    """A duration over another one, or over a number."""
    _require_length(a)
    if pt.is_duration(b.type) or pt.is_null(b.type):
        x, y, some = _pair(*_in_one_unit(a, b))
        return _column(_quotients(x, y), some & (y != 0), _FLOAT, a, b)
    if pt.is_integer(b.type):
        x, y, some = _pair(a, b)
        require_no_overflow(x, y, some)
        return _column(_nearest(x, y), some & (y != 0), a.type, a, b)
    _require_number(b)
    x, y, some = _pair(a, float_operand(b), _FLOAT)
    with np.errstate(all="ignore"):
        return _rounded(x / y, some & (y != 0), a, b)


def floor_divide(a: Any, b: Any) -> Any:
    """The number of durations in another one, or a duration over a whole number, rounded down."""
    _require_length(a)
    if pt.is_integer(b.type):
        kind, (x, y, some) = a.type, _pair(a, b)
    else:
        kind, (x, y, some) = _WHOLE, _pair(*_in_one_unit(a, b))
    require_no_overflow(x, y, some)
    return _column(_floor(x, y), some & (y != 0), kind, a, b)


def remainder(a: Any, b: Any) -> Any:
    """The rest of a duration after whole ones of another length."""
    one, other = _in_one_unit(a, b)
    x, y, some = _pair(one, other)
    return _column(x - _floor(x, y) * y, some & (y != 0), one.type, a, b)


def negate(value: Any) -> Any:
    """The opposite duration; Arrow's own wraps around for the least one."""
    return pc.subtract_checked(pa.scalar(0, value.type), value)


def total_of(nanoseconds: int) -> Callable[[Any], Any]:
    """The operation that counts units of so many nanoseconds in a duration, as a float."""

    def total(value: Any) -> Any:
        length = plain_operand(value)
        if pt.is_null(length.type):
            return length.cast(_FLOAT)
        if not has_length(length):
            raise pa.ArrowTypeError("it takes durations, such as the difference of two times")
        unit = pa.scalar(nanoseconds // 10 ** (9 - 3 * _UNITS.index(length.type.unit)), length.type)
        return divide(length, unit)

    return total


def _require_length(value: Any) -> None:
    if not has_length(value) and not pt.is_null(value.type):
        raise pa.ArrowTypeError("a duration divides another one only")


def _require_number(value: Any) -> None:
    if not (pt.is_floating(value.type) or pt.is_decimal(value.type)):
        raise pa.ArrowTypeError("it takes a duration and a number")


def _in_one_unit(a: Any, b: Any) -> tuple[Any, Any]:
    """Both durations in the finer of their units; raises if one is none."""
    if not all(has_length(side) or pt.is_null(side.type) for side in (a, b)):
        raise pa.ArrowTypeError("it takes a duration and another one, or a whole number to divide by")
    kind = pa.duration(max((side.type.unit for side in (a, b) if has_length(side)), key=_UNITS.index))
    return a.cast(kind), b.cast(kind)


def _pair(a: Any, b: Any, kind: pa.DataType = _WHOLE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both sides as numbers with 0 for null, and a mask of the rows where neither is null."""
    (x, some_x), (y, some_y) = (filled(side.cast(_WHOLE) if has_length(side) else side, kind) for side in (a, b))
    return x, y, some_x & some_y


def _floor(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(x // np.where(y == 0, 1, y))


def _nearest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whole quotients, halves rounded to the even one."""
    down = _floor(x, y)
    rest, size = _magnitude(x - down * y), _magnitude(y)
    up = (rest > size - rest) | ((rest == size - rest) & (down % 2 == 1))
    return np.asarray(down + up)


def _magnitude(values: np.ndarray) -> np.ndarray:
    """The absolute values, also of the least integer."""
    return np.where(values < 0, ~values, values).astype(np.uint64) + (values < 0)


def _quotients(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotients of integers as floats, rounded once."""
    x, y = np.broadcast_arrays(x, np.where(y == 0, 1, y))
    out = np.asarray(x / y)
    # NumPy rounds integers this large before it divides. A quotient of Python's is rounded once.
    large = np.flatnonzero((_magnitude(x) > _EXACT) | (_magnitude(y) > _EXACT))
    out.flat[large] = [int(a) / int(b) for a, b in zip(x.flat[large], y.flat[large], strict=True)]
    return out


def _rounded(units: np.ndarray, some: np.ndarray, length: Any, number: Any) -> Any:
    """Durations of so many units, rounded to whole ones."""
    whole = np.where(some, np.rint(units), 0.0)
    if not bool(np.all((whole >= -(2.0**63)) & (whole < 2.0**63))):
        raise pa.ArrowInvalid("a duration does not fit into 64 bits")
    return _column(whole.astype(np.int64), some, length.type, length, number)


def _column(values: np.ndarray, some: np.ndarray, kind: pa.DataType, *sides: Any) -> Any:
    """The values as a scalar if both sides are scalars, else as an array; null where the mask is false."""
    storage = _WHOLE if pt.is_duration(kind) else kind
    if all(isinstance(side, pa.Scalar) for side in sides):
        return pa.scalar(values.item() if some.item() else None, storage).cast(kind)
    values, some = np.broadcast_arrays(values, some)
    return pa.array(values, storage, mask=~some).cast(kind)

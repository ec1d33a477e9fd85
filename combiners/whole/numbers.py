"""Numbers of Arrow columns without nulls, and results made of numbers, both chosen once for each type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..rows.columns import numbers

Reader: TypeAlias = Callable[[pa.Array], np.ndarray]
"""Gives the numbers of a column of one type, which has no nulls and at least one row."""

Maker: TypeAlias = Callable[[Any], pa.Scalar]
"""Gives a result of one type from a number of Python."""

DIGITS = 18
"""The most digits of decimals whose unscaled values fit an int64."""


def is_plain_float(kind: pa.DataType) -> bool:
    """True for float64 and float32, which numpy reads where they lie."""
    return bool(pa.types.is_float64(kind) or pa.types.is_float32(kind))


def is_clock_time(kind: pa.DataType) -> bool:
    """True for dates, times and durations: one integer each."""
    return bool(pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)


def is_short_decimal(kind: pa.DataType) -> bool:
    """True for decimals whose unscaled values fit an int64."""
    return bool(pa.types.is_decimal128(kind)) and kind.precision <= DIGITS


def reader_of(kind: pa.DataType) -> Reader | None:
    """The way to numbers that sort as the values do, NaN last; None for types without such numbers.

    >>> import pyarrow as pa
    >>> reader_of(pa.int8())(pa.array([3, 1], pa.int8()))
    array([3, 1], dtype=int8)
    """
    if is_plain_float(kind) or pa.types.is_integer(kind):
        return _stored
    if is_clock_time(kind):
        return numbers
    return _unscaled if is_short_decimal(kind) else None


def maker_of(kind: pa.DataType) -> Maker:
    """The way from an integer or a float to a result of a type that `reader_of` reads; decimals are unscaled.

    >>> import pyarrow as pa
    >>> maker_of(pa.decimal128(5, 2))(-150).as_py()
    Decimal('-1.50')
    """
    if pa.types.is_decimal128(kind):

        def make(unscaled: int) -> pa.Scalar:
            raw = unscaled.to_bytes(16, "little", signed=True)
            return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(raw)])[0]

        return make
    return lambda value: pa.scalar(value, kind)


def _stored(array: pa.Array) -> np.ndarray:
    values: np.ndarray = array.to_numpy(zero_copy_only=True)
    return values


def _unscaled(array: pa.Array) -> np.ndarray:
    """The unscaled values of short decimals: the lower of the two words of each."""
    raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    return raw[array.offset : array.offset + len(array), 0]

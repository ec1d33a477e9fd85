"""Operands of expressions in the layout that Arrow's functions take.

Guarded by tests/combiners/expressions/test_text_methods.py and tests/combiners/expressions/test_time_methods.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..floats.decimals import nearest_floats
from ..rows.plain_types import as_plain, plain_type


def plain_operand(value: Any) -> Any:
    """The values of a dictionary or a view as a column of their own; any other operand as it is.

    >>> plain_operand(pa.array(["a", None, "a"]).dictionary_encode()).to_pylist()
    ['a', None, 'a']
    """
    kind = value.type
    if not (pt.is_dictionary(kind) or pt.is_string_view(kind) or pt.is_binary_view(kind)):
        return value
    if isinstance(value, pa.Scalar):
        return pa.scalar(value.as_py(), value_type(kind))
    return as_plain(value, value_type(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """The plain type of the values of a type."""
    plain = plain_type(kind)
    return plain.value_type if pt.is_dictionary(plain) else plain


def text_operand(value: Any) -> Any:
    """Texts; raises for values of another type. A column of null alone is one of texts."""
    plain = plain_operand(value)
    if pt.is_null(plain.type):
        return plain.cast(pa.string())
    if not (pt.is_string(plain.type) or pt.is_large_string(plain.type)):
        raise pa.ArrowTypeError("it takes texts, as .cast('string') gives")
    return plain


def time_operand(value: Any, dates: bool = True, clocks: bool = False) -> Any:
    """Times; raises for values of another type. Dates may be allowed, and times of day, which are those of clocks."""
    plain = plain_operand(value)
    kind = plain.type
    if pt.is_null(kind):
        return plain.cast(pa.timestamp("us"))
    if pt.is_timestamp(kind) or (dates and pt.is_date(kind)) or (clocks and pt.is_time(kind)):
        return plain
    if pt.is_duration(kind):
        raise pa.ArrowTypeError("it takes times; a duration has total_seconds() and arithmetic")
    if pt.is_date(kind):
        raise pa.ArrowTypeError("it takes times, and a date has no clock")
    if pt.is_time(kind):
        raise pa.ArrowTypeError("it takes times with a date")
    raise pa.ArrowTypeError("it takes times, as .cast(pa.timestamp('us', 'UTC')) gives")


def float_operand(value: Any) -> Any:
    """Numbers as float64, each rounded to the nearest; raises for values of another type."""
    kind = value.type
    if not (pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)):
        if pt.is_null(kind):
            return value.cast(pa.float64())
        raise pa.ArrowTypeError(f"it takes numbers, but was given {kind}")
    if not pt.is_decimal(kind):
        return value.cast(pa.float64(), safe=False)
    if isinstance(value, pa.Scalar):
        return pa.scalar(None if value.as_py() is None else float(value.as_py()), pa.float64())
    array = _one_array(value)
    return pa.array(nearest_floats(array), pa.float64(), mask=np.asarray(array.is_null()))


def filled(value: Any, kind: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with 0 for null, and a mask of those that are not null."""
    if isinstance(value, pa.Scalar):
        number = value.as_py()
        return np.asarray(0 if number is None else number, kind.to_pandas_dtype()), np.asarray(number is not None)
    array = _one_array(value).cast(kind)
    return np.asarray(pc.fill_null(array, pa.scalar(0, kind))), np.asarray(array.is_valid())


def require_no_overflow(x: np.ndarray, y: np.ndarray, some: np.ndarray) -> None:
    """Raise if a quotient of whole numbers does not fit their type."""
    if bool(np.any((y == -1) & (x == np.iinfo(x.dtype).min) & some)):
        raise pa.ArrowInvalid("overflow")


def _one_array(value: Any) -> pa.Array:
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value

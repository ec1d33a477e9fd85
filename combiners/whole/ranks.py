"""Quantiles, and the k least or greatest values, of one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa

from ..compiled import Whole
from ..rows.numbering import starts_of_runs
from ..rows.ordering import from_numbers
from .numbers import is_clock_time, is_plain_float, is_short_decimal, maker_of, reader_of

_NARROW = 64
"""The number of values up to which sorting takes no longer than partitioning."""

_DAY = 86_400_000
_EXACT = 2**53
_EXACT_DIGITS, _EXACT_POWERS = 15, 22


def quantile_kernel(kind: pa.DataType, output: pa.DataType, parts: Sequence[float], listed: bool) -> Whole | None:
    """The quantiles of a column of this type, one alone or several in a list; declined if a value is NaN."""
    read, between = reader_of(kind), _between(kind)
    if read is None or between is None:
        return None
    missing, make = pa.scalar(None, output), maker_of(output)

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        places = [(rows - 1) * q for q in parts]
        values = _ranked(read(arrays[0]), sorted({rank for place in places for rank in (floor(place), ceil(place))}))
        if values is None:
            return None
        quantiles = [
            between(values[floor(place)].item(), values[ceil(place)].item(), place - floor(place)) for place in places
        ]
        return make(quantiles if listed else quantiles[0])

    return whole


def _ranked(values: np.ndarray, ranks: Sequence[int]) -> np.ndarray | None:
    """The values with those of some ranks in their places; None if a value is NaN, which is above every number."""
    if len(values) <= _NARROW or len(ranks) > 4:
        values = np.sort(values)
        last = values[-1]
    else:
        values = np.partition(values, ranks)
        last = np.maximum.reduce(values[ranks[-1] :])
    return values if last == last else None


def _between(kind: pa.DataType) -> Callable[[Any, Any, float], Any] | None:
    """The linear interpolation between two neighbours of this type, as `quantiles` has it."""
    if is_clock_time(kind):
        step = _DAY if pa.types.is_date64(kind) else 1

        def of_times(low: int, high: int, part: float) -> int:
            apart = high - low
            if apart <= _EXACT:
                value = low + floor(apart * part)
            else:
                above, below = part.as_integer_ratio()
                value = low + apart * above // below
            # A date in milliseconds must still be a whole day.
            return value - value % step

        return of_times
    if is_short_decimal(kind):
        if kind.precision > _EXACT_DIGITS or not 0 <= kind.scale <= _EXACT_POWERS:
            return None
        unit = 10.0**kind.scale
        return lambda low, high, part: _of_floats(low / unit, high / unit, part)
    return lambda low, high, part: _of_floats(float(low) + 0.0, float(high) + 0.0, part)


def _of_floats(low: float, high: float, part: float) -> float:
    return low if low == high else low + (high - low) * part


def best_kernel(kind: pa.DataType, k: int, greatest: bool) -> Whole | None:
    """The k best values of a column of this type, the best first; declined if one of them is NaN."""
    if not (is_plain_float(kind) or pa.types.is_integer(kind) or is_clock_time(kind)):
        return None
    read, output = reader_of(kind), pa.list_(kind)
    assert read is not None

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return pa.scalar([], output)
        values = read(arrays[0])
        if rows > max(k, _NARROW):
            values = np.partition(values, rows - k)[rows - k :] if greatest else np.partition(values, k - 1)[:k]
        values = np.sort(values)
        if values[-1] != values[-1]:
            return None
        values = values[: -k - 1 : -1] if greatest else values[:k]
        return pa.scalar((values + 0.0 if values.dtype.kind == "f" else values).tolist(), output)

    return whole


def list_kernel(kind: pa.DataType, once: bool) -> Whole | None:
    """All values of a column of this type in their order, or each once; declined if a value is NaN."""
    read = reader_of(kind)
    if read is None or pa.types.is_float16(kind):
        return None

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        values = np.sort(read(arrays[0])) if rows else np.empty(0, np.int64)
        if rows and values[-1] != values[-1]:
            return None
        if once and rows:
            values = values[starts_of_runs(values)]
        offsets = pa.array([0, len(values)], pa.int32())
        return pa.ListArray.from_arrays(offsets, from_numbers(values, kind))[0]

    return whole

"""Comparison of two results or two accumulators."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators

LAST_BITS = 2.0**-50
"""The part of a number that the last bits of a float make."""


def bits(accumulators: Accumulators) -> list[Any]:
    """Plain values that are equal if and only if the accumulators are equal bit for bit."""
    return [_bits(array) for array in accumulators]


def plain(accumulators: Accumulators) -> Any:
    """Accumulators as plain values for a message."""
    shown = [array.to_pylist() for array in accumulators]
    return shown[0] if len(shown) == 1 else shown


def near(left: Any, right: Any, slack: float, part: float = LAST_BITS) -> bool:
    """True if two plain values agree; floats may differ by `slack`, and if that is not 0 by a part of themselves.

    >>> near({"n": 7, "mean": 7.0}, {"n": 7, "mean": 7.5}, 1.0), near([7], [8], 1.0)
    (True, False)
    """
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(near(a, b, slack, part) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(near(left[k], right[k], slack, part) for k in left)
    if not _number(left) or not _number(right):
        if slack == math.inf and isinstance(left, float | None) and isinstance(right, float | None):
            return True
        return type(left) is type(right) and bool(left == right)
    if not isinstance(left, float) and not isinstance(right, float):
        return bool(left == right)
    a, b = float(left), float(right)
    if not math.isfinite(a) or not math.isfinite(b):
        return a == b or (math.isnan(a) and math.isnan(b)) or slack == math.inf
    if slack == 0.0:
        return a == b
    return abs(a - b) <= slack + part * max(abs(a), abs(b))


def numbers_in(values: Any) -> list[float]:
    """The magnitudes of the numbers in plain values, with NaN and infinities."""
    if isinstance(values, list | tuple):
        return [number for value in values for number in numbers_in(value)]
    if isinstance(values, bool) or _number(values):
        return [abs(float(values))]
    return []


def _number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _bits(array: pa.Array) -> Any:
    kind = array.type
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        return valid, [_bits(child) for child in array.flatten()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return valid, array.value_lengths().to_pylist(), _bits(array.flatten())
    if pa.types.is_map(kind):
        return valid, array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))).to_pylist()
    if pa.types.is_floating(kind):
        floats = np.asarray(array.fill_null(0.0).to_numpy(zero_copy_only=False))
        return valid, floats.view(f"i{floats.itemsize}").tolist()
    if pa.types.is_temporal(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    return array.to_pylist()

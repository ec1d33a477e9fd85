"""Decimals as the nearest floats."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_EXACT_POWERS = 22
_EXACT_DIGITS = 15


def nearest_floats(array: pa.Array) -> np.ndarray:
    """Numbers as float64, each rounded once; NaN where the array is null.

    Arrow's own cast multiplies a decimal by a rounded power of ten, so that 99.99 becomes 99.99000000000001. Up to 15
    digits the unscaled number and the power are exact floats, and one division rounds once. Longer decimals are
    parsed from their text, which Arrow rounds correctly.

    >>> from decimal import Decimal
    >>> nearest_floats(pa.array([Decimal("99.99"), None]))
    array([99.99,   nan])
    """
    kind = array.type
    if not pa.types.is_decimal(kind):
        return np.asarray(array.cast(pa.float64(), safe=False))
    if pa.types.is_decimal128(kind) and kind.precision <= _EXACT_DIGITS and 0 <= kind.scale <= _EXACT_POWERS:
        if len(array) == 0:
            return np.empty(0)
        raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
        floats = raw[array.offset : array.offset + len(array), 0] / 10.0**kind.scale
        if array.null_count:
            floats[np.asarray(array.is_null())] = np.nan
        return np.asarray(floats)
    return np.asarray(array.cast(pa.string()).cast(pa.float64()))

"""Counts, sums and means of one group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ..compiled import Whole
from .numbers import is_clock_time, is_plain_float, is_short_decimal, maker_of, reader_of

_SAFE = 2**63
"""Integers whose size times their number is below this have a sum that int64 holds."""

_FEW = 4096
"""The number of floats up to which `math.fsum` is faster than digits in numpy."""


def count_rows(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar:
    """The number of rows."""
    return pa.scalar(rows, pa.int64())


def sum_kernel(kind: pa.DataType, output: pa.DataType, exact: bool) -> Whole | None:
    """The sum of a column of this type; floats plainly, or exactly."""
    if pa.types.is_floating(kind):
        if not is_plain_float(kind):
            return None
        return _float_kernel(lambda total, rows: total, exact)
    read, make, missing = reader_of(kind), maker_of(output), pa.scalar(None, output)
    if read is None or not (pa.types.is_integer(kind) or is_clock_time(kind) or is_short_decimal(kind)):
        return None
    low, high = (0, 2**64) if pa.types.is_unsigned_integer(output) else (-(2**63), 2**63)
    if pa.types.is_decimal(output):
        low, high = -(10**output.precision) + 1, 10**output.precision

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        total = sum_integers(read(arrays[0]))
        return make(total) if low <= total < high else None

    return whole


def mean_kernel(kind: pa.DataType, output: pa.DataType) -> Whole | None:
    """The mean of a column of this type; that of floats is made of their plain sum."""
    if pa.types.is_floating(kind):
        return _float_kernel(lambda total, rows: total / rows, exact=False) if is_plain_float(kind) else None
    read, make, missing = reader_of(kind), maker_of(output), pa.scalar(None, output)
    if read is None:
        return None
    if pa.types.is_integer(kind):

        def quotient(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar:
            # Python rounds the quotient of two integers once, of any size.
            return make(sum_integers(read(arrays[0])) / rows) if rows else missing

        return quotient
    factor = 10 ** (output.scale - kind.scale) if pa.types.is_decimal(kind) else 1
    limit = 10**output.precision if pa.types.is_decimal(output) else _SAFE

    def rounded(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        total = sum_integers(read(arrays[0]))
        size = (2 * abs(total) * factor + rows) // (2 * rows)
        return make(size if total > 0 else -size) if size < limit else None

    return rounded


def sum_integers(values: np.ndarray) -> int:
    """The exact sum of at least one integer.

    >>> import numpy as np
    >>> sum_integers(np.array([2**63 - 1, 2**63 - 1]))
    18446744073709551614
    """
    if values.itemsize < 8:
        return int(np.add.reduce(values, dtype=np.int64))
    if max(int(np.maximum.reduce(values)), -int(np.minimum.reduce(values))) * len(values) < _SAFE:
        return int(np.add.reduce(values))
    total: int = sum(values.tolist())
    return total


def _float_kernel(finish: Callable[[float, int], float], exact: bool) -> Whole:
    """A result made of the sum of floats and their number; declined if the sum is not finite."""
    total_of, most = (_sum_exactly, _FEW) if exact else (_sum_plainly, math.inf)
    missing = pa.scalar(None, pa.float64())

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        if rows > most:
            return None
        total = total_of(arrays[0].to_numpy(zero_copy_only=True).astype(np.float64, copy=False))
        return pa.scalar(finish(total, rows), pa.float64()) if math.isfinite(total) else None

    return whole


def _sum_plainly(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.add.reduce(values))


def _sum_exactly(values: np.ndarray) -> float:
    """The correctly rounded sum; NaN if a value or the sum is not finite."""
    try:
        return math.fsum(values.tolist()) + 0.0
    except (OverflowError, ValueError):
        return math.nan

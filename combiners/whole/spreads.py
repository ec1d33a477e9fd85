"""Variances, standard deviations and the shape of one group, from its moments about the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from ..compiled import Finish, Whole
from ..states.central_moments import central_moments
from .numbers import is_plain_float, reader_of


def spread_kernel(kind: pa.DataType, population: bool, root: bool) -> Whole | None:
    """The variance of a column of this type, or its root; declined if a value is NaN, infinite or too large."""
    read = reader_of(kind)
    if read is None or not (is_plain_float(kind) or pa.types.is_integer(kind)):
        return None
    missing, least = pa.scalar(None, pa.float64()), 1 if population else 2

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        moments = central_moments(read(arrays[0]).astype("f8", copy=False), 2)
        if moments is None:
            return None
        if rows < least:
            return missing
        variance = moments[-1] / (rows if population else rows - 1)
        return pa.scalar(math.sqrt(variance) if root else variance, pa.float64())

    return whole


def shape_kernel(kind: pa.DataType, order: int, finish: Finish) -> Whole | None:
    """The `finish` of the moments of a column of this type; declined if a value is NaN, infinite or too large."""
    read = reader_of(kind)
    if read is None or not (is_plain_float(kind) or pa.types.is_integer(kind)):
        return None

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        moments = central_moments(read(arrays[0]).astype("f8", copy=False), order) if rows else None
        if moments is None:
            return None
        return finish([(pa.array([rows]), *(pa.array([moment]) for moment in moments))])[0]

    return whole

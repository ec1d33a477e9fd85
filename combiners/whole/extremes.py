"""The least and the greatest value of one group, and the value in the row that has it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..compiled import Whole
from ..rows.plain_types import is_text
from .numbers import is_plain_float, reader_of


def extreme_kernel(kind: pa.DataType, greatest: bool) -> Whole | None:
    """The least or the greatest value of a column of this type; declined if a value is NaN."""
    missing = pa.scalar(None, kind)
    if is_plain_float(kind):
        reduce = np.maximum.reduce if greatest else np.minimum.reduce

        def of_floats(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
            if not rows:
                return missing
            best = float(reduce(arrays[0].to_numpy(zero_copy_only=True)))
            # NaN wins in either direction; a zero has no sign.
            return pa.scalar(best + 0.0, kind) if best == best else None

        return of_floats
    read = reader_of(kind)
    if read is not None:
        place_of = np.argmax if greatest else np.argmin
        return lambda rows, arrays: arrays[0][int(place_of(read(arrays[0])))] if rows else missing
    if is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal128(kind):
        end = "max" if greatest else "min"
        return lambda rows, arrays: pc.min_max(arrays[0])[end] if rows else missing
    return None


def arg_extreme_kernel(by: pa.DataType, kind: pa.DataType, greatest: bool) -> Whole | None:
    """The value where `by` is least or greatest; declined if several rows have that `by`, or one has NaN."""
    read, missing = reader_of(by), pa.scalar(None, kind)
    if read is None or pa.types.is_nested(kind) or pa.types.is_float16(kind):
        return None
    place_of, floats = np.argmax if greatest else np.argmin, is_plain_float(kind)

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        keys = read(arrays[0])
        place = int(place_of(keys))
        # NaN, which numpy takes for the best, equals no key.
        if np.count_nonzero(keys == keys[place]) != 1:
            return None
        value = arrays[1][place]
        if not floats or not value.is_valid:
            return value
        number = value.as_py()
        # A zero has no sign, and there is one NaN.
        return pa.scalar(number + 0.0 if number == number else math.nan, kind)

    return whole

"""The number of different values of one group, and the most frequent one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..compiled import Whole
from ..rows.plain_types import is_text
from .numbers import is_plain_float, maker_of, reader_of

_FEW = 256
"""The number of integers up to which sorting takes no longer than a table of them."""


def distinct_kernel(kind: pa.DataType) -> Whole | None:
    """The number of different values of a column of this type."""
    read, count = reader_of(kind), pa.int64()
    if read is not None:

        def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar:
            if not rows:
                return pa.scalar(0, count)
            values = read(arrays[0])
            table = _table_of(values)
            if table is not None:
                return pa.scalar(int(np.count_nonzero(table[1])), count)
            values = np.sort(values)
            # NaN is the last value, as often as it comes, and equals none.
            repeats = int(np.count_nonzero(values[1:] == values[:-1]))
            nans = int(np.count_nonzero(values != values)) if values[-1] != values[-1] else 1
            return pa.scalar(rows - repeats - nans + 1, count)

        return whole
    if is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal128(kind):
        return lambda rows, arrays: pc.count_distinct(arrays[0])
    return None


def mode_kernel(kind: pa.DataType) -> Whole | None:
    """The most frequent value of a column of this type, the least of several; declined if a value is NaN."""
    read, make, missing = reader_of(kind), maker_of(kind), pa.scalar(None, kind)
    if read is None:
        return _text_mode(kind) if is_text(kind) else None

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar | None:
        if not rows:
            return missing
        values = read(arrays[0])
        table = _table_of(values)
        if table is not None:
            return make(table[0] + int(table[1].argmax()))
        values = np.sort(values)
        if values[-1] != values[-1]:
            return None
        starts = np.flatnonzero(values[1:] != values[:-1])
        starts += 1
        bounds = np.concatenate(([0], starts, [rows]))
        mode = values[bounds[(bounds[1:] - bounds[:-1]).argmax()]].item()
        return make(mode + 0.0 if floats else mode)

    floats = is_plain_float(kind)
    return whole


def _table_of(values: np.ndarray) -> tuple[int, np.ndarray] | None:
    """The least of many integers that lie close together, and how often it and each integer above comes; else None."""
    if len(values) <= _FEW or values.dtype.kind == "f":
        return None
    if values.itemsize < 8:
        values = values.astype(np.int64)
    low = int(np.minimum.reduce(values))
    if int(np.maximum.reduce(values)) - low >= len(values):
        return None
    return low, np.bincount((values - low).view(np.int64))


def _text_mode(kind: pa.DataType) -> Whole:
    missing = pa.scalar(None, kind)

    def whole(rows: int, arrays: Sequence[pa.Array]) -> pa.Scalar:
        if not rows:
            return missing
        texts = arrays[0].dictionary_encode()
        counts = np.bincount(texts.indices.to_numpy(zero_copy_only=True))
        places = np.flatnonzero(counts == counts.max())
        if len(places) == 1:
            return texts.dictionary[int(places[0])]
        return pc.min_max(texts.dictionary.take(pa.array(places)))["min"]

    return whole

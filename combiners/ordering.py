"""int64 keys that sort as the values of a column do, and the way back.

The order is Spark's: null first, NaN above every number and equal to itself, -0.0 equal to 0.0, false before true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TypeMismatch
from .columns import Column, numbers

_TOP = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class Keys:
    """Order keys of one or more columns: `low <= keys <= high`, and `decode` to get the columns back."""

    keys: np.ndarray
    low: int
    high: int
    decode: Callable[[np.ndarray], list[pa.Array]]

    @property
    def span(self) -> int:
        """How many different keys there may be."""
        return self.high - self.low + 1

    def dense(self) -> Keys:
        """The same order in keys without gaps."""
        present, dense = np.unique(self.keys, return_inverse=True)
        return Keys(dense.astype(np.int64), 0, max(len(present) - 1, 0), lambda keys: self.decode(present[keys]))


def order_keys(columns: Sequence[Column]) -> Keys:
    """Keys that sort rows by the first column, then the second, and so on."""
    keys = _column_keys(columns[0])
    for column in columns[1:]:
        keys = _pair(keys, _column_keys(column))
    return keys


def _pair(first: Keys, second: Keys) -> Keys:
    if first.span * second.span >= 2**62:
        first = first.dense()
    if first.span * second.span >= 2**62:
        second = second.dense()
    span = second.span
    keys = (first.keys - first.low) * span + (second.keys - second.low)

    def decode(keys: np.ndarray) -> list[pa.Array]:
        return first.decode(keys // span + first.low) + second.decode(keys % span + second.low)

    return Keys(keys, 0, first.span * span - 1, decode)


def _column_keys(column: Column) -> Keys:
    kind = column.type
    if column.array.null_count:
        return _with_nulls(column)
    if pa.types.is_boolean(kind) or pa.types.is_temporal(kind) or _fits_int64(kind):
        keys = column.values.astype(np.int64, copy=False)
        low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
        return Keys(keys, low, high, lambda keys: [from_int64(keys, kind)])
    if pa.types.is_floating(kind):
        return _float_keys(column)
    if pa.types.is_nested(kind):
        raise TypeMismatch(f"values of type {kind} have no order: take their parts as columns")
    return _ranked(column)


def _fits_int64(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) and kind != pa.uint64())


def from_int64(keys: np.ndarray, kind: pa.DataType) -> pa.Array:
    """int64 numbers as an Arrow array of a boolean, integer or temporal type."""
    if pa.types.is_boolean(kind):
        return pa.array(keys.astype(np.bool_))
    if pa.types.is_temporal(kind):
        width = pa.int64() if kind.bit_width == 64 else pa.int32()
        return pa.array(keys).cast(width).view(kind)
    return pa.array(keys).cast(kind)


def _float_keys(column: Column) -> Keys:
    def compute() -> np.ndarray:
        values = column.values.astype(np.float64, copy=False) + 0.0
        unordered = np.isnan(values)
        if unordered.any():
            values[unordered] = np.nan
        bits = values.view(np.int64)
        return np.where(bits < 0, bits ^ _TOP, bits)

    keys = column.memo("float keys", compute)
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)

    def decode(keys: np.ndarray) -> list[pa.Array]:
        values = np.where(keys < 0, keys ^ _TOP, keys).view(np.float64)
        return [pa.array(values, from_pandas=False).cast(column.type, safe=False)]

    return Keys(keys, low, high, decode)


def _ranked(column: Column) -> Keys:
    """Keys of any type that Arrow can sort: places in the sorted dictionary."""
    encoded = column.array.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[np.asarray(order)] = np.arange(len(order))
    keys = rank[np.asarray(encoded.indices)]
    dictionary = encoded.dictionary.take(order)
    return Keys(keys, 0, max(len(order) - 1, 0), lambda keys: [dictionary.take(pa.array(keys))])


def _with_nulls(column: Column) -> Keys:
    valid = np.asarray(column.array.is_valid())
    present = _column_keys(column.take(valid)).dense()
    keys = np.zeros(len(column), np.int64)
    keys[valid] = present.keys + 1

    def decode(keys: np.ndarray) -> list[pa.Array]:
        nothing = keys == 0
        if present.keys.size == 0:
            return [pa.nulls(len(keys), column.type)]
        values = present.decode(np.maximum(keys - 1, 0))[0]
        return [pc.if_else(pa.array(nothing), pa.scalar(None, column.type), values)]

    return Keys(keys, 0, present.high + 1, decode)


__all__ = ["Keys", "from_int64", "numbers", "order_keys"]

"""int64 keys that sort as the values of a column do, and the values of such keys.

The order is Spark's: null first, NaN above every number and equal to itself, -0.0 equal to 0.0, false before
true, strings by their UTF-8 bytes, structs field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import TypeMismatch
from .columns import Column, numbers, with_missing
from .plain_types import is_text
from .strings import sort_texts

_TOP = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_LOWEST = np.int64(-(2**63))
_NAN = np.float64(np.nan).view(np.int64)
_ROOM = 2**62


@dataclass(frozen=True)
class Keys:
    """Order keys of one or more columns, with `low <= keys <= high`; `decode` gives the columns of some keys."""

    keys: np.ndarray
    low: int
    high: int
    decode: Callable[[np.ndarray], list[pa.Array]]

    @property
    def span(self) -> int:
        """The number of possible keys."""
        return self.high - self.low + 1

    def dense(self) -> Keys:
        """The same order in keys without gaps."""
        present, dense = np.unique(self.keys, return_inverse=True)
        return Keys(
            keys=dense.astype(np.int64),
            low=0,
            high=max(len(present) - 1, 0),
            decode=lambda keys: self.decode(present[keys]),
        )


def order_keys(columns: Sequence[Column]) -> Keys:
    """Keys that sort rows by the first column, then the second, and so on."""
    first, *rest = packed_keys(columns)
    for keys in rest:
        first, keys = _squeeze(first, keys)
        first = _pair(first, keys)
    return first


def packed_keys(columns: Sequence[Column]) -> list[Keys]:
    """Keys that sort rows by the first keys, then the next; neighbours that fit into one int64 are packed into it."""
    packed: list[Keys] = []
    for column in columns:
        keys = _column_keys(column)
        if packed and packed[-1].span * keys.span < _ROOM:
            packed[-1] = _pair(packed[-1], keys)
        else:
            packed.append(keys)
    return packed


def require_order(kind: pa.DataType, who: object, input: object) -> None:
    """Raise `TypeMismatch` for a column type whose values have no order."""
    if not has_order(kind):
        raise TypeMismatch(
            f"{who!r} takes values that can be sorted, but {input!r} is {kind}: cast it, or name a part of it"
        )


def has_order(kind: pa.DataType) -> bool:
    """True for a column type whose values can be sorted."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(has_order(field.type) for field in kind)
    unsorted = (pa.types.is_nested, pa.types.is_interval, pa.types.is_string_view, pa.types.is_binary_view)
    small = pa.types.is_decimal(kind) and kind.bit_width < 128
    return not small and not any(is_kind(kind) for is_kind in unsorted)


def _squeeze(first: Keys, second: Keys) -> tuple[Keys, Keys]:
    """The two keys, with gaps removed if a pair of them would not fit otherwise."""
    if first.span * second.span >= _ROOM:
        first = first.dense()
    if first.span * second.span >= _ROOM:
        second = second.dense()
    return first, second


def _pair(first: Keys, second: Keys) -> Keys:
    span = second.span
    keys = (first.keys - first.low) * span + (second.keys - second.low)

    def decode(keys: np.ndarray) -> list[pa.Array]:
        upper = keys // span
        return first.decode(upper + first.low) + second.decode(keys - upper * span + second.low)

    return Keys(keys=keys, low=0, high=first.span * span - 1, decode=decode)


def _column_keys(column: Column) -> Keys:
    return column.memo("order keys", lambda: _with_nulls(column) if column.array.null_count else _of_values(column))


def _of_values(column: Column) -> Keys:
    kind = column.type
    if pa.types.is_floating(kind):
        return _floats(column)
    if kind == pa.uint64():
        flipped = column.values ^ np.uint64(2**63)
        return _bounded(flipped.view(np.int64), lambda keys: [pa.array(keys.view(np.uint64) ^ np.uint64(2**63))])
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or _is_time(kind):
        return _bounded(column.values.astype(np.int64, copy=False), lambda keys: [from_int64(keys, kind)])
    if pa.types.is_struct(kind):
        return _struct_keys(column)
    if pa.types.is_decimal128(kind) and kind.precision <= 18:
        return _bounded(_low_lanes(column.array), lambda keys: [_to_decimals(keys, kind)])
    return _ranked(column)


def _bounded(keys: np.ndarray, decode: Callable[[np.ndarray], list[pa.Array]]) -> Keys:
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    return Keys(keys=keys, low=low, high=high, decode=decode)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)


def from_int64(keys: np.ndarray, kind: pa.DataType) -> pa.Array:
    """int64 numbers as an Arrow array of a boolean, integer or temporal type."""
    if pa.types.is_boolean(kind):
        return pa.array(keys.astype(np.bool_))
    if pa.types.is_temporal(kind):
        width = pa.int64() if kind.bit_width == 64 else pa.int32()
        return pa.array(keys).cast(width).view(kind)
    return pa.array(keys).cast(kind)


def _floats(column: Column) -> Keys:
    """Keys of floats: the sign and the bits of the size, without the gaps around 0 and below NaN."""
    kind = column.type
    values = column.values.astype(np.float64, copy=False) + 0.0
    unordered = np.isnan(values)
    some = bool(unordered.any())
    if some:
        values[unordered] = 0.0
    bits = values.view(np.int64)
    if not some and (not len(bits) or int(bits.min()) >= 0):
        return _bounded(bits, lambda keys: [_as_floats(keys, kind)])
    sign = bits >> 63
    bits &= _TOP
    gap = int(bits.min())
    if gap == 0:
        gap = int(bits.min(where=bits != 0, initial=_TOP))
    gap = min(gap, int(bits.max())) - 1
    # Zeros fall below 1 here and are set again. Then the sign inverts the bits of the size.
    bits -= gap
    np.maximum(bits, 0, out=bits)
    bits ^= sign
    bits -= sign
    low, high = int(bits.min()), int(bits.max())
    nan = high + 1
    if some:
        bits[unordered] = high = nan

    def decode(keys: np.ndarray) -> list[pa.Array]:
        sign = keys >> 63
        numbers = keys ^ sign
        numbers -= sign
        numbers += gap
        numbers[keys == 0] = 0
        numbers |= sign & _LOWEST
        if some:
            numbers[keys == nan] = _NAN
        return [_as_floats(numbers, kind)]

    return Keys(keys=bits, low=low, high=high, decode=decode)


def _as_floats(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(values.view(np.float64), from_pandas=False).cast(kind, safe=False)


def _struct_keys(column: Column) -> Keys:
    """Keys of structs, which sort by the first field, then the next."""
    fields = list(column.type)
    keys = order_keys([Column(child) for child in column.array.flatten()])
    return replace(keys, decode=lambda numbers: [pa.StructArray.from_arrays(keys.decode(numbers), fields=fields)])


def plain_numbers(array: pa.Array) -> np.ndarray | None:
    """Numbers that numpy sorts as the values sort, NaN last; None for types without such numbers."""
    kind = array.type
    if pa.types.is_floating(kind):
        return numbers(array).astype(np.float64, copy=False)
    if pa.types.is_integer(kind) or _is_time(kind):
        return numbers(array)
    if pa.types.is_decimal128(kind) and kind.precision <= 18:
        return _low_lanes(array)
    return None


def from_numbers(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The values of numbers that `plain_numbers` gave."""
    if pa.types.is_floating(kind):
        return pa.array(values + 0.0, from_pandas=False).cast(kind, safe=False)
    return _to_decimals(values, kind) if pa.types.is_decimal128(kind) else from_int64(values, kind)


def _low_lanes(array: pa.Array) -> np.ndarray:
    if len(array) == 0:
        return np.empty(0, np.int64)
    raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    return raw[array.offset : array.offset + len(array), 0].copy()


def _to_decimals(keys: np.ndarray, kind: pa.DataType) -> pa.Array:
    raw = np.empty((len(keys), 2), np.int64)
    raw[:, 0], raw[:, 1] = keys, keys >> 63
    return pa.Array.from_buffers(kind, len(keys), [None, pa.py_buffer(raw)])


def _ranked(column: Column) -> Keys:
    """Keys of any type that Arrow can sort: the places in the sorted dictionary."""
    encoded = column.array.dictionary_encode()
    values = encoded.dictionary
    order = sort_texts(values) if is_text(values.type) else np.asarray(pc.array_sort_indices(values))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    dictionary = values.take(pa.array(order))
    keys = rank[np.asarray(encoded.indices)]
    return Keys(keys=keys, low=0, high=max(len(order) - 1, 0), decode=lambda keys: [dictionary.take(pa.array(keys))])


def _with_nulls(column: Column) -> Keys:
    """Keys with null as the key below the least; if the least is -2**63, the keys are made dense first."""
    valid = np.asarray(column.array.is_valid())
    present = _of_values(column.take(valid)) if not pa.types.is_null(column.type) else None
    if present is None or not len(present.keys):
        return Keys(
            keys=np.zeros(len(column), np.int64), low=0, high=0, decode=lambda keys: [pa.nulls(len(keys), column.type)]
        )
    if present.low == _LOWEST:
        present = present.dense()
    null = present.low - 1
    keys = np.full(len(column), null)
    keys[valid] = present.keys
    inner = present

    def decode(keys: np.ndarray) -> list[pa.Array]:
        values = inner.decode(np.maximum(keys, inner.low))[0]
        return [with_missing(values, keys == null)]

    return Keys(keys=keys, low=null, high=inner.high, decode=decode)

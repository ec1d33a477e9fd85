"""Comparison of Arrow arrays of one type, nested or not, element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def same_as_first(accumulators: Sequence[pa.Array], one: Sequence[pa.Array]) -> np.ndarray:
    """True for each accumulator that is the same as a single one."""
    count = len(accumulators[0])
    places = pa.array(np.zeros(count, np.int64))
    pairs = zip(accumulators, one, strict=True)
    same: np.ndarray = np.logical_and.reduce([alike(column, other.take(places)) for column, other in pairs])
    return same


def alike(a: pa.Array, b: pa.Array) -> np.ndarray:
    """True where two arrays of one type hold the same value, nested or not; null equals null."""
    kind = a.type
    both = np.asarray(a.is_valid()) & np.asarray(b.is_valid())
    neither = np.asarray(a.is_null()) & np.asarray(b.is_null())
    if pa.types.is_struct(kind):
        for left, right in zip(a.flatten(), b.flatten(), strict=True):
            both &= alike(left, right)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        sizes = np.asarray(pc.list_value_length(a).fill_null(0)).astype(np.int64)
        both &= sizes == np.asarray(pc.list_value_length(b).fill_null(0))
        places = pa.array(np.flatnonzero(both))
        flat = [_elements(lists.take(places)) for lists in (a, b)]
        unlike = np.flatnonzero(both).repeat(sizes[both])[~alike(*flat)]
        both[unlike] = False
    else:
        both &= np.asarray(pc.equal(a, b).fill_null(False))
    return both | neither


def _elements(lists: pa.Array) -> pa.Array:
    if pa.types.is_map(lists.type):
        return pa.StructArray.from_arrays([lists.keys, lists.items], names=["key", "value"])
    return lists.flatten()


def zeros(column: pa.Array) -> np.ndarray:
    """True where an accumulator column holds the number zero or the empty list."""
    if pa.types.is_list(column.type) or pa.types.is_map(column.type):
        return np.asarray(pc.equal(pc.list_value_length(column), 0))
    if pa.types.is_struct(column.type):
        fields = [zeros(field) for field in column.flatten()]
        return np.logical_and.reduce(fields) if fields else np.ones(len(column), np.bool_)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(pc.equal(column, pa.scalar(0, column.type)))
    return np.asarray(column.is_null())

"""Columns from their parts: values of some rows, and values of one row that came one after the other.

Guarded by tests/messages/test_avro.py and tests/messages/test_protobuf.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def assembled(parts: Sequence[pa.Array], places: Sequence[np.ndarray], count: int, kind: pa.DataType) -> pa.Array:
    """A column with each part at its places, and null elsewhere.

    >>> assembled([pa.array([1, 2])], [np.array([2, 0])], 3, pa.int64()).to_pylist()
    [2, None, 1]
    """
    if not parts:
        return pa.nulls(count, kind)
    order, there = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    whole = np.concatenate(places)
    order[whole] = np.arange(len(whole))
    there[whole] = True
    values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return values.take(pa.array(order, mask=~there))


def gathered(parts: Sequence[pa.Array], owners: Sequence[np.ndarray], kind: pa.DataType) -> pa.Array:
    """The values of all parts by their owners, and of one owner in the order of the parts.

    >>> gathered([pa.array([1, 2]), pa.array([3])], [np.array([0, 1]), np.array([0])], pa.int64()).to_pylist()
    [1, 3, 2]
    """
    if not parts:
        return pa.nulls(0, kind)
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(owners), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(order))


def offsets_of(owners: Sequence[np.ndarray], count: int) -> pa.Array:
    """The offsets of lists, by the owners of their values."""
    counts = np.bincount(np.concatenate(owners), minlength=count) if owners else np.zeros(count, np.int64)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.array(offsets)


def list_of(values: pa.Array, owners: Sequence[np.ndarray], count: int, kind: pa.DataType) -> pa.Array:
    """Lists of values that are in the order of their owners."""
    return pa.ListArray.from_arrays(offsets_of(owners, count), values, kind)


def map_of(keys: pa.Array, values: pa.Array, owners: Sequence[np.ndarray], count: int, kind: pa.DataType) -> pa.Array:
    """Maps of keys and values that are in the order of their owners; of a key that is there twice the last one counts.

    >>> pairs = pa.array(["a", "a"]), pa.array([1, 2])
    >>> map_of(*pairs, [np.array([0, 0])], 1, pa.map_(pa.string(), pa.int64())).to_pylist()
    [[('a', 2)]]
    """
    whole = np.sort(np.concatenate(owners)) if owners else np.zeros(0, np.int64)
    if len(whole) and (whole[1:] == whole[:-1]).any():
        codes = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
        pairs = whole * (int(codes.max()) + 1) + codes
        _, last = np.unique(pairs[::-1], return_index=True)
        if len(last) < len(pairs):
            places = pa.array(np.sort(len(pairs) - 1 - last))
            keys, values, whole = keys.take(places), values.take(places), whole[np.asarray(places)]
    return pa.MapArray.from_arrays(offsets_of([whole], count), keys, values, kind)


__all__ = ["assembled", "gathered", "list_of", "map_of", "offsets_of"]

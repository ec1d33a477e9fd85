"""Tables cut by the bytes that their rows take once dictionaries and views are expanded.

A million indices into a dictionary of one long text take 4 MB, and 2 GB as plain text. So a table is cut by the
expanded bytes of its rows, before anything expands them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_TEXT = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)
_VIEW = (pt.is_string_view, pt.is_binary_view)
_LIST_VIEW = (pt.is_list_view, pt.is_large_list_view)
_OFFSET_LIST = (pt.is_list, pt.is_large_list, pt.is_map)


_VARYING = frozenset(
    kind.id
    for kind in (
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
        pa.dictionary(pa.int8(), pa.int8()), pa.struct([]),
    )
)  # fmt: skip
"""Types without fields whose values may differ in length."""


def fixed_bytes(kind: pa.DataType) -> int:
    """The bytes of a row of this type that do not depend on its value, with its offset for texts and lists.

    >>> import pyarrow as pa
    >>> [fixed_bytes(kind) for kind in (pa.int16(), pa.bool_(), pa.string(), pa.struct({"a": pa.int64()}))]
    [2, 1, 4, 8]
    """
    if pt.is_dictionary(kind):
        return fixed_bytes(kind.value_type)
    if pt.is_struct(kind):
        return sum(fixed_bytes(field.type) for field in kind)
    if pt.is_fixed_size_list(kind):
        return int(kind.list_size) * fixed_bytes(kind.value_type)
    if pt.is_null(kind):
        return 0
    if pt.is_nested(kind) or any(is_kind(kind) for is_kind in (*_TEXT, *_VIEW)):
        return 8 if pt.is_large_string(kind) or pt.is_large_binary(kind) or pt.is_large_list(kind) else 4
    return max(int(kind.bit_width) // 8, 1)


def cut(table: pa.Table, fixed: int, rows: int, size: int) -> Iterator[pa.Table]:
    """The table in parts of at most `rows` rows and `size` expanded bytes; a part of one row may be larger.

    `fixed` is the number of bytes of each row without its texts and lists, in the expanded types.

    >>> import pyarrow as pa
    >>> texts = pa.array(["a" * 100, "b"]).dictionary_encode()
    >>> [part.num_rows for part in cut(pa.table({"s": texts.take(pa.array([0, 0, 1, 1, 0]))}), 4, 1000, 220)]
    [4, 1]
    """
    if table.num_rows <= rows and fixed * table.num_rows + sum(map(_at_most, table.columns)) <= size:
        yield table
        return
    sizes = np.full(table.num_rows, fixed, np.int64)
    for column in table.columns:
        if varies(column.type):
            sizes += np.concatenate([row_bytes(chunk) for chunk in column.chunks])
    ends = np.cumsum(sizes)
    start = 0
    while start < table.num_rows:  # one turn for each part
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + size, side="right"))
        stop = min(max(stop, start + 1), start + rows, table.num_rows)
        yield table.slice(start, stop - start)
        start = stop


def value_bytes(table: pa.Table) -> int:
    """The bytes of the values of a table, and nothing of how they lie in memory: the same after it was stored.

    >>> import pyarrow as pa
    >>> value_bytes(pa.table({"n": [1, 2], "s": ["abc", ""]}).slice(0, 1))
    15
    """
    fixed, places = _layout(tuple(table.schema.types))
    size = fixed * table.num_rows
    return size + sum(_varying(chunk) for place in places for chunk in table.column(place).chunks)


@lru_cache(maxsize=256)
def _layout(kinds: tuple[pa.DataType, ...]) -> tuple[int, tuple[int, ...]]:
    """The bytes of a row that follow from its types, and the places of the columns that have more."""
    return sum(map(fixed_bytes, kinds)), tuple(i for i, kind in enumerate(kinds) if varies(kind))


def _varying(array: pa.Array) -> int:
    """The bytes of an array that do not follow from its type, from the ends of its offsets where that is enough."""
    kind = array.type
    if not len(array) or not varies(kind):
        return 0
    if pt.is_struct(kind):
        return sum(_varying(array.field(i)) for i in range(kind.num_fields))
    if not (pt.is_string(kind) or pt.is_binary(kind) or pt.is_list(kind)):
        return int(row_bytes(array).sum())
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    first, stop = int(offsets[array.offset]), int(offsets[array.offset + len(array)])
    if not pt.is_list(kind):
        return stop - first
    return fixed_bytes(kind.value_type) * (stop - first) + _varying(array.values.slice(first, stop - first))


def expanded_bytes(table: pa.Table | pa.RecordBatch) -> int:
    """The bytes of a table's plain columns; those of dictionaries are not counted."""
    return sum(column.nbytes for column in table.columns if not pt.is_dictionary(column.type))


def _at_most(column: pa.ChunkedArray) -> int:
    """An upper bound of the bytes that vary; cheap for plain types and dictionaries."""
    kind = column.type
    if not varies(kind):
        return 0
    if not _expands(kind):
        return int(column.nbytes)
    if pt.is_dictionary(kind):
        entries = (row_bytes(chunk.dictionary).max(initial=0) * len(chunk) for chunk in column.chunks)
        return int(sum(entries))
    return int(sum(row_bytes(chunk).sum() for chunk in column.chunks))


def varies(kind: pa.DataType) -> bool:
    """True if values of a type differ in length."""
    if kind.num_fields == 0 and kind.id not in _VARYING:
        return False
    if pt.is_dictionary(kind):
        return varies(kind.value_type)
    if pt.is_struct(kind):
        return any(varies(field.type) for field in kind)
    if pt.is_fixed_size_list(kind):
        return varies(kind.value_type)
    return pt.is_nested(kind) or any(is_kind(kind) for is_kind in (*_TEXT, *_VIEW))


def _expands(kind: pa.DataType) -> bool:
    """True if a column of this type may hold one value in many rows."""
    if pt.is_dictionary(kind) or any(is_kind(kind) for is_kind in (*_VIEW, *_LIST_VIEW)):
        return True
    return any(_expands(kind.field(i).type) for i in range(kind.num_fields))


def row_bytes(array: pa.Array) -> np.ndarray:
    """The bytes of each row that do not follow from its type.

    >>> import pyarrow as pa
    >>> row_bytes(pa.array([[1, 2], []], pa.list_(pa.int64()))).tolist(), row_bytes(pa.array(["ab", None])).tolist()
    ([16, 0], [2, 0])
    """
    kind, zeros = array.type, np.zeros(len(array), np.int64)
    if not len(array) or not varies(kind):
        return zeros
    if pt.is_dictionary(kind):
        entries = np.append(row_bytes(array.dictionary), 0)
        return entries[np.asarray(array.indices.cast(pa.int64()).fill_null(len(array.dictionary)))]
    if pt.is_struct(kind):
        return np.asarray(np.sum([row_bytes(child) for child in array.flatten()], axis=0, dtype=np.int64))
    if any(is_kind(kind) for is_kind in _VIEW):
        # A view is 16 bytes, the first four of them its length.
        lengths = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)[:, 0]
        lengths = lengths[array.offset : array.offset + len(array)].astype(np.int64)
        return np.where(np.asarray(array.is_valid()), lengths, 0) if array.null_count else lengths
    if any(is_kind(kind) for is_kind in _TEXT):
        return np.asarray(pc.binary_length(array).fill_null(0)).astype(np.int64)
    if pt.is_fixed_size_list(kind):
        width = int(kind.list_size)
        children = array.values.slice(array.offset * width, len(array) * width)
        return np.add.reduceat(row_bytes(children), np.arange(0, len(children), width)) if width else zeros
    values = pa.StructArray.from_arrays([array.keys, array.items], ["k", "v"]) if pt.is_map(kind) else array.values
    if not varies(values.type) and any(is_kind(kind) for is_kind in _OFFSET_LIST):
        return np.diff(np.asarray(array.offsets).astype(np.int64)) * fixed_bytes(values.type)
    before = np.append(0, np.cumsum(row_bytes(values) + fixed_bytes(values.type)))
    offsets = np.asarray(array.offsets).astype(np.int64)
    if any(is_kind(kind) for is_kind in _OFFSET_LIST):
        return np.diff(before[offsets])
    ends = offsets + np.asarray(array.sizes).astype(np.int64)
    return np.where(np.asarray(array.is_valid()), before[ends] - before[offsets], 0)

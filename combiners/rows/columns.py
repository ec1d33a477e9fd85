"""One input column, with values derived from it once for all combiners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ...errors import TypeMismatch
from .dictionaries import one_dictionary
from .plain_types import decoded, decoded_inside, text_room

T = TypeVar("T")


class Column:
    """An Arrow array without chunks that keeps the values derived from it.

    >>> import pyarrow as pa
    >>> Column(pa.array([1, 2, 3])).values
    array([1, 2, 3])
    """

    __slots__ = ("_memo", "array")

    def __init__(self, array: pa.Array | pa.ChunkedArray) -> None:
        if isinstance(array, pa.ChunkedArray):
            array = flat(array)
        if pa.types.is_dictionary(array.type):
            array = decoded(array)
        self.array: pa.Array = array
        self._memo: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.array)

    @property
    def type(self) -> pa.DataType:
        return self.array.type

    def memo(self, name: str, compute: Callable[[], T]) -> T:
        """`compute()`, kept under `name` for the next combiner that asks."""
        if name not in self._memo:
            self._memo[name] = compute()
        value: T = self._memo[name]
        return value

    @property
    def values(self) -> np.ndarray:
        """The column's numbers (times as int64, booleans as bool), as a numpy view if possible."""
        return self.memo("values", lambda: numbers(self.array))

    def take(self, rows: np.ndarray) -> Column:
        """The rows at these places, or where this mask is true."""
        if rows.dtype == np.bool_:
            return Column(self.array.filter(pa.array(rows)))
        return Column(self.array.take(pa.array(rows)))

    def split_finite(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The float64 values with zero for NaN and infinities, and a mask of those (None: there are none)."""
        return self.memo("finite", self._split_finite)

    def _split_finite(self) -> tuple[np.ndarray, np.ndarray | None]:
        values = self.values.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            all_finite = bool(np.isfinite(values.sum()))
        if all_finite:
            return values, None
        special = ~np.isfinite(values)
        if not special.any():
            return values, None
        return np.where(special, 0.0, values), special


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A table's column as one array; raises `OutOfRange` if its texts are too long for one array.

    Dictionaries inside lists, structs and maps of several chunks are decoded: Arrow joins those of half floats as their
    bits.
    """
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.nulls(0, column.type)
    with text_room:
        if pa.types.is_dictionary(column.type):
            return one_dictionary(column.chunks)
        return pa.concat_arrays(decoded_inside(column).chunks)


def with_missing(values: pa.Array, missing: np.ndarray) -> pa.Array:
    """The values with null in some places, in their own type: `if_else` makes other decimals of those in hundreds.

    >>> import numpy as np, pyarrow as pa
    >>> with_missing(pa.array([1, 2]), np.array([False, True])).to_pylist()
    [1, None]
    """
    return values.take(pa.array(np.arange(len(values)), mask=missing)) if missing.any() else values


def joined_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one. Columns that are dictionaries in some tables and not in others are decoded.

    >>> import pyarrow as pa
    >>> coded = pa.table({"s": pa.array(["a"]).dictionary_encode()})
    >>> joined_tables([coded, pa.table({"s": ["b"]})])["s"].to_pylist()
    ['a', 'b']
    """
    if any(table.schema != tables[0].schema for table in tables):
        tables = [_decoded(table) for table in tables]
    return pa.concat_tables(tables)


def _decoded(table: pa.Table) -> pa.Table:
    for i, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind):
            table = table.set_column(i, table.field(i).name, table.column(i).cast(kind.value_type))
    return table


def int64_column(column: pa.ChunkedArray) -> np.ndarray:
    """A table's int64 column without nulls as numpy numbers."""
    return np.asarray(flat(column).to_numpy(zero_copy_only=False))


def numbers(array: pa.Array) -> np.ndarray:
    """The values of a fixed-width Arrow array without nulls as numpy numbers; times become int64."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_temporal(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32()).cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TypeMismatch(f"a column of numbers or times is needed, but its type is {kind}")
    if array.null_count:
        array = array.fill_null(0)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def text_bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The offsets and the bytes of a column of strings or bytes; the bytes of a null have no meaning."""
    offsets, data = stored_texts(array)
    return offsets.astype(np.int64, copy=False), data


def stored_texts(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The same, with offsets as narrow as they are stored, which may overflow where they are added."""
    _, raw_offsets, data = array.buffers()
    if len(array) == 0 or raw_offsets is None:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets = np.frombuffer(raw_offsets, np.int64 if wide else np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)

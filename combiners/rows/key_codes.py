"""Key columns as numbers that are equal if the keys are equal, and the keys of such numbers.

Null is a key of its own; NaN equals NaN and -0.0 equals 0.0, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import TypeMismatch
from .columns import flat
from .numbering import first_rows, numbered
from .plain_types import decoded, is_text, plain_type
from .text_codes import all_differ, codes_of_one_length

_ROOM = 2**62

_MANY = 1 << 16
"""The least number of texts for which the start of another algorithm is worth its time."""

_SAMPLE = 1 << 14
"""The number of texts by which the number of different ones is judged."""

_LARGE = 1 << 28
"""The largest number of bytes of texts that Arrow's group_by is given."""


@dataclass(frozen=True)
class KeyCodes:
    """A code below `size` for each row; `decode` gives the key columns of some codes."""

    codes: np.ndarray
    size: int
    decode: Callable[[np.ndarray], list[pa.Array]]
    first: Callable[[], np.ndarray] | None = None
    """The first row of each code, if codes have no gaps and are numbered by first appearance."""

    @property
    def sparse(self) -> bool:
        """True if so many codes may be without a row that a table of all codes is not worth its memory."""
        return self.size > max(8 * len(self.codes), 1024)

    def dense(self) -> KeyCodes:
        """Codes without gaps, by first appearance."""
        codes, first = numbered(self.codes)
        present = self.codes[first]
        return KeyCodes(
            codes=codes, size=len(first), decode=lambda chosen: self.decode(present[chosen]), first=lambda: first
        )


def key_codes(columns: Sequence[pa.Array], rows: int, coded: bool = False) -> KeyCodes:
    """One code a row for all key columns together. With `coded` texts are decoded to dictionaries.

    >>> import numpy as np, pyarrow as pa
    >>> found = key_codes([pa.array(["b", None, "b"]), pa.array([3, 4, 4])], 3)
    >>> [column.to_pylist() for column in found.decode(found.codes)]
    [['b', None, 'b'], [3, 4, 4]]
    """
    if not columns:
        return KeyCodes(codes=np.zeros(rows, np.int64), size=1, decode=lambda codes: [])
    return reduce(_pair, map(_coded if coded else _column, columns))


def _coded(column: pa.Array) -> KeyCodes:
    """The codes of a column, of which texts are decoded to dictionaries."""
    codes = _column(column)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return codes

    def decode(chosen: np.ndarray) -> list[pa.Array]:
        [values] = codes.decode(np.arange(codes.size if len(column) else 0))
        nulls = None
        if values.null_count:  # Arrow cannot join dictionaries that have a null
            nulls = np.asarray(values.is_null()).take(chosen, mode="clip")
            values = values.fill_null(pa.scalar(b"").cast(values.type))
        return [pa.DictionaryArray.from_arrays(pa.array(chosen, pa.int32(), mask=nulls), values)]

    return replace(codes, decode=decode)


def of_values_used(column: pa.Array) -> pa.Array:
    """The same dictionary without the values that no row has; other columns as they are.

    >>> import pyarrow as pa
    >>> few = pa.array(["a", "b", "c"]).dictionary_encode().slice(2)
    >>> of_values_used(few).dictionary.to_pylist()
    ['c']
    """
    if not pa.types.is_dictionary(column.type):
        return column
    nulls = _nulls(column.indices)
    places = np.asarray(column.indices if nulls is None else column.indices.fill_null(0))
    used = np.zeros(len(column.dictionary), np.bool_)
    used[places if nulls is None else places[~nulls]] = True
    if used.all():
        return column
    number = np.maximum(np.cumsum(used, dtype=np.int32) - 1, 0)
    values = column.dictionary.filter(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(number.take(places, mode="clip"), mask=nulls), values)


def group_keys(column: pa.Array) -> pa.Array:
    """A key column in the form in which rows are grouped: in normal form, but a dictionary stays one.

    >>> import pyarrow as pa
    >>> group_keys(pa.array(["b", "a", "b"]).dictionary_encode()).indices.to_pylist()
    [0, 1, 0]
    """
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) > len(column):
        return normal_keys(column)
    return pa.DictionaryArray.from_arrays(column.indices, normal_keys(column.dictionary))


def normal_keys(column: pa.Array) -> pa.Array:
    """A key column in normal form: of a plain type, dictionaries decoded, -0.0 as 0.0, also inside structs.

    >>> normal_keys(pa.array([{"x": -0.0}, None])).to_pylist()
    [{'x': 0.0}, None]
    """
    if pa.types.is_dictionary(column.type):
        column = decoded(column)
    plain = plain_type(column.type)
    if plain != column.type:
        column = column.cast(plain)
    if pa.types.is_float16(column.type):
        return normal_keys(column.cast(pa.float32())).cast(column.type)
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))
    if pa.types.is_struct(column.type) and has_floats(column.type):
        parts = [normal_keys(part) for part in column.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=column.is_null())
    return column


def has_floats(kind: pa.DataType) -> bool:
    """True for floats, and for structs with floats inside."""
    if pa.types.is_struct(kind):
        return any(has_floats(field.type) for field in kind)
    return bool(pa.types.is_floating(kind))


def _pair(first: KeyCodes, second: KeyCodes) -> KeyCodes:
    if first.size == 1:
        return replace(second, decode=lambda codes: [*first.decode(np.zeros_like(codes)), *second.decode(codes)])
    if first.size * second.size >= _ROOM:
        first = first.dense()
        if first.size * second.size >= _ROOM:
            second = second.dense()
    size = second.size

    def decode(codes: np.ndarray) -> list[pa.Array]:
        upper = codes // size
        return [*first.decode(upper), *second.decode(codes - upper * size)]

    return KeyCodes(codes=first.codes * size + second.codes, size=first.size * size, decode=decode)


def _column(column: pa.Array) -> KeyCodes:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _dictionary(column)
    if pa.types.is_null(kind):
        return KeyCodes(
            codes=np.zeros(len(column), np.int64), size=1, decode=lambda codes: [pa.nulls(len(codes), kind)]
        )
    if pa.types.is_struct(kind):
        return _struct(column)
    if pa.types.is_nested(kind):
        raise TypeMismatch(f"a column of type {kind} cannot be a key: group by its parts")
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_boolean(kind):
        return _as(column.cast(pa.int8()), lambda keys: keys.cast(kind))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _as(column.view(pa.int64() if kind.bit_width == 64 else pa.int32()), lambda keys: keys.view(kind))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        narrow = _narrow(column)
        if narrow is not None:
            return narrow
    if pa.types.is_integer(kind) and not column.null_count:
        return _by_first(column, *numbered(np.asarray(column).astype(np.int64, copy=False)))
    if _are_many_texts(column):
        return _many_texts(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    values = encoded.dictionary
    codes, size = np.asarray(encoded.indices).astype(np.int64), max(len(values), 1)
    return KeyCodes(
        codes=codes,
        size=size,
        decode=lambda chosen: [values.take(pa.array(chosen))],
        first=partial(first_rows, codes, size),
    )


def _are_many_texts(column: pa.Array) -> bool:
    """True for texts of which so many differ that Arrow groups rows faster than it finds a dictionary."""
    if len(column) < _MANY or column.nbytes > _LARGE or not is_text(column.type):
        return False
    return len(column.slice(0, _SAMPLE).unique()) > _SAMPLE // 8


def _many_texts(column: pa.Array) -> KeyCodes:
    """The codes of texts by their hashes if they have one length, and else by Arrow's group_by."""
    coding = codes_of_one_length(column)
    if coding is None:
        return _grouped_texts(column)
    return _by_first(column, *coding)


def _by_first(column: pa.Array, codes: np.ndarray, first: np.ndarray) -> KeyCodes:
    """The codes of a column, and the first row of each."""
    return KeyCodes(
        codes=codes,
        size=max(len(first), 1),
        decode=lambda chosen: [column.take(pa.array(first[chosen]))],
        first=lambda: first,
    )


def _grouped_texts(column: pa.Array) -> KeyCodes:
    """The codes of texts by Arrow's group_by, which finds the groups in an order of its own."""
    rows = pa.table({"key": column, "row": np.arange(len(column), dtype=np.int32)})
    groups = rows.group_by("key", use_threads=False).aggregate([("row", "list")])
    sizes = np.asarray(flat(pc.list_value_length(groups["row_list"]))).astype(np.int64)
    order, values = np.asarray(flat(pc.list_flatten(groups["row_list"]))), flat(groups["key"])
    codes = np.empty(len(column), np.int64)
    codes[order] = np.repeat(np.arange(len(sizes)), sizes)
    return KeyCodes(codes=codes, size=len(sizes), decode=lambda chosen: [values.take(pa.array(chosen))])


def _dictionary(column: pa.Array) -> KeyCodes:
    """The codes of the values of a dictionary, of which two may be equal, and one may be null."""
    values, indices = column.dictionary, column.indices
    if len(values) == 0:
        return _column(pa.nulls(len(column), column.type.value_type))
    different = is_text(values.type) and all_differ(values)
    value_codes = _each_its_own(values) if different else _column(values)
    places = np.asarray(indices.fill_null(0) if indices.null_count else indices)
    codes = places.astype(np.int64) if different else value_codes.codes.take(places, mode="clip")
    if not indices.null_count:
        return KeyCodes(codes=codes, size=value_codes.size, decode=value_codes.decode)
    null = int(value_codes.codes[np.asarray(values.is_null())][0]) if values.null_count else value_codes.size
    codes[np.asarray(indices.is_null())] = null
    if null < value_codes.size:
        return KeyCodes(codes=codes, size=value_codes.size, decode=value_codes.decode)

    def decode(chosen: np.ndarray) -> list[pa.Array]:
        nulls = chosen == null
        arrays = value_codes.decode(np.where(nulls, value_codes.codes[0], chosen))
        return [pc.if_else(pa.array(nulls), pa.scalar(None, arrays[0].type), arrays[0])]

    return KeyCodes(codes=codes, size=value_codes.size + 1, decode=decode)


def _each_its_own(column: pa.Array) -> KeyCodes:
    """The codes of values of which no two are equal."""
    return KeyCodes(
        codes=np.arange(len(column)), size=len(column), decode=lambda chosen: [column.take(pa.array(chosen))]
    )


def _as(column: pa.Array, back: Callable[[pa.Array], pa.Array]) -> KeyCodes:
    """The codes of a column, with another column decoded from them."""
    codes = _column(column)
    return replace(codes, decode=lambda chosen: [back(part) for part in codes.decode(chosen)])


def _floats(column: pa.Array) -> KeyCodes:
    kind = column.type
    if pa.types.is_float16(kind):  # older versions of Arrow cannot fill nulls of this type
        column = column.cast(pa.float32())
    floats = np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False), dtype=np.float64) + 0.0
    floats[np.isnan(floats)] = np.nan
    bits = pa.array(floats.view(np.int64), mask=_nulls(column))
    return _as(bits, lambda keys: keys.view(pa.float64()).cast(kind, safe=False))


def _struct(column: pa.Array) -> KeyCodes:
    """The codes of structs: those of the fields and, if there are nulls, one more for null."""
    fields, nullable = list(column.type), bool(column.null_count)
    parts = [*column.flatten(), *([column.is_valid()] if nullable else [])]
    codes = key_codes(parts, len(column))

    def decode(chosen: np.ndarray) -> list[pa.Array]:
        arrays = codes.decode(chosen)
        mask = pc.invert(arrays.pop()) if nullable else None
        if not fields:
            whole = pa.array([{}] * len(chosen), column.type)
            return [whole if mask is None else pc.if_else(mask, pa.scalar(None, column.type), whole)]
        return [pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)]

    return replace(codes, decode=decode)


def _nulls(column: pa.Array) -> np.ndarray | None:
    return np.asarray(column.is_null()) if column.null_count else None


def _narrow(column: pa.Array) -> KeyCodes | None:
    """Codes by subtraction if all integers lie close together, else None."""
    kind = column.type
    if len(column) == column.null_count:
        return KeyCodes(
            codes=np.zeros(len(column), np.int64), size=1, decode=lambda codes: [pa.nulls(len(codes), kind)]
        )
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    span = high - low + 1
    if span > max(8 * len(column), 1024):
        return None
    nulls = _nulls(column)
    values = np.asarray((column.fill_null(low) if nulls is not None else column).to_numpy(zero_copy_only=False))
    codes = values.astype(np.int64, copy=False)
    if low or nulls is not None:
        codes = codes - low
    if nulls is not None:
        codes[nulls] = span

    def decode(codes: np.ndarray) -> list[pa.Array]:
        return [pa.array(codes + low, mask=None if nulls is None else codes == span).cast(kind)]

    return KeyCodes(codes=codes, size=span if nulls is None else span + 1, decode=decode)

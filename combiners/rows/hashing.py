"""Hashes of rows that never change: the same on every machine, in every process, in every version.

Equal values of one kind have equal hashes. NaN equals NaN, -0.0 equals 0.0, and null is a value of its own. The width
of integers and floats and the storage of strings (dictionary, large, view) do not change the hash. Values of different
kinds have different hashes: 1, 1.0, true and "1" have four. Times of two units and decimals of two scales are two
kinds. The hashes are not cryptographic: somebody who chooses the values can make them collide.

A 64-bit word is hashed by a published finaliser: that of SplitMix64 in lane 0 (Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014), and that of MurmurHash3 in lane 1 (Appleby). A string is cut
into words of 8 bytes, and the hashes of the words, each salted with its place, are added up. The elements of a list
are hashed as the words of a string are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument, TypeMismatch
from .columns import Column, text_bytes

_BLOCK = 1 << 14
_GOLDEN = 0x9E3779B97F4A7C15
_JOIN = np.uint64(0xD6E8FEB86659FD93)
_PLACE = np.uint64(_GOLDEN)
_LENGTH = np.uint64(0xA0761D6478BD642F)
_WORD = np.dtype("<u8")
_FIRST_BYTES = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)

# The numbers are part of every hash: add to them, never change them.
_KINDS = {
    "null": 0,
    "integer": 1,
    "float": 2,
    "boolean": 3,
    "text": 4,
    "binary": 5,
    "decimal": 6,
    "list": 7,
    "struct": 8,
    "date": 9,
    "timestamp": 10,
    "time": 11,
    "duration": 12,
}
_BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}


@dataclass(frozen=True)
class _Lane:
    """One 64-bit hash function: a seed, and the shifts and factors of its finaliser."""

    name: str
    seed: int
    shifts: tuple[int, int, int]
    factors: tuple[int, int]

    def seeded(self, seed: int) -> _Lane:
        """The function of another seed; the seed 0 gives this function.

        The seed enters before the mixing, so that values that collide with one seed do not collide with another.
        """
        if seed == 0:
            return self
        spread = int(self.mix(np.array([seed], np.uint64))[0])
        return replace(self, name=f"{self.name}, seed {seed}", seed=(self.seed + spread) % 2**64)

    def salt(self, kind: str, variant: int = 0) -> np.uint64:
        """The number that makes the hashes of one kind of value differ from those of another."""
        return np.uint64((self.seed + (_KINDS[kind] + 256 * variant) * _GOLDEN) % 2**64)

    def mix(self, words: np.ndarray) -> np.ndarray:
        """Apply the finaliser in place, in blocks whose words stay in the cache between its steps."""
        spare = np.empty(min(len(words), _BLOCK), np.uint64)
        for start in range(0, len(words), _BLOCK):
            part = words[start : start + _BLOCK]
            shifted = spare[: len(part)]
            for shift, factor in zip(self.shifts, (*self.factors, None), strict=True):
                np.right_shift(part, np.uint64(shift), out=shifted)
                np.bitwise_xor(part, shifted, out=part)
                if factor is not None:
                    np.multiply(part, np.uint64(factor), out=part)
        return words

    def words(self, words: np.ndarray, kind: str, variant: int = 0) -> np.ndarray:
        """The hashes of 64-bit values of a kind."""
        return self.mix(words.view(np.uint64) + self.salt(kind, variant))

    def join(self, state: np.ndarray, hashes: np.ndarray) -> None:
        """Join, in place, the hashes of the columns so far with those of the next column."""
        state *= _JOIN
        state += hashes
        self.mix(state)


_LANES = (
    _Lane(
        name="hash 0", seed=0x243F6A8885A308D3, shifts=(30, 27, 31), factors=(0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
    ),
    _Lane(
        name="hash 1", seed=0x13198A2E03707344, shifts=(33, 33, 33), factors=(0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
    ),
)


def hash_rows(columns: Sequence[Column], seed: int = 0) -> np.ndarray:
    """A uint64 for each row of these columns; each `seed` gives another hash function.

    >>> import pyarrow as pa
    >>> [f"{h:016x}" for h in hash_rows([Column(pa.array(["a", None]))])]
    ['ede238b5fe4f4bdf', '243f6a8885a308d3']
    """
    return _rows(columns, _LANES[0].seeded(seed))


def hash_rows_128(columns: Sequence[Column], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two independent uint64 for each row of these columns, the first of them that of `hash_rows`.

    >>> import pyarrow as pa
    >>> low, high = hash_rows_128([Column(pa.array([1])), Column(pa.array([2.5]))])
    >>> f"{high[0]:016x}{low[0]:016x}"
    'a3d36e85b4ae3c36181ae822db6fc5a0'
    """
    return _rows(columns, _LANES[0].seeded(seed)), _rows(columns, _LANES[1].seeded(seed))


def hash_arrays(arrays: Sequence[pa.Array]) -> np.ndarray:
    """The hashes of `hash_rows` for arrays. Each value of a dictionary is hashed once.

    >>> import pyarrow as pa
    >>> texts = pa.array(["a", None, "a"])
    >>> bool((hash_arrays([texts.dictionary_encode()]) == hash_rows([Column(texts)])).all())
    True
    """
    state = _hash(arrays[0], _LANES[0])
    for array in arrays[1:]:
        _LANES[0].join(state, _hash(array, _LANES[0]))
    return state


def require_seed(seed: object, who: str) -> None:
    """Raise `InvalidArgument` unless the value is a seed of a hash function."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InvalidArgument(f"{who}(seed): seed must be a whole number from 0 to 2**63 - 1, but is {seed!r}")


def require_hash(kind: pa.DataType, who: object, input: object) -> None:
    """Raise `TypeMismatch` for a column type that cannot be hashed."""
    try:
        _hash(pa.nulls(0, kind), _LANES[0])
    except TypeMismatch as error:
        raise TypeMismatch(f"{who!r} hashes its input, but {input!r} cannot be hashed: {error}") from None


def _rows(columns: Sequence[Column], lane: _Lane) -> np.ndarray:
    if not columns:
        raise InvalidArgument("rows are hashed by at least one column, but no column was given")
    hashes = _column(columns[0], lane)
    if len(columns) == 1:
        return hashes
    state = hashes.copy()
    for column in columns[1:]:
        lane.join(state, _column(column, lane))
    return state


def _column(column: Column, lane: _Lane) -> np.ndarray:
    def compute() -> np.ndarray:
        hashes = _hash(column.array, lane)
        hashes.flags.writeable = False
        return hashes

    return column.memo(lane.name, compute)


def _hash(array: pa.Array, lane: _Lane) -> np.ndarray:
    """The hashes of any array, in new memory."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), lane.salt("null"))
    if pa.types.is_dictionary(kind):
        hashes = np.append(_hash(array.dictionary, lane), lane.salt("null"))
        indices = array.indices.cast(pa.int64()) if array.indices.null_count else array.indices
        return hashes[np.asarray(indices.fill_null(len(array.dictionary)) if indices.null_count else indices)]
    if pa.types.is_struct(kind):
        hashes = np.full(len(array), lane.salt("struct", kind.num_fields))
        for child in array.flatten():
            lane.join(hashes, _hash(child, lane))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        hashes = _lists(array, lane)
    elif pa.types.is_fixed_size_list(kind):
        hashes = _lists(array.cast(pa.list_(kind.value_type)), lane)
    elif pa.types.is_decimal(kind):
        hashes = _decimals(array, lane)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        hashes = _numbers(array, lane)
    elif pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        hashes = _times(array, lane)
    else:
        hashes = _texts(array, lane)
    if array.null_count:
        hashes[np.asarray(array.is_null())] = lane.salt("null")
    return hashes


def _numbers(array: pa.Array, lane: _Lane) -> np.ndarray:
    kind = array.type
    if pa.types.is_float16(kind):  # older versions of Arrow cannot fill nulls of this type
        array = array.cast(pa.float32())
    values = np.asarray(array.fill_null(False if pa.types.is_boolean(kind) else 0) if array.null_count else array)
    if pa.types.is_floating(kind):
        values = values.astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        return lane.words(values, "float")
    return lane.words(values.astype(np.int64, copy=False), "boolean" if pa.types.is_boolean(kind) else "integer")


def _times(array: pa.Array, lane: _Lane) -> np.ndarray:
    kind = array.type
    if pa.types.is_date(kind):
        name, unit, array = "date", 0, array.cast(pa.date32())
    else:
        name = "timestamp" if pa.types.is_timestamp(kind) else "duration" if pa.types.is_duration(kind) else "time"
        unit = _UNITS[kind.unit]
    array = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
    values = np.asarray(array.fill_null(0) if array.null_count else array)
    return lane.words(values.astype(np.int64, copy=False), name, unit)


def _decimals(array: pa.Array, lane: _Lane) -> np.ndarray:
    """The hashes of decimals: of the words of the unscaled value, the least word first."""
    kind = array.type
    if len(array) == 0:
        return np.empty(0, np.uint64)
    if kind.bit_width < 128:
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    width = array.type.bit_width // 64
    raw = np.frombuffer(array.buffers()[1], _WORD).reshape(-1, width)[array.offset : array.offset + len(array)]
    hashes = lane.words(raw[:, 0], "decimal", kind.scale)
    for place in range(1, width):
        lane.join(hashes, raw[:, place])
    return hashes


def _lists(array: pa.Array, lane: _Lane) -> np.ndarray:
    offsets = np.asarray(array.offsets).astype(np.int64)
    elements = _hash(array.values.slice(offsets[0], offsets[-1] - offsets[0]), lane)
    counts = np.diff(offsets)
    hashes = _sum_words(elements, counts, lane)
    hashes += counts.view(np.uint64) * _LENGTH
    return lane.words(hashes, "list")


def _texts(array: pa.Array, lane: _Lane) -> np.ndarray:
    kind, name = array.type, "binary"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        name = "text"
    elif not any(is_kind(kind) for is_kind in _BINARY):
        raise TypeMismatch(f"a column of type {kind} cannot be hashed: pass its parts as columns")
    offsets, data = text_bytes(array.cast(pa.large_string() if name == "text" else pa.large_binary()))
    hashes = np.empty(len(array), np.uint64)
    # The words of a block of bytes stay in the cache; each row adds 8 bytes to the size of its block.
    passed = offsets + 8 * np.arange(len(offsets))
    edges = np.searchsorted(passed, np.arange(passed[0], passed[-1], 8 * _BLOCK))
    edges = np.unique(np.append(edges, len(array)))
    for start, stop in pairwise(edges):
        hashes[start:stop] = _block(offsets[start : stop + 1], data, lane)
    return lane.words(hashes, name)


def _block(offsets: np.ndarray, data: np.ndarray, lane: _Lane) -> np.ndarray:
    """The word sums of some rows of bytes; the last word of a row is padded with zeros."""
    sizes = np.diff(offsets)
    padded = np.append(data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8))
    size = int(sizes[0])
    if bool((sizes == size).all()):
        return _sum_of_one_size(padded, len(sizes), size, lane)
    counts = np.maximum((sizes + 7) >> 3, 1)
    words = np.ndarray(len(padded) - 7, _WORD, padded, strides=(1,))
    starts = offsets[:-1] - offsets[0]
    if int(counts.max()) == 1:
        flat = words[starts] & _FIRST_BYTES[sizes]
    else:
        flat = words[np.repeat(starts, counts) + 8 * _places(counts)]
        flat[np.cumsum(counts) - 1] &= _FIRST_BYTES[sizes - 8 * (counts - 1)]
    return _sum_words(flat, counts, lane) + sizes.view(np.uint64) * _LENGTH


def _sum_of_one_size(padded: np.ndarray, rows: int, size: int, lane: _Lane) -> np.ndarray:
    """The word sums of rows of bytes of one size, as ids are, with 8 bytes after them."""
    count = max((size + 7) >> 3, 1)
    words = np.ndarray((count, rows), _WORD, padded, strides=(8, size))
    salts = np.arange(count).view(np.uint64) * _PLACE + np.uint64(lane.seed)
    hashes = words + salts[:, None]
    hashes[-1] = (words[-1] & _FIRST_BYTES[size - 8 * (count - 1)]) + salts[-1]
    sums: np.ndarray = lane.mix(hashes.reshape(-1)).reshape(count, rows).sum(axis=0, dtype=np.uint64)
    return sums + np.uint64(size * int(_LENGTH) % 2**64)


def _sum_words(words: np.ndarray, counts: np.ndarray, lane: _Lane) -> np.ndarray:
    """For each row the sum, modulo 2**64, of the hashes of its `counts` words, each salted with its place."""
    if len(words) == len(counts) and bool((counts == 1).all()):
        return lane.mix(words + np.uint64(lane.seed))
    salted = _places(counts).view(np.uint64) * _PLACE
    salted += words
    salted += np.uint64(lane.seed)
    running = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(lane.mix(salted), out=running[1:])
    ends = np.cumsum(counts)
    return running[ends] - running[ends - counts]


def _places(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... counts[i] - 1 for each i."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)

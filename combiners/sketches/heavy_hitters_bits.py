"""Values as rows of bits, with few bits set in small values, and values from rows of bits.

Rows of bits are read from a sketch and may be wrong, so `from_bits` marks the rows that are the bits of a value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..rows.columns import numbers
from ..rows.ordering import from_int64

_SIGN = np.uint64(1)


def has_bits(kind: pa.DataType) -> bool:
    """True if values of a type can be written as bits."""
    return is_text(kind) or is_number(kind) or bool(pa.types.is_decimal128(kind))


def is_text(kind: pa.DataType) -> bool:
    """True if values are bytes of any length."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def is_number(kind: pa.DataType) -> bool:
    """True if values have at most 64 bits."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal)
    return any(test(kind) for test in tests) and not pa.types.is_interval(kind)


def cut(array: pa.Array, length: int) -> pa.Array:
    """Text or binary values cut to at most `length` bytes, text between two characters; other values unchanged."""
    if not is_text(array.type):
        return array
    starts, sizes, data = _bytes_of(array)
    if not len(sizes) or int(sizes.max()) <= length:
        return array
    new_sizes = np.minimum(sizes, length)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        for _ in range(3):
            inside = new_sizes < sizes
            inside[inside] = data[(starts + new_sizes)[inside]] & 0xC0 == 0x80
            new_sizes -= inside
    return _text(data[_places(starts, new_sizes)], new_sizes, array.type)


def bits_of(array: pa.Array) -> np.ndarray:
    """A row of bits (0 or 1) for each value of an array without nulls."""
    kind = array.type
    if is_text(kind):
        starts, sizes, data = _bytes_of(array)
        rows = np.zeros((len(array), int(sizes.max(initial=0)) + 1), np.uint8)
        rows[np.repeat(np.arange(len(array)), sizes), _places(np.zeros_like(starts), sizes)] = data[
            _places(starts, sizes)
        ]
        # One more bit marks the end of the value.
        rows[np.arange(len(array)), sizes] = 1
        return np.unpackbits(rows, axis=1, bitorder="little")
    if pa.types.is_floating(kind):
        values = numbers(array).astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        return np.unpackbits(values.astype(">f8").view(np.uint8).reshape(-1, 8), axis=1)
    if pa.types.is_decimal(kind):
        raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
        sign = raw[:, 1] >> 63
        low, high = ((raw[:, i] ^ sign).view(np.uint64) for i in (0, 1))
        words = np.stack(
            [(low << _SIGN) | (sign & 1).view(np.uint64), (high << _SIGN) | (low >> np.uint64(63))], axis=1
        )
    else:
        whole = numbers(array)
        whole = whole.view(np.int64) if whole.dtype == np.uint64 else whole.astype(np.int64)
        words = ((whole << 1) ^ (whole >> 63)).view(np.uint64)[:, None]
    raw_bytes = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(raw_bytes.reshape(len(array), 8 * words.shape[1]), axis=1, bitorder="little")


def from_bits(bits: np.ndarray, kind: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """The values whose bits these rows are, and a mask of the rows that are the bits of a value."""
    if is_text(kind):
        return _text_from(np.packbits(bits, axis=1, bitorder="little"), kind)
    floating = pa.types.is_floating(kind)
    width = 128 if pa.types.is_decimal(kind) else 64
    short = np.zeros((len(bits), max(width - bits.shape[1], 0)), np.uint8)
    raw = np.packbits(
        np.concatenate([bits, short], axis=1)[:, :width], axis=1, bitorder="big" if floating else "little"
    )
    right: np.ndarray = ~np.any(bits[:, width:], axis=1)
    if floating:
        floats = np.ascontiguousarray(raw).view(">f8").ravel().astype(np.float64)
        return pa.array(floats[right], from_pandas=False).cast(kind, safe=False), right
    words = np.ascontiguousarray(raw).view("<u8").astype(np.uint64)
    negative = -(words[:, 0] & _SIGN).view(np.int64)
    if pa.types.is_decimal(kind):
        low = ((words[:, 0] >> _SIGN) | (words[:, 1] << np.uint64(63))).view(np.int64) ^ negative
        high = (words[:, 1] >> _SIGN).view(np.int64) ^ negative
        pairs = np.stack([low[right], high[right]], axis=1)
        return pa.Array.from_buffers(kind, len(pairs), [None, pa.py_buffer(np.ascontiguousarray(pairs))]), right
    values = (words[:, 0] >> _SIGN).view(np.int64) ^ negative
    if pa.types.is_uint64(kind):
        return pa.array(values[right].view(np.uint64)), right
    right &= (values >= _least(kind)) & (values <= _most(kind))
    return from_int64(values[right], kind), right


def _least(kind: pa.DataType) -> int:
    return 0 if pa.types.is_boolean(kind) or pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))


def _most(kind: pa.DataType) -> int:
    return int(2 ** (kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) or kind.bit_width == 1 else 1)) - 1)


def _text_from(rows: np.ndarray, kind: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """The text of rows of bytes: each row ends with a byte that is 1, after the bytes of the value."""
    filled = rows != 0
    some = filled.any(axis=1)
    last = rows.shape[1] - 1 - filled[:, ::-1].argmax(axis=1)
    right = some & (rows[np.arange(len(rows)), last] == 1)
    chosen, sizes = rows[right], last[right]
    data = chosen[np.arange(rows.shape[1]) < sizes[:, None]]
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return _text(data, sizes, kind), right
    try:
        values = _text(data, sizes, pa.binary()).cast(kind)
    except pa.ArrowInvalid:
        # Some bytes are no text. This is a loop over the few items found, because Arrow does not say which those are.
        texts = [_decoded(bytes(row[:size])) for row, size in zip(chosen, sizes, strict=True)]
        right[right] = [text is not None for text in texts]
        values = pa.array([text for text in texts if text is not None], kind)
    return values, right


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _bytes_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start and the number of each value's bytes, and all bytes."""
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    wide = array.cast(pa.large_string() if text else pa.large_binary())
    _, raw_offsets, raw = wide.buffers()
    offsets = np.frombuffer(raw_offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    data = np.frombuffer(raw, np.uint8) if raw is not None else np.empty(0, np.uint8)
    return offsets[:-1], np.diff(offsets), data


def _places(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The places of all bytes: for each start as many as its size."""
    before = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) - np.repeat(before - starts, sizes)


def _text(data: np.ndarray, sizes: np.ndarray, kind: pa.DataType) -> pa.Array:
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    wide = pa.large_string() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else pa.large_binary()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(wide, len(sizes), buffers).cast(kind)

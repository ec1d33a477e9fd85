"""Codes of texts that all have one length, as ids have, found by hashes of their words of 8 bytes.

A hash is a sum of the words times odd numbers, so texts that differ in one word have different hashes. Every text is
compared with the first text of its hash. If one differs, there are no codes, and the texts are grouped in another way.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from .columns import text_bytes

_BLOCK = 1 << 21
"""The bytes of texts that are taken at once, so that they stay in the cache."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_WORD = np.dtype("<u8")


def codes_of_one_length(column: pa.Array) -> tuple[np.ndarray, np.ndarray] | None:
    """A code for each text, by first appearance, and the first row of each code.

    None if texts differ in length, are shorter than a word, or are missing, or if two of them have one hash.

    >>> import pyarrow as pa
    >>> codes_of_one_length(pa.array(["user 0007", "user 0003", "user 0007"]))
    (array([0, 1, 0]), array([0, 1]))
    """
    offsets, data = text_bytes(column)
    rows, width = len(column), int(offsets[min(1, len(column))] - offsets[0])
    if width < 8 or column.null_count or offsets[-1] - offsets[0] != rows * width or (np.diff(offsets) != width).any():
        return None
    data = data[offsets[0] : offsets[-1]]
    encoded = pa.array(_hashes(data, rows, width).view(np.int64)).dictionary_encode()
    codes = np.asarray(encoded.indices).astype(np.int64)
    first = np.full(len(encoded.dictionary), rows)
    np.minimum.at(first, codes, np.arange(rows))
    return (codes, first) if _equal_the_first(data, width, codes, first) else None


def _hashes(data: np.ndarray, rows: int, width: int) -> np.ndarray:
    """The sums of words; the last word of a text overlaps the one before it unless the width is a multiple of 8."""
    count, rest = divmod(width, 8)
    factors = np.full(count + 1, _FACTOR).cumprod()
    words = np.ndarray((rows, count), _WORD, data, strides=(width, 8))
    if not rest:
        return np.matmul(words, factors[:count])
    last = np.ndarray(rows, _WORD, data, offset=width - 8, strides=(width,))
    hashes = np.empty(rows, np.uint64)
    for start, stop in _blocks(rows, width):  # numpy copies words that are not aligned
        hashes[start:stop] = words[start:stop] @ factors[:count] + last[start:stop] * factors[count]
    return hashes


def _equal_the_first(data: np.ndarray, width: int, codes: np.ndarray, first: np.ndarray) -> bool:
    """True if every text is equal to the first text of its code."""
    texts = np.ndarray(len(codes), np.dtype((np.void, width)), data)
    firsts = texts[first]
    return all(
        np.array_equal(firsts.take(codes[start:stop], mode="clip").view(np.uint8), data[width * start : width * stop])
        for start, stop in _blocks(len(codes), width)
    )


def _blocks(rows: int, width: int) -> pairwise[tuple[int, int]]:
    return pairwise([*range(0, rows, max(_BLOCK // width, 1)), rows])

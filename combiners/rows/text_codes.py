"""Codes of texts that all have one length, as ids have, found by hashes of their words of 8 bytes.

A hash is a sum of the words times odd numbers, so texts that differ in one word have different hashes. Every text that
gets a code is compared with the first text of its hash. If one differs, there are no codes, and the texts are grouped
in another way. Texts that all have different hashes differ, which needs no comparison.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from .columns import stored_texts
from .numbering import numbered

_BLOCK = 1 << 19
"""The bytes of texts that are taken at once, so that they stay in the cache."""

_ROWS = 1 << 12
"""The rows whose words are taken at once, so that they stay in the first cache."""

_FEW = 8
"""The number of words up to which numpy multiplies those of one place faster than those of one text."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_WORD = np.dtype("<u8")


def codes_of_one_length(column: pa.Array) -> tuple[np.ndarray, np.ndarray] | None:
    """A code for each text, by first appearance, and the first row of each code.

    None if texts differ in length, are shorter than a word, or are missing, or if two of them have one hash.

    >>> import pyarrow as pa
    >>> codes_of_one_length(pa.array(["user 0007", "user 0003", "user 0007"]))
    (array([0, 1, 0]), array([0, 1]))
    """
    block = _of_one_length(column)
    if block is None:
        return None
    data, width = block
    codes, first = numbered(_hashes(data, len(column), width))
    return (codes, first) if _equal_the_first(data, width, codes, first) else None


def all_differ(column: pa.Array) -> bool:
    """True if texts of one length have as many hashes, so that no two are equal; False if that is not known.

    >>> import pyarrow as pa
    >>> all_differ(pa.array(["user 0007", "user 0003"])), all_differ(pa.array(["user 0007", "user 0007"]))
    (True, False)
    """
    block = _of_one_length(column)
    if block is None:
        return False
    hashes = np.sort(_hashes(block[0], len(column), block[1]))
    return bool((hashes[1:] != hashes[:-1]).all())


def _of_one_length(column: pa.Array) -> tuple[np.ndarray, int] | None:
    """The bytes of texts and the length of each; None if they differ in it, are shorter than a word, or are missing."""
    offsets, data = stored_texts(column)
    rows, width = len(column), int(offsets[min(1, len(column))] - offsets[0])
    if width < 8 or column.null_count or int(offsets[-1]) - int(offsets[0]) != rows * width:
        return None
    if any((np.diff(offsets[start : stop + 1]) != width).any() for start, stop in _blocks(rows, offsets.itemsize)):
        return None
    return data[offsets[0] : offsets[-1]], width


def _hashes(data: np.ndarray, rows: int, width: int) -> np.ndarray:
    """The sums of words; the last word of a text overlaps the one before it unless the width is a multiple of 8."""
    count, rest = divmod(width, 8)
    factors = np.full(count + 1, _FACTOR).cumprod()
    words = np.ndarray((rows, count), _WORD, data, strides=(width, 8))
    single = list(zip(words.T, factors, strict=False)) if count <= _FEW else []
    if rest:
        single.append((np.ndarray(rows, _WORD, data, offset=width - 8, strides=(width,)), factors[count]))
    hashes, product = np.zeros(rows, np.uint64), np.empty(_ROWS, np.uint64)
    for start, stop in pairwise([*range(0, rows, min(_ROWS, _rows_at_once(width))), rows]):
        sums, some = hashes[start:stop], product[: stop - start]
        if count > _FEW:
            np.matmul(words[start:stop], factors[:count], out=sums)
        for word, factor in single:
            np.multiply(word[start:stop], factor, out=some)
            sums += some
    return hashes


def _equal_the_first(data: np.ndarray, width: int, codes: np.ndarray, first: np.ndarray) -> bool:
    """True if every text is equal to the first text of its code."""
    texts = np.ndarray(len(codes), np.dtype((np.void, width)), data)
    firsts = texts[first]
    whole = np.dtype(np.uint8) if width % 8 else _WORD
    expected = np.empty(min(_rows_at_once(width), len(codes)), texts.dtype)
    for start, stop in _blocks(len(codes), width):
        some = firsts.take(codes[start:stop], mode="clip", out=expected[: stop - start])
        if not np.array_equal(some.view(whole), texts[start:stop].view(whole)):
            return False
    return True


def _rows_at_once(width: int) -> int:
    return max(_BLOCK // width, 1)


def _blocks(rows: int, width: int) -> pairwise[tuple[int, int]]:
    return pairwise([*range(0, rows, _rows_at_once(width)), rows])

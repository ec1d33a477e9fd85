"""The order of strings, by words of 8 bytes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns import text_bytes
from .groups import Groups
from .sorting import argsort_in_groups, refine, run_starts

_WORDS = 4
_SIGN = np.uint64(2**63)
_FIRST_BYTES = np.array([(2**64 - 1) >> (64 - 8 * k) << (64 - 8 * k) for k in range(9)], np.uint64)


def sort_texts(array: pa.Array) -> np.ndarray:
    """The places of strings without nulls in the order of their bytes.

    They are sorted by their first 8 bytes, equal ones by the next 8, and so on. Strings that are equal for many bytes
    are sorted by Arrow, which compares them byte by byte.

    >>> sort_texts(pa.array(["b", "a", "", "abcdefghi", "abcdefgh"]))
    array([2, 1, 4, 3, 0])
    """
    offsets, data = text_bytes(array)
    starts, sizes = offsets[:-1] - offsets[0], np.diff(offsets)
    padded = np.append(data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8))
    words = np.ndarray(len(padded) - 7, ">u8", padded, strides=(1,))

    def word(rows: np.ndarray, place: int) -> np.ndarray:
        left = np.clip(sizes[rows] - 8 * place, 0, 8)
        bits = words[np.minimum(starts[rows] + 8 * place, len(words) - 1)].astype(np.uint64)
        return ((bits & _FIRST_BYTES[left]) ^ _SIGN).view(np.int64)

    single = Groups.single(len(array))
    order, ordered = argsort_in_groups(single, word(np.arange(len(array)), 0))
    fresh = run_starts(single, ordered)
    for place in range(1, _WORDS):
        refine(order, fresh, partial(word, place=place))
    refine(order, fresh, lambda rows: _ranks(array.take(pa.array(rows))))
    return order


def _ranks(array: pa.Array) -> np.ndarray:
    ranks = np.empty(len(array), np.int64)
    ranks[np.asarray(pc.array_sort_indices(array))] = np.arange(len(array))
    return ranks

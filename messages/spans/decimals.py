"""Decimals from the bytes of whole numbers, for many at once.

Guarded by tests/messages/spans/test_decimals.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def decimals_of_spans(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, kind: pa.Decimal128Type
) -> tuple[pa.Array, np.ndarray]:
    r"""Decimals whose whole numbers are spans of bytes, highest first, and a mask of those that have too many digits.

    >>> data = np.frombuffer(b"\x01\x00\xff", np.uint8)
    >>> values, bad = decimals_of_spans(data, np.array([0, 2]), np.array([2, 3]), pa.decimal128(3, 1))
    >>> values.to_pylist(), bad.tolist()
    ([Decimal('25.6'), Decimal('-0.1')], [False, False])
    """
    count, lengths = len(starts), ends - starts
    first = np.where(lengths > 0, data[np.minimum(starts, len(data) - 1)], 0)
    sign = np.where(first >= 0x80, np.uint8(255), np.uint8(0))
    words = np.empty((count, 16), np.uint8)
    for k in range(16):  # from the lowest byte on
        there = lengths > k
        words[:, k] = np.where(there, data[np.where(there, ends - 1 - k, 0)], sign)
    low, high = words.view(np.uint64).T
    bad = _is_large(low.copy(), high.copy(), kind.precision)
    bad |= (high >> np.uint64(63)) != (sign >> 7)
    for i in np.flatnonzero(lengths > 16):  # few: a decimal with more bytes than it needs
        bad[i] |= (data[starts[i] : ends[i] - 16] != sign[i]).any()
    words[bad] = 0
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(words)]), bad


def _is_large(low: np.ndarray, high: np.ndarray, digits: int) -> np.ndarray:
    """A mask of the numbers of 128 bits that have more digits."""
    negative = high >> np.uint64(63) == 1
    high = np.where(negative, ~high + (low == 0), high)
    low = np.where(negative, ~low + np.uint64(1), low)
    most = 10**digits
    top, rest = np.uint64(most >> 64), np.uint64(most & 0xFFFFFFFFFFFFFFFF)
    return (high > top) | ((high == top) & (low >= rest))


__all__ = ["decimals_of_spans"]

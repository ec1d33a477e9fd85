"""Sums over ranges as differences of running sums, where these are exact: of integers, in one lane or in several.

Guarded by tests/lookbacks/test_ways.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .sorted_rows import Ranges

_MASK = 0xFFFF_FFFF


def int_sums(values: np.ndarray, ranges: Ranges) -> np.ndarray:
    """The int64 sums of the ranges, which wrap if they do not fit.

    >>> import numpy as np
    >>> int_sums(np.array([1, 2, 4]), Ranges(low=np.array([0, 1]), high=np.array([2, 3])))
    array([3, 6])
    """
    running = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=running[1:])
    return np.asarray(running[ranges.high] - running[ranges.low])


def lane_sums(lanes: Sequence[np.ndarray], ranges: Ranges) -> list[np.ndarray]:
    """The sums of wide integers, in lanes of 64 bits in two's complement, the least first."""
    first, longest = lanes[0], int(ranges.sizes.max(initial=0))
    if all(np.array_equal(lane, first >> 63) for lane in lanes[1:]):
        most = max(abs(int(first.max(initial=0))), abs(int(first.min(initial=0))))
        if most * longest < 2**63:
            sums = int_sums(first, ranges)
            return [sums, *([sums >> 63] * (len(lanes) - 1))]
    out, carry = [], np.zeros(len(ranges), np.int64)
    for lane in lanes:
        low = int_sums(lane & _MASK, ranges) + carry
        # The upper half is signed, which is right in the last lane and, modulo the lane, in the others.
        high = int_sums((lane >> 32) & _MASK if lane is not lanes[-1] else lane >> 32, ranges) + (low >> 32)
        out.append((low & _MASK) | (high << 32))
        carry = high >> 32
    return out


__all__ = ["int_sums", "lane_sums"]

"""Sums, minima and maxima of rows by group, as numpy arrays with one entry a group.

`numpy.bincount` adds in float64, which is exact for integers as long as no partial sum passes 2**53. Everything
here that must be exact is arranged so that it cannot: numbers are cut into digits small enough for the rows at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from .groups import Groups

Lanes: TypeAlias = list[np.ndarray]
"""A wide integer for each group: int64 lanes, least first, two's complement across them."""

CHUNK = 1 << 20
"""Rows for which sums of 32-bit digits stay below 2**53."""

_EXACT = 2.0**53


def sum_floats(groups: Groups, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Plain float64 sums."""
    if weights is not None:
        values = values * weights
    # Without a single row numpy counts in integers.
    return np.bincount(groups.codes, weights=values, minlength=groups.count).astype(np.float64, copy=False)


def sum_weights(groups: Groups, weights: np.ndarray | None) -> np.ndarray:
    """How many rows, with their weights, each group has, as int64."""
    if weights is None:
        return groups.sizes
    return sum_int64(groups, weights)


def sum_int64(groups: Groups, values: np.ndarray) -> np.ndarray:
    """int64 sums that wrap on overflow."""
    if len(values) == 0:
        return np.zeros(groups.count, np.int64)
    if _largest(values) * len(values) < _EXACT:
        return np.bincount(groups.codes, weights=values, minlength=groups.count).astype(np.int64)
    total = np.zeros(groups.count, np.int64)
    np.add.at(total, groups.codes, values)
    return total


def sum_lanes(groups: Groups, lanes: Sequence[np.ndarray], out: int, weights: np.ndarray | None = None) -> Lanes:
    """Exact sums of wide integers into `out` lanes; `lanes[-1]` holds the sign (uint64: none)."""
    rows = len(groups.codes)
    largest = 0.0 if weights is None or rows == 0 else _largest(weights)
    if len(lanes) == 1 and rows and _largest(lanes[0]) * max(largest, 1.0) * rows < _EXACT:
        values = lanes[0] if weights is None else lanes[0] * weights
        total = np.bincount(groups.codes, weights=values, minlength=groups.count).astype(np.int64)
        return [total, *([total >> 63] * (out - 1))]
    if largest <= 1.0:
        digits = _digits(lanes, 32)
        if weights is not None:
            digits = [digit * weights for digit in digits]
        return _carry([_sum_digit(groups, digit) for digit in digits], 32, out)
    assert weights is not None
    sums: list[np.ndarray] = []
    weight_digits = _digits([weights], 16)
    for i, digit in enumerate(_digits(lanes, 16)):
        for j, factor in enumerate(weight_digits):
            while len(sums) <= i + j:
                sums.append(np.zeros(groups.count, np.int64))
            np.add.at(sums[i + j], groups.codes, digit * factor)
    return _carry(sums, 16, out)


def negate_lanes(lanes: Sequence[np.ndarray]) -> Lanes:
    """Two's complement negation across lanes."""
    out: Lanes = []
    carry: np.ndarray = np.ones(len(lanes[0]), np.bool_)
    for lane in lanes:
        flipped = ~lane + carry
        carry = carry & (lane == 0)
        out.append(flipped)
    return out


def extreme(groups: Groups, values: np.ndarray, start: int | float, better: np.ufunc) -> np.ndarray:
    """The least or greatest value of each group (`better` is np.minimum or np.maximum), `start` where it is empty."""
    result = np.full(groups.count, start, values.dtype)
    at: Callable[..., None] = better.at
    at(result, groups.codes, values)
    return result


def _largest(values: np.ndarray) -> float:
    return max(float(values.max()), -float(values.min()))


def _sum_digit(groups: Groups, digit: np.ndarray) -> np.ndarray:
    if len(digit) <= CHUNK:
        return np.bincount(groups.codes, weights=digit, minlength=groups.count).astype(np.int64)
    total = np.zeros(groups.count, np.int64)
    for start in range(0, len(digit), CHUNK):
        part = slice(start, start + CHUNK)
        total += np.bincount(groups.codes[part], weights=digit[part], minlength=groups.count).astype(np.int64)
    return total


def _digits(lanes: Sequence[np.ndarray], bits: int) -> list[np.ndarray]:
    """Digits of `bits` bits, least first: unsigned all but the last, which carries the sign."""
    mask = (1 << bits) - 1
    digits: list[np.ndarray] = []
    for k, lane in enumerate(lanes):
        signed = lane.astype(np.int64, copy=False)
        places = 64 // bits
        for i in range(places):
            digit = (signed >> (bits * i)) & mask
            if k == len(lanes) - 1 and i == places - 1 and lane.dtype != np.uint64:
                digit = signed >> (bits * i)
            digits.append(digit)
    return digits


def _carry(sums: Sequence[np.ndarray], bits: int, out: int) -> Lanes:
    """Sums of digits, carried into two's complement lanes."""
    mask = (1 << bits) - 1
    carry = np.zeros(len(sums[0]), np.int64)
    lanes: Lanes = []
    places = 64 // bits
    for k in range(out):
        lane = np.zeros(len(carry), np.int64)
        for i in range(places):
            at = k * places + i
            total = carry + sums[at] if at < len(sums) else carry
            lane |= (total & mask) << (bits * i)
            carry = total >> bits
        lanes.append(lane)
    return lanes

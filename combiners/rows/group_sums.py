"""Sums, minima and maxima of rows by group, as numpy arrays with one entry a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ...errors import OutOfRange
from .groups import Groups

Lanes: TypeAlias = list[np.ndarray]
"""A wide integer for each group: int64 lanes, the least first, in two's complement across the lanes."""

CHUNK = 1 << 20
"""The number of rows for which float sums of 32-bit digits are exact."""

MOST = 2**62
"""The limit of counts and sums of weights in size, so that twice a count is still an int64."""

_SMALL = 2.0**62
_NEAR = 2.0**114


def sum_floats(groups: Groups, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Plain float64 sums."""
    if weights is not None:
        values = values * weights
    if groups.count == 1:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array([np.sum(values, dtype=np.float64)])
    total = np.zeros(groups.count)
    # bincount would copy columns that are read-only, as those of Arrow are.
    np.add.at(total, groups.codes, values.astype(np.float64, copy=False))
    return total


def sum_weights(groups: Groups, weights: np.ndarray | None) -> np.ndarray:
    """The sum of the weights of each group's rows, as int64."""
    if weights is None:
        return groups.sizes
    return groups.weighed(weights, sum_counts)


def sum_counts(groups: Groups, counts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Sums of counts, or of counts times weights, by group; raises if one reaches MOST."""
    sums = sum_int64(groups, counts if weights is None else counts * weights)
    if may_reach_most(counts, weights):
        require_counts(sums, sum_floats(groups, counts.astype(np.float64), weights))
    return sums


def may_reach_most(counts: np.ndarray, weights: np.ndarray | None = None) -> bool:
    """True if a sum of some of these counts, or of counts times weights, may reach MOST."""
    if len(counts) == 0:
        return False
    return _largest(counts) * len(counts) * (1.0 if weights is None else _largest(weights)) >= MOST


def require_counts(sums: np.ndarray, near: np.ndarray) -> None:
    """Raise if a sum of counts reaches MOST; the float sums `near` show which int64 sums have wrapped."""
    if bool(((sums >= MOST) | (sums <= -MOST) | (np.abs(near) >= 1.5 * MOST)).any()):
        raise OutOfRange(
            "the weights of the rows of a group sum to 2**62 or more in size, but counts must be below that"
            ": use smaller weights"
        )


def sum_int64(groups: Groups, values: np.ndarray) -> np.ndarray:
    """int64 sums that wrap on overflow."""
    if groups.in_runs:
        # Running sums may wrap, but their differences are correct.
        running = np.cumsum(groups.run(values.astype(np.int64, copy=False)))
        return np.diff(running.take(groups.starts + groups.sizes - 1), prepend=0)
    total = np.zeros(groups.count, np.int64)
    # numpy is slow at this if it has to convert.
    np.add.at(total, groups.codes, values.astype(np.int64, copy=False))
    return total


def run_sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sums of the values from each start to the next, of which the first is 0; they wrap on overflow.

    >>> run_sums(np.array([1, -1, 5, 2]), np.array([0, 1, 3]))
    array([1, 4, 2])
    """
    if 4 * len(starts) < len(values):
        return np.add.reduceat(values, starts)
    # numpy takes several times as long for many short runs, of which most are a single value.
    sums = values[starts]
    is_first = np.zeros(len(values), np.bool_)
    is_first[starts] = True
    more = np.flatnonzero(~is_first)
    np.add.at(sums, more - np.arange(1, len(more) + 1), values[more])
    return sums


def sum_lanes(groups: Groups, lanes: Sequence[np.ndarray], out: int, weights: np.ndarray | None = None) -> Lanes:
    """Exact sums of wide integers into `out` lanes; `lanes[-1]` holds the sign (uint64: none)."""
    while len(lanes) > 1 and np.array_equal(lanes[-1], lanes[-2] >> 63):
        lanes = lanes[:-1]
    total: Lanes = []
    for k, lane in enumerate(lanes):
        sums = _sum_lane(groups, lane if k == len(lanes) - 1 else lane.view(np.uint64), weights)
        if sums is None:
            return _sum_digits(groups, lanes, out, weights)
        low, high = sums
        wide = [*[np.zeros_like(low)] * k, low, high, *[high >> 63] * out][:out]
        total = _add_lanes(total, wide) if total else wide
    return total


def _sum_lane(groups: Groups, lane: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """The sums of one lane as two lanes, from int64 sums that wrap and float sums that show how often they wrapped.

    None if float sums are not exact enough. The error of a float sum of n terms is less than (n + 4) 2**-53 times the
    sum of their sizes, and must be well below 2**63. Integers of 64 bits with small weights pass up to 2**25 rows.
    """
    if len(lane) == 0:
        return np.zeros(groups.count, np.int64), np.zeros(groups.count, np.int64)
    most = _largest(lane) * len(lane) * (1.0 if weights is None else _largest(weights))
    words = lane.view(np.int64)
    low = sum_int64(groups, words if weights is None else words * weights)
    if most < _SMALL:
        return low, low >> 63
    if most * (len(lane) + 4.0) > _NEAR:
        return None
    near = sum_floats(groups, lane.astype(np.float64), weights)
    return low, np.rint((near - low) * 2.0**-64).astype(np.int64) + (low >> 63)


def _sum_digits(groups: Groups, lanes: Sequence[np.ndarray], out: int, weights: np.ndarray | None) -> Lanes:
    """Exact sums of wide integers for any weights and any number of rows."""
    sums: list[np.ndarray] = []
    factors = [np.ones(1, np.int64)] if weights is None else _digits([weights])
    for i, digit in enumerate(_digits(lanes)):
        for j, factor in enumerate(factors):
            while len(sums) <= i + j:
                sums.append(np.zeros(groups.count, np.int64))
            np.add.at(sums[i + j], groups.codes, digit * factor)
    return _carry(sums, out)


def negate_lanes(lanes: Sequence[np.ndarray]) -> Lanes:
    """Two's complement negation across lanes."""
    out: Lanes = []
    carry: np.ndarray = np.ones(len(lanes[0]), np.bool_)
    for lane in lanes:
        flipped = ~lane + carry
        carry = carry & (lane == 0)
        out.append(flipped)
    return out


def _add_lanes(lanes: Lanes, others: Lanes) -> Lanes:
    out: Lanes = []
    carry: np.ndarray = np.zeros(len(lanes[0]), np.bool_)
    for a, b in zip(lanes, others, strict=True):
        total = a + b + carry
        carry = ((a & b) | ((a | b) & ~total)) < 0
        out.append(total)
    return out


def extreme(groups: Groups, values: np.ndarray, start: int | float, better: np.ufunc) -> np.ndarray:
    """The least or greatest value of each group (`better` is np.minimum or np.maximum); `start` for an empty group."""
    if groups.in_runs:
        return better.reduceat(groups.run(values), groups.starts)
    result = np.full(groups.count, start, values.dtype)
    at: Callable[..., None] = better.at
    at(result, groups.codes, values)
    return result


def _largest(values: np.ndarray) -> float:
    return max(float(values.max()), -float(values.min()))


def _digits(lanes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Digits of 16 bits, the least first; all are unsigned but the last, which has the sign."""
    digits = [(lane.astype(np.int64, copy=False) >> shift) & 0xFFFF for lane in lanes for shift in range(0, 64, 16)]
    if lanes[-1].dtype != np.uint64:
        digits[-1] = lanes[-1] >> 48
    return digits


def _carry(sums: Sequence[np.ndarray], out: int) -> Lanes:
    """Sums of digits, carried into two's complement lanes."""
    carry = np.zeros(len(sums[0]), np.int64)
    lanes: Lanes = []
    for k in range(out):
        lane = np.zeros(len(carry), np.int64)
        for i in range(4):
            at = 4 * k + i
            total = carry + sums[at] if at < len(sums) else carry
            lane |= (total & 0xFFFF) << (16 * i)
            carry = total >> 16
        lanes.append(lane)
    return lanes

"""Quotients of exact sums, rounded once.

A formula in sums and counts is first worked out in pairs of floats with a bound on the error. Where the bound leaves no
doubt how the quotient rounds, that is the result; only the groups in doubt (values that nearly cancel, ties) are worked
out again in Python's integers. This is the floating-point filter of Shewchuk, "Adaptive precision floating-point
arithmetic and fast robust geometric predicates" (Discrete Comput. Geom. 18, 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from .algebra import Accumulators
from .doubles import Doubles, two_sum
from .exact import Digits, exact_ints
from .narrow import BITS
from .segments import negate_lanes
from .vectors import int64s

Formula: TypeAlias = Callable[..., tuple[Any, Any]]
"""A numerator and a denominator from the counts and the sums, made with +, - and *.

It is called with a function that makes such numbers of plain integers below 2**62 (counts are below 2**31 where they
are not Python's), with the counts as plain integers, and with the sums.
"""

_EXACT_ZERO = -(1 << 30)
_ROUNDING = 2.0**-99
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """Numbers `(middle ± radius) * 2**exponent`, the middle between 1/2 and 1 in size or zero."""

    middle: Doubles
    radius: np.ndarray
    exponent: np.ndarray

    @classmethod
    def of(cls, middle: Doubles, radius: np.ndarray, exponent: np.ndarray) -> Ball:
        """The ball with its middle brought to size."""
        # The exponent from the bits and powers of two from bits: frexp and ldexp take one number at a time.
        up = ((middle.high.view(np.int64) >> 52) & 0x7FF) - 1022
        zero = middle.high == 0
        up = np.where(zero, 0, up)
        down = _two_to(-up)
        exponent = np.where(zero & (radius == 0), _EXACT_ZERO, exponent + up)
        return cls(Doubles(middle.high * down, middle.low * down), radius * down, exponent)

    @classmethod
    def of_ints(cls, values: np.ndarray) -> Ball:
        """Plain integers."""
        high = values.astype(np.float64)
        low = (values - high.astype(np.int64)).astype(np.float64)
        return cls.of(Doubles(high, low), np.zeros(len(values)), np.zeros(len(values), np.int64))

    @classmethod
    def of_digits(cls, digits: Sequence[np.ndarray], exponent: np.ndarray) -> Ball:
        """Digits of 32 bits, highest first, the highest in units of 2**exponent."""
        first, second, third, fourth, fifth = (d * 2.0 ** (-BITS * k) for k, d in enumerate(digits))
        middle = Doubles(*two_sum(first, second)) + Doubles(*two_sum(third, fourth)) + fifth
        return cls.of(middle, np.abs(middle.high) * _ROUNDING, exponent)

    def __neg__(self) -> Ball:
        return Ball(-self.middle, self.radius, self.exponent)

    def __add__(self, other: Ball) -> Ball:
        exponent = np.maximum(self.exponent, other.exponent)
        a, b = (ball._at(exponent) for ball in (self, other))
        middle = a.middle + b.middle
        rounding = _ROUNDING * (np.abs(a.middle.high) + np.abs(b.middle.high))
        return Ball.of(middle, a.radius + b.radius + rounding, exponent)

    def __sub__(self, other: Ball) -> Ball:
        return self + (-other)

    def __mul__(self, other: Ball) -> Ball:
        middle = self.middle * other.middle
        a, b = np.abs(self.middle.high), np.abs(other.middle.high)
        radius = a * other.radius + b * self.radius + self.radius * other.radius
        return Ball.of(middle, radius * 1.01 + _ROUNDING * a * b, self.exponent + other.exponent)

    def __rmul__(self, factor: int) -> Ball:
        rounding = _ROUNDING * np.abs(self.middle.high)
        return Ball.of(self.middle * float(factor), (self.radius + rounding) * factor, self.exponent)

    def _at(self, exponent: np.ndarray) -> Ball:
        """The same numbers in units of 2**exponent, which is not smaller."""
        down = _two_to(np.maximum(self.exponent - exponent, -1000))
        middle = Doubles(self.middle.high * down, self.middle.low * down)
        return Ball(middle, self.radius * down, exponent)

    def over(self, divisor: Ball) -> tuple[np.ndarray, np.ndarray]:
        """The quotients as floats, and where they are certainly the nearest ones."""
        quotient = self.middle / divisor.middle
        size = np.abs(divisor.middle.high)
        spread = (self.radius + np.abs(quotient.high) * (divisor.radius + _ROUNDING)) / size * 1.01
        value, other = quotient.high + (quotient.low - spread), quotient.high + (quotient.low + spread)
        shift = np.clip(self.exponent - divisor.exponent, -3000, 3000).astype(np.int32)
        apart = (value != other) | (divisor.radius * 4 > size)
        subnormal = (value != 0) & (np.abs(np.frexp(value)[1] + shift) > 1000)
        return np.ldexp(value, shift) + 0.0, ~(apart | subnormal)


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Python integers in units of 2**scale."""

    values: np.ndarray
    scale: int

    @classmethod
    def of_ints(cls, values: np.ndarray) -> Whole:
        """Plain integers."""
        return cls(values, 0)

    def __add__(self, other: Whole) -> Whole:
        scale = min(self.scale, other.scale)
        return Whole(self._at(scale) + other._at(scale), scale)

    def __sub__(self, other: Whole) -> Whole:
        scale = min(self.scale, other.scale)
        return Whole(self._at(scale) - other._at(scale), scale)

    def __mul__(self, other: Whole) -> Whole:
        return Whole(self.values * other.values, self.scale + other.scale)

    def __rmul__(self, factor: int) -> Whole:
        return Whole(self.values * factor, self.scale)

    def _at(self, scale: int) -> np.ndarray:
        return self.values * (1 << (self.scale - scale))

    def over(self, divisor: Whole) -> np.ndarray:
        """The quotients, each the nearest float; NaN where the divisor is zero."""
        shift = self.scale - divisor.scale
        up, down = 1 << max(shift, 0), 1 << max(-shift, 0)
        # Python's integers have no columnar form; only the groups in doubt come here.
        return np.array([_nearest(a * up, b * down) for a, b in zip(self.values, divisor.values, strict=True)])


class ExactSums:
    """Exact sums with the counts of what they are sums of, to make quotients of."""

    def __init__(self, counts: np.ndarray, *sums: Accumulators) -> None:
        self.counts = counts
        self.sums = sums

    @cached_property
    def _digits(self) -> list[tuple[list[np.ndarray], np.ndarray]]:
        return [_top_digits(total) for total in self.sums]

    def quotient(self, formula: Formula, wanted: np.ndarray) -> np.ndarray:
        """The formula's value in each wanted group, correctly rounded; NaN where it divides by zero."""
        result, sure = np.zeros(len(self.counts)), np.zeros(len(self.counts), np.bool_)
        for start in range(0, len(self.counts) if self.counts.max(initial=0) < 2**31 else 0, _BLOCK):
            part = slice(start, start + _BLOCK)
            with np.errstate(all="ignore"):
                balls = [Ball.of_digits([d[part] for d in digits], at[part]) for digits, at in self._digits]
                above, below = formula(Ball.of_ints, self.counts[part], *balls)
                result[part], sure[part] = above.over(below)
        doubt = np.flatnonzero(wanted & ~sure)
        if len(doubt):
            places = pa.array(doubt)
            wholes = [_whole(tuple(column.take(places) for column in total)) for total in self.sums]
            above, below = formula(Whole.of_ints, self.counts[doubt].astype(object), *wholes)
            result[doubt] = above.over(below)
        return result


def _two_to(exponent: np.ndarray) -> np.ndarray:
    """Powers of two that are normal floats."""
    power: np.ndarray = ((exponent + 1023) << 52).view(np.float64)
    return power


def _nearest(a: int, b: int) -> float:
    if b == 0:
        return float("nan")
    try:
        return a / b
    except OverflowError:
        return float("inf") if (a < 0) == (b < 0) else float("-inf")


def _top_digits(total: Accumulators) -> tuple[list[np.ndarray], np.ndarray]:
    """The five highest digits of an exact float sum, or of a sum of integers in lanes, and the unit's exponent."""
    if pa.types.is_list(total[-1].type):
        digits = Digits.of(total)
        return [digits.from_top(k) for k in range(5)], BITS * (digits.lows + digits.lengths - 1)
    lanes = [int64s(lane) for lane in total]
    negative = lanes[1] < 0
    size = [np.where(negative, minus, plus) for plus, minus in zip(lanes, negate_lanes(lanes), strict=True)]
    halves = [half & (2**BITS - 1) for lane in reversed(size) for half in (lane >> BITS, lane)]
    signed = [np.where(negative, -half, half) for half in halves]
    return [*signed, np.zeros(len(negative), np.int64)], np.full(len(negative), 3 * BITS)


def _whole(total: Accumulators) -> Whole:
    if pa.types.is_list(total[-1].type):
        return Whole(*exact_ints(total))
    low, high = (int64s(lane) for lane in total)
    return Whole((high.astype(object) << 64) + low.view(np.uint64).astype(object), 0)

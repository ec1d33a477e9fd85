"""Quotients of exact sums and their square roots, rounded once.

A formula in sums and counts is first computed in pairs of floats with a bound on the error. If all numbers within the
bound round to the same float, that float is the result. Only groups in doubt (values that nearly cancel, ties) are
computed again in Python's integers. This is the floating-point filter of Shewchuk, "Adaptive precision floating-point
arithmetic and fast robust geometric predicates" (Discrete Comput. Geom. 18, 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators
from ..floats.digit_sums import BITS
from ..floats.double_double import Doubles, two_product, two_sum
from ..floats.wholes import Whole
from ..rows.group_sums import negate_lanes
from .exact_sum import Digits, exact_ints
from .vectors import int64s

Formula: TypeAlias = Callable[..., tuple[Any, Any]]
"""A numerator and a denominator from the counts and the sums, made with +, - and *.

Its arguments are a function that makes such numbers of plain integers below 2**62, the counts as plain integers (below
2**31 unless they are Python's), and the sums.
"""

_EXACT_ZERO = -(1 << 30)
_ROUNDING = 2.0**-99
_BLOCK = 1 << 13
_NO_HALVES = 2.0**51

ONE = Fraction(1)

_OnBalls: TypeAlias = "Callable[[Ball, Ball], tuple[np.ndarray, np.ndarray]]"
_OnWholes: TypeAlias = "Callable[[Whole, Whole], np.ndarray]"


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """Numbers `(middle ± radius) * 2**exponent`, with a middle between 1/2 and 1 in size, or zero."""

    middle: Doubles
    radius: np.ndarray
    exponent: np.ndarray

    @classmethod
    def of(cls, middle: Doubles, radius: np.ndarray, exponent: np.ndarray) -> Ball:
        """The ball with its middle scaled to a size between 1/2 and 1."""
        # Exponents and powers of two are read and made as bits, because frexp and ldexp are slower.
        up = ((middle.high.view(np.int64) >> 52) & 0x7FF) - 1022
        zero = middle.high == 0
        up = np.where(zero, 0, up)
        down = _two_to(-up)
        exponent = np.where(zero & (radius == 0), _EXACT_ZERO, exponent + up)
        return cls(middle=Doubles(middle.high * down, middle.low * down), radius=radius * down, exponent=exponent)

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

    @classmethod
    def of_int(cls, value: int) -> Ball:
        """One integer of any length, for all groups."""
        up = max(abs(value).bit_length() - 106, 0)
        high, low = (float(part) for part in divmod(value >> up, 1 << 53))
        middle = Doubles(*two_sum(np.array([high * 2.0**53]), np.array([low])))
        return cls.of(middle, np.abs(middle.high) * (_ROUNDING if up else 0.0), np.array([up]))

    def __neg__(self) -> Ball:
        return Ball(middle=-self.middle, radius=self.radius, exponent=self.exponent)

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
        """The same numbers in units of 2**exponent, where the exponent is not less than now."""
        down = _two_to(np.maximum(self.exponent - exponent, -1000))
        middle = Doubles(self.middle.high * down, self.middle.low * down)
        return Ball(middle=middle, radius=self.radius * down, exponent=exponent)

    def over(self, divisor: Ball) -> tuple[np.ndarray, np.ndarray]:
        """The quotients as floats, and a mask of those that are certainly the nearest floats."""
        quotient, spread, exact = self._over(divisor)
        return _settled(quotient, spread, self.exponent - divisor.exponent, exact)

    def root_over(self, divisor: Ball) -> tuple[np.ndarray, np.ndarray]:
        """The square roots of the quotients as floats, and a mask of those that are certainly the nearest floats."""
        quotient, spread, exact = self._over(divisor)
        shift = self.exponent - divisor.exponent
        odd = shift & 1
        square, spread = Doubles(quotient.high * (1.0 + odd), quotient.low * (1.0 + odd)), spread * (1.0 + odd)
        high = np.sqrt(square.high)
        product, error = two_product(high, high)
        low = ((square.high - product) - error + square.low) / (2.0 * high)
        root = Doubles(*two_sum(high, low))
        zero = (square.high == 0) & (spread == 0)
        root = Doubles(np.where(zero, 0.0, root.high), np.where(zero, 0.0, root.low))
        spread = np.where(zero, 0.0, spread / (2.0 * high) * 1.01 + _ROUNDING * high)
        return _settled(root, spread, (shift - odd) >> 1, exact & (zero | (square.high > 0)))

    def over_root(self, divisor: Ball) -> tuple[np.ndarray, np.ndarray]:
        """The numbers over the square roots of the divisors, as floats, and a mask of those certainly the nearest."""
        size, sure = (self * self).root_over(divisor)
        return np.copysign(size, self.middle.high), sure

    def _over(self, divisor: Ball) -> tuple[Doubles, np.ndarray, np.ndarray]:
        """The quotients of the middles, their greatest errors, and a mask of the divisors that are exact enough."""
        quotient = self.middle / divisor.middle
        size = np.abs(divisor.middle.high)
        spread = (self.radius + np.abs(quotient.high) * (divisor.radius + _ROUNDING)) / size * 1.01
        return quotient, spread, ~(divisor.radius * 4 > size)


def _settled(
    number: Doubles, spread: np.ndarray, exponent: np.ndarray, exact: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers times 2**exponent as floats, and a mask of those whose whole spread rounds to one float."""
    value, other = number.high + (number.low - spread), number.high + (number.low + spread)
    shift = np.clip(exponent, -3000, 3000).astype(np.int32)
    subnormal = (value != 0) & (np.abs(np.frexp(value)[1] + shift) > 1000)
    return np.ldexp(value, shift) + 0.0, (value == other) & exact & ~subnormal


class ExactSums:
    """Exact sums and the counts of their terms, for quotients of them."""

    def __init__(self, counts: np.ndarray, *sums: Accumulators) -> None:
        self.counts = counts
        self.sums = sums

    @cached_property
    def _digits(self) -> list[tuple[list[np.ndarray], np.ndarray]]:
        return [_top_digits(total) for total in self.sums]

    def quotient(self, formula: Formula, wanted: np.ndarray, unit: Fraction = ONE) -> np.ndarray:
        """The formula's value in each wanted group, times `unit`, correctly rounded; NaN if it divides by zero."""
        result, doubt = self._near(formula, wanted, unit, Ball.over)
        result[doubt] = Whole.over(*self._whole(formula, doubt, unit))
        return result

    def root(self, formula: Formula, wanted: np.ndarray, unit: Fraction = ONE) -> np.ndarray:
        """The square root of the formula's value times `unit`, correctly rounded; NaN if there is none."""
        result, doubt = self._near(formula, wanted, unit, Ball.root_over)
        result[doubt] = Whole.root_over(*self._whole(formula, doubt, unit))
        return result

    def over_root(self, formula: Formula, wanted: np.ndarray) -> np.ndarray:
        """The formula's numerator over the square root of its denominator, correctly rounded; NaN if that is zero."""
        result, doubt = self._near(formula, wanted, ONE, Ball.over_root)
        result[doubt] = Whole.over_root(*self._whole(formula, doubt, ONE))
        return result

    def whole(self, formula: Formula, wanted: np.ndarray) -> np.ndarray:
        """The formula's value as a Python integer, halves away from zero; 0 if it divides by zero."""
        return self._rounded(formula, wanted, Ball.over, Whole.whole)

    def whole_root(self, formula: Formula, wanted: np.ndarray) -> np.ndarray:
        """The square root of the formula's value as a Python integer, halves up; 0 if there is none."""
        return self._rounded(formula, wanted, Ball.root_over, Whole.whole_root)

    def _rounded(self, formula: Formula, wanted: np.ndarray, ball: _OnBalls, whole: _OnWholes) -> np.ndarray:
        near, doubt = self._near(formula, wanted, ONE, ball)
        # Close to a half, and above the floats with halves, the nearest float does not decide the nearest integer.
        size = np.abs(near)
        doubt |= wanted & ~((np.abs(size - np.floor(size) - 0.5) > 2.0 * np.spacing(size)) & (size < _NO_HALVES))
        settled = wanted & ~doubt
        result = np.zeros(len(near), dtype=object)
        result[settled] = np.rint(near[settled]).astype(np.int64)
        result[doubt] = whole(*self._whole(formula, doubt, ONE))
        return result

    def _near(
        self, formula: Formula, wanted: np.ndarray, unit: Fraction, finish: _OnBalls
    ) -> tuple[np.ndarray, np.ndarray]:
        """The results of pairs of floats, and the wanted groups whose result is in doubt."""
        result, sure = np.zeros(len(self.counts)), np.zeros(len(self.counts), np.bool_)
        for start in range(0, len(self.counts) if self.counts.max(initial=0) < 2**31 else 0, _BLOCK):
            part = slice(start, start + _BLOCK)
            with np.errstate(all="ignore"):
                balls = [Ball.of_digits([d[part] for d in digits], at[part]) for digits, at in self._digits]
                above, below = _times(formula(Ball.of_ints, self.counts[part], *balls), unit, Ball.of_int)
                result[part], sure[part] = finish(above, below)
        return result, wanted & ~sure

    def _whole(self, formula: Formula, chosen: np.ndarray, unit: Fraction) -> tuple[Whole, Whole]:
        """The numerators and denominators of some groups in Python's integers."""
        if not chosen.any():
            return Whole.of_ints(np.empty(0, dtype=object)), Whole.of_ints(np.empty(0, dtype=object))
        places = pa.array(np.flatnonzero(chosen))
        wholes = [_whole(tuple(column.take(places) for column in total)) for total in self.sums]
        return _times(formula(Whole.of_ints, self.counts[chosen].astype(object), *wholes), unit, Whole.of_int)


def _times(quotient: tuple[Any, Any], unit: Fraction, of_int: Callable[[int], Any]) -> tuple[Any, Any]:
    """A quotient times a unit."""
    if unit == 1:
        return quotient
    above, below = quotient
    return above * of_int(unit.numerator), below * of_int(unit.denominator)


def _two_to(exponent: np.ndarray) -> np.ndarray:
    """Powers of two that are normal floats."""
    power: np.ndarray = ((exponent + 1023) << 52).view(np.float64)
    return power


def _top_digits(total: Accumulators) -> tuple[list[np.ndarray], np.ndarray]:
    """The five highest digits of an exact float sum, or of a sum of integers in lanes, and the exponent of the unit."""
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

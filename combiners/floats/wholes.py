"""Quotients and roots of Python's integers, rounded once, for groups in which floats leave a doubt."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_BITS = 132


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Python integers in units of 2**scale."""

    values: np.ndarray
    scale: int

    @classmethod
    def of_ints(cls, values: np.ndarray) -> Whole:
        """Plain integers."""
        return cls(values, 0)

    @classmethod
    def of_int(cls, value: int) -> Whole:
        """One integer of any length, for all groups."""
        return cls(np.array([value], dtype=object), 0)

    def __neg__(self) -> Whole:
        return Whole(-self.values, self.scale)

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
        return self._each(divisor, nearest)

    def root_over(self, divisor: Whole) -> np.ndarray:
        """The square roots of the quotients, each the nearest float; NaN where there is none."""
        return self._each(divisor, nearest_root)

    def over_root(self, divisor: Whole) -> np.ndarray:
        """The numbers over the square roots of the divisors, each the nearest float."""
        sizes = Whole(self.values * abs(self.values), 2 * self.scale)
        return sizes._each(divisor, lambda a, b: -nearest_root(-a, b) if a < 0 else nearest_root(a, b))

    def whole(self, divisor: Whole) -> np.ndarray:
        """The quotients as integers, halves away from zero."""
        return self._each(divisor, half_up, object)

    def whole_root(self, divisor: Whole) -> np.ndarray:
        """The square roots of the quotients as integers, halves up; zero where there is none."""
        return self._each(divisor, half_up_root, object)

    def _each(self, divisor: Whole, function: Callable[[int, int], float | int], kind: type = float) -> np.ndarray:
        """A function of each numerator and denominator in the same unit.

        This is a loop over groups, because Python's integers have no columnar form. Only groups in doubt come here.
        """
        shift = self.scale - divisor.scale
        up, down = 1 << max(shift, 0), 1 << max(-shift, 0)
        both = np.broadcast_arrays(self.values, divisor.values)
        return np.array([function(a * up, b * down) for a, b in zip(*both, strict=True)], dtype=kind)


def nearest(a: int, b: int) -> float:
    """The nearest float to a / b, NaN where b is zero.

    >>> nearest(2**60 + 1, 3) == float(2**60 / 3), nearest(10**400, -1)
    (True, -inf)
    """
    if b == 0:
        return float("nan")
    try:
        return a / b
    except OverflowError:
        return float("inf") if (a < 0) == (b < 0) else float("-inf")


def nearest_root(a: int, b: int) -> float:
    """The square root of a / b as the nearest float, NaN where there is none.

    >>> nearest_root(10**400, 1), nearest_root(2, 1), nearest_root(1, 4)
    (1e+200, 1.4142135623730951, 0.5)
    """
    if b < 0:
        a, b = -a, -b
    if b == 0 or a < 0:
        return float("nan")
    # The root of a / b times 4**shift has more bits than a float, so one more bit for the rest decides the rounding.
    shift = (_BITS - a.bit_length() + b.bit_length()) // 2
    square, rest = divmod(a << max(2 * shift, 0), b << max(-2 * shift, 0))
    root = math.isqrt(square)
    bits = 2 * root + bool(rest or root * root != square)
    return nearest(bits << max(-shift - 1, 0), 1 << max(shift + 1, 0))


def half_up(a: int, b: int) -> int:
    """The nearest integer to a / b, halves away from zero; 0 where b is zero.

    >>> half_up(5, 2), half_up(-5, 2), half_up(4, 3)
    (3, -3, 1)
    """
    if b == 0:
        return 0
    size = (2 * abs(a) + abs(b)) // (2 * abs(b))
    return size if (a < 0) == (b < 0) else -size


def half_up_root(a: int, b: int) -> int:
    """The square root of a / b as the nearest integer, halves up; 0 where there is none.

    >>> half_up_root(9, 4), half_up_root(2, 1)
    (2, 1)
    """
    if b == 0 or (a < 0) != (b < 0):
        return 0
    return (math.isqrt(4 * a // b) + 1) // 2

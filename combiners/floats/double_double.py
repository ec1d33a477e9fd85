"""Double-double arithmetic: numbers as the unevaluated sum of two floats, about 106 bits.

The error-free sum is Knuth's, the error-free product Dekker's ("A floating-point technique for extending the available
precision", Numer. Math. 18, 1971). The algorithms for pairs and their bounds, a few units of 2**-106 an operation, are
those of Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building blocks of double-word
arithmetic" (ACM TOMS 44, 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Real = TypeVar("Real", np.ndarray, float)
"""Numbers of many groups, or the number of one."""


@dataclass(frozen=True, slots=True, eq=False)
class Doubles:
    """Arrays of numbers `high + low`, where `high` is the float nearest to the number.

    >>> import numpy as np
    >>> tenth = Doubles.of(np.array([1.0])) / np.array([10.0])
    >>> (tenth * np.array([10.0]) - np.array([1.0])).high
    array([0.])
    """

    high: np.ndarray
    low: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Doubles:
        """Plain floats as pairs."""
        return cls(values, np.zeros_like(values))

    @property
    def nearest(self) -> np.ndarray:
        """The numbers as floats."""
        return self.high + self.low

    def __add__(self, other: Doubles | np.ndarray | float) -> Doubles:
        if not isinstance(other, Doubles):
            high, low = two_sum(self.high, other)
            return Doubles(*_renormal(high, low + self.low))
        high, low = two_sum(self.high, other.high)
        top, rest = two_sum(self.low, other.low)
        high, low = _renormal(high, low + top)
        return Doubles(*_renormal(high, low + rest))

    def __neg__(self) -> Doubles:
        return Doubles(-self.high, -self.low)

    def __sub__(self, other: Doubles | np.ndarray | float) -> Doubles:
        return self + (-other)

    def __mul__(self, other: Doubles | np.ndarray | float) -> Doubles:
        if not isinstance(other, Doubles):
            high, low = two_product(self.high, other)
            return Doubles(*_renormal(high, low + self.low * other))
        high, low = two_product(self.high, other.high)
        return Doubles(*_renormal(high, low + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: Doubles | np.ndarray) -> Doubles:
        divisor = other if isinstance(other, Doubles) else Doubles.of(other)
        first = self.high / divisor.high
        rest = self - divisor * first
        return Doubles(*_renormal(first, rest.high / divisor.high))


def two_sum(a: Real, b: Real | float) -> tuple[Real, Real]:
    """`s, e` with s + e = a + b exactly, where s is the rounded sum, if nothing overflows."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def two_product(a: np.ndarray, b: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """`p, e` with p + e = a * b exactly, where p is the rounded product, if nothing over- or underflows."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = a * b
        a_high, a_low = _halves(a)
        b_high, b_low = (a_high, a_low) if b is a else _halves(b)
        error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(a: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return np.asarray(high), np.asarray(a - high)


def _renormal(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same sum with the nearest float as its first part; `low` is at most about as large as `high`."""
    total = high + low
    return total, low - (total - high)

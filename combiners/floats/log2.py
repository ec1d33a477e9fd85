"""Logarithms and powers to the base two as pairs of floats, about 86 bits.

Both look up the nearest of some tabulated values and add a short series for the small rest, after Tang, "Table-driven
implementation of the logarithm function in IEEE floating-point arithmetic" (ACM TOMS 16, 1990). The tables are computed
in integers when they are first needed.
"""

from __future__ import annotations

from functools import cache
from math import isqrt

import numpy as np

from .double_double import Doubles, two_product, two_sum

_STEPS = 2048
_ROOTS = 64
_BITS = 140
_ONE = 1 << _BITS


def log2(mantissas: np.ndarray) -> Doubles:
    """The logarithms of numbers from 1 to 2 with an error of at most 2**-85; those of 1 and 2 are exact."""
    table, inverse = _logarithms()
    # With k next to 2048 / m, f = m * k / 2048 - 1 is below 2**-10; k * high and k * low are exact.
    k = np.rint(_STEPS / mantissas)
    high = (mantissas + 1.5 * 2.0**26) - 1.5 * 2.0**26
    f, rest = two_sum(high * (k / _STEPS) - 1.0, (mantissas - high) * (k / _STEPS))
    square, error = two_product(f, f)
    series = 1 / 3 + f * (-1 / 4 + f * (1 / 5 + f * (-1 / 6 + f * (1 / 7 - f / 8))))
    natural, low = two_sum(f, -0.5 * square)
    natural, low = two_sum(natural, low + (rest - f * rest - 0.5 * error + f * square * series))
    at = (_STEPS - k).astype(np.int64)
    return Doubles(natural, low) * inverse + Doubles(table.high[at], table.low[at])


def exp2(whole: np.ndarray, part: Doubles) -> np.ndarray:
    """Two to the power of an integer plus a pair, rounded to floats; zero or infinite outside their range."""
    roots, natural = _powers()
    carry = np.rint(part.high)
    part = part - carry
    step = np.rint(part.high * _ROOTS)
    y = (part - step / _ROOTS) * natural
    square = y * y
    cube = square * y
    v = y.high
    tail = v**4 * (1 / 24 + v * (1 / 120 + v * (1 / 720 + v * (1 / 5040 + v / 40320))))
    grown = y + square * np.array([0.5]) + cube / np.array([6.0]) + tail + 1.0
    # If a part is so large that a float cannot hold its fraction, the power is outside the range of floats.
    at = np.clip(step.astype(np.int64) + _ROOTS // 2, 0, _ROOTS)
    power = Doubles(roots.high[at], roots.low[at]) * grown
    exponent = np.clip(whole + carry.astype(np.int64), -3000, 3000)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(power.nearest, exponent.astype(np.int32))


@cache
def _logarithms() -> tuple[Doubles, Doubles]:
    """log2(2048 / k) for k from 2048 down to 1024, and 1 / ln(2)."""
    # ln((k + 1) / k) = 2 artanh(1 / (2 k + 1)), whose series needs few terms.
    natural = [0]
    for k in range(_STEPS - 1, _STEPS // 2 - 1, -1):
        term = _ONE // (2 * k + 1)
        total, n = 0, 1
        while term:
            total += term // n
            term //= (2 * k + 1) ** 2
            n += 2
        natural.append(natural[-1] + 2 * total)
    ln2 = natural[-1]
    return _pairs([(value << _BITS) // ln2 for value in natural]), _pairs([(_ONE << _BITS) // ln2])


@cache
def _powers() -> tuple[Doubles, Doubles]:
    """2**(j / 64) for j from -32 to 32, and ln(2)."""
    root = 2 * _ONE
    for _ in range(_ROOTS.bit_length() - 1):
        root = isqrt(root << _BITS)
    powers = [_ONE]
    for _ in range(_ROOTS):
        powers.append(powers[-1] * root >> _BITS)
    below = [power >> 1 for power in powers[_ROOTS // 2 : -1]]
    inverse = _logarithms()[1]
    ln2 = Doubles.of(np.ones(1)) / inverse
    return _pairs(below + powers[: _ROOTS // 2 + 1]), ln2


def _pairs(fixed: list[int]) -> Doubles:
    high = [float(value) for value in fixed]
    low = [float(value - int(top)) for value, top in zip(fixed, high, strict=True)]
    return Doubles(np.ldexp(high, -_BITS), np.ldexp(low, -_BITS))

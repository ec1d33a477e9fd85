"""Double-double arithmetic against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.floats.double_double import Doubles, two_product, two_sum

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100).filter(
    lambda x: x == 0 or abs(x) > 1e-100
)


def exact(pair: Doubles) -> Fraction:
    return Fraction(float(pair.high[0])) + Fraction(float(pair.low[0]))


def pair_of(high: float, low: float) -> Doubles:
    return Doubles(*two_sum(np.array([high]), np.array([low * abs(high) * 2.0**-54])))


@given(NUMBERS, NUMBERS)
def test_sums_and_products_of_floats_are_split_without_error(a: float, b: float) -> None:
    total, lost = two_sum(np.array([a]), np.array([b]))
    assert Fraction(float(total[0])) + Fraction(float(lost[0])) == Fraction(a) + Fraction(b)
    assert float(total[0]) == a + b
    product, lost = two_product(np.array([a]), np.array([b]))
    assert Fraction(float(product[0])) + Fraction(float(lost[0])) == Fraction(a) * Fraction(b)


@given(NUMBERS, st.floats(-1, 1), NUMBERS, st.floats(-1, 1))
def test_pairs_keep_a_hundred_bits(a: float, a_low: float, b: float, b_low: float) -> None:
    x, y = pair_of(a, a_low), pair_of(b, b_low)
    fx, fy = exact(x), exact(y)
    plain = Fraction(float(y.high[0]))
    results = [
        (x + y, fx + fy, abs(fx) + abs(fy)),
        (x - y, fx - fy, abs(fx) + abs(fy)),
        (x + y.high, fx + plain, abs(fx) + abs(plain)),
        (x * y, fx * fy, abs(fx * fy)),
        (x * y.high, fx * plain, abs(fx * plain)),
        (-x, -fx, Fraction(0)),
    ]
    if b:
        results += [(x / y, fx / fy, abs(fx / fy)), (x / y.high, fx / plain, abs(fx / plain))]
    for got, expected, size in results:
        assert abs(exact(got) - expected) <= size * Fraction(2) ** -100
        assert float(got.nearest[0]) == float(got.high[0])

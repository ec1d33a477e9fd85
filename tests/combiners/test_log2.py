"""Logarithms and powers against the decimal module."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.floats.double_double import Doubles, two_sum
from uncombine.combiners.floats.log2 import exp2, log2


@given(st.lists(st.floats(1, 2), min_size=1) | st.just([1.0, float(np.nextafter(1, 2)), float(np.nextafter(2, 1))]))
def test_logarithms_are_within_their_bound(mantissas: list[float]) -> None:
    got = log2(np.array(mantissas))
    with localcontext() as context:
        context.prec = 50
        for mantissa, high, low in zip(mantissas, got.high, got.low, strict=True):
            expected = Decimal(mantissa).ln() / Decimal(2).ln()
            assert abs(Decimal(float(high)) + Decimal(float(low)) - expected) <= Decimal(2) ** -85


@given(st.integers(-1000, 1000), st.floats(-3, 3), st.floats(-1, 1))
def test_powers_are_correctly_rounded(whole: int, high: float, low: float) -> None:
    part = Doubles(*two_sum(np.array([high]), np.array([low * abs(high) * 2.0**-54])))
    with localcontext() as context:
        context.prec = 60
        exponent = Decimal(float(part.high[0])) + Decimal(float(part.low[0])) + whole
        expected = float((exponent * Decimal(2).ln()).exp())
    assert exp2(np.array([whole]), part)[0] == expected


@pytest.mark.parametrize(
    ("whole", "power"),
    [(0, 1.0), (10, 1024.0), (1023, 2.0**1023), (1024, np.inf), (5000, np.inf), (-1074, 5e-324), (-1076, 0.0)],
)
def test_whole_powers_are_exact_to_the_ends_of_the_floats(whole: int, power: float) -> None:
    assert exp2(np.array([whole]), Doubles.of(np.zeros(1)))[0] == power


def test_the_logarithms_of_one_and_two_are_exact() -> None:
    got = log2(np.array([1.0, 2.0]))
    assert (got.high.tolist(), got.low.tolist()) == ([0.0, 1.0], [0.0, 0.0])

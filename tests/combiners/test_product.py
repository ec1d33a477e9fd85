"""Products against fractions, math.prod and pandas."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.errors import TypeMismatch

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.1, -3.5, 1e100, 1e-100, 5e-324]),
    st.floats(-1e6, 1e6),
)
SCHEMA = pa.schema({"x": pa.float64()})


def product(values: list[Any], weights: list[int] | None = None) -> Any:
    fn = uc.Product("x").bind(SCHEMA)
    return fn.result(fn.accumulate({"x": values}, weights))


def rounded(values: list[float]) -> float:
    exact = math.prod(map(Fraction, values), start=Fraction(1))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def near(got: float, values: list[float]) -> bool:
    """As close as the right rounding but for a relative error of 2**-70 for each value, or next to it where floats end.

    Only where the exact product lies halfway between two floats, or that close to it, is there room for the other one.
    """
    expected = rounded(values)
    if got == expected or (abs(expected) < 1e-300 and abs(got - expected) <= 5e-324):
        return True
    if not (math.isfinite(got) and math.isfinite(expected)):
        return False
    exact = math.prod(map(Fraction, values), start=Fraction(1))
    room = abs(exact) * len(values) / 2**70
    return abs(Fraction(got) - exact) <= abs(Fraction(expected) - exact) + room


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_products_are_correctly_rounded(values: list[float]) -> None:
    assert near(product(values), values)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.lists(NUMBERS, max_size=8), st.randoms())
def test_factors_can_be_retracted(kept: list[float], gone: list[float], random: Any) -> None:
    rows = [(x, 1) for x in kept] + [(x, 1) for x in gone] + [(x, -1) for x in gone]
    random.shuffle(rows)
    assert near(product([x for x, _ in rows], [w for _, w in rows]), kept)


@given(st.lists(NUMBERS, min_size=1, max_size=12), st.integers(1, 5))
def test_any_cut_gives_the_same(values: list[float], size: int) -> None:
    fn = uc.Product("x").bind(SCHEMA)
    state = fn.zero(1)
    for start in range(0, len(values), size):
        more = fn.accumulate({"x": values[start : start + size]})
        both = tuple(pa.concat_arrays(columns) for columns in zip(state, more, strict=True))
        state = fn.merge(uc.combiners.rows.groups.Groups.repeated(1, 2), both)
    assert near(fn.result(state), values)


def test_a_product_halfway_between_two_floats_may_be_either() -> None:
    values = [-3.5, 732626.9962505517]
    assert near(-2564194.486876931, values)
    assert near(-2564194.4868769306, values)
    assert not near(-2564194.4868769315, values)


def test_whole_numbers_stay_whole() -> None:
    assert product(list(range(1, 19))) == math.factorial(18)
    assert product([3.0, 7.0], [2, 1]) == 63.0
    assert product([2.0] * 1100 + [0.5] * 1000) == 2.0**100


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.inf, -2.0], -math.inf),
        ([-math.inf, -2.0], math.inf),
        ([math.inf, 0.0], math.nan),
        ([math.nan, 0.0], math.nan),
        ([1e200, 1e200], math.inf),
        ([1e-200, -1e-200], 0.0),
        ([None], None),
    ],
)
def test_at_the_edges(values: list[float | None], expected: float | None) -> None:
    assert product(values) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("odd", [0.0, math.nan, math.inf, -math.inf])
def test_zeros_and_specials_can_be_retracted(odd: float) -> None:
    assert product([2.0, odd, -3.5, odd], [1, 1, 1, -1]) == -7.0


def test_groups_against_pandas() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"k": rng.integers(0, 50, 2000), "x": rng.normal(1, 0.5, 2000), "i": rng.integers(-3, 4, 2000)}
    )
    frame.loc[rng.random(2000) < 0.1, "x"] = None
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    got = uc.aggregate(rows, by="k", x=uc.Product("x"), i=uc.Product("i")).to_pandas().set_index("k")
    expected = frame.groupby("k", sort=False)["x"].prod(min_count=1)
    pd.testing.assert_series_equal(got["x"], expected, check_names=False, rtol=1e-12)
    whole = frame.groupby("k", sort=False)["i"].agg(lambda s: float(math.prod(s.tolist())))
    pd.testing.assert_series_equal(got["i"], whole, check_names=False, rtol=1e-15)


def test_text_is_refused() -> None:
    with pytest.raises(TypeMismatch, match=r"^Product\('x'\) takes numbers, but 'x' is string: cast it"):
        uc.aggregate(pa.table({"x": ["a"]}), p=uc.Product("x"))

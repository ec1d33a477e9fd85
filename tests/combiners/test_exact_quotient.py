"""Quotients of exact sums against fractions: each rounded once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states import exact_quotient
from uncombine.combiners.states.exact_quotient import ExactSums
from uncombine.combiners.states.exact_sum import ExactSumFn
from uncombine.combiners.summing import WideSumFn

FLOATS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 3.0, 1e16, -1e16, 1e100, 1e300, -1e300, 5e-324, 1e-300, 2.0**53 - 1]),
    st.floats(-1e3, 1e3),
)


def rounded(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def exact_sums(values: list[list[float]], counts: list[int], power: int = 1) -> ExactSums:
    codes = np.repeat(np.arange(len(values)), [len(v) for v in values])
    column = Column(pa.array([x for group in values for x in group], pa.float64()))
    parts = [ExactSumFn(k).add(Groups(codes, len(values)), column) for k in range(1, power + 1)]
    return ExactSums(np.array(counts, np.int64), *parts)


def mean(ints: Any, n: Any, total: Any) -> tuple[Any, Any]:
    return total, ints(n)


def variance(ints: Any, n: Any, total: Any, squares: Any) -> tuple[Any, Any]:
    return ints(n) * squares - total * total, ints(n * n)


def mixture(ints: Any, n: Any, total: Any, squares: Any) -> tuple[Any, Any]:
    return 3 * (total * squares) + ints(n) * total - 2 * squares, 5 * squares + ints(n)


@given(st.lists(st.lists(FLOATS, min_size=1, max_size=6), min_size=1, max_size=5))
def test_quotients_are_the_exact_ones_rounded_once(values: list[list[float]]) -> None:
    sums = exact_sums(values, [len(v) for v in values], 2)
    wanted = np.ones(len(values), np.bool_)
    got = [sums.quotient(formula, wanted) for formula in (lambda i, n, x, q: (x, i(n)), variance, mixture)]
    for at, group in enumerate(values):
        n, total, squares = len(group), sum(map(Fraction, group)), sum(Fraction(x) ** 2 for x in group)
        assert got[0][at] == rounded(total / n)
        assert got[1][at] == rounded((n * squares - total**2) / n**2)
        assert got[2][at] == rounded((3 * total * squares + n * total - 2 * squares) / (5 * squares + n))


@pytest.mark.parametrize("blocks", [1, 4])
def test_well_behaved_groups_never_come_to_python(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_quotient, "_BLOCK", 50 // blocks)
    rng = np.random.default_rng(0)
    values = [list(rng.normal(5, 2, 20)) for _ in range(50)]
    sums = exact_sums(values, [20] * 50, 2)
    expected = [
        rounded((20 * sum(Fraction(x) ** 2 for x in group) - sum(map(Fraction, group)) ** 2) / 400) for group in values
    ]
    monkeypatch.setattr(exact_quotient, "_whole", None)
    assert sums.quotient(variance, np.ones(50, np.bool_)).tolist() == expected


def test_division_by_zero_is_nan_and_unwanted_groups_are_left_alone() -> None:
    sums = exact_sums([[1.0, 1.0], [1.0, 2.0]], [0, 0])
    assert np.isnan(sums.quotient(mean, np.array([True, True]))).all()
    sums.quotient(mean, np.array([False, False]))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5), st.integers(-7, 7).filter(bool))
def test_sums_of_integers_in_lanes(values: list[int], count: int) -> None:
    lanes = WideSumFn().add(Groups.single(len(values)), Column(pa.array(values, pa.int64())))
    got = ExactSums(np.array([count]), lanes).quotient(mean, np.ones(1, np.bool_))
    assert got[0] == sum(values) / count


@pytest.mark.parametrize("n", [2**40, 2**33 + 12345])
def test_counts_beyond_what_plain_integers_can_multiply(n: int) -> None:
    got = exact_sums([[1.0, 3.0]], [n], 2).quotient(variance, np.ones(1, np.bool_))
    assert got[0] == rounded(Fraction(n * 10 - 16, n * n))


def test_subnormal_quotients_are_rounded_once_too() -> None:
    # Squares next to the middle between two subnormal floats: rounded to 53 bits first, some would be in the middle.
    roots = [math.ldexp(math.sqrt(k + 0.5), -537) for k in range(200)]
    sums = exact_sums([[root] for root in roots], [1] * 200, 2)
    got = sums.quotient(lambda ints, n, total, squares: (squares, ints(n)), np.ones(200, np.bool_))
    assert got.tolist() == [rounded(Fraction(root) ** 2) for root in roots]

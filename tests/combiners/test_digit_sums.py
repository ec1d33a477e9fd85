"""Exact sums of columns with exponents close together, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.floats import digit_sums
from uncombine.combiners.rows.groups import Groups

VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.1, -0.1, 1e16, -1e16, 3.5, 1e-9]),
    st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-12),
)
ROWS = st.lists(st.tuples(st.integers(0, 2), VALUES, VALUES, st.sampled_from([1, -1])), max_size=25)


def sums(groups: Groups, factors: list[np.ndarray], signs: np.ndarray | None) -> list[Fraction] | None:
    """The sums as fractions."""
    blocks = digit_sums.sum_narrow(groups, factors, signs)
    if blocks is None:
        return None
    out: list[Fraction] = []
    for matrix, low in blocks:
        scales = [Fraction(2) ** (digit_sums.BITS * (low + k)) for k in range(len(matrix))]
        out += [sum((int(d) * s for d, s in zip(column, scales, strict=True)), Fraction(0)) for column in matrix.T]
    return out


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("powers", [(1, 0), (2, 0), (1, 1), (3, 0), (2, 2)])
@given(rows=ROWS)
def test_sums_of_products_are_exact(
    powers: tuple[int, int], signed: bool, rows: list[tuple[int, float, float, int]]
) -> None:
    codes, x, y, signs = (
        np.array([row[k] for row in rows], kind) for k, kind in enumerate((np.int64, float, float, np.int64))
    )
    factors = [x] * powers[0] + [y] * powers[1]
    got = sums(Groups(codes, 3), factors, signs if signed else None)
    expected = [Fraction(0)] * 3
    for code, a, b, sign in rows:
        expected[code] += Fraction(a) ** powers[0] * Fraction(b) ** powers[1] * (sign if signed else 1)
    assert got in (expected, None)
    spread = [abs(v) for row in rows for v in row[1:3] if v]
    if not spread or max(spread) / min(spread) < 1e9:
        assert got is not None


def test_many_rows_are_joined_before_sums_lose_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digit_sums, "CHUNK", 64)
    monkeypatch.setattr(digit_sums, "_ROWS", 16)
    monkeypatch.setattr(digit_sums, "_BLOCK", 2)
    rng = np.random.default_rng(0)
    codes, x = rng.integers(0, 5, 2000), rng.random(2000) / 2 + 0.5
    expected = [sum((Fraction(v) for v in x[codes == k]), Fraction(0)) for k in range(5)]
    assert sums(Groups(codes, 5), [x], None) == expected


@pytest.mark.parametrize(
    "factors",
    [
        [np.array([1e300, 1e-300])],
        [np.array([1e-300, 1.0]), np.array([1e-300, 1.0])],
        [np.array([1e200]), np.array([1e200])],
        [np.array([1e-310])],
    ],
    ids=["far apart", "underflow", "overflow", "subnormal"],
)
def test_what_does_not_fit_is_left_to_the_wide_way(factors: list[np.ndarray]) -> None:
    assert digit_sums.sum_narrow(Groups(np.zeros(len(factors[0]), np.int64), 1), factors, None) is None


def test_no_rows_and_only_zeros_sum_to_zero() -> None:
    assert sums(Groups(np.empty(0, np.int64), 2), [np.empty(0)], None) == [0, 0]
    assert sums(Groups(np.zeros(3, np.int64), 1), [np.zeros(3), np.ones(3)], None) == [0]

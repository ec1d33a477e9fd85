"""Moments about the mean against fractions, in any cut."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states import central_moments
from uncombine.combiners.states.central_moments import CentralMomentsFn

KEYS = 3
VALUES = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.1, -7.5, 1e6, 1e6 + 1, 1e6 + 2.5])
ROWS = st.lists(st.tuples(st.integers(0, KEYS - 1), VALUES, st.sampled_from([1, 1, 2, 0])), max_size=25)
Rows = list[tuple[int, float, int]]


def state(rows: Rows, order: int = 4) -> tuple[pa.Array, ...]:
    groups = Groups(np.array([row[0] for row in rows], np.int64), KEYS)
    weights = np.array([row[2] for row in rows], np.int64)
    return CentralMomentsFn(order).add(
        groups, Column(pa.array([row[1] for row in rows], pa.float64())), weights=weights
    )


def check(accumulators: tuple[pa.Array, ...], rows: Rows) -> None:
    for key in range(KEYS):
        mine = [Fraction(x) for k, x, w in rows if k == key for _ in range(w)]
        count, mean, low, *moments = (column[key].as_py() for column in accumulators)
        assert count == len(mine)
        if not mine:
            assert (mean, low, moments) == (0.0, 0.0, [0.0, 0.0, 0.0])
            continue
        middle = sum(mine) / len(mine)
        assert mean + low == pytest.approx(float(middle), rel=1e-15)
        for power, moment in enumerate(moments, 2):
            expected = sum((x - middle) ** power for x in mine)
            size = sum(abs(x - middle) ** power for x in mine)
            assert abs(Fraction(moment) - expected) <= size * Fraction(1, 10**12)


@given(ROWS)
def test_moments_are_close_to_the_exact_ones(rows: Rows) -> None:
    check(state(rows), rows)


@given(ROWS, st.integers(1, 6))
def test_any_cut_gives_the_same(rows: Rows, size: int) -> None:
    fn = CentralMomentsFn(4)
    parts = [fn.zero(KEYS), *(state(rows[start : start + size]) for start in range(0, len(rows), size))]
    joined = tuple(pa.concat_arrays(column) for column in zip(*parts, strict=True))
    check(fn.merge(Groups.repeated(KEYS, len(parts)), joined), rows)


def test_cuts_do_not_cost_precision_far_from_zero() -> None:
    values = np.random.default_rng(0).normal(size=300) + 1e9
    fn = CentralMomentsFn(2)
    parts = [fn.add(Groups.single(10), Column(pa.array(values[start : start + 10]))) for start in range(0, 300, 10)]
    joined = tuple(pa.concat_arrays(column) for column in zip(*parts, strict=True))
    middle = sum(map(Fraction, values)) / 300
    exact = float(sum((Fraction(v) - middle) ** 2 for v in values))
    assert fn.merge(Groups.single(30), joined)[3][0].as_py() == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("rows", [8, 500, 1 << 16], ids=["any value", "the first rows", "all rows"])
def test_groups_that_the_first_rows_do_not_show(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(central_moments, "_ROWS", rows)
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.zeros(500, np.int64), rng.integers(0, 60, 1000)])
    values = rng.normal(size=1500) + codes * 1e6
    got = CentralMomentsFn(2).add(Groups(codes, 60), Column(pa.array(values)))
    for key in range(60):
        mine = [Fraction(v) for v in values[codes == key]]
        middle = sum(mine) / len(mine)
        assert got[3][key].as_py() == pytest.approx(float(sum((v - middle) ** 2 for v in mine)), rel=1e-12)


@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, -3.7e-5])
def test_equal_values_have_no_spread_at_all(value: float) -> None:
    got = CentralMomentsFn(4).add(Groups.single(1000), Column(pa.array([value] * 1000)))
    assert [column[0].as_py() for column in got] == [1000, value, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf"), 1e200])
def test_what_is_not_a_number_spoils_its_own_group_only(odd: float) -> None:
    codes = np.array([0, 0, 1, 1])
    got = CentralMomentsFn(2).add(Groups(codes, 2), Column(pa.array([1.0, odd, 1.0, 2.0])))
    assert np.isnan(got[3][0].as_py())
    assert [column[1].as_py() for column in got] == [2, 1.5, 0.0, 0.5]


def test_rows_of_weight_zero_have_no_effect() -> None:
    rows = [(0, 1.0, 1), (0, float("nan"), 0), (1, float("inf"), 0), (0, 3.0, 1)]
    assert all(a.equals(b) for a, b in zip(state(rows), state([rows[0], rows[3]]), strict=True))

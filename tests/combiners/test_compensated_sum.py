"""Sums held as pairs of floats against fractions: within the stated bound, whatever the order, cut and retractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.algebra import Accumulators
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states import compensated_sum
from uncombine.combiners.states.compensated_sum import LARGEST, PowerSumFn, SquareSumsFn, error_bound, pairs_of

KEYS = 3
VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.1, -0.1, 1e9, -1e9, 1e16, 1e-9]),
    st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-60),
)
ROWS = st.lists(st.tuples(st.integers(0, KEYS - 1), VALUES, st.sampled_from([1, 1, 1, -1, 2, 0])), max_size=30)
Rows = list[tuple[int, float, int]]


def columns(rows: Rows) -> tuple[Groups, Column, np.ndarray]:
    codes, values, weights = (list(part) for part in zip(*rows, strict=True)) if rows else ([], [], [])
    column = Column(pa.array(values, pa.float64()))
    return Groups(np.array(codes, np.int64), KEYS), column, np.array(weights, np.int64)


def check(accumulators: Accumulators, rows: Rows, powers: list[int], count: int | None = None) -> None:
    """The sums are within the bound of the exact ones; `count` terms came if there were more than rows."""
    for pair, power in zip(pairs_of(accumulators), powers, strict=True):
        for key in range(KEYS):
            mine = [(Fraction(x), w) for k, x, w in rows if k == key]
            expected = sum((x**power * w for x, w in mine), Fraction(0))
            got = Fraction(float(pair.high[key])) + Fraction(float(pair.low[key]))
            terms = sum(abs(w) for _, w in mine) if count is None else count
            assert abs(got - expected) <= error_bound(terms, max((abs(float(x)) for x, _ in mine), default=0.0), power)


@pytest.mark.parametrize(
    ("fn", "powers"), [(SquareSumsFn(), [1, 2]), *((PowerSumFn((power,)), [power]) for power in (1, 2, 3, 4))]
)
@given(rows=ROWS)
def test_sums_are_within_their_bound(fn: compensated_sum.PairSumsFn, powers: list[int], rows: Rows) -> None:
    groups, x, weights = columns(rows)
    check(fn.add(groups, x, weights=weights), rows, powers)
    check(fn.add(groups, x), [(key, value, 1) for key, value, _ in rows], powers)
    negative = fn.negate(fn.add(groups, x, weights=weights))
    check(negative, [(key, value, -weight) for key, value, weight in rows], powers)


@given(ROWS, st.integers(1, 5))
def test_sums_of_sums_are_within_the_bound(rows: Rows, size: int) -> None:
    fn = SquareSumsFn()
    parts = [fn.zero(KEYS)]
    for start in range(0, len(rows), size):
        groups, x, weights = columns(rows[start : start + size])
        parts.append(fn.add(groups, x, weights=weights))
    joined = tuple(pa.concat_arrays(column) for column in zip(*parts, strict=True))
    check(fn.merge(Groups.repeated(KEYS, len(parts)), joined), rows, [1, 2], count=2 * len(rows) + 8)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("spread", [0, 5, 40], ids=["alike", "apart", "far apart"])
def test_groups_of_other_sizes_do_not_cost_precision(
    spread: int, signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compensated_sum, "_ROWS", 64)
    monkeypatch.setattr(compensated_sum, "CHUNK", 512)
    rng = np.random.default_rng(0)
    keys = rng.integers(0, KEYS, 1000)
    values = rng.normal(size=1000) * 10.0 ** (keys * spread)
    weights = rng.integers(-1, 2, 1000) if signed else np.ones(1000, np.int64)
    sums = SquareSumsFn().add(Groups(keys, KEYS), Column(pa.array(values)), weights=weights if signed else None)
    for pair, power in zip(pairs_of(sums), (1, 2), strict=True):
        for group in range(KEYS):
            mine = [(Fraction(v) ** power, int(w)) for v, w, k in zip(values, weights, keys, strict=True) if k == group]
            off = Fraction(float(pair.high[group])) + Fraction(float(pair.low[group])) - sum(x * w for x, w in mine)
            assert abs(off) < sum(abs(x) for x, _ in mine) * Fraction(2) ** -80


@given(ROWS)
def test_products_of_two_columns(rows: Rows) -> None:
    groups, x, weights = columns(rows)
    y = Column(pa.array([value / 3 for _, value, _ in rows], pa.float64()))
    (pair,) = pairs_of(PowerSumFn((1, 1)).add(groups, x, y, weights=weights))
    for key in range(KEYS):
        mine = [(Fraction(v) * Fraction(v / 3), w) for k, v, w in rows if k == key]
        got = Fraction(float(pair.high[key])) + Fraction(float(pair.low[key]))
        bound = error_bound(sum(abs(w) for _, w in mine), max((abs(v) for k, v, _ in rows if k == key), default=0.0), 2)
        assert abs(got - sum((p * w for p, w in mine), Fraction(0))) <= bound


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf"), 2.0 ** (LARGEST // 2 + 1), -1e200])
def test_values_that_cannot_be_summed_are_counted_and_retracted(odd: float) -> None:
    fn, single = SquareSumsFn(), Groups.single(3)
    there = fn.add(single, Column(pa.array([1.0, odd, 2.0])))
    assert there[-1].to_pylist() == [1]
    back = fn.uncombine(there, fn.add(Groups.single(1), Column(pa.array([odd]))))
    assert [column.to_pylist() for column in back] == [[3.0], [0.0], [5.0], [0.0], [0]]


def test_integers_are_summed_as_floats() -> None:
    values = [2**53 + 1, -3, 2**62]
    got = pairs_of(SquareSumsFn().add(Groups.single(3), Column(pa.array(values))))
    for pair, power in zip(got, (1, 2), strict=True):
        expected = sum(Fraction(float(v)) ** power for v in values)
        assert abs(Fraction(float(pair.high[0])) + Fraction(float(pair.low[0])) - expected) <= error_bound(
            3, 2.0**62, power
        )
    small = SquareSumsFn().add(Groups.single(3), Column(pa.array([3, -4, 5])))
    assert [column.to_pylist() for column in small] == [[4.0], [0.0], [50.0], [0.0], [0]]


@pytest.mark.parametrize("fn", [SquareSumsFn(), PowerSumFn((2,)), PowerSumFn((4,))])
def test_many_values_lose_little_more_than_few(fn: compensated_sum.PairSumsFn) -> None:
    values = np.random.default_rng(0).random(5000) + 0.9
    powers = [1, 2] if isinstance(fn, SquareSumsFn) else list(fn.powers)
    for pair, power in zip(pairs_of(fn.add(Groups.single(5000), Column(pa.array(values)))), powers, strict=True):
        exact = sum(Fraction(v) ** power for v in values)
        assert abs(Fraction(float(pair.high[0])) + Fraction(float(pair.low[0])) - exact) < exact * Fraction(2) ** -85

"""Exact sums against fractions and math.fsum."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states.exact_sum import ExactSumFn, exact_ints, exact_sum

FLOATS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e16, -1e16, 1e100, -1e100, 2.0**53, 2.0**52 + 0.5, 2.0**-53]),
    st.sampled_from([5e-324, -5e-324, 2.2e-308, 1e-310, 1.7e308, -1.7e308]),
    st.floats(-1, 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
ROWS = st.lists(st.tuples(st.integers(0, 2), FLOATS, st.sampled_from([1, 1, -1, 2, -3, 7])), max_size=30)


def rounded(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def states(fn: ExactSumFn, rows: list[tuple[int, float, int]], weighed: bool) -> tuple[pa.Array, ...]:
    groups = Groups(np.array([g for g, _, _ in rows], np.int64), 3)
    column = Column(pa.array([x for _, x, _ in rows], pa.float64()))
    return fn.add(groups, column, weights=np.array([w for *_, w in rows], np.int64) if weighed else None)


def same(a: tuple[pa.Array, ...], b: tuple[pa.Array, ...]) -> bool:
    return all(x.equals(y) for x, y in zip(a, b, strict=True))


@given(ROWS, st.booleans())
def test_sums_are_the_exact_sum_rounded_once(rows: list[tuple[int, float, int]], weighed: bool) -> None:
    got = exact_sum(states(ExactSumFn(), rows, weighed))
    for group in range(3):
        exact = sum((Fraction(x) * (w if weighed else 1) for g, x, w in rows if g == group), Fraction(0))
        assert got[group] == rounded(exact)


@given(st.lists(st.floats(-1e300, 1e300), max_size=40))
def test_equal_to_fsum(values: list[float]) -> None:
    result = uc.aggregate(pa.table({"x": pa.array([*values, 0.0], pa.float64())}), s=uc.Sum("x", exact=True))
    assert result["s"][0].as_py() == math.fsum(values)


@given(ROWS, st.integers(0, 30), st.booleans(), st.randoms())
def test_order_and_cut_do_not_show_in_the_state(
    rows: list[tuple[int, float, int]], cut: int, weighed: bool, random: object
) -> None:
    fn = ExactSumFn()
    whole = states(fn, rows, weighed)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert same(states(fn, shuffled, weighed), whole)
    parts = [states(fn, part, weighed) for part in (shuffled[:cut], shuffled[cut:])]
    joined = tuple(pa.concat_arrays(list(pair)) for pair in zip(*parts, strict=True))
    assert same(fn.merge(Groups.repeated(3, 2), joined), whole)
    assert same(fn.uncombine(whole, parts[0]), parts[1])


@given(ROWS)
def test_squares_are_exact_whole_numbers(rows: list[tuple[int, float, int]]) -> None:
    totals, scale = exact_ints(states(ExactSumFn(2), rows, True))
    for group in range(3):
        exact = sum((Fraction(x) ** 2 * w for g, x, w in rows if g == group), Fraction(0))
        assert Fraction(int(totals[group])) * Fraction(2) ** scale == exact


TIES = [(low, [rest, *[0] * zeros, 1, 2**21]) for rest in (1, -1) for zeros in (1, 2, 4) for low in (0, -38)]
DIGITS = st.sampled_from([-(2**31), 2**31 - 1, 1, -1, 0, 0, 2**30, 2**21, -(2**22)]) | st.integers(-(2**31), 2**31 - 1)


@example(TIES)
@given(st.lists(st.tuples(st.sampled_from([*range(-38, -28), 0, *range(26, 33)]), st.lists(DIGITS, max_size=7))))
def test_digits_are_rounded_once_to_the_nearest_float(sums: list[tuple[int, list[int]]]) -> None:
    ends = [[i for i, digit in enumerate(digits) if digit] for _, digits in sums]
    trimmed = [
        (low + held[0], digits[held[0] : held[-1] + 1]) if held else (0, [])
        for (low, digits), held in zip(sums, ends, strict=True)
    ]
    lows = pa.array([low for low, _ in trimmed], pa.int16())
    got = exact_sum((lows, pa.array([digits for _, digits in trimmed], pa.list_(pa.int32()))))
    for result, (low, digits) in zip(got.tolist(), trimmed, strict=True):
        whole = sum(digit << (32 * i) for i, digit in enumerate(digits))
        assert result == rounded(Fraction(whole) * Fraction(2) ** (32 * low))


def test_many_groups_of_wide_exponents_are_done_in_blocks() -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.random(60_000) * 1e300, rng.random(60_000) * 1e-300])
    codes = np.concatenate([np.arange(60_000), np.arange(60_000)])
    state = ExactSumFn().add(Groups(codes, 60_000), Column(pa.array(values)))
    assert np.array_equal(exact_sum(state), values[:60_000] + values[60_000:])


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_specials_can_be_retracted(special: float) -> None:
    table = pa.table({"x": [1.5, special, special], "w": [1, 1, -1]})
    for combiner in (uc.Sum("x"), uc.Sum("x", exact=True)):
        assert uc.aggregate(table, diff="w", s=combiner)["s"].to_pylist() == [1.5]
        held = uc.aggregate(table.slice(0, 2), s=combiner)["s"][0].as_py()
        assert held == special or math.isnan(held)


def test_opposite_infinities_are_no_number() -> None:
    table = pa.table({"x": [math.inf, -math.inf]})
    assert math.isnan(uc.aggregate(table, s=uc.Sum("x"))["s"][0].as_py())


SWAPPED = [
    (pa.int64(), [5, 3], 2),
    (pa.uint64(), [2**63 + 5, 3], 2**63 + 2),
    (pa.decimal128(9, 2), [Decimal("5.50"), Decimal("3.25")], Decimal("2.25")),
    (pa.duration("s"), [5, 3], dt.timedelta(seconds=2)),
    (pa.float64(), [5.5, 3.25], 2.25),
    (pa.float64(), [math.inf, 3.0], math.inf),
    (pa.float64(), [5.5, 5.5], None),
]


@pytest.mark.parametrize(("kind", "values", "difference"), SWAPPED, ids=str)
def test_as_many_values_taken_out_as_put_in_leave_their_difference(
    kind: pa.DataType, values: list[object], difference: object
) -> None:
    fn = uc.Sum("x", exact=True).bind(pa.schema({"x": kind}))
    state = fn.accumulate({"x": values}, [1, -1])
    assert fn.result(state) == difference

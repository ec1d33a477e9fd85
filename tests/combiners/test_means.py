"""Means against fractions, the statistics module and pandas."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.groups import Groups
from uncombine.errors import OutOfRange, TypeMismatch

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 3.0, 0.1, 1e16, -1e16, 1e100, 1e-9, 1e300])
PAIRS = st.lists(st.tuples(NUMBERS | st.none(), NUMBERS | st.none()), max_size=10)
Pairs = list[tuple[float | None, float | None]]
SCHEMA = pa.schema({"x": pa.float64(), "y": pa.float64(), "w": pa.int64()})


def table(rows: Pairs, weights: list[int] | None = None) -> pa.Table:
    weights = [1] * len(rows) if weights is None else weights
    return pa.table({"x": [r[0] for r in rows], "y": [r[1] for r in rows], "w": weights}, schema=SCHEMA)


def one(values: list[Any], combiner: uc.Combiner, kind: pa.DataType | None = None) -> Any:
    """The result over one column, by way of the accumulators."""
    fn = combiner.bind(pa.schema({"x": kind or pa.float64()}))
    return fn.result(fn.accumulate({"x": values}))


@given(st.lists(NUMBERS | st.none(), max_size=10))
def test_exact_means_are_rounded_once(values: list[float | None]) -> None:
    known = [Fraction(x) for x in values if x is not None]
    assert one(values, uc.Mean("x", exact=True)) == (float(sum(known) / len(known)) if known else None)


@given(PAIRS)
def test_exact_weighted_means_are_rounded_once(rows: Pairs) -> None:
    known = [(Fraction(x), Fraction(y)) for x, y in rows if x is not None and y is not None]
    weight = sum(y for _, y in known)
    fn = uc.WeightedMean("x", "y", exact=True).bind(SCHEMA)
    try:
        expected = float(sum(x * y for x, y in known) / weight) if weight else None
    except OverflowError:
        return
    assert fn.result(fn.accumulate(table(rows))) == expected


@given(PAIRS, PAIRS, st.randoms())
def test_exact_forms_keep_nothing_of_retracted_rows(kept: Pairs, gone: Pairs, random: Any) -> None:
    rows = [(row, 1) for row in kept] + [(row, 1) for row in gone] + [(row, -1) for row in gone]
    random.shuffle(rows)
    for combiner in (uc.Mean("x", exact=True), uc.WeightedMean("x", "y", exact=True)):
        fn = combiner.bind(SCHEMA)
        whole = fn.accumulate(table([row for row, _ in rows]), [w for _, w in rows])
        assert all(a.equals(b) for a, b in zip(whole, fn.accumulate(table(kept)), strict=True))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9) | st.none(), max_size=8))
def test_means_of_integers_are_rounded_once(values: list[int | None]) -> None:
    known = [x for x in values if x is not None]
    expected = sum(known) / len(known) if known else None
    assert one(values, uc.Mean("x"), pa.int64()) == expected
    assert uc.Mean("x").compile(pa.schema({"x": pa.int64()})).capability is uc.Capability.GROUP


@given(st.lists(st.decimals(-(10**9), 10**9, places=2) | st.none(), max_size=8), st.sampled_from([12, 30, 38]))
def test_means_of_decimals_have_four_more_digits_and_round_half_up(
    values: list[Decimal | None], precision: int
) -> None:
    kind = pa.decimal128(precision, 2)
    known = [x for x in values if x is not None]
    with localcontext() as context:
        context.prec = 60
        exact = sum(known) / len(known) if known else None
        expected = None if exact is None else exact.quantize(Decimal("1e-6"), ROUND_HALF_UP)
    assert one(values, uc.Mean("x"), kind) == expected
    assert uc.Mean("x").compile(pa.schema({"x": kind})).output == pa.decimal128(min(precision + 4, 38), 6)


@pytest.mark.parametrize(("digits", "rounded"), [("0.01", "0.003333"), ("-0.02", "-0.006667"), ("0.05", "0.016667")])
def test_decimals_as_spark_rounds_them(digits: str, rounded: str) -> None:
    values = [Decimal(digits), Decimal("0.00"), Decimal("0.00")]
    assert one(values, uc.Mean("x"), pa.decimal128(3, 2)) == Decimal(rounded)


def test_large_decimals() -> None:
    kind, large = pa.decimal128(38, 0), 10**34 - 1
    assert one([Decimal(large)] * 3, uc.Mean("x"), kind) == Decimal(large)
    assert one([Decimal(-large), Decimal(1 - large)], uc.Mean("x"), kind) == Decimal(f"{1 - large}.5")
    assert one([Decimal(large), Decimal(large), Decimal(large - 1)], uc.Mean("x"), kind) == Decimal(f"{large - 1}.6667")
    with pytest.raises(OutOfRange, match="too many digits"):
        one([Decimal(10**38 - 1)], uc.Mean("x"), kind)


def test_durations_round_half_up() -> None:
    micro = dt.timedelta(microseconds=1)
    second = dt.timedelta(seconds=1)
    assert one([second, 2 * second + micro], uc.Mean("x"), pa.duration("us")) == 1.5 * second + micro
    assert one([-second, -2 * second - micro], uc.Mean("x"), pa.duration("us")) == -1.5 * second - micro
    longest = dt.timedelta.max - dt.timedelta.max % second
    assert one([longest] * 300, uc.Mean("x"), pa.duration("s")) == longest


def test_groups_against_pandas() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"k": rng.integers(0, 40, 2000), "x": rng.normal(3, 1, 2000), "y": rng.random(2000)})
    frame.loc[rng.random(2000) < 0.1, "x"] = None
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    combiners = {"m": uc.Mean("x"), "e": uc.Mean("x", exact=True), "w": uc.WeightedMean("x", "y")}
    got = uc.aggregate(rows, by="k", **combiners).to_pandas().set_index("k")
    expected = frame.groupby("k", sort=False)["x"].mean()
    known = (
        frame.dropna().assign(p=lambda f: f["x"] * f["y"]).groupby("k", sort=False)[["p", "y"]].sum().reindex(got.index)
    )
    for name, series in {"m": expected, "e": expected, "w": known["p"] / known["y"]}.items():
        pd.testing.assert_series_equal(got[name], series, check_names=False, rtol=1e-12)


@given(st.lists(NUMBERS, min_size=1, max_size=10))
def test_fast_means_keep_their_bound_through_retractions(values: list[float]) -> None:
    fn = uc.Mean("x").bind(SCHEMA)
    rows = [*values, *values[1:]]
    got = fn.result(fn.accumulate({"x": rows}, [1] * len(values) + [-1] * (len(values) - 1)))
    assert got == pytest.approx(values[0], rel=0, abs=uc.Mean("x").tolerance([abs(x) for x in rows], len(rows)))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("odd", "mean"), [(math.nan, math.nan), (math.inf, math.inf), (-math.inf, -math.inf)])
def test_nan_and_infinity_can_be_retracted(exact: bool, odd: float, mean: float) -> None:
    combiners = {"m": uc.Mean("x", exact), "w": uc.WeightedMean("x", "y", exact), "v": uc.WeightedMean("y", "x", exact)}
    there = uc.aggregate(table([(1.0, 2.0), (3.0, 2.0), (odd, 1.0)]), **combiners).to_pylist()[0]
    assert there["m"] == mean or math.isnan(mean)
    assert math.isnan(there["w"])
    assert math.isnan(there["v"])
    rows = table([(1.0, 2.0), (3.0, 2.0), (odd, 1.0), (odd, 1.0)], [1, 1, 1, -1])
    assert uc.aggregate(rows, diff="w", **combiners).to_pylist() == [{"m": 2.0, "w": 2.0, "v": 2.0}]


@pytest.mark.parametrize("exact", [False, True])
def test_weights_that_come_to_nothing_give_null(exact: bool) -> None:
    rows = table([(1.0, 1.0), (2.0, -1.0)])
    assert uc.aggregate(rows, m=uc.WeightedMean("x", "y", exact)).to_pylist() == [{"m": None}]
    assert uc.aggregate(table([(None, 1.0), (1.0, None)]), m=uc.WeightedMean("x", "y", exact)).to_pylist() == [
        {"m": None}
    ]


@pytest.mark.parametrize("kinds", [("int64", "decimal"), ("float32", "int8")])
@pytest.mark.parametrize("exact", [False, True])
def test_values_and_weights_of_other_types(kinds: tuple[str, str], exact: bool) -> None:
    types = {"int64": pa.int64(), "decimal": pa.decimal128(5, 1), "float32": pa.float32(), "int8": pa.int8()}
    x, y = (pa.array([1.0, 2.0, 6.0]).cast(types[kind]) for kind in kinds)
    assert uc.aggregate(pa.table({"x": x, "y": y}), m=uc.WeightedMean("x", "y", exact)).to_pylist() == [{"m": 41 / 9}]


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=10))
def test_geometric_means_against_the_statistics_module(values: list[float]) -> None:
    assert one(values, uc.GeometricMean("x")) == pytest.approx(statistics.geometric_mean(values), rel=1e-14)


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([1.0, 10.0, 100.0], 10.0),
        ([5e-324, 1e300], math.sqrt(5e-324 * 1e100) * 1e100),
        ([2.0, 0.0], 0.0),
        ([2.0, -2.0], math.nan),
        ([2.0, math.inf], math.inf),
        ([0.0, math.inf], math.nan),
        ([-math.inf, 1.0], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_geometric_means_at_the_edges(values: list[float], mean: float) -> None:
    assert one(values, uc.GeometricMean("x")) == pytest.approx(mean, rel=1e-15, nan_ok=True)
    assert one([None], uc.GeometricMean("x")) is None


def test_accumulators_are_shared() -> None:
    combiners = {
        "m": uc.Mean("x"),
        "s": uc.Sum("x"),
        "n": uc.Count("x"),
        "g": uc.GeometricMean("x"),
        "p": uc.Product("x"),
    }
    assert [part.fn.label for part in Plan(combiners, SCHEMA).parts] == ["sum", "count", "specials", "logs"]


@pytest.mark.parametrize(
    "combiner", [uc.Mean("t"), uc.WeightedMean("x", "t"), uc.WeightedMean("t", "x"), uc.GeometricMean("t")]
)
def test_text_is_refused(combiner: uc.Combiner) -> None:
    with pytest.raises(TypeMismatch, match="takes numbers, but 't' is string"):
        uc.aggregate(pa.table({"t": ["a"], "x": [1]}), m=combiner)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([Decimal("0.00"), Decimal("99999999.99")], pa.decimal128(10, 2)),
        ([Decimal("9" * 30), Decimal("-" + "9" * 30)], pa.decimal128(30, 0)),
        ([dt.timedelta(microseconds=2**62), dt.timedelta(microseconds=-(2**62))], pa.duration("us")),
    ],
)
def test_a_mean_beyond_its_type_is_an_error(values: list[Any], kind: pa.DataType) -> None:
    """Retractions of what never came make a mean that no values have: 0 - 2 * 99999999.99 over a count of -1."""
    fn = uc.Mean("x").bind(pa.schema({"x": kind}))
    state = fn.add(Groups.single(2), pa.array(values, kind), weights=np.array([5, -4]))
    with pytest.raises(uc.errors.OutOfRange, match="a mean has too many digits"):
        fn.extract(state)

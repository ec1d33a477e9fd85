"""Variance, standard deviation, skewness and kurtosis against fractions, the statistics module and pandas."""

from __future__ import annotations

import math
import statistics
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
from uncombine.errors import InvalidArgument, NotRetractable, TypeMismatch

NUMBERS = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.1, -7.5, 1e9, -1e9, 1e16, 1e-9])
VALUES = st.lists(NUMBERS | st.none(), max_size=12)
KINDS: dict[str, Any] = {
    "variance": uc.Variance,
    "deviation": uc.StdDev,
    "skewness": uc.Skewness,
    "kurtosis": uc.Kurtosis,
}
Values = list[float | None]


def table(values: Values, weights: list[int] | None = None) -> pa.Table:
    weights = [1] * len(values) if weights is None else weights
    return pa.table({"x": pa.array(values, pa.float64()), "w": pa.array(weights, pa.int64())})


def oracle(values: Values, population: bool = False) -> dict[str, float | None]:
    """The exact results, rounded once (but for the roots)."""
    known = [Fraction(x) for x in values if x is not None]
    n = len(known)
    out: dict[str, float | None] = dict.fromkeys(KINDS)
    if n == 0:
        return out
    second, third, fourth = (sum((x - sum(known) / n) ** power for x in known) / n for power in (2, 3, 4))
    if population or n > 1:
        out["variance"] = float(second if population else second * n / (n - 1))
        out["deviation"] = math.sqrt(out["variance"])
    if second:
        out["skewness"] = math.copysign(math.sqrt(third**2 / second**3), third)
        out["kurtosis"] = float(fourth / second**2 - 3)
    return out


def forms(**options: Any) -> dict[str, uc.Combiner]:
    population = options.pop("population", False)
    spreads = {name: KINDS[name]("x", population=population, **options) for name in ("variance", "deviation")}
    return {**spreads, **{name: KINDS[name]("x", **options) for name in ("skewness", "kurtosis")}}


@given(VALUES, st.booleans())
def test_exact_forms_are_the_exact_results(values: Values, population: bool) -> None:
    fns = {name: c.bind(table([]).schema) for name, c in forms(exact=True, population=population).items()}
    got = {name: fn.result(fn.accumulate(table(values))) for name, fn in fns.items()}
    expected = oracle(values, population)
    assert (got["variance"], got["kurtosis"]) == (expected["variance"], expected["kurtosis"])
    for name in ("deviation", "skewness"):
        assert got[name] is expected[name] or got[name] == pytest.approx(expected[name], rel=2.0**-51)


@given(VALUES, VALUES, st.randoms())
def test_exact_forms_keep_nothing_of_retracted_rows(kept: Values, gone: Values, random: Any) -> None:
    rows = [(x, 1) for x in kept] + [(x, 1) for x in gone] + [(x, -1) for x in gone]
    random.shuffle(rows)
    for combiner in forms(exact=True).values():
        fn = combiner.bind(table([]).schema)
        whole = fn.accumulate(table([x for x, _ in rows]), [w for _, w in rows])
        assert all(a.equals(b) for a, b in zip(whole, fn.accumulate(table(kept)), strict=True))


@given(VALUES, VALUES, st.booleans())
def test_fast_variance_keeps_its_bound_through_retractions(kept: Values, gone: Values, population: bool) -> None:
    known = [abs(x) for x in [*kept, *gone, *gone] if x is not None]
    for cls in (uc.Variance, uc.StdDev):
        combiner = cls("x", population=population)
        fn = combiner.bind(table([]).schema)
        there = fn.accumulate(table(kept + gone))
        got = fn.result(fn.uncombine(there, fn.accumulate(table(gone))))
        expected = oracle(kept, population)["variance" if cls is uc.Variance else "deviation"]
        assert got == expected or got == pytest.approx(
            expected, rel=2.0**-51, abs=combiner.tolerance(known, len(known))
        )


def test_a_large_value_can_be_retracted() -> None:
    rows = table([1e9, 1.0, 2.0, 3.0, 1e9], [1, 1, 1, 1, -1])
    assert uc.Variance("x").tolerance([1e9, 1.0, 2.0, 3.0, 1e9], 5) < 1e-3
    assert uc.aggregate(rows, diff="w", v=uc.Variance("x"))["v"][0].as_py() == pytest.approx(1.0, abs=1e-6)
    for form in forms(exact=True).items():
        assert uc.aggregate(rows, diff="w", r=form[1])["r"][0].as_py() == oracle([1.0, 2.0, 3.0])[form[0]]


@pytest.mark.parametrize("offset", [0.0, 1e4, 1.7e9])
@pytest.mark.parametrize("options", [{}, {"retractable": False}, {"exact": True}], ids=["fast", "append-only", "exact"])
def test_groups_against_pandas(offset: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"k": rng.integers(0, 40, 2000), "x": rng.gamma(2.0, size=2000) + offset})
    frame.loc[rng.random(2000) < 0.1, "x"] = None
    rows = pa.table({"k": frame["k"], "x": pa.array(frame["x"], from_pandas=True), "w": np.ones(2000, np.int64)})
    grouped = frame.groupby("k", sort=False)["x"]
    about = grouped.transform("mean")
    second, third, fourth = (
        ((frame["x"] - about) ** power).groupby(frame["k"], sort=False).mean() for power in (2, 3, 4)
    )
    for diff in [None] if options.get("retractable") is False else [None, "w"]:
        got = uc.aggregate(rows, by="k", diff=diff, **forms(**options)).to_pandas().set_index("k")
        pd.testing.assert_series_equal(got["variance"], grouped.var(), check_names=False, rtol=1e-6)
        pd.testing.assert_series_equal(got["deviation"], grouped.std(), check_names=False, rtol=1e-6)
        if offset < 1e9:  # beyond, pandas is no oracle
            near = {"check_names": False, "rtol": 1e-6}
            pd.testing.assert_series_equal(got["skewness"], third / second**1.5, **near)
            pd.testing.assert_series_equal(got["kurtosis"], fourth / second**2 - 3, **near)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_can_be_retracted(exact: bool, odd: float) -> None:
    rows = [1.0, 2.0, 4.0, odd, odd]
    there = uc.aggregate(table(rows[:4]), **forms(exact=exact)).to_pylist()[0]
    assert all(math.isnan(value) for value in there.values())
    back = uc.aggregate(table(rows, [1, 1, 1, 1, -1]), diff="w", **forms(exact=exact)).to_pylist()[0]
    assert back == pytest.approx(oracle(rows[:3]), rel=1e-14)
    appended = uc.aggregate(table(rows[:4]), **forms(retractable=False)).to_pylist()[0]
    assert all(math.isnan(value) for value in appended.values())


@pytest.mark.weekly
@pytest.mark.parametrize("options", [{}, {"retractable": False}, {"exact": True}], ids=["fast", "append-only", "exact"])
def test_few_and_equal_values(options: dict[str, bool]) -> None:
    def results(values: Values, **more: Any) -> list[Any]:
        fns = [c.bind(table([]).schema) for c in forms(**options, **more).values()]
        return [fn.result(fn.accumulate(table(values))) for fn in fns]

    assert results([None, None]) == [None, None, None, None]
    assert results([5.0, None]) == [None, None, None, None]
    assert results([5.0], population=True) == [0.0, 0.0, None, None]
    assert results([0.1] * 7) == [0.0, 0.0, None, None]
    for value in np.random.default_rng(0).normal(size=20).tolist():
        assert results([value], population=True) == [0.0, 0.0, None, None]
        assert results([value] * 3000) == [0.0, 0.0, None, None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 4, -2, 9], pa.int64()), ([1, 4, 2, 9], pa.uint8()), ([1.5, 4.0, -2.25], pa.decimal128(9, 2))],
)
@pytest.mark.parametrize("exact", [False, True])
def test_integers_and_decimals_are_read_as_floats(values: list[float], kind: pa.DataType, exact: bool) -> None:
    rows = pa.table({"x": pa.array([str(v) if pa.types.is_decimal(kind) else v for v in values]).cast(kind)})
    got = uc.aggregate(rows, v=uc.Variance("x", exact=exact))["v"]
    assert got.type == pa.float64()
    assert got[0].as_py() == pytest.approx(statistics.variance(values), rel=1e-15)


def test_accumulators_are_shared() -> None:
    combiners = {**forms(), "mean": uc.Mean("x", exact=True), "rows": uc.Count("x")}
    fast = Plan(combiners, table([]).schema)
    assert [part.fn.label for part in fast.parts] == ["count", "squares", "powers", "powers", "exact", "specials"]
    exact = Plan({**forms(exact=True), "total": uc.Sum("x", exact=True)}, table([]).schema)
    assert [part.fn.label for part in exact.parts] == ["count", "specials", "exact", "exact", "exact", "exact"]


def test_the_append_only_form_is_chosen_and_refuses_retractions() -> None:
    assert uc.Variance("x").append_only() == uc.Variance("x", retractable=False)
    assert uc.Variance("x", exact=True).append_only() == uc.Variance("x", exact=True)
    capabilities = [
        c.capability.name for c in (uc.Skewness("x"), uc.StdDev("x", exact=True), uc.Kurtosis("x", retractable=False))
    ]
    assert capabilities == ["CANCELLATIVE", "GROUP", "MONOID"]
    with pytest.raises(NotRetractable):
        uc.aggregate(table([1.0], [-1]), diff="w", v=uc.Variance("x", retractable=False))
    with pytest.raises(InvalidArgument, match="leave out retractable=False"):
        uc.Variance("x", exact=True, retractable=False)


def test_text_is_refused_in_the_words_of_the_user() -> None:
    with pytest.raises(TypeMismatch, match=r"^Variance\('x'\) takes numbers, but 'x' is string: cast it"):
        uc.aggregate(pa.table({"x": ["a"]}), v=uc.Variance("x"))

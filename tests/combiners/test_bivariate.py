"""Covariance, correlation and regression against fractions and numpy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeds

import uncombine as uc
from uncombine.errors import TypeMismatch

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 2.5, 0.1, 1e9, -1e9, 1e-9, 3.0])
ROWS = st.lists(st.tuples(NUMBERS | st.none(), NUMBERS | st.none()), max_size=12)
FORMS: dict[str, uc.Combiner] = {
    "sample": uc.Covariance("x", "y", exact=True),
    "population": uc.Covariance("x", "y", population=True, exact=True),
    "correlation": uc.Correlation("x", "y", exact=True),
    "line": uc.LinearRegression("x", "y", exact=True),
}


def table(rows: list[tuple[float | None, float | None]], weights: list[int] | None = None) -> pa.Table:
    kind = pa.float64()
    columns = {"x": pa.array([r[0] for r in rows], kind), "y": pa.array([r[1] for r in rows], kind)}
    return pa.table({**columns, "w": pa.array([1] * len(rows) if weights is None else weights, pa.int64())})


def oracle(rows: list[tuple[float | None, float | None]]) -> dict[str, Any]:
    """All results in fractions, rounded once."""
    known = [(Fraction(x), Fraction(y)) for x, y in rows if x is not None and y is not None]
    n = len(known)
    if not n:
        return dict.fromkeys(FORMS)
    x, y = (sum(pair[i] for pair in known) for i in (0, 1))
    both = n * sum(a * b for a, b in known) - x * y
    xs, ys = n * sum(a * a for a, _ in known) - x * x, n * sum(b * b for _, b in known) - y * y
    line = None
    if xs:
        slope = both / xs
        r2 = float(both * both / (xs * ys)) if ys else 1.0
        line = {"slope": float(slope), "intercept": float((y - slope * x) / n), "r2": r2}
    return {
        "sample": float(both / (n * (n - 1))) if n > 1 else None,
        "population": float(both / (n * n)),
        "correlation": math.copysign(math.sqrt(both * both / (xs * ys)), both) if xs and ys else None,
        "line": line,
    }


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return all(close(a[name], b[name]) for name in a)
    if a is None or b is None:
        return a is b
    return a == b or math.isclose(a, b, rel_tol=4e-16)


@given(ROWS)
def test_exact_forms_are_the_exact_results(rows: list[tuple[float | None, float | None]]) -> None:
    if not rows:
        return
    got = uc.aggregate(table(rows), **FORMS).to_pylist()[0]
    expected = oracle(rows)
    assert {name: (got[name], expected[name]) for name in FORMS if not close(got[name], expected[name])} == {}


@given(ROWS, ROWS)
def test_a_retracted_row_leaves_no_trace(
    kept: list[tuple[float | None, float | None]], gone: list[tuple[float | None, float | None]]
) -> None:
    for combiner in FORMS.values():
        fn = combiner.bind(table([]).schema)
        whole = fn.accumulate(table(kept + gone + gone), [1] * (len(kept) + len(gone)) + [-1] * len(gone))
        assert all(a.equals(b) for a, b in zip(whole, fn.accumulate(table(kept)), strict=True))


@pytest.mark.parametrize("seed", seeds(5))
def test_fast_forms_against_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(5, 2, 200)
    y = 3 * x + rng.normal(0, 4, 200)
    rows = pa.table({"x": x, "y": y})
    combiners = {"c": uc.Covariance("x", "y"), "r": uc.Correlation("x", "y"), "line": uc.LinearRegression("x", "y")}
    got = uc.aggregate(rows, **combiners).to_pylist()[0]
    slope, intercept = np.polyfit(x, y, 1)
    assert got["c"] == pytest.approx(np.cov(x, y)[0, 1], rel=1e-12)
    assert got["r"] == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-12)
    assert got["line"] == pytest.approx({"slope": slope, "intercept": intercept, "r2": got["r"] ** 2}, rel=1e-9)


def test_a_large_pair_can_be_retracted_from_the_fast_forms() -> None:
    rows = table([(1e9, -1e9), (1.0, 2.0), (2.0, 4.0), (3.0, 9.0), (1e9, -1e9)], [1, 1, 1, 1, -1])
    got = uc.aggregate(rows, diff="w", c=uc.Covariance("x", "y"), line=uc.LinearRegression("x", "y")).to_pylist()[0]
    assert got["c"] == pytest.approx(3.5, abs=uc.Covariance("x", "y").tolerance([1e9, 1e9], 5))
    assert got["line"]["slope"] == pytest.approx(3.5, abs=1e-3)


def test_nan_and_infinity_can_be_retracted() -> None:
    rows = [(1.0, 2.0), (2.0, 4.0), (3.0, 9.0)]
    for odd in ((math.nan, 1.0), (1.0, math.inf)):
        for exact in (False, True):
            combiner = uc.Covariance("x", "y", exact=exact)
            there = uc.aggregate(table([*rows, odd]), c=combiner)["c"][0].as_py()
            assert math.isnan(there)
            back = uc.aggregate(table([*rows, odd, odd], [1, 1, 1, 1, -1]), diff="w", c=combiner)
            assert back["c"][0].as_py() == 3.5


def test_no_spread_is_null_and_text_is_refused() -> None:
    flat = table([(1.0, 2.0), (1.0, 3.0)])
    for exact in (False, True):
        got = uc.aggregate(
            flat, r=uc.Correlation("x", "y", exact=exact), line=uc.LinearRegression("x", "y", exact=exact),
            turned=uc.LinearRegression("y", "x", exact=exact),
        ).to_pylist()[0]  # fmt: skip
        assert got["r"] is None
        assert got["line"] is None
        assert got["turned"] == {"slope": 0.0, "intercept": 1.0, "r2": 1.0}
    with pytest.raises(TypeMismatch, match="Covariance"):
        uc.aggregate(pa.table({"x": ["a"], "y": [1]}), c=uc.Covariance("x", "y"))

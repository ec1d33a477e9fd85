"""Approximate quantiles: the stated error against the sorted values, and exact retraction."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.combiners.sketches.approx_quantiles import LogBinsFn

NORMAL = np.finfo(np.float64).tiny
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
    st.integers(-1022, 1023).map(lambda e: 2.0**e),
    st.integers(-1022, 1023).map(lambda e: math.nextafter(2.0**e, 0.0)),
)


def exact(values: list[float], q: float) -> float:
    return sorted(values)[math.floor(q * (len(values) - 1))]


@given(st.lists(FLOATS, min_size=1), st.floats(0, 1), st.sampled_from([0.3, 0.05, 0.01, 1e-4, 1e-6]))
def test_the_stated_error_is_kept(values: list[float], q: float, error: float) -> None:
    out = uc.aggregate(pa.table({"x": values}), r=uc.ApproxQuantiles("x", [q], relative_error=error))
    found, wanted = out["r"][0].as_py()[0], exact(values, q)
    assert abs(found - wanted) <= error * abs(wanted) or abs(wanted) < NORMAL


def test_the_stated_error_is_kept_and_nearly_used_up_on_many_values() -> None:
    sizes = np.exp(np.random.default_rng(1).uniform(-700, 709, 200_000))
    values = np.concatenate([sizes, -sizes])
    for error in (0.1, 0.01, 0.001):
        fn = LogBinsFn(error)
        off = np.abs(fn.middles(fn.bins(values)) - values) / np.abs(values)
        assert 0.8 * error < off.max() <= error


def test_bins_are_in_the_order_of_the_values() -> None:
    values = np.sort(np.random.default_rng(2).standard_cauchy(50_000))
    values = np.concatenate([[-np.inf], values, [np.inf, np.nan]])
    bins = LogBinsFn(0.01).bins(values)
    assert (np.diff(bins) >= 0).all()
    assert bins[0] < bins[1]
    assert bins[-3] < bins[-2] < bins[-1]


@given(st.lists(FLOATS, min_size=1, max_size=8), st.lists(FLOATS, max_size=8))
def test_retracted_equals_never_seen(kept: list[float], gone: list[float]) -> None:
    fn = uc.ApproxQuantiles("x", [0.5]).bind(pa.schema({"x": pa.float64()}))
    weights = [1] * len(kept) + [1] * len(gone) + [-1] * len(gone)
    assert fn.accumulate({"x": kept + gone + gone}, weights=weights) == fn.accumulate({"x": kept})


def test_special_values() -> None:
    table = pa.table({"x": [0.0, -0.0, float("inf"), float("-inf"), float("nan"), None]})
    out = uc.aggregate(table, r=uc.ApproxQuantiles("x", [0, 0.25, 0.5, 0.75, 1]))
    assert repr(out["r"][0].as_py()) == "[-inf, 0.0, 0.0, inf, nan]"


def test_subnormal_and_greatest_values_stay_finite() -> None:
    values = [5e-324, 1.7976931348623157e308, -1.7976931348623157e308]
    fn = LogBinsFn(0.01)
    assert np.allclose(fn.middles(fn.bins(np.array(values))), values, rtol=0.01)


def test_groups_weights_and_no_values() -> None:
    table = pa.table({"g": ["a", "a", "b", "c"], "x": [1, 100, None, 7], "w": [3, 1, 1, 1]})
    out = uc.aggregate(table, by="g", diff="w", r=uc.ApproxQuantiles("x", (0.5, 1)))
    found = [None if r is None else [round(v) for v in r] for r in out["r"].to_pylist()]
    assert found in ([[1, 100], None, [7, 7]], [[1, 99], None, [7, 7]], [[1, 101], None, [7, 7]])


def test_the_state_does_not_grow_with_the_values() -> None:
    values = np.random.default_rng(3).lognormal(sigma=2, size=100_000)
    fn = uc.ApproxQuantiles("x", [0.5]).bind(pa.schema({"x": pa.float64()}))
    (held,) = fn.accumulate(pa.table({"x": values}))
    octaves = math.log2(values.max() / values.min()) + 1
    assert len(held[0]) <= 36 * octaves


def test_quantiles_of_one_error_share_a_sketch_and_read_back() -> None:
    a, b = uc.ApproxQuantiles("x", [0.5]), uc.ApproxQuantiles("x", [0.9, 1])
    assert len(Plan({"a": a, "b": b}, pa.schema({"x": pa.float64()})).parts) == 1
    assert (
        repr(uc.ApproxQuantiles("x", [0.5], relative_error=0.1)) == "ApproxQuantiles('x', (0.5,), relative_error=0.1)"
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: uc.ApproxQuantiles("x", 0.5), "q must be a list of parts"),
        (lambda: uc.ApproxQuantiles("x", []), "q must be a list of parts"),
        (lambda: uc.ApproxQuantiles("x", [1.5]), "q must hold parts from 0 to 1, but holds 1.5"),
        (lambda: uc.ApproxQuantiles("x", [0.5], relative_error=0), "relative_error must be at least 1e-06"),
        (
            lambda: uc.aggregate(pa.table({"x": ["a"]}), r=uc.ApproxQuantiles("x", [0.5])),
            "takes numbers, but 'x' is",
        ),
    ],
)
def test_wrong_use(make, says: str) -> None:
    with pytest.raises(uc.UncombineError, match=says):
        make()

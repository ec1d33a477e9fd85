"""Counts by bins against numpy.histogram."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import NUMBERS, VALUES, check, few, rows

import uncombine as uc
from uncombine.combiners.laws.compare import bits
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.groups import Groups
from uncombine.errors import InvalidArgument, TypeMismatch

EDGES = [-1.5, -1, 0, 0.01, 2.5, 99.99]


@pytest.mark.parametrize("name", NUMBERS)
@few
@given(data=st.data())
def test_as_numpy_on_every_type(name: str, data: st.DataObject) -> None:
    edges = sorted(data.draw(st.sets(st.sampled_from(EDGES), min_size=2)))

    def counts(held: Any) -> list[int]:
        known = [(float(x), n) for (x,), n in held.items() if x is not None and not math.isnan(x)]
        return np.histogram([x for x, _ in known], edges, weights=[n for _, n in known])[0].astype(int).tolist()

    check(uc.Histogram("x", edges), [name], data.draw(rows(name)), counts, data, negative=True)


def test_many_counts_are_not_copied() -> None:
    """The result of a thousand bins of many groups is large, and is there once."""
    plan = Plan({"r": uc.Histogram("x", range(1001))}, pa.schema({"x": pa.int64()}))
    acc = plan.add(Groups(np.arange(100), 100), pa.table({"x": np.arange(100)}))
    (result,) = plan.extract(acc)
    assert result.values.buffers()[1].address == acc[0].values.buffers()[1].address
    (half,) = plan.extract(tuple(column.slice(50) for column in acc))
    assert half.to_pylist() == result.to_pylist()[50:]


def test_as_numpy_on_many_rows() -> None:
    rng = np.random.default_rng(1)
    edges = np.linspace(-2, 2, 17)
    table = pa.table({"k": rng.integers(0, 50, 5_000), "x": rng.normal(size=5_000)})
    by = table.to_pandas().groupby("k", sort=False).x
    result = uc.aggregate(table, "k", counts=uc.Histogram("x", edges))
    assert result["counts"].to_pylist() == by.apply(lambda x: np.histogram(x, edges)[0].tolist()).tolist()


def test_large_integers_are_compared_exactly() -> None:
    table = pa.table({"x": [2**53, 2**53 + 1, 2**53 + 2]})
    result = uc.aggregate(table, counts=uc.Histogram("x", [2**53, 2**53 + 1, 2**53 + 2]))
    assert result["counts"].to_pylist() == [[1, 2]]


def test_open_ends_count_all_but_nan() -> None:
    table = pa.table({"x": pa.array([-math.inf, -5.0, 0.0, 7.0, math.inf, math.nan, None], from_pandas=False)})
    result = uc.aggregate(table, counts=uc.Histogram("x", [-math.inf, 0, math.inf]))
    assert result["counts"].to_pylist() == [[2, 3]]


def test_times() -> None:
    days = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
    table = pa.table({"t": pa.array([dt.datetime(2024, 1, 1, 23), *days], pa.timestamp("us"))})
    assert uc.aggregate(table, counts=uc.Histogram("t", days))["counts"].to_pylist() == [[2, 2]]
    dates = pa.table({"t": pa.array([d.date() for d in days])})
    edges = [d.date() for d in days]
    assert uc.aggregate(dates, counts=uc.Histogram("t", edges))["counts"].to_pylist() == [[1, 2]]


def test_no_counts_are_one_state() -> None:
    fn = uc.Histogram("x", [0, 1, 2]).bind(pa.schema({"x": pa.int64()}))
    state = fn.accumulate({"x": [0, 2]})
    assert bits(fn.uncombine(state, state)) == bits(fn.zero(1)) == bits(fn.accumulate({"x": [7]}))
    assert fn.result(fn.zero(1)) == [0, 0]
    assert fn.plan.is_zero(fn.accumulate({"x": [7]})).tolist() == [True]


@pytest.mark.parametrize("edges", [[], [1], [1, 1], [2, 1], [0, math.nan], [0, "1"], [None, 1]])
def test_edges_must_increase(edges: list[Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"(at least two values|must increase)"):
        uc.Histogram("x", edges)


def test_edges_must_fit_the_column() -> None:
    numbers, days = uc.Histogram("x", [0, 1]), uc.Histogram("x", [dt.date(2024, 1, 1), dt.date(2024, 1, 2)])
    with pytest.raises(TypeMismatch, match="takes numbers or times, but 'x' is string"):
        numbers.bind(pa.schema({"x": pa.string()}))
    with pytest.raises(TypeMismatch, match="edges that are numbers"):
        days.bind(pa.schema({"x": pa.int64()}))
    with pytest.raises(TypeMismatch, match=r"counts timestamp.*but its edges are not"):
        uc.Histogram("x", ["a", "b"]).bind(pa.schema({"x": pa.timestamp("us")}))
    decimals = pa.schema({"x": pa.decimal128(9, 2)})
    assert uc.Histogram("x", [Decimal("0.1"), 1]).bind(decimals).result is not None
    assert VALUES["decimal"][0] == pa.decimal128(9, 2)

"""Least and greatest values against sorted lists of the raw rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, check, expand, few, rows
from seeds import share

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states import net_extremes
from uncombine.errors import NotRetractable, OutOfRange, TypeMismatch


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("name", share(ORDERED))
@few
@given(data=st.data())
def test_the_ends_of_the_sorted_values(name: str, retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(name, least=-2 if retractable else 0))

    def end(place: int) -> Any:
        return lambda counts: (expand(counts) or [None])[place]

    check(uc.Min("x", retractable=retractable), [name], given_rows, end(0), data)
    check(uc.Max("x", retractable=retractable), [name], given_rows, end(-1), data)


@pytest.mark.parametrize("groups", [3, 700])
def test_as_pandas_on_many_rows(groups: int) -> None:
    rng = np.random.default_rng(groups)
    table = pa.table({"k": rng.integers(0, groups, 5_000), "x": rng.normal(size=5_000), "w": np.ones(5_000, int)})
    expected = table.to_pandas().groupby("k", sort=False).x.agg(["min", "max"])
    for diff in (None, "w"):
        result = uc.aggregate(table, "k", diff=diff, least=uc.Min("x"), best=uc.Max("x")).to_pandas()
        assert result.k.tolist() == expected.index.tolist()
        assert result.least.tolist() == expected["min"].tolist()
        assert result.best.tolist() == expected["max"].tolist()


@pytest.mark.weekly
@pytest.mark.parametrize("passes", [0, 1, 3])
@pytest.mark.parametrize("shape", ["top", "any", "wide"])
def test_results_of_a_changelog_without_its_state(passes: int, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rounds, where the best values are retracted or never came, and a rest that is sorted."""
    monkeypatch.setattr(net_extremes, "_PASSES", passes)
    rng = np.random.default_rng(passes)
    x = rng.integers(-40, 40, 2_000) if shape != "wide" else rng.integers(-(2**63), 2**63 - 1, 2_000)
    w = rng.choice([1, 1, -1, 2, 0], 2_000) if shape == "any" else np.where(x > np.median(x), -1, 1)
    groups = Groups(rng.integers(0, 9, 2_000), 10)
    for values in (pa.array(x), pa.array(x / 8), pa.array(x).cast(pa.string()), pa.array(x, mask=x % 5 == 0)):
        for combiner in (uc.Max("x"), uc.Min("x"), uc.Max("x").where(~uc.col("x").is_null()), uc.Median("x")):
            if isinstance(combiner, uc.Median) and pa.types.is_string(values.type):
                continue
            table = pa.table({"x": values})
            plan = Plan({"r": combiner, "n": uc.Count()}, table.schema)
            want = plan.extract(plan.add(groups, table, w))
            assert [column.to_pylist() for column in plan.results(groups, table, w)] == [c.to_pylist() for c in want]
            shared = Plan({"r": combiner, "all": uc.CollectSet("x")}, table.schema)
            assert shared.results(groups, table, w)[0].equals(want[0])


def test_sums_of_weights_out_of_range_are_refused_at_once_too() -> None:
    table = pa.table({"k": [1, 1, 1], "x": [5, 5, 3], "w": [2**61, 2**61, 1]})
    with pytest.raises(OutOfRange, match="sum to 2"):
        uc.aggregate(table, "k", diff="w", best=uc.Max("x"))


def test_nan_is_greatest_and_nulls_and_empty_groups_are_null() -> None:
    table = pa.table({"k": [1, 1, 2, 3], "x": pa.array([math.nan, 1.0, math.nan, None], from_pandas=False)})
    result = uc.aggregate(table, "k", least=uc.Min("x"), best=uc.Max("x"))
    assert repr(result["least"].to_pylist()) == "[1.0, nan, None]"
    assert repr(result["best"].to_pylist()) == "[nan, nan, None]"


def test_structs_are_compared_field_by_field() -> None:
    table = pa.table({"x": [{"a": 1, "b": "z"}, {"a": 1, "b": None}, {"a": 0, "b": "y"}, None]})
    for retractable in (True, False):
        result = uc.aggregate(
            table, least=uc.Min("x", retractable=retractable), best=uc.Max("x", retractable=retractable)
        )
        assert result.to_pylist() == [{"least": {"a": 0, "b": "y"}, "best": {"a": 1, "b": "z"}}]


def test_what_has_no_order_is_refused() -> None:
    lists = pa.table({"x": [[1], [2]]})
    with pytest.raises(TypeMismatch, match=r"Max\('x'\) takes values that can be sorted, but 'x' is list"):
        uc.Max("x").bind(lists.schema)


def test_the_monoid_form_is_refused_where_rows_are_retracted() -> None:
    table = pa.table({"x": [1, 1], "w": [1, -1]})
    with pytest.raises(NotRetractable, match="m= is a MONOID combiner"):
        uc.aggregate(table, diff="w", m=uc.Max("x", retractable=False))
    kept = uc.aggregate(table.slice(0, 1), diff="w", m=uc.Max("x", retractable=False))
    assert kept.to_pylist() == [{"m": 1}]

"""Lists and sets of values against those of the raw rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, check, expand, few, order, rows

import uncombine as uc


@pytest.mark.parametrize("name", ORDERED)
@few
@given(data=st.data())
def test_the_sorted_values(name: str, data: st.DataObject) -> None:
    check(uc.CollectList("x"), [name], data.draw(rows(name)), expand, data)


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("name", ORDERED)
@few
@given(data=st.data())
def test_each_value_once(name: str, retractable: bool, data: st.DataObject) -> None:
    def once(counts: dict) -> list:
        return sorted((item[0] for item in counts if item[0] is not None), key=order)

    given_rows = data.draw(rows(name, least=-2 if retractable else 0))
    check(uc.CollectSet("x", retractable=retractable), [name], given_rows, once, data)


@pytest.mark.parametrize("diff", [None, "w"])
def test_as_pandas_on_many_rows(diff: str | None) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, 90, 3_000), "x": rng.integers(0, 20, 3_000), "w": [1] * 3_000})
    by = table.to_pandas().groupby("k", sort=False).x
    result = uc.aggregate(table, "k", diff=diff, all=uc.CollectList("x"), once=uc.CollectSet("x"))
    assert result["all"].to_pylist() == by.apply(sorted).tolist()
    assert result["once"].to_pylist() == by.apply(lambda x: sorted(set(x))).tolist()


def test_structs_are_collected_whole() -> None:
    table = pa.table({"x": [{"a": 2, "b": "x"}, {"a": 1, "b": None}, None], "w": [2, 1, 1]})
    result = uc.aggregate(table, diff="w", all=uc.CollectList("x"))
    assert result["all"].to_pylist() == [[{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 2, "b": "x"}]]

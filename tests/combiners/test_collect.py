"""Lists and sets of values against those of the raw rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, check, expand, few, order, rows
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument


@pytest.mark.parametrize("name", share(ORDERED))
@few
@given(data=st.data())
def test_the_sorted_values(name: str, data: st.DataObject) -> None:
    check(uc.CollectList("x"), [name], data.draw(rows(name)), expand, data)


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("name", share(ORDERED))
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


@pytest.mark.parametrize("names", [("int64", "string"), ("string", "float64"), ("float64", "bool")])
@few
@given(data=st.data())
def test_the_sorted_rows_of_several_columns(names: tuple[str, str], data: st.DataObject) -> None:
    """A row with nulls is a row, and null comes first."""

    def structs(counts: dict) -> list:
        flat = [item for item, count in counts.items() for _ in range(count)]
        ordered = sorted(flat, key=lambda item: [order(value) for value in item])
        return [{"x": item[0], "y": item[1]} for item in ordered]

    check(uc.CollectList(["x", "y"]), list(names), data.draw(rows(*names)), structs, data)


def test_rows_as_plain_pandas_sorts_them() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"k": rng.integers(0, 40, 2_000), "x": rng.integers(0, 5, 2_000), "y": rng.integers(0, 5, 2_000)})
    by = table.to_pandas().sort_values(["x", "y"]).groupby("k", sort=False)[["x", "y"]]
    expected = {key: rows.to_dict("records") for key, rows in by}
    result = uc.aggregate(table, "k", rows=uc.CollectList(["x", "y"]))
    assert dict(zip(result["k"].to_pylist(), result["rows"].to_pylist(), strict=True)) == expected
    assert result.schema.field("rows").type == pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())]))


def test_rows_of_columns_only() -> None:
    with pytest.raises(InvalidArgument, match=r"but col\('x'\) \+ 1 is no column: make it one with with_columns"):
        uc.CollectList(["y", uc.col("x") + 1])
    with pytest.raises(InvalidArgument, match="CollectList\\(input\\) names column 'x' twice"):
        uc.CollectList(["x", uc.col("x")])
    assert uc.CollectList(["x"]) == uc.CollectList("x")
    assert uc.CollectList("x").of("y", "z") == uc.CollectList(["y", "z"])


def test_structs_are_collected_whole() -> None:
    table = pa.table({"x": [{"a": 2, "b": "x"}, {"a": 1, "b": None}, None], "w": [2, 1, 1]})
    result = uc.aggregate(table, diff="w", all=uc.CollectList("x"))
    assert result["all"].to_pylist() == [[{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 2, "b": "x"}]]

"""The number of different values, compared with sets of the raw rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, check, few, rows
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch


def known(counts: dict) -> int:
    return sum(all(value is not None for value in item) for item in counts)


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("name", share(ORDERED))
@few
@given(data=st.data())
def test_the_size_of_the_set(name: str, retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(name, least=-2 if retractable else 0))
    check(uc.CountDistinct("x", retractable=retractable), [name], given_rows, known, data)


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("names", [("int64", "float64", "string"), ("float64", "float64", "int64")], ids="-".join)
@few
@given(data=st.data())
def test_rows_of_several_columns(names: tuple[str, ...], retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(*names, least=-2 if retractable else 0))
    check(uc.CountDistinct(list("xyz"), retractable=retractable), names, given_rows, known, data)


@pytest.mark.parametrize("kind", ["floats", "ints", "text", "few"])
@pytest.mark.parametrize("diff", [None, "w"])
def test_as_pandas_on_many_rows(diff: str | None, kind: str) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 900, 5_000)
    values = {
        "floats": numbers / 7,
        "ints": numbers * 2**50,
        "text": numbers.astype(str),
        "few": numbers % 5,
    }[kind]
    table = pa.table({"k": rng.integers(0, 300, 5_000), "x": values, "w": [1] * 5_000})
    expected = table.to_pandas().groupby("k", sort=False).x.nunique()
    result = uc.aggregate(table, "k", diff=diff, n=uc.CountDistinct("x"))
    assert result["n"].to_pylist() == expected.tolist()


def test_a_list_of_one_column_is_that_column() -> None:
    assert uc.CountDistinct(["x"]) == uc.CountDistinct("x")
    assert repr(uc.CountDistinct(["x", "y"])) == "CountDistinct(('x', 'y'))"
    assert uc.CountDistinct("x").of("a", "b") == uc.CountDistinct(["a", "b"])


def test_the_monoid_form_keeps_no_weights() -> None:
    fn = uc.CountDistinct("x", retractable=False).bind(pa.schema({"x": pa.string()}))
    assert fn.accumulate({"x": ["b", "a", "b"]})[0].to_pylist() == [[{"item": "a"}, {"item": "b"}]]


def test_wrong_use() -> None:
    for given_input in ([], 3, None):
        with pytest.raises(InvalidArgument, match="CountDistinct takes a column or a list of columns"):
            uc.CountDistinct(given_input)  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="'y' is list"):
        uc.CountDistinct(["x", "y"]).bind(pa.schema({"x": pa.int64(), "y": pa.list_(pa.int64())}))

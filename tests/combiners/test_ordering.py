"""Order keys: they sort as Python sorts the values, and give the values back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, VALUES, canonical, few, order

import uncombine as uc
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.ordering import from_numbers, order_keys, packed_keys, plain_numbers, require_order
from uncombine.errors import TypeMismatch


def values(name: str, nulls: bool = True) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from([*VALUES[name][1], *([None] if nulls else [])]), max_size=8)


def ranks(items: list[Any]) -> list[int]:
    """The place of each item among the different ones."""
    different = sorted(set(items))
    return [different.index(item) for item in items]


@pytest.mark.parametrize("name", ORDERED)
@few
@given(data=st.data())
def test_keys_sort_as_the_values(name: str, data: st.DataObject) -> None:
    given_values = data.draw(values(name))
    keys = order_keys([Column(pa.array(given_values, VALUES[name][0], from_pandas=False))])
    assert ranks(keys.keys.tolist()) == ranks([order(canonical(v)) for v in given_values])
    assert all(keys.low <= key <= keys.high for key in keys.keys.tolist())
    (back,) = keys.decode(keys.keys)
    assert back.type == VALUES[name][0]
    assert repr(back.to_pylist()) == repr([canonical(v) for v in given_values])
    back.validate(full=True)


@pytest.mark.parametrize("names", [("int64", "float64"), ("float64", "float64", "int64"), ("string", "int64", "bool")])
@few
@given(data=st.data())
def test_keys_of_several_columns(names: tuple[str, ...], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 8))
    columns = [
        data.draw(st.lists(st.sampled_from([*VALUES[n][1], None]), min_size=count, max_size=count)) for n in names
    ]
    arrays = [pa.array(c, VALUES[n][0], from_pandas=False) for n, c in zip(names, columns, strict=True)]
    expected = ranks([tuple(order(canonical(v)) for v in row) for row in zip(*columns, strict=True)])
    for as_struct in (False, True):
        given_columns = [pa.StructArray.from_arrays(arrays, names=list("abc")[: len(names)])] if as_struct else arrays
        keys = order_keys([Column(a) for a in given_columns])
        assert ranks(keys.keys.tolist()) == expected
        back = keys.decode(keys.keys)
        children = back[0].flatten() if as_struct else back
        for child, column in zip(children, columns, strict=True):
            assert repr(child.to_pylist()) == repr([canonical(v) for v in column])


@given(st.lists(st.floats(), max_size=20))
def test_any_floats(floats: list[float]) -> None:
    keys = order_keys([Column(pa.array(floats, pa.float64(), from_pandas=False))])
    assert ranks(keys.keys.tolist()) == ranks([order(canonical(v)) for v in floats])
    assert repr(keys.decode(keys.keys)[0].to_pylist()) == repr([canonical(v) for v in floats])


def test_neighbours_that_fit_share_an_int64() -> None:
    small, wide = Column(pa.array([1, 5])), Column(pa.array([-(2**62), 2**62]))
    assert [len(packed_keys(c)) for c in ([small, small], [small, wide], [wide, small, small])] == [1, 2, 2]


def test_dense_keys_have_no_gaps() -> None:
    keys = order_keys([Column(pa.array([70, -3, 70, 12]))]).dense()
    assert (keys.keys.tolist(), keys.low, keys.high) == ([2, 0, 2, 1], 0, 2)
    assert keys.decode(keys.keys)[0].to_pylist() == [70, -3, 70, 12]


@pytest.mark.parametrize("name", ["int64", "int8", "uint64", "float64", "float32", "date", "timestamp", "decimal"])
def test_plain_numbers_sort_alike_and_come_back(name: str) -> None:
    kind, some = VALUES[name]
    numbers = plain_numbers(pa.array(some[::-1], kind, from_pandas=False))
    assert numbers is not None
    expected = sorted((canonical(v) for v in some), key=order)
    assert repr(from_numbers(np.sort(numbers), kind).to_pylist()) == repr(expected)
    assert plain_numbers(pa.array(["a"])) is None


def test_types_without_an_order_are_refused() -> None:
    for kind in (pa.list_(pa.int64()), pa.struct([]), pa.month_day_nano_interval(), pa.string_view()):
        with pytest.raises(TypeMismatch, match="Sorter takes values that can be sorted, but 'x' is"):
            require_order(kind, type("Sorter", (), {"__repr__": lambda self: "Sorter"})(), "x")
    require_order(pa.struct([("a", pa.int64())]), "Sorter", "x")


@pytest.mark.parametrize("rows", [[0.0, -0.0], [-0.0, 0.0], [-0.0]])
def test_values_of_a_result_show_both_zeros_as_one(rows: list[float]) -> None:
    """The zero that is shown does not depend on the order of the rows."""
    named = {"of": uc.ArgMax("x", "x"), "mode": uc.Mode("x"), "least": uc.Min("x"), "most": uc.Max("x")}
    named |= {
        "first": uc.First("x", "x"),
        "all": uc.CollectList("x"),
        "set": uc.CollectSet("x"),
        "top": uc.TopK("x", 2),
    }
    named |= {"frequent": uc.HeavyHitters("x", 1)}
    for column in (pa.array(rows), pa.array(rows, pa.float32()), pa.array(rows).dictionary_encode()):
        (found,) = uc.aggregate(pa.table({"x": column}), **named, total=uc.Sum("x"), middle=uc.Median("x")).to_pylist()
        assert "-0.0" not in repr(found)
    structs = pa.array([{"a": value} for value in rows])
    (found,) = uc.aggregate(pa.table({"x": structs}), most=uc.Max("x"), set=uc.CollectSet("x")).to_pylist()
    assert found == {"most": {"a": 0.0}, "set": [{"a": 0.0}]}
    assert "-0.0" not in repr(found)

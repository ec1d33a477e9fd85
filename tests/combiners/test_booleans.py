"""All, any and exclusive or against plain Python over the raw rows."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import GROUPS, VALUES, accumulate, check, few, rows

import uncombine as uc
from uncombine.combiners.laws.compare import bits
from uncombine.combiners.plan import Plan
from uncombine.errors import TypeMismatch


def known(counts: dict) -> list[Any]:
    return [x for (x,), n in counts.items() for _ in range(n) if x is not None]


@given(data=st.data())
def test_all_and_any(data: st.DataObject) -> None:
    given_rows = data.draw(rows("bool"))
    check(uc.BoolAnd("x"), ["bool"], given_rows, lambda c: all(known(c)) if known(c) else None, data)
    check(uc.BoolOr("x"), ["bool"], given_rows, lambda c: any(known(c)) if known(c) else None, data)


@pytest.mark.parametrize("name", ["int64", "int8", "uint64"])
@few
@given(data=st.data())
def test_exclusive_or(name: str, data: st.DataObject) -> None:
    def xor(counts: dict) -> int | None:
        values = known(counts)
        return functools.reduce(operator.xor, values) if values else None

    check(uc.BitXor("x"), [name], data.draw(rows(name, least=0)), xor, data)


@given(data=st.data())
def test_exclusive_or_counts_only_whether_weights_are_odd(data: st.DataObject) -> None:
    given_rows = data.draw(rows("int64", nullable=False))
    fn = uc.BitXor("x").bind(pa.schema({"x": pa.int64()}))
    expected = [0] * GROUPS
    for group, weight, (value,) in given_rows:
        expected[group] ^= value if weight % 2 else 0
    assert accumulate(fn, given_rows, [pa.int64()])[0].to_pylist() == expected


def test_a_retracted_value_leaves_no_trace() -> None:
    fn = uc.BitXor("x").bind(pa.schema({"x": pa.int16()}))
    state, gone = fn.accumulate({"x": [5, -3, 12]}), fn.accumulate({"x": [-3]})
    rest = fn.uncombine(state, gone)
    assert bits(rest) == bits(fn.accumulate({"x": [5, 12]}))
    assert (fn.result(rest), fn.output) == (9, pa.int16())


def test_as_pandas_on_many_rows() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, 90, 300), "x": rng.integers(-9, 9, 300), "b": rng.random(300) < 0.7})
    by = table.to_pandas().groupby("k", sort=False)
    result = uc.aggregate(table, "k", xor=uc.BitXor("x"), all=uc.BoolAnd("b"), any=uc.BoolOr("b"))
    assert result["xor"].to_pylist() == by.x.agg(lambda x: np.bitwise_xor.reduce(x.to_numpy())).tolist()
    assert result["all"].to_pylist() == by.b.all().tolist()
    assert result["any"].to_pylist() == by.b.any().tolist()


def test_both_share_their_counts_with_each_other_and_with_count() -> None:
    several = {"all": uc.BoolAnd("b"), "any": uc.BoolOr("b"), "n": uc.Count("b"), "yes": uc.CountIf("b")}
    assert len(Plan(several, pa.schema({"b": pa.bool_()})).parts) == 2


@pytest.mark.parametrize(("combiner", "name"), [(uc.BoolAnd("x"), "int64"), (uc.BitXor("x"), "float64")])
def test_wrong_types_are_refused(combiner: uc.Combiner, name: str) -> None:
    with pytest.raises(TypeMismatch, match=r"takes (a boolean column|integers), but 'x' is"):
        combiner.bind(pa.schema({"x": VALUES[name][0]}))

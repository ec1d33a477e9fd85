"""Values by another column against sorted pairs of the raw rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import check, few, order, rows
from seeds import share

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.errors import NotRetractable, TypeMismatch, UnknownColumn

PAIRS = [
    ("int64", "float64"),
    ("string", "timestamp"),
    ("float64", "int8"),
    ("bool", "decimal"),
    ("float64", "float64"),
    ("date", "wide decimal"),
    ("binary", "string"),
    ("uint64", "bool"),
    ("hundreds", "hundreds"),
]


def pairs(counts: Counter[tuple[Any, ...]], ignore_nulls: bool) -> list[Any]:
    """The values in the order of (by, value)."""
    known = [(by, x) for x, by in counts if by is not None and not (ignore_nulls and x is None)]
    return [x for _, x in sorted(known, key=lambda pair: (order(pair[0]), order(pair[1])))]


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("names", share(PAIRS), ids="-".join)
@few
@given(data=st.data())
def test_the_ends_of_the_sorted_pairs(names: tuple[str, str], retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(*names, least=-2 if retractable else 0))
    for place, plain, ordered in ((0, uc.ArgMin, uc.First), (-1, uc.ArgMax, uc.Last)):
        for ignore in (False, True):
            combiner = ordered("x", by="y", ignore_nulls=ignore, retractable=retractable)
            check(combiner, names, given_rows, lambda c: (pairs(c, ignore) or [None])[place], data)  # noqa: B023
        same = plain("x", by="y", retractable=retractable)
        check(same, names, given_rows, lambda c: (pairs(c, False) or [None])[place], data)  # noqa: B023


@pytest.mark.parametrize("diff", [None, "w"])
def test_as_pandas_on_many_rows(diff: str | None) -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "k": rng.integers(0, 200, 3_000),
            "x": rng.integers(0, 9, 3_000),
            "t": rng.random(3_000),
            "w": [1] * 3_000,
        }
    )
    df = table.to_pandas().sort_values("t").groupby("k").x.agg(["first", "last"])
    result = uc.aggregate(table, "k", diff=diff, first=uc.First("x", by="t"), last=uc.ArgMax("x", by="t"))
    result = result.to_pandas().set_index("k").sort_index()
    assert result["first"].tolist() == df["first"].tolist()
    assert result["last"].tolist() == df["last"].tolist()


def test_ties_go_to_the_end_of_the_values_with_null_below_all() -> None:
    table = pa.table({"x": ["b", None, "c"], "t": [1, 1, 1]})
    for retractable in (True, False):
        result = uc.aggregate(
            table,
            first=uc.First("x", "t", retractable=retractable),
            last=uc.Last("x", "t", retractable=retractable),
            known=uc.First("x", "t", ignore_nulls=True, retractable=retractable),
        )
        assert result.to_pylist() == [{"first": None, "last": "c", "known": "b"}]


def test_all_that_order_alike_share_one_state() -> None:
    schema = pa.schema({"x": pa.int64(), "t": pa.int64()})
    several = Plan({"a": uc.ArgMin("x", "t"), "b": uc.ArgMax("x", "t"), "c": uc.First("x", by="t")}, schema)
    assert len(several.parts) == 1


def test_wrong_use() -> None:
    with pytest.raises(TypeMismatch, match="'t' is list"):
        uc.ArgMax("x", by="t").bind(pa.schema({"x": pa.int64(), "t": pa.list_(pa.int64())}))
    with pytest.raises(UnknownColumn, match=r"needs column 'tt'.*did you mean 't'"):
        uc.First("x", by="tt").bind(pa.schema({"x": pa.int64(), "t": pa.int64()}))
    with pytest.raises(NotRetractable):
        uc.aggregate(pa.table({"x": [1], "w": [-1]}), diff="w", a=uc.ArgMax("x", "x", retractable=False))

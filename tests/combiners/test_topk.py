"""The k best against sorted lists of the raw rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, check, expand, few, order, rows
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("name", share(ORDERED))
@few
@given(data=st.data())
def test_the_ends_of_the_sorted_values(name: str, retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(name, least=-2 if retractable else 0))
    k = data.draw(st.integers(1, 5))
    check(uc.BottomK("x", k, retractable=retractable), [name], given_rows, lambda c: expand(c)[:k], data)
    check(uc.TopK("x", k, retractable=retractable), [name], given_rows, lambda c: expand(c)[::-1][:k], data)


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("names", [("string", "float64"), ("float64", "int64")], ids="-".join)
@few
@given(data=st.data())
def test_the_values_of_the_best_rows(names: tuple[str, str], retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(*names, least=-2 if retractable else 0))

    def by_pairs(counts: Counter[tuple[Any, ...]]) -> list[Any]:
        copies = [(by, x) for (x, by), n in counts.items() for _ in range(n) if by is not None]
        return [x for _, x in sorted(copies, key=lambda pair: (order(pair[0]), order(pair[1])))]

    bottom, top = (one("x", 3, by="y", retractable=retractable) for one in (uc.BottomK, uc.TopK))
    check(bottom, names, given_rows, lambda c: by_pairs(c)[:3], data)
    check(top, names, given_rows, lambda c: by_pairs(c)[::-1][:3], data)


@pytest.mark.parametrize("diff", [None, "w"])
def test_as_pandas_on_many_rows(diff: str | None) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, 90, 3_000), "x": rng.integers(0, 40, 3_000), "w": [1] * 3_000})
    expected = table.to_pandas().groupby("k").x.apply(lambda x: x.nlargest(10).tolist())
    result = uc.aggregate(table, "k", diff=diff, top=uc.TopK("x", 10)).to_pandas().set_index("k").sort_index()
    assert [list(top) for top in result.top] == expected.tolist()


def test_the_monoid_form_keeps_k_copies_and_no_more() -> None:
    fn = uc.TopK("x", 2, retractable=False).bind(pa.schema({"x": pa.int64()}))
    state = fn.accumulate({"x": [1, 7, 7, 3, 7]})
    assert state[0].to_pylist() == [[{"item": 7, "weight": 2}]]
    (merged,) = fn.merge(uc.combiners.rows.groups.Groups.single(2), tuple(pa.concat_arrays([s, s]) for s in state))
    assert merged.to_pylist() == state[0].to_pylist()


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3", None])
def test_k_is_a_positive_whole_number(k: object) -> None:
    with pytest.raises(InvalidArgument, match=f"k must be a whole number of at least 1, but is {k!r}"):
        uc.TopK("x", k)  # type: ignore[arg-type]

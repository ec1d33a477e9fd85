"""The most frequent value against counters of the raw rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import ORDERED, check, expand, few, rows

import uncombine as uc


@pytest.mark.parametrize("name", ORDERED)
@few
@given(data=st.data())
def test_the_least_of_the_most_frequent(name: str, data: st.DataObject) -> None:
    def mode(counts: dict) -> object:
        values = expand(counts)
        # The first of the greatest, and sorted values have the least first; `is` tells NaN from NaN.
        return max(values, key=lambda v: sum(v is w or v == w for w in values), default=None)

    check(uc.Mode("x"), [name], data.draw(rows(name)), mode, data)


@pytest.mark.parametrize("diff", [None, "w"])
def test_as_pandas_on_many_rows(diff: str | None) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, 90, 3_000), "x": rng.integers(0, 40, 3_000), "w": [1] * 3_000})
    expected = table.to_pandas().groupby("k").x.agg(lambda x: x.mode()[0])
    result = uc.aggregate(table, "k", diff=diff, m=uc.Mode("x")).to_pandas().set_index("k").sort_index()
    assert result.m.tolist() == expected.tolist()

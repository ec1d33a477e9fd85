"""The result of a run in this process in the place of an Arrow table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc

SCRIPT = [uc.Elements([{"ts": 0, "k": "a", "x": 5}, {"ts": 1, "k": "b", "x": 7}]), uc.Watermark(None)]


def of(total: uc.Combiner) -> uc.Result:
    return uc.flow(SCRIPT).window(uc.Fixed("1 minute")).combine(by="k", total=total).run()


ONE, SAME, OTHER = of(uc.Sum("x")), of(uc.Sum("x")), of(uc.Max("x") + 1)


def test_equal_results_are_equal_tables() -> None:
    assert ONE.equals(SAME)
    assert ONE.equals(SAME.panes)
    assert ONE.equals(other=SAME, check_metadata=True)
    assert not ONE.equals(OTHER)
    assert ONE == SAME == ONE.panes
    with pytest.raises(TypeError):
        ONE.equals(5)


def table_methods() -> set[str]:
    """The methods of an Arrow table that take another one, as its documentation says."""
    text = {name: getattr(pa.Table, name).__doc__ or "" for name in dir(pa.Table) if not name.startswith("_")}
    takes = re.compile(r"^ *(other|right_table) : (pyarrow\.)?Table$", re.MULTILINE)
    return {name for name, doc in text.items() if takes.search(doc.partition("Returns")[0])}


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "equals": lambda left, right: left.equals(right),
    "join": lambda left, right: left.join(right, "k", right_suffix="_2").num_rows,
    "join_asof": lambda left, right: left.join_asof(right, on="step", by="k", tolerance=1),
}


@pytest.mark.parametrize("name", sorted(table_methods()))
def test_a_method_that_takes_a_table_takes_a_result(name: str) -> None:
    """By reflection, so that a method of a new pyarrow is not forgotten."""
    simple = ["k", "total", "step"]
    left, right = (uc.Result(result.panes.select(simple)) for result in (ONE, OTHER))
    right = uc.Result(right.panes.rename_columns(["k", "other", "step"])) if name == "join_asof" else right
    assert CALLS[name](left, right) == CALLS[name](left.panes, right.panes)

"""Combiners that say that their results add up: they do, and others are refused where panes are differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from every import EVERY, rows

import uncombine as uc
from uncombine.errors import NotRetractable

TABLE = rows(120, seed=4)
ADDITIVE = {name: combiner for name, combiner in EVERY.items() if combiner.compile(TABLE.schema).additive}


def added(parts: Sequence[Any]) -> Any:
    """The sum of results; null adds nothing, and lists are added up entry by entry."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if isinstance(known[0], list):
        return np.sum(known, axis=0).tolist()
    return sum(known[1:], known[0])


def test_the_additive_combiners_of_the_library() -> None:
    kinds = {type(combiner).__name__ for combiner in ADDITIVE.values()}
    assert {"Count", "CountIf", "Histogram", "Sum"} <= kinds
    assert kinds <= {"Count", "CountIf", "Histogram", "Sum", "Filtered"}


EXACT = [name for name in ADDITIVE if ADDITIVE[name].bind(TABLE.schema).capability is uc.Capability.GROUP]
"""Those that do not round. The others are refused for that."""


@pytest.mark.parametrize("name", EXACT)
def test_results_of_parts_add_up_to_the_result_of_all_rows(name: str) -> None:
    combiner = ADDITIVE[name]
    for weight in (None, "diff"):
        parts = [TABLE.filter(pc.equal(TABLE["part"], part)) for part in range(3)]
        options = {} if weight is None else {"diff": weight}
        found = [uc.aggregate(part, r=combiner, **options)["r"][0].as_py() for part in parts]
        whole = uc.aggregate(TABLE, r=combiner, **options)["r"][0].as_py()
        total = added(found)
        assert repr(total) == repr(whole) or total == pytest.approx(whole, rel=1e-15)


T = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "combiner",
    [
        uc.Mean("x"),
        uc.WeightedMean("x", "x", exact=True),
        uc.Variance("x", exact=True),
        uc.BoolAnd(uc.col("x") > 15),
        uc.BoolOr(uc.col("x") > 15),
        uc.Fingerprint("x"),
        uc.Sum("x") / uc.Count(),
        uc.Sum("x") + 1,
        uc.Sum("x").where(uc.col("x") > 15) - uc.Sum("x").where(uc.col("x") <= 15),
        uc.Struct(n=uc.Count()),
        uc.Max("x"),
    ],
    ids=repr,
)
def test_rule_39_43_results_that_do_not_add_up_are_no_differences(combiner: Any) -> None:
    plain = uc.flow(pa.schema({"ts": T, "x": pa.int64()}))
    first = plain.window(uc.Fixed("1 minute"), uc.Always(), mode="discarding").combine(r=combiner)
    with pytest.raises(NotRetractable, match=r"r= cannot show its changes as differences .* do not add up"):
        first.window(uc.Global()).combine(t=uc.Count())
    changelog = uc.flow(pa.schema({"ts": T, "x": pa.int64(), "w": pa.int64()}), diff="w")
    with pytest.raises(NotRetractable, match="r= "):
        changelog.window(uc.Fixed("1 minute"), uc.Always(), mode="discarding").combine(r=combiner)


@pytest.mark.parametrize("combiner", [uc.Count(), uc.Sum("x"), uc.CountIf(uc.col("x") > 15)], ids=repr)
def test_rule_43_results_that_add_up_give_a_later_grouping_what_the_rows_give(combiner: Any) -> None:
    source = uc.flow(pa.schema({"ts": T, "x": pa.int64()}))
    script = [uc.Elements([{"ts": 1, "x": 10}]), uc.Elements([{"ts": 2, "x": 30}]), uc.Watermark(None)]
    found = []
    for mode in (None, "discarding"):
        first = source.window(uc.Fixed("1 minute"), uc.Always(), mode=mode).combine(r=combiner)
        result = first.window(uc.Global(), uc.Always()).combine(t=uc.Sum("r")).run(script).table()
        found.append(result["t"].to_pylist()[-1])
    assert found[0] == found[1]

"""Composition: filters, mapped results, arithmetic, structs; and what a plan shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from public_names import PUBLIC

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.errors import NotRetractable, TypeMismatch

RNG = np.random.default_rng(11)
FRAME = pd.DataFrame({"k": RNG.integers(0, 4, 80), "x": RNG.integers(-5, 9, 80), "y": RNG.integers(1, 9, 80)})


def by_key(combiner: uc.Combiner) -> list[Any]:
    return uc.aggregate(FRAME, by="k", r=combiner)["r"].to_pylist()


def test_where_is_a_filter_before_the_aggregate() -> None:
    expected = [int(g["x"][g["y"] > 4].sum()) for _, g in FRAME.groupby("k", sort=False)]
    assert by_key(uc.Sum("x").where(uc.col("y") > 4)) == expected
    assert by_key(uc.Sum("x").where(uc.col("y") > 2).where(uc.col("y") > 4)) == expected


def test_where_takes_null_for_false() -> None:
    table = pa.table({"x": [1, 2, 4], "y": [1, None, 3]})
    assert uc.aggregate(table, s=uc.Sum("x").where(uc.col("y") > 0))["s"].to_pylist() == [5]


def test_of_computes_over_an_expression() -> None:
    expected = [int((g["x"] * g["y"]).sum()) for _, g in FRAME.groupby("k", sort=False)]
    assert by_key(uc.Sum("x").of(uc.col("x") * uc.col("y"))) == expected
    assert by_key(uc.Sum(uc.col("x") * uc.col("y"))) == expected


def test_arithmetic_on_results() -> None:
    total, count = by_key(uc.Sum("x")), by_key(uc.Count())
    assert by_key(uc.Sum("x") / uc.Count()) == [t / n for t, n in zip(total, count, strict=True)]
    assert by_key(2 * uc.Sum("x") - uc.Count() + 1) == [2 * t - n + 1 for t, n in zip(total, count, strict=True)]
    nothing = pa.table({"x": pa.array([None], pa.int64())})
    assert uc.aggregate(nothing, r=uc.Sum("x") / uc.Count("x"))["r"].to_pylist() == [None]


def test_map_puts_results_through_a_function() -> None:
    assert by_key(uc.Sum("x").map(pc.negate)) == [-t for t in by_key(uc.Sum("x"))]
    with pytest.raises(TypeMismatch, match="same length"):
        by_key(uc.Sum("x").map(lambda results: results.slice(0, 1) if len(results) else results))


def test_structs_hold_what_their_members_hold() -> None:
    both = uc.Struct(total=uc.Sum("x"), best=uc.Max("y"))
    assert by_key(both) == [
        {"total": t, "best": b} for t, b in zip(by_key(uc.Sum("x")), by_key(uc.Max("y")), strict=True)
    ]


def test_equal_parts_are_held_once() -> None:
    schema = pa.schema({"x": pa.int64(), "y": pa.int64()})
    plan = Plan({"m": uc.Mean("x"), "s": uc.Sum("x"), "n": uc.Count("x")}, schema)
    assert len(plan.parts) == 2
    ordered = Plan({"low": uc.Min("x"), "mid": uc.Median("x"), "n": uc.CountDistinct("x")}, schema)
    assert len(ordered.parts) == 1
    assert len(Plan({"a": uc.Sum("x"), "b": uc.Sum("y"), "c": uc.Sum("x").where(uc.col("y") > 0)}, schema).parts) == 6


def test_a_plan_promises_what_its_weakest_member_does() -> None:
    schema = pa.schema({"x": pa.float64(), "n": pa.int64()})
    assert Plan({"s": uc.Sum("n")}, schema).capability is uc.Capability.GROUP
    assert Plan({"s": uc.Sum("x")}, schema).capability is uc.Capability.CANCELLATIVE
    monoid = Plan({"s": uc.Sum("x"), "m": uc.Max("x", retractable=False)}, schema)
    assert monoid.capability is uc.Capability.MONOID
    with pytest.raises(NotRetractable, match="m="):
        monoid.require_retractable("the input has negative weights")


def test_append_only_input_uses_the_smallest_state_and_gives_the_same() -> None:
    schema = pa.schema({"x": pa.int64()})
    assert Plan({"m": uc.Max("x")}, schema, append_only=True).fields[0].type == pa.int64()
    weighed = FRAME.assign(w=1)
    for combiner in (uc.Max("x"), uc.Min("x"), uc.Median("x"), uc.CountDistinct("x"), uc.Struct(m=uc.Max("x"))):
        kept = uc.aggregate(weighed, by="k", diff="w", r=combiner)["r"].to_pylist()
        assert by_key(combiner) == kept


def test_combiners_are_values_that_read_back() -> None:
    for combiner in (
        uc.Sum("x", exact=True),
        uc.Max("x", retractable=False),
        uc.Count().where(uc.col("x") > 2),
        uc.Struct(a=uc.Sum("x"), b=uc.Count()),
        uc.Sum("x") / uc.Count(),
        uc.Sum(uc.col("x") * 2),
    ):
        again = eval(repr(combiner), PUBLIC)
        assert again == combiner
        assert hash(again) == hash(combiner)
    assert uc.Sum("x") != uc.Sum("y")
    assert uc.Sum("x") != uc.Sum(uc.col("x") + 1)


def test_bound_combiners_have_scalar_views() -> None:
    fn = (uc.Sum("x") / uc.Count("x")).bind(pa.schema({"x": pa.int64()}))
    first, second = fn.accumulate({"x": [1, 2, 3]}), fn.accumulate({"x": [3]})
    assert fn.result(first) == 2.0
    assert fn.result(fn.uncombine(first, second)) == 1.5
    assert fn.result(fn.accumulate({"x": [5, 5]}, weights=[3, -1])) == 5.0


def test_a_notebook_shows_a_combiner_in_words() -> None:
    shown = (
        uc.Sum("x") / uc.Count(),
        uc.Median("x").where(uc.col("x") > 3),
        uc.Quantile("x", 0.5),
        uc.ArgMax("a", "b"),
    )
    for html in (combiner._repr_html_() for combiner in shown):
        assert "`" not in html
        assert "Retracts: " in html
    assert "<code>q</code>" in uc.Quantile("x", 0.5)._repr_html_()

"""Counts, weights and multiplicities that come near 2**62 are an error, never a wrapped number."""

from __future__ import annotations

import random
from typing import Any

import every
import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.groups import Groups
from uncombine.errors import NotRetractable, OutOfRange

KIND = pa.schema({"x": pa.int64(), "y": pa.int64(), "b": pa.bool_(), "f": pa.float64()})
COUNTED: list[uc.Combiner] = [
    uc.Count(),
    uc.Count("x"),
    uc.CountIf("b"),
    uc.BoolAnd("b"),
    uc.Max("x"),
    uc.Median("x"),
    uc.Mode("x"),
    uc.CountDistinct("x"),
    uc.TopK("x", 2),
    uc.Histogram("x", [0, 10]),
    uc.HeavyHitters("x", 1),
    uc.ApproxCountDistinct("x"),
    uc.ApproxQuantiles("x", [0.5]),
    uc.PerKey(uc.Count(), "y"),
    uc.Mean("x"),
    uc.Variance("x"),
    uc.Variance("f", exact=True),
    uc.Product("x"),
]


def rows(count: int) -> pa.Table:
    return pa.table({"x": [3] * count, "y": [1] * count, "b": [True] * count, "f": [3.0] * count}, KIND)


def one(combiner: uc.Combiner, weights: list[int]) -> tuple[Plan, tuple[pa.Array, ...]]:
    plan = Plan({"r": combiner}, KIND)
    return plan, plan.add(Groups.single(len(weights)), rows(len(weights)), np.array(weights, np.int64))


@pytest.mark.parametrize("combiner", COUNTED, ids=repr)
def test_too_many_rows_are_an_error_when_added_and_when_merged(combiner: uc.Combiner) -> None:
    with pytest.raises(OutOfRange, match=r"2\*\*62"):
        one(combiner, [2**61, 2**61])
    with pytest.raises(OutOfRange, match=r"2\*\*62"):
        one(combiner, [2**62] * 4)
    plan, half = one(combiner, [2**61])
    both = tuple(pa.concat_arrays([a, a]) for a in half)
    with pytest.raises(OutOfRange, match=r"2\*\*62"):
        plan.merge(Groups.repeated(1, 2), both)
    with pytest.raises(OutOfRange, match=r"2\*\*62"):
        plan.merge(Groups.repeated(1, 8), tuple(pa.concat_arrays([a] * 8) for a in half))


@pytest.mark.parametrize("combiner", COUNTED, ids=repr)
def test_weights_below_are_counted_and_cancel(combiner: uc.Combiner) -> None:
    plan, zero = one(combiner, [2**61, 2**61 - 1, -(2**61), 1 - 2**61])
    assert bool(plan.is_zero(zero).all())
    plan, most = one(combiner, [2**61, 2**61 - 1])
    _, few = one(combiner, [2**62 - 1])
    assert plan.extract(most) == plan.extract(few)


@pytest.mark.parametrize("combiner", every.ONE_OF_EACH.values(), ids=repr)
def test_many_copies_of_a_row_are_combined_or_refused(combiner: uc.Combiner) -> None:
    """No combiner asks for memory for each copy of a row: of 2**40 copies it would be more than any machine has."""
    table = every.rows(6, seed=37, nulls=0.0)
    for weight in (2**40, 2**61):
        weighed = table.set_column(2, "diff", pa.array([weight, -weight, 1, -1, 1, weight]))
        try:
            uc.aggregate(weighed, diff="diff", result=combiner)
        except (OutOfRange, NotRetractable):
            continue


@pytest.mark.parametrize("combiner", [uc.CollectList("x"), uc.TopK("x", 2**62), uc.BottomK("x", 2**62, by="y")])
def test_lists_of_too_many_copies_say_so(combiner: uc.Combiner) -> None:
    """Before memory is asked for them, whatever the number is: 2**31 values fit into no list column."""
    for weight in (2**31 - 1, 2**40, 2**61):
        table = pa.table({"x": [1, 2], "y": [1, 2], "w": [weight, 1]})
        with pytest.raises(OutOfRange) as told:
            uc.aggregate(table, diff="w", values=combiner)
        said = f"{combiner!r} would list {weight + 1:,} values, and a column of lists holds fewer than 2**31: "
        assert str(told.value).startswith(said)


def test_the_rows_of_a_group_are_counted_in_full() -> None:
    table = pa.table({"k": ["a", "a", "b"], "w": [2**62, 2**62, 1]})
    with pytest.raises(OutOfRange, match=r"2\*\*62"):
        uc.aggregate(table, by="k", diff="w")


def test_random_weights_are_summed_or_refused() -> None:
    draw = random.Random(7)
    for _ in range(400):
        weights = [
            draw.choice([1, -1]) * draw.randrange(2 ** draw.randrange(1, 63)) for _ in range(draw.randrange(1, 9))
        ]
        for combiner in (uc.Count(), uc.Max("x")):
            total = sum(weights)
            try:
                _, state = one(combiner, weights)
            except OutOfRange:
                assert abs(total) >= 2**62
                continue
            assert abs(total) < 2**62
            held: Any = state[0][0].as_py()
            assert (held if isinstance(held, int) else sum(item["weight"] for item in held)) == total

"""Combiners from plain functions: right results, weights, what does not fit, and errors of the user's own."""

from __future__ import annotations

import traceback
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.laws import LawViolation, check_laws
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.groups import Groups

STATE = pa.struct([("sum", pa.int64()), ("n", pa.int64())])


def added(state: dict[str, Any], value: int) -> dict[str, Any]:
    state["sum"] += value
    state["n"] += 1
    return state


MeanOf = uc.from_scalar(
    "MeanOf",
    create=lambda: {"sum": 0, "n": 0},
    add=added,
    merge=lambda s, t: {"sum": s["sum"] + t["sum"], "n": s["n"] + t["n"]},
    uncombine=lambda s, t: {"sum": s["sum"] - t["sum"], "n": s["n"] - t["n"]},
    extract=lambda s: s["sum"] / s["n"] if s["n"] else None,
    accumulator=STATE,
    output=pa.float64(),
    capability=uc.Capability.GROUP,
)
Longest = uc.from_scalar(
    "Longest",
    create=lambda: None,
    add=lambda s, x: x if s is None or (len(x), x) > (len(s), s) else s,
    merge=lambda s, t: max(filter(None, (s, t)), key=lambda x: (len(x), x), default=s if t is None else t),
    extract=lambda s: s,
    accumulator=pa.string(),
    output=pa.string(),
)
Dot = uc.from_scalar(
    "Dot",
    create=lambda: 0,
    add=lambda s, x, y: s + x * y,
    merge=lambda s, t: s + t,
    uncombine=lambda s, t: s - t,
    extract=lambda s: s,
    accumulator=pa.int64(),
    output=pa.int64(),
)
SMALL = st.integers(-3, 3)


def test_grouped_weighted_results() -> None:
    table = pa.table({"k": ["a", "b", "a", "a", "b"], "x": [1, 5, 2, 2, None], "w": [3, 1, 1, -1, 1]})
    out = uc.aggregate(table, by="k", diff="w", mean=MeanOf("x"))
    assert out.to_pylist() == [{"k": "a", "mean": 1.0}, {"k": "b", "mean": 5.0}]


def test_two_columns_and_expressions() -> None:
    table = pa.table({"x": [1, 2], "y": [3, 4]})
    out = uc.aggregate(table, a=Dot("x", "y"), b=Dot(uc.col("x") + 1, "y"), c=Dot("x", "y").of("y", "y"))
    assert out.to_pylist() == [{"a": 11, "b": 18, "c": 25}]


def test_a_retraction_may_come_first_in_its_batch() -> None:
    Bag = uc.from_scalar(
        "Bag",
        create=list,
        add=lambda s, x: sorted([*s, x]),
        merge=lambda s, t: sorted(s + t),
        uncombine=lambda s, t: [x for i, x in enumerate(s) if i not in [s.index(y) for y in t]],
        extract=len,
        accumulator=pa.list_(pa.int64()),
        output=pa.int64(),
    )
    table = pa.table({"x": [7, 7, 8], "w": [-1, 1, 1]})
    assert uc.aggregate(table, diff="w", n=Bag("x")).to_pylist() == [{"n": 1}]


def test_no_values_give_what_a_fresh_state_gives() -> None:
    assert uc.aggregate(pa.table({"x": pa.array([None], pa.int64())}), m=MeanOf("x")).to_pylist() == [{"m": None}]


def test_equal_factories_share_their_state_and_read_back() -> None:
    assert MeanOf("x") == MeanOf("x") != MeanOf("y")
    assert repr(Dot("x", uc.col("y") + 1)) == "Dot('x', col('y') + 1)"
    plan = Plan({"a": MeanOf("x"), "b": uc.Struct(m=MeanOf("x"))}, pa.schema({"x": pa.int64()}))
    assert len(plan.fields) == 1


def test_capabilities() -> None:
    assert MeanOf("x").capability is uc.Capability.GROUP
    assert Longest("x").capability is uc.Capability.MONOID
    assert Dot("x", "y").capability is uc.Capability.CANCELLATIVE


@pytest.mark.parametrize("made", [Longest("x"), Longest("x").where(uc.col("x") != ""), uc.PerKey(Longest("x"), "x")])
def test_a_monoid_refuses_retractions_and_names_the_way_out(made: uc.Combiner) -> None:
    with pytest.raises(uc.errors.NotRetractable, match=r"m= is a MONOID combiner .*: give from_scalar uncombine="):
        uc.aggregate(pa.table({"x": ["a"], "w": [-1]}), diff="w", m=made)
    with pytest.raises(uc.errors.NotRetractable, match=r"Longest is a MONOID combiner .*: give from_scalar uncombine="):
        Longest("x").compile(pa.schema({"x": pa.string()})).parts[0].fn.negate((pa.array(["a"]),))


@pytest.mark.parametrize("weight", [9, 1_000, 2**31 + 5, -9, -(2**31) - 5])
def test_a_heavy_row_takes_few_steps(weight: int) -> None:
    steps = []

    def put(held: list[int], more: list[int], sign: int = 1) -> list[int]:
        """Changes what it is given, and would not end if both were the same object."""
        steps.append(sign)
        for i, value in enumerate(more):
            held[i] += sign * value
        return held

    Pair = uc.from_scalar(
        "Pair", create=lambda: [0, 0], add=lambda s, x: put(s, [x, 1]), merge=put,
        uncombine=lambda s, t: put(s, t, -1), extract=lambda s: s, accumulator=pa.list_(pa.int64()),
        output=pa.list_(pa.int64()), capability=uc.Capability.GROUP,
    )  # fmt: skip
    table = pa.table({"x": [7, 3], "w": [weight, 1]})
    assert uc.aggregate(table, diff="w", p=Pair("x"))["p"].to_pylist() == [[7 * weight + 3, weight + 1]]
    assert len(steps) < 80


def test_a_heavy_row_outside_the_state_s_range_is_refused_before_it_grows() -> None:
    """Three to the power of 2**31 would take a gigabyte, and minutes."""
    largest = 0

    def times(s: int, t: int) -> int:
        nonlocal largest
        largest = max(largest, (s * t).bit_length())
        return s * t

    Product = uc.from_scalar(
        "Product", create=lambda: 1, add=times, merge=times, extract=lambda s: s, accumulator=pa.int64(),
        output=pa.int64(),
    )  # fmt: skip
    assert uc.aggregate(pa.table({"x": [1], "w": [2**31]}), diff="w", p=Product("x"))["p"].to_pylist() == [1]
    with pytest.raises(uc.errors.OutOfRange, match="merge of Product gave"):
        uc.aggregate(pa.table({"x": [3], "w": [2**31]}), diff="w", p=Product("x"))
    assert largest < 10_000


def test_a_state_of_zeros_is_not_nothing_where_nothing_looks_otherwise() -> None:
    FromTen = uc.from_scalar(
        "FromTen", create=lambda: 10, add=lambda s, x: s + x, merge=lambda s, t: s + t - 10,
        uncombine=lambda s, t: s - t + 10, extract=lambda s: s - 10,
        accumulator=pa.int64(), output=pa.int64(), capability=uc.Capability.GROUP,
    )  # fmt: skip
    plan = Plan({"t": FromTen("x")}, pa.schema({"x": pa.int64()}))
    state = plan.add(Groups(np.arange(3), 3), pa.table({"x": [-10, 0, 1]}))
    assert plan.is_zero(state).tolist() == [False, True, False]


@pytest.mark.weekly
def test_a_stated_tolerance() -> None:
    near = uc.from_scalar(
        "Near", create=lambda: 0.0, add=lambda s, x: s + x, merge=lambda s, t: s + t, extract=lambda s: s,
        accumulator=pa.float64(), output=pa.float64(), tolerance=lambda m, n: n * 2**-53 * sum(m),
    )  # fmt: skip
    assert near("x").tolerance([1.0, 2.0], 2) == near("x").where(uc.col("x") > 0).tolerance([1.0, 2.0], 2) == 6 * 2**-53
    assert MeanOf("x").tolerance([1.0], 1) == 0.0
    check_laws(near("x"), values=pa.float64(), max_examples=40)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("combiner", "values"),
    [(MeanOf("x"), SMALL), (Longest("x"), pa.string()), (Dot("x", "y"), (SMALL, SMALL))],
)
def test_laws(combiner: uc.Combiner, values: Any) -> None:
    check_laws(combiner, values=values, max_examples=40)


@pytest.mark.weekly
def test_the_law_kit_finds_a_wrong_one() -> None:
    wrong = uc.from_scalar(
        "Wrong", create=lambda: 0.0, add=lambda s, x: (s + x) / 2, merge=lambda s, t: (s + t) / 2,
        extract=lambda s: s, accumulator=pa.float64(), output=pa.float64(),
    )  # fmt: skip
    with pytest.raises(LawViolation, match="Wrong"):
        check_laws(wrong("x"), values=SMALL)


def test_an_error_of_the_user_shows_the_users_line() -> None:
    broken = uc.from_scalar(
        "Broken", create=lambda: 0, add=lambda s, x: s + 1 // x, merge=lambda s, t: s + t,
        extract=lambda s: s, accumulator=pa.int64(), output=pa.int64(),
    )  # fmt: skip
    with pytest.raises(ZeroDivisionError) as caught:
        uc.aggregate(pa.table({"x": [0]}), b=broken("x"))
    assert any("s + 1 // x" in (frame.line or "") for frame in traceback.extract_tb(caught.tb))


def scalar(**changes: Any) -> Any:
    parts: dict[str, Any] = {
        "create": lambda: 0, "add": lambda s, x: s + x, "merge": lambda s, t: s + t, "extract": lambda s: s,
        "accumulator": pa.int8(), "output": pa.int8(),
    }  # fmt: skip
    return uc.from_scalar("S", **(parts | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"create": lambda: "zero"},
            "create of S gave 'zero', which does not fit its declared accumulator type int8",
        ),
        ({"create": lambda: (0, 0), "accumulator": STATE}, "create of S gave (0, 0), which struct<"),
        ({"add": None}, "add= of from_scalar takes a function, but was given None"),
        ({"output": "int"}, "output= of from_scalar takes an Arrow type"),
        ({"capability": uc.Capability.GROUP}, "S declares GROUP but has no uncombine"),
        ({"tolerance": 2}, "tolerance= of from_scalar takes a number from 0 to 1 such as 1e-9"),
        ({"capability": "GROUP"}, "capability= of from_scalar takes a uc.Capability"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_made(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(uc.UncombineError) as caught:
        scalar(**changes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "add of S gave 200, which does not fit its declared accumulator type int8"),
        (
            {"accumulator": pa.int64()},
            "extract of S gave 200, which does not fit its declared output type int8",
        ),
        (
            {"accumulator": pa.int64(), "extract": lambda s: s / 2},
            "extract of S gave 0.5, which does not fit its declared output type int8: a fraction",
        ),
        ({"add": lambda s, x: "many"}, "add of S gave 'many', which does not fit"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(uc.errors.TypeMismatch) as caught:
        uc.aggregate(pa.table({"k": ["a", "b"], "x": [1, 200]}), by="k", s=scalar(**changes)("x"))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind", "too_large"),
    [
        (200, pa.int8(), True), (-1, pa.uint8(), True), (2**64, pa.uint64(), True), (1.5, pa.int8(), False),
        ({"sum": 2**63, "n": 0}, STATE, True), ({"sum": "a", "n": 0}, STATE, False),
        ([1, 300], pa.list_(pa.int8()), True), (Decimal("100.0"), pa.decimal128(3, 1), True),
        (Decimal("1.25"), pa.decimal128(3, 1), False),
    ],
)  # fmt: skip
def test_a_number_out_of_range_is_told_from_what_is_of_another_sort(value: Any, kind: Any, too_large: bool) -> None:
    with pytest.raises(uc.errors.TypeMismatch, match="does not fit") as caught:
        scalar(create=lambda: value, accumulator=kind)
    assert isinstance(caught.value, uc.errors.OutOfRange) is too_large


def test_it_needs_an_input() -> None:
    with pytest.raises(uc.errors.InvalidArgument, match="S needs at least one input column"):
        scalar()()
    with pytest.raises(uc.errors.InvalidArgument, match="takes 2 inputs"):
        Dot("x", "y").of("x")
    with pytest.raises(uc.errors.UnknownColumn):
        uc.aggregate(pa.table({"x": [1]}), d=Dot("x", "z"))

"""Column expressions: values, text that reads back, and what they compute."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine import Expr, coalesce, col, when
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch, UnknownColumn

TABLE = pa.table(
    {
        "x": [7, -7, None, 0],
        "y": [2, 2, 2, 0],
        "f": [1.5, float("nan"), None, -2.0],
        "b": [True, False, None, True],
        "s": ["a", "b", None, "c"],
        "t": [{"u": 1}, {"u": 2}, {"u": 3}, {"u": 4}],
    }
)


def value(expr: Expr) -> list[Any]:
    return expr.evaluate(TABLE).to_pylist()


def test_arithmetic_is_pythons_with_null_for_division_by_zero() -> None:
    assert value(col("x") + 1) == [8, -6, None, 1]
    assert value(10 - col("x")) == [3, 17, None, 10]
    assert value(col("x") / col("y")) == [3.5, -3.5, None, None]
    assert value(col("x") // col("y")) == [3, -4, None, None]
    assert value(col("x") % col("y")) == [1, 1, None, None]
    assert value(-col("x")) == [-7, 7, None, 0]
    assert value(abs(col("x"))) == [7, 7, None, 0]


def test_logic_knows_three_values() -> None:
    assert value(col("b") & (col("x") > 0)) == [True, False, None, False]
    assert value(col("b") | (col("x") > 0)) == [True, False, None, True]
    assert value(~col("b")) == [False, True, None, False]
    assert value(col("s").isin(["a", "c"])) == [True, False, False, True]
    assert value(col("x").is_null()) == [False, False, True, False]
    assert value(col("f").is_nan()) == [False, True, None, False]


def test_choices_casts_and_fields() -> None:
    assert value(when(col("x") > 0, "up", "down")) == ["up", "down", "down", "down"]
    assert value(coalesce(col("x"), 99)) == [7, -7, 99, 0]
    assert value(col("x").fill_null(5)) == [7, -7, 5, 0]
    assert value(col("t").field("u") * 2) == [2, 4, 6, 8]
    assert (col("x").cast(pa.float64()) + 0.5).type(TABLE.schema) == pa.float64()


LEAVES = st.sampled_from([col("x"), col("y"), col("x") + 1])


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    numbers = st.tuples(st.sampled_from("+-*"), inner, inner | st.integers(0, 3)).map(
        lambda t: {"+": t[1] + t[2], "-": t[1] - t[2], "*": t[1] * t[2]}[t[0]]
    )
    conditions = st.tuples(inner, inner, inner).map(lambda t: when((t[0] > t[1]) & ~(t[1] == t[2]), t[0], -t[1]))
    return numbers | conditions


@given(st.recursive(LEAVES, _grow, max_leaves=8))
def test_the_text_reads_back_to_an_equal_value(expr: Expr) -> None:
    again = eval(repr(expr), {"col": col, "when": when})
    assert bool(again == expr)
    assert hash(again) == hash(expr)
    assert repr(again) == repr(expr)
    assert value(again) == value(expr)
    assert bool(pickle.loads(pickle.dumps(expr)) == expr)


def test_equality_builds_an_expression_whose_truth_is_identity_of_text() -> None:
    assert isinstance(col("x") == 1, Expr)
    assert col("x") in {col("x")}
    assert {col("x"): 1}[col("x")] == 1
    assert not bool(col("x") == col("y"))
    assert not bool(col("x") + 1 == col("x") + 1.0)
    with pytest.raises(InvalidArgument, match=r"use & \| ~|& \| ~"):
        bool(col("x") > 1)


def test_errors_name_the_expression() -> None:
    with pytest.raises(UnknownColumn, match="did you mean 'x'"):
        (col("xx") + 1).type(pa.schema({"x": pa.int64()}))
    with pytest.raises(TypeMismatch, match="string"):
        (col("s") + 1).type(TABLE.schema)
    with pytest.raises(OutOfRange, match="failed on the data"):
        (col("x") * 2**62 * 4).evaluate(TABLE)
    with pytest.raises(InvalidArgument, match="neither an expression"):
        col("x") + object()
    assert ((col("a") + col("b")) * col("a")).columns == ("a", "b")

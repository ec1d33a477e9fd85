"""Functions of `pyarrow.compute` by their names: equal to the functions themselves, or refused when they are built."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncombine as uc
from uncombine import Expr, col
from uncombine.combiners.read_repr import read_combiner
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch

ROWS = pa.table(
    {
        "s": ["Ada", "", None, "é\U0001f40d"],
        "x": [2.345, -1.0, None, 9.0],
        "n": [1, 2, None, -3],
        "ts": pa.array([0, -1, None, 10**15]).cast(pa.timestamp("us", "UTC")),
    }
)

CALLS: list[tuple[Expr, list[Any]]] = [
    (col("s").call("utf8_reverse"), ["adA", "", None, "\U0001f40dé"]),
    (col("s").call("utf8_trim", options={"characters": "Aa"}), ["d", "", None, "é\U0001f40d"]),
    (col("x").call("round", options={"ndigits": 1}), [2.3, -1.0, None, 9.0]),
    (col("x").call("round", options={"ndigits": 1, "round_mode": "up"}), [2.4, -1.0, None, 9.0]),
    (col("x").call("power", 2), [2.345**2, 1.0, None, 81.0]),
    (col("n").call("power", col("n").fill_null(0) * 0 + 2), [1, 4, None, 9]),
    (col("x").call("sqrt").is_nan(), [False, True, None, False]),
    ((col("n") > 1).call("if_else", "many", col("s")), ["Ada", "many", None, "é\U0001f40d"]),
    ((col("n") > 1).call("and", True), [False, True, None, False]),
    (col("ts").call("strftime", options={"format": "%Y-%m"}), ["1970-01", "1969-12", None, "2001-09"]),
    (col("s").call("extract_regex", options={"pattern": "(?P<first>.)"}).field("first"), ["A", None, None, "é"]),
    (col("x").call("make_struct", col("n"), options={"field_names": ["a", "b"]}).field("b"), [1, 2, None, -3]),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "expected"), CALLS, ids=repr)
def test_a_call_gives_what_the_function_gives(expr: Expr, expected: list[Any]) -> None:
    result = expr.evaluate(ROWS)
    assert result.to_pylist() == expected
    assert result.type == expr.type(ROWS.schema)
    assert expr.evaluate(ROWS.slice(0, 0)).to_pylist() == []
    combiner = uc.CollectList(expr)
    assert bool(read_combiner(repr(combiner)) == combiner)
    assert eval(repr(expr), {"col": col}) in {expr}


def test_dictionaries_and_views_count_as_their_values() -> None:
    texts = ROWS["s"].combine_chunks()
    for column in (texts.dictionary_encode(), texts.cast(pa.string_view()), texts.cast(pa.large_string())):
        result = col("s").call("utf8_reverse").evaluate(pa.table({"s": column}))
        assert result.to_pylist() == ["adA", "", None, "\U0001f40dé"]


def test_a_call_of_values_alone_is_the_same_in_each_row() -> None:
    assert uc.coalesce("abc").call("utf8_reverse").evaluate(ROWS).to_pylist() == ["cba"] * 4


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: col("x").call("lower"), "no such scalar function: did you mean 'utf8_lower'?"),
        (lambda: col("x").call("sum"), "no such scalar function: "),
        (lambda: col("x").call("cumulative_sum"), "no such scalar function: "),
        (lambda: col("x").call("cast"), "no such scalar function: "),
        (lambda: col("x").call("random"), "no such scalar function: "),
        (lambda: col("x").call("zzzzzz"), "pyarrow.compute.list_functions() has their names"),
        (lambda: col("x").call(pc.ln), "call() takes the name of a function of pyarrow.compute such as 'utf8_reverse'"),
        (lambda: col("x").call("power"), "call('power') takes 2 values with the expression, not 1"),
        (lambda: col("x").call("ln", 2), "call('ln') takes 1 values with the expression, not 2"),
        (lambda: col("x").call("round", options={"digits": 2}), "has no option 'digits': did you mean 'ndigits'?"),
        (lambda: col("x").call("round", options={"round_mode": "no"}), "has an option that does not fit"),
        (lambda: col("x").call("round", options={"ndigits": 2**80}), "has an option that does not fit"),
        (lambda: col("x").call("round", options={"ndigits": dt.date(2024, 1, 1)}), "neither a plain value nor a list"),
        (lambda: col("x").call("round", options=2), "call(options=) takes a dict"),
        (lambda: col("s").call("utf8_trim"), "needs the option 'characters'"),
        (lambda: col("s").call("ln", options={"base": 2}), "has no option 'base'"),
        (lambda: col("x").call("power", object()), "neither an expression nor a plain value"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(build: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        build()
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_wrong_type_is_an_error_before_any_row() -> None:
    wrong = col("x").call("utf8_reverse")
    for refused in (lambda: wrong.type(ROWS.schema), lambda: uc.flow(ROWS.schema, time="ts").with_columns(y=wrong)):
        with pytest.raises(TypeMismatch, match=r"^col\('x'\)\.call\('utf8_reverse'\) does not work on double: "):
            refused()
    with pytest.raises(OutOfRange, match="failed on the data"):
        col("x").call("sqrt_checked").evaluate(ROWS)


def test_functions_of_a_process_are_not_called() -> None:
    """A worker of Spark, or the next run, would not have it."""
    name = "uncombine_test_calls_twice"
    pc.register_scalar_function(
        lambda context, x: pc.multiply(x, 2), name, {"summary": "", "description": ""}, {"x": pa.int64()}, pa.int64()
    )
    assert pc.get_function(name).kind == "scalar"
    with pytest.raises(InvalidArgument, match="no such scalar function"):
        col("n").call(name)


def test_every_function_of_one_number_is_equal_to_pythons() -> None:
    """The door leads to the function of its name, and not to another one."""
    rows = pa.table({"x": [0.25, 0.5]})
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "sqrt", "floor", "ceil", "trunc", "log10", "log2"):
        found = col("x").call(name).evaluate(rows).to_pylist()
        assert found == pytest.approx([getattr(math, name)(x) for x in (0.25, 0.5)]), name


def test_options_in_another_order_are_the_same_call() -> None:
    one = col("x").call("round", options={"ndigits": 1, "round_mode": "up"})
    other = col("x").call("round", options={"round_mode": "up", "ndigits": 1})
    assert one in {other}
    assert repr(one) == repr(other)
    assert one not in {col("x").call("round", options={"ndigits": 2, "round_mode": "up"}), col("x").call("round")}


def test_a_function_that_makes_days_up_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"write x\.cast_time"):
        col("s").call("strptime", options={"format": "%d.%m.%Y", "unit": "s"})

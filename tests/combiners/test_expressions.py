"""Column expressions: values, text that reads back, and what they compute."""

from __future__ import annotations

import datetime
import math
import operator
import pickle
import zoneinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
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


INTS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 3, 2**53 + 1, -(2**63)])
FLOATS = st.floats() | st.sampled_from([0.1, 1e20, -0.0, 5.0, math.inf, -math.inf])


def python(op: str, a: Any, b: Any) -> Any:
    """The result of Python, or None if it raises for a divisor of zero."""
    if a is None or b is None or (op in ("/", "//", "%") and b == 0):
        return None
    if op == "/":
        # Each side is rounded to a float first, and floats overflow to infinity.
        a, b = float(a), float(b)
    return {"/": operator.truediv, "//": operator.floordiv, "%": operator.mod}[op](a, b)


@pytest.mark.parametrize("op", ["/", "//", "%"])
@example([(-(2**63), -1), (7, 2), (None, 1)])
@given(st.lists(st.tuples(INTS | st.none(), INTS | st.none()), min_size=1, max_size=6))
def test_division_of_integers_is_pythons(op: str, pairs: list[tuple[Any, Any]]) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in pairs], pa.int64()), "b": pa.array([b for _, b in pairs], pa.int64())}
    )
    expr = {"/": col("a") / col("b"), "//": col("a") // col("b"), "%": col("a") % col("b")}[op]
    expected = [python(op, a, b) for a, b in pairs]
    if any(x == 2**63 for x in expected) and op == "//":
        with pytest.raises(OutOfRange, match="overflow"):
            expr.evaluate(table)
    else:
        assert expr.evaluate(table).to_pylist() == expected


@pytest.mark.parametrize("op", ["//", "%"])
@given(FLOATS, FLOATS)
def test_whole_division_of_floats_is_pythons(op: str, a: float, b: float) -> None:
    table = pa.table({"a": [a], "b": [b]})
    found = (col("a") // col("b") if op == "//" else col("a") % col("b")).evaluate(table).to_pylist()[0]
    expected = python(op, a, b)
    # Python's x // y of an overflowing quotient is NaN or an infinity by version; the library gives an infinity.
    if op == "//" and expected is not None and not math.isfinite(a / b if b else 0.0):
        return
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_a_plain_value_may_stand_on_the_left() -> None:
    assert value(10 // col("x")) == [1, -2, None, None]
    assert value(10 % col("x")) == [3, -4, None, None]
    assert value(10 / col("y")) == [5.0, 5.0, 5.0, None]
    assert value(False & col("b")) == [False, False, False, False]
    assert value(True | col("b")) == [True, True, True, True]


def test_integers_and_decimals_meet_floats_as_the_nearest() -> None:
    table = pa.table({"i": [2**53 + 1, 3], "d": pa.array([Decimal("99.99"), Decimal("0.10")])})
    assert (col("i") / 1).evaluate(table).to_pylist() == [2.0**53, 3.0]
    assert (col("i") > 0.5).evaluate(table).to_pylist() == [True, True]
    assert col("i").cast(pa.float64()).evaluate(table).to_pylist() == [2.0**53, 3.0]
    assert (col("d") == 99.99).evaluate(table).to_pylist() == [True, False]
    assert (col("d") / 1).evaluate(table).to_pylist() == [99.99, 0.1]
    assert col("d").cast(pa.float64()).evaluate(table).to_pylist() == [99.99, 0.1]
    assert (col("d") + Decimal("0.01")).evaluate(table).to_pylist() == [Decimal("100.00"), Decimal("0.11")]
    assert when(col("i") > 3, col("i"), 0.5).evaluate(table).to_pylist() == [2.0**53, 0.5]
    assert coalesce(col("d"), 0.5).evaluate(table).to_pylist() == [99.99, 0.1]


def test_membership_knows_nan_zeros_nulls_and_dictionaries() -> None:
    table = pa.table({"f": [math.nan, -0.0, None, 1.0], "c": pa.array(["a", "b", None, "a"]).dictionary_encode()})
    assert col("f").isin([math.nan, 0.0]).evaluate(table).to_pylist() == [True, True, False, False]
    assert col("f").isin([None, 1.0]).evaluate(table).to_pylist() == [False, False, False, True]
    assert col("c").isin(["a"]).evaluate(table).to_pylist() == [True, False, False, True]
    assert repr(col("s").isin({"b", "a", "c"})) == "col('s').isin(['a', 'b', 'c'])"


LITERALS = [1, True, 1.0, -0.0, 0.0, math.nan, math.inf, -math.inf, "it's", b"x", None, Decimal("1.50")]
LITERALS += [datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, tzinfo=zoneinfo.ZoneInfo("UTC"))]
LITERALS += [datetime.timedelta(1), np.int64(3), np.float32(0.5), np.datetime64("2024-01-02", "us"), pa.scalar(7)]


@pytest.mark.parametrize("literal", LITERALS, ids=repr)
def test_literals_read_back_and_are_told_apart(literal: Any) -> None:
    space = {"col": col, "Decimal": Decimal, "datetime": datetime, "zoneinfo": zoneinfo}
    for expr in (col("x") == literal, col("x").isin([literal]), col("x").fill_null(literal)):
        again = eval(repr(expr), space)
        assert again in {expr}
        assert pickle.loads(pickle.dumps(expr)) in {expr}
    alike = [other for other in LITERALS if col("x").isin([other]) in {col("x").isin([literal])}]
    assert len(alike) == 1


TYPES = [pa.int8(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.date32(), pa.binary(4)]
TYPES += [pa.time64("us"), pa.duration("ms"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin")]
TYPES += [pa.decimal128(9, 2), pa.list_(pa.int8()), pa.list_(pa.int8(), 2), pa.large_list(pa.string())]
TYPES += [pa.struct([("a", pa.int8()), ("b", pa.list_(pa.date64()))]), pa.map_(pa.string(), pa.int64())]
TYPES += [pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types_read_back(kind: pa.DataType) -> None:
    expr = col("x").cast(kind)
    assert eval(repr(expr), {"col": col, "pa": pa}) in {expr}
    assert expr not in {col("x").cast(pa.int64())}


def test_types_are_found_without_data() -> None:
    schema = TABLE.schema.append(pa.field("at", pa.timestamp("us", "UTC")))
    assert (col("x") // 2).type(schema) == pa.int64()
    assert (col("x") / 2).type(schema) == pa.float64()
    assert col("s").cast("int64").type(schema) == pa.int64()
    assert when(col("b"), col("x")).type(schema) == pa.int64()
    assert coalesce(1, 2).type(schema) == pa.int64()
    for wrong in (
        col("at") > datetime.datetime(2024, 1, 1),
        col("x").isin(["a"]),
        col("s") / 2,
        col("b") / 2,
        col("b") & 1,
        when(col("x"), 1, 2),
        col("x").field("u"),
        col("x").cast(pa.list_(pa.int64())),
        col("x").cast(pa.decimal128(5, 2)) // 2,
    ):
        with pytest.raises(TypeMismatch, match=r"^\S.* does not work on "):
            wrong.type(schema)
    with pytest.raises(UnknownColumn, match="did you mean 'user'") as caught:
        col("t").field("usr").type(pa.schema({"t": pa.struct({"user": pa.int64()})}))
    assert caught.value.column == "usr"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: col("x") + 2**70, "64 bits"),
        (lambda: col("x") == 2**64, "64 bits"),
        (lambda: col("x").isin("ab"), "list of values"),
        (lambda: col("x").isin(7), r"write isin\(\[7\]\)"),
        (lambda: col("x").isin([[1]]), "neither an expression"),
        (lambda: col("x").cast(int), "Arrow type"),
        (lambda: col("x").cast("no such"), "Arrow type"),
        (lambda: col("x").field(0), "field's name"),
        (lambda: when("b", 1, 2), "condition"),
        (lambda: coalesce(), "at least one"),
        (lambda: col(3), "column's name"),
        (lambda: 0 < col("x") < 5, "& | ~"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(build: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words.replace("|", r"\|")):
        build()
    assert (col("x") == object()) is False


def test_data_that_does_not_fit_is_out_of_range() -> None:
    for wrong in (col("s").cast("int64"), col("f").cast("int64"), -col("x").fill_null(-(2**63))):
        assert wrong.type(TABLE.schema) == pa.int64()
        with pytest.raises(OutOfRange, match="failed on the data"):
            wrong.evaluate(TABLE)


UNSIGNED = pa.array([2**63, 2**64 - 1, 5, 0, None, 2**63 - 1], pa.uint64())
SIGNED = pa.array([-1, 2**63 - 1, 5, -(2**63), 1, 2**63 - 1], pa.int64())
WORDS: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _fits_where_computed(result: int | None, a: int | None, b: int | None, sides: tuple[Any, Any]) -> bool:
    """True if a result and its operands are in the range of the type in which they are computed."""
    signed = any(side.args == ("i",) if isinstance(side, Expr) else side < 2**63 for side in sides)
    least, most = (-(2**63), 2**63 - 1) if signed else (0, 2**64 - 1)
    return all(value is None or least <= value <= most for value in (result, a, b))


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("other", ["i", "u", "w", 0, 7, -3, 2**63, 2**64 - 1])
def test_integers_of_64_bits_without_a_sign_are_right_or_an_error(word: str, other: Any) -> None:
    table = pa.table({"u": UNSIGNED, "i": SIGNED, "w": UNSIGNED[::-1]})
    for turned in (False, True):
        sides = (col("u"), col(other) if isinstance(other, str) else other)
        values = (table["u"].to_pylist(), table[other].to_pylist() if isinstance(other, str) else [other] * 6)
        sides, values = (sides[::-1], values[::-1]) if turned else (sides, values)
        expr = WORDS[word](*sides)
        for row, (a, b) in enumerate(zip(*values, strict=True)):
            nothing = a is None or b is None or (word in ("//", "%") and b == 0)
            expected = None if nothing else WORDS[word](a, b)
            if word in ("==", "!=", "<", "<=", ">", ">=") or _fits_where_computed(expected, a, b, sides):
                assert expr.evaluate(table.slice(row, 1)).to_pylist() == [expected]
            else:
                with pytest.raises(OutOfRange, match=r"decimal128\(20, 0\)|overflow"):
                    expr.evaluate(table.slice(row, 1))
        if word in ("==", "!=", "<", "<=", ">", ">="):
            assert expr.evaluate(table).null_count == sum(a is None or b is None for a, b in zip(*values, strict=True))


def test_large_integers_in_lists_and_alternatives() -> None:
    table = pa.table({"u": UNSIGNED, "i": SIGNED})
    assert col("u").isin([2**63, -1, 5]).evaluate(table).to_pylist() == [True, False, True, False, False, False]
    assert col("i").isin([2**63, -1, 5]).evaluate(table).to_pylist() == [True, False, True, False, False, False]
    for expr in (coalesce(col("u"), col("i")), when(col("i") > 0, col("u"), col("i"))):
        with pytest.raises(OutOfRange, match="cast the uint64"):
            expr.evaluate(table)
    assert repr(col("u") < 2**63) == "col('u') < 9223372036854775808"


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1e400")])
def test_a_decimal_that_no_column_has_is_refused_and_no_answer_of_python(value: Decimal) -> None:
    for compare in (operator.eq, operator.ne, operator.lt):
        with pytest.raises(InvalidArgument, match="write a float"):
            compare(col("x"), value)

"""Arithmetic of times and of lengths of time against Python's datetime, timedelta and fractions."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncombine as uc
from uncombine import Expr, col
from uncombine.combiners.read_repr import read_combiner
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch

EPOCH = dt.datetime(1970, 1, 1)
UNITS = ("s", "ms", "us", "ns")
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
LEAST, MOST = -(2**63), 2**63 - 1

WHOLE = st.sampled_from([0, 1, -1, 7, -7, 2**53 + 1, -(2**53) - 1, MOST, LEAST]) | st.integers(-(10**6), 10**6)
NUMBER = st.sampled_from([0, 1, -1, 2, 3, -7, MOST, LEAST]) | st.integers(-100, 100)


def lengths(values: list[int | None], unit: str = "us") -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.duration(unit))


def outcome(expr: Expr, table: pa.Table) -> Any:
    """The whole numbers or floats of a result, or "too large"."""
    try:
        result = expr.evaluate(table)
    except OutOfRange:
        return "too large"
    assert result.type == expr.type(table.schema)
    return (result.cast(pa.int64()) if pa.types.is_temporal(result.type) else result).to_pylist()[0]


def fitting(value: int | None) -> Any:
    return value if value is None or LEAST <= value <= MOST else "too large"


def nearest(x: int, y: int) -> int:
    return round(Fraction(x, y))


OF_LENGTHS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], Any]]] = {
    "+": (operator.add, lambda x, y: fitting(x + y)),
    "-": (operator.sub, lambda x, y: fitting(x - y)),
    "/": (operator.truediv, lambda x, y: x / y if y else None),
    "//": (operator.floordiv, lambda x, y: fitting(x // y) if y else None),
    "%": (operator.mod, lambda x, y: x % y if y else None),
}


@example("//", LEAST, -1)
@example("%", LEAST, -1)
@example("/", 2**53 + 1, 3)
@given(st.sampled_from([*OF_LENGTHS]), WHOLE, WHOLE)
def test_two_lengths(op: str, x: int, y: int) -> None:
    operation, oracle = OF_LENGTHS[op]
    table = pa.table({"x": lengths([x]), "y": lengths([y])})
    assert outcome(operation(col("x"), col("y")), table) == oracle(x, y)


@pytest.mark.parametrize(("a", "b"), [*product(UNITS, UNITS)])
@pytest.mark.parametrize("op", OF_LENGTHS)
def test_two_lengths_of_different_units(op: str, a: str, b: str) -> None:
    finer = max(a, b, key=UNITS.index)
    operation, oracle = OF_LENGTHS[op]
    for x, y in product((0, 1, -7, 90), (1, 2, -3, 3_600)):
        table = pa.table({"x": lengths([x], a), "y": lengths([y], b)})
        result = operation(col("x"), col("y"))
        scaled = (x * PER_SECOND[finer] // PER_SECOND[a], y * PER_SECOND[finer] // PER_SECOND[b])
        assert outcome(result, table) == oracle(*scaled)
        kind = {"/": pa.float64(), "//": pa.int64()}.get(op, pa.duration(finer))
        assert result.type(table.schema) == kind


@example(LEAST, -1)
@example(3, 2)
@example(-3, 2)
@given(WHOLE, NUMBER)
def test_a_length_and_a_whole_number(x: int, n: int) -> None:
    table = pa.table({"x": lengths([x]), "n": [n]})
    for number in (col("n"), n):
        assert outcome(col("x") * number, table) == fitting(x * n)
        assert outcome(number * col("x"), table) == fitting(x * n)
        assert outcome(col("x") / number, table) == (fitting(nearest(x, n)) if n else None)
        assert outcome(col("x") // number, table) == (fitting(x // n) if n else None)
    assert outcome(-col("x"), table) == fitting(-x)
    assert outcome(abs(col("x")), table) == fitting(abs(x))


@given(st.integers(-(10**9), 10**9), st.integers(-(10**6), 10**6))
def test_lengths_are_those_of_python(x: int, n: int) -> None:
    table = pa.table({"x": [dt.timedelta(microseconds=x)], "n": [n]})
    plain = dt.timedelta(microseconds=x)
    found = [(col("x") * col("n")).evaluate(table), (col("x") / col("n")).evaluate(table)]
    assert [column.to_pylist()[0] for column in found] == [plain * n, plain / n if n else None]


@example(5, 0.5)
@example(7, 0.5)
@given(st.integers(-(2**53), 2**53), st.floats(-1e6, 1e6))
def test_a_length_and_a_float(x: int, f: float) -> None:
    """A product is that of floats, rounded to a whole unit, halves to the even one."""
    table = pa.table({"x": lengths([x]), "f": [f]})
    product_, quotient = float(x) * f, float(x) / f if f else None
    assert outcome(col("x") * col("f"), table) == _whole(product_)
    assert outcome(col("f") * col("x"), table) == _whole(product_)
    assert outcome(col("x") / col("f"), table) == (None if quotient is None else _whole(quotient))


def _whole(value: float) -> Any:
    return round(value) if -(2.0**63) <= value < 2.0**63 else "too large"


def test_floats_that_are_no_numbers_of_units() -> None:
    table = pa.table({"x": lengths([5]), "nan": [float("nan")], "inf": [float("inf")]})
    assert outcome(col("x") * col("nan"), table) == "too large"
    assert outcome(col("x") * col("inf"), table) == "too large"
    assert outcome(col("x") / col("inf"), table) == 0
    decimal = table.append_column("half", pa.array(["0.50"]).cast(pa.decimal128(4, 2)))
    assert outcome(col("x") * col("half"), decimal) == 2


def test_null_and_zero() -> None:
    table = pa.table({"x": lengths([1, None, 5, None]), "y": lengths([None, 2, 0, None]), "n": [None, 2, 0, None]})
    for expr in (col("x") / col("y"), col("x") // col("y"), col("x") % col("y"), col("x") / col("n")):
        assert expr.evaluate(table).to_pylist() == [None] * 4
    assert (col("x") * col("n")).evaluate(table).to_pylist() == [None, None, dt.timedelta(0), None]
    for expr in (col("x") * None, col("x") / None, col("x") // None, col("x") % None, col("x") + None, -col("y")):
        assert expr.evaluate(table).null_count >= 2
        assert expr.type(table.schema) == expr.evaluate(table).type
    chunks = pa.table({"x": pa.chunked_array([lengths([3]), lengths([]), lengths([None, 4])]), "n": [2, 2, -2]})
    assert (col("x") // col("n")).evaluate(chunks).cast(pa.int64()).to_pylist() == [1, None, -2]
    empty = pa.table({"x": pa.chunked_array([], pa.duration("s")), "n": pa.chunked_array([], pa.int64())})
    for made in (col("x") / col("n"), col("x") * 0.5, col("x") / col("x"), col("x") % col("x")):
        assert made.evaluate(empty).type == made.type(empty.schema)


TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 5), dt.datetime(2024, 2, 29), dt.datetime(1, 1, 1), None]
LENGTHS = [dt.timedelta(0), dt.timedelta(days=-1, microseconds=3), dt.timedelta(days=366), dt.timedelta(seconds=1)]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_and_lengths(zone: str | None) -> None:
    """In a zone too a day is 24 hours."""
    kind = pa.timestamp("us", zone)
    for a, b, d in product(TIMES, TIMES, LENGTHS):
        table = pa.table({"a": pa.array([a], kind), "b": pa.array([b], kind), "d": pa.array([d], pa.duration("us"))})
        difference = (col("a") - col("b")).evaluate(table)
        assert difference.to_pylist() == [None if a is None or b is None else a - b]
        assert difference.type == pa.duration("us")
        if a is not None and a.year > 1:
            for found, expected in (
                (col("a") + col("d"), a + d), (col("d") + col("a"), a + d), (col("a") - col("d"), a - d),
                (col("a") + d, a + d), (d + col("a"), a + d), (col("a") - d, a - d),
            ):  # fmt: skip
                result = found.evaluate(table)
                assert result.type == kind == found.type(table.schema)
                assert result.cast(pa.int64()).equals(
                    pa.chunked_array([pa.array([expected], pa.timestamp("us")).cast(pa.int64())])
                )


def test_days_in_a_zone_have_24_hours() -> None:
    before = pa.array([dt.datetime(2024, 3, 30, 11)]).cast(pa.timestamp("us", "Europe/Berlin"))
    after = (col("t") + dt.timedelta(days=1)).evaluate(pa.table({"t": before}))
    assert after.to_pylist()[0].isoformat() == "2024-03-31T13:00:00+02:00"


def test_units_and_zones_of_both_sides() -> None:
    for a, b in product(UNITS, UNITS):
        finer = max(a, b, key=UNITS.index)
        table = pa.table(
            {
                "t": pa.array([90]).cast(pa.timestamp(a, "UTC")),
                "u": pa.array([PER_SECOND[b]]).cast(pa.timestamp(b, "Europe/Berlin")),
                "d": lengths([PER_SECOND[b]], b),
            }
        )
        here = 90 * PER_SECOND[finer] // PER_SECOND[a]
        assert outcome(col("t") - col("u"), table) == here - PER_SECOND[finer]
        assert outcome(col("t") + col("d"), table) == here + PER_SECOND[finer]
        assert (col("t") + col("d")).type(table.schema) == pa.timestamp(finer, "UTC")
    days = pa.table({"a": [dt.date(2024, 3, 1)], "b": [dt.date(2024, 2, 28)]})
    assert (col("a") - col("b")).evaluate(days).to_pylist() == [dt.timedelta(days=2)]
    assert (col("a") + dt.timedelta(hours=1)).evaluate(days).to_pylist() == [dt.datetime(2024, 3, 1, 1)]


def test_times_at_the_ends_of_their_type_are_an_error() -> None:
    table = pa.table({"t": pa.array([MOST]).cast(pa.timestamp("us", "UTC")), "d": lengths([1])})
    for expr in (col("t") + col("d"), col("d") + col("t"), (col("t") - col("d") - col("d") * LEAST)):
        assert outcome(expr, table) == "too large"
    slow = pa.table({"t": pa.array([2**50]).cast(pa.timestamp("s")), "d": lengths([1])})
    assert outcome(col("t") + col("d"), slow) == "too large"


SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "naive": pa.timestamp("us"), "gap": pa.duration("us"), "n": pa.int64()}
    | {"s": pa.string(), "b": pa.bool_(), "f": pa.float64()}
)


@pytest.mark.parametrize(
    "wrong",
    [
        col("ts") - col("naive"),
        col("ts") + col("ts"),
        col("ts") + col("n"),
        col("ts") * 2,
        col("gap") * col("gap"),
        col("gap") * col("s"),
        col("gap") * col("b"),
        col("gap") / col("b"),
        col("n") / col("gap"),
        col("n") // col("gap"),
        col("n") % col("gap"),
        col("gap") % 2,
        col("gap") // 2.5,
        col("gap") / col("ts"),
        -col("ts"),
        col("gap") + col("s"),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_an_error_before_any_row(wrong: Expr) -> None:
    for refused in (lambda: wrong.type(SCHEMA), lambda: uc.flow(SCHEMA).with_columns(x=wrong)):
        with pytest.raises(TypeMismatch, match=r"^\S.* does not work on ") as error:
            refused()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "length", [uc.span("5 seconds"), pd.Timedelta("5 s"), np.timedelta64(5, "s"), dt.timedelta(seconds=5)], ids=repr
)
def test_a_length_is_written_in_many_ways_and_prints_in_one(length: Any) -> None:
    expr = col("ts") - length
    assert repr(expr) == "col('ts') - datetime.timedelta(seconds=5)"
    combiner = uc.Max(expr)
    assert bool(read_combiner(repr(combiner)) == combiner)
    later = pa.table({"ts": pa.array([7_000_000]).cast(pa.timestamp("us"))})
    assert expr.evaluate(later).cast(pa.int64()).to_pylist() == [2_000_000]


def test_literals_of_pandas_are_those_of_python() -> None:
    assert repr(col("t") > pd.Timestamp("2024-01-02")) == "col('t') > datetime.datetime(2024, 1, 2, 0, 0)"
    zoned = col("t") > pd.Timestamp("2024-01-02", tz="Europe/Berlin")
    assert repr(zoned).endswith("tzinfo=zoneinfo.ZoneInfo(key='Europe/Berlin'))")
    assert bool(read_combiner(repr(uc.CountIf(zoned))) == uc.CountIf(zoned))
    with pytest.raises(InvalidArgument, match="NaT is neither an expression nor a plain value"):
        col("t") - pd.NaT
    for fine in (pd.Timedelta(5, "ns"), np.timedelta64(5, "ns"), pd.Timestamp(5), np.datetime64(5, "ns")):
        with pytest.raises(InvalidArgument, match="has nanoseconds"):
            col("t") - fine
    assert col("t").isin([np.datetime64("2024-01-01", "ns")]) in {col("t").isin([dt.datetime(2024, 1, 1)])}

"""Casts with `strict=False`: each value is what a strict cast of it alone gives, and null where that fails."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine import col
from uncombine.combiners.read_repr import read_combiner
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch

TEXTS = ["2.5", "7", "-1", "many", "", "1,5", "1e400", "nan", "2024-05-01", "2024-02-31", "999999", None]
VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "texts": (TEXTS, pa.string()),
    "large texts": (TEXTS, pa.large_string()),
    "floats": ([2.5, 7.0, float("nan"), 1e300, -1.0, 300.0, None], pa.float64()),
    "whole numbers": ([0, 7, 300, -1, 2**55, None], pa.int64()),
    "decimals": ([Decimal("2.50"), Decimal("7.00"), Decimal("999.99"), None], pa.decimal128(6, 2)),
}
KINDS = [
    pa.int8(),
    pa.int64(),
    pa.float64(),
    pa.float32(),
    pa.decimal128(38, 1),
    pa.date32(),
    pa.timestamp("us", "UTC"),
]


def alone(value: Any, kind: pa.DataType, to: pa.DataType) -> Any:
    try:
        return col("x").cast(to).evaluate(pa.table({"x": pa.array([value], kind)})).to_pylist()[0]
    except OutOfRange:
        return None


@pytest.mark.parametrize("to", KINDS, ids=str)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", seeds(2))
def test_a_value_that_does_not_fit_is_null(name: str, to: pa.DataType, seed: int) -> None:
    r, (values, kind) = random.Random(seed), VALUES[name]
    drawn = r.choices(values, k=50)
    rows = pa.table({"x": pa.chunked_array([pa.array(drawn[:20], kind), pa.array(drawn[20:], kind)])})
    expr = col("x").cast(to, strict=False)
    try:
        assert expr.type(rows.schema) == to
    except TypeMismatch:
        with pytest.raises(TypeMismatch):
            col("x").cast(to).type(rows.schema)
        return
    expected = [alone(value, kind, to) for value in drawn]
    assert list(map(str, expr.evaluate(rows).to_pylist())) == list(map(str, expected))


def test_types_without_a_cast_between_them_are_an_error() -> None:
    with pytest.raises(TypeMismatch, match="Precision is not great enough"):
        col("x").cast("decimal128(5,2)", strict=False).evaluate(pa.table({"x": [5]}))
    with pytest.raises(InvalidArgument, match=r"cast\(strict=\) must be True or False"):
        col("x").cast("int64", strict="no")  # type: ignore[arg-type]


def test_the_error_of_a_strict_cast_says_what_to_write() -> None:
    floats, texts = pa.table({"x": [22.8]}), pa.table({"x": ["many"]})
    with pytest.raises(
        OutOfRange, match=r"write x\.call\('round'\)\.cast\(\.\.\.\), or x\.cast\(\.\.\., strict=False\)"
    ):
        col("x").cast("int64").evaluate(floats)
    assert col("x").call("round").cast("int64").evaluate(floats).to_pylist() == [23]
    with pytest.raises(OutOfRange, match=r": write x\.cast\(\.\.\., strict=False\), which gives null"):
        col("x").cast("float64").evaluate(texts)


def test_it_reads_back_and_runs_in_a_flow() -> None:
    total = uc.Sum(col("x").cast("float64", strict=False))
    assert bool(read_combiner(repr(total)) == total)
    rows = [{"ts": 0, "x": "2.5"}, {"ts": 1, "x": "many"}, {"ts": 2, "x": "4"}]
    assert uc.flow(rows).window("1 minute").combine(total=total).run()["total"].to_pylist() == [6.5]

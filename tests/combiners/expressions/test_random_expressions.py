"""Random expressions are values: they print, read back, and have the same type and values over rows in any layout."""

from __future__ import annotations

import datetime
import pickle
import random

import pyarrow as pa
import pytest
from random_expressions import SCHEMA, expression, rows
from seeds import seeds

import uncombine as uc
from uncombine import Expr
from uncombine.combiners.read_repr import EXPRESSIONS, read_combiner
from uncombine.errors import OutOfRange

NAMES = {**EXPRESSIONS, "datetime": datetime, "pa": pa}


def drawn(seed: int) -> tuple[random.Random, list[Expr]]:
    rng = random.Random(seed)
    return rng, [expression(rng) for _ in range(20)]


def values(expr: Expr, table: pa.Table) -> object:
    """The values, or that one is too large; their type is known without rows."""
    try:
        result = expr.evaluate(table)
    except OutOfRange:
        return "too large"
    assert result.type == expr.type(table.schema)
    return plain(result)


def plain(column: pa.ChunkedArray | pa.Array) -> list[object]:
    """The values as Python has them; times as whole numbers, because those before the year 1 are none of Python's."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    values: list[object] = column.to_pylist()
    return values


@pytest.mark.parametrize("seed", seeds(40))
def test_an_expression_reads_back(seed: int) -> None:
    for expr in drawn(seed)[1]:
        again = eval(repr(expr), NAMES)
        assert again in {expr}
        assert repr(again) == repr(expr)
        assert pickle.loads(pickle.dumps(expr)) in {expr}
        combiner = uc.Count(expr).where(expr.is_null())
        assert bool(read_combiner(repr(combiner)) == combiner)
        assert set(expr.columns) <= set(SCHEMA.names)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(40))
def test_rows_in_another_layout_have_the_same_values(seed: int) -> None:
    rng, expressions = drawn(seed)
    table = rows(rng, 30)
    texts = pa.table(
        {
            name: c.dictionary_encode() if pa.types.is_string(c.type) else c
            for name, c in zip(table.column_names, table.columns, strict=True)
        }
    )
    chunks = pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])
    others = [texts, chunks, table.cast(pa.schema([f.with_type(_large(f.type)) for f in SCHEMA]))]
    for expr in expressions:
        expected = values(expr, table)
        assert [values(expr, other) for other in others] == [expected] * 3, expr
        if isinstance(expected, list):
            assert [v for i in range(30) for v in plain(expr.evaluate(table.slice(i, 1)))] == expected, expr
        assert values(expr, table.slice(0, 0)) == []
        assert expr.type(pa.schema([f.with_type(texts.schema.field(f.name).type) for f in SCHEMA])) is not None


def _large(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(kind) else kind


@pytest.mark.parametrize("seed", seeds(20))
def test_null_in_every_column_is_null_or_a_value(seed: int) -> None:
    """No operation fails on nulls, or its type would not be known without rows."""
    for expr in drawn(seed)[1]:
        nulls = pa.table([pa.nulls(3, kind) for kind in SCHEMA.types], schema=SCHEMA)
        assert len(expr.evaluate(nulls)) == 3


@pytest.mark.parametrize("seed", seeds(10))
def test_a_flow_has_the_values_of_its_expressions(seed: int) -> None:
    rng, expressions = drawn(seed)
    table = rows(rng, 20).append_column("when", pa.array([0] * 20).cast(pa.timestamp("us", "UTC")))
    columns = {f"c{i}": expr for i, expr in enumerate(expressions) if values(expr, table) != "too large"}
    made = uc.flow(table, time="when").with_columns(**columns).run()
    for name, expr in columns.items():
        assert plain(made[name]) == values(expr, table), expr

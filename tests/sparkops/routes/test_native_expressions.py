"""Methods of texts and times that Spark itself computes have the values that Arrow computes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from random_expressions import COLUMNS, expression, rows
from seeds import seeds

import uncombine as uc
from uncombine import Expr, col, concat
from uncombine.errors import UncombineError

pytestmark = pytest.mark.spark

TEXT, TS, GAP, DAY = col("text"), col("ts"), col("gap"), col("day")

NATIVE: list[Expr] = [
    TEXT.str.contains("a", literal=True),
    TEXT.str.contains("", literal=True),
    TEXT.str.starts_with("a"),
    TEXT.str.ends_with("\U0001f600b"),
    TEXT.str.replace_all(",", "\\$1", literal=True),
    TEXT.str.replace_all("a", "aa", literal=True),
    TEXT.str.strip_chars("a, \U0001f600"),
    TEXT.str.strip_chars(""),
    TEXT.str.strip_chars_start(" a"),
    TEXT.str.strip_chars_end(",b"),
    TEXT.str.slice(0),
    TEXT.str.slice(1),
    TEXT.str.slice(1, 1),
    TEXT.str.slice(0, 0),
    TEXT.str.slice(2**31 - 2),
    TEXT.str.slice(1, 2**31 - 2),
    TEXT.str.split_part(",", 0),
    TEXT.str.split_part(",", 2),
    TEXT.str.split_part(".", 1),
    TEXT.str.split_part("\\", 1),
    TEXT.str.len_chars(),
    TEXT.str.len_bytes(),
    concat(TEXT),
    concat(TEXT, "-", col("word")),
    concat(TEXT, col("word"), TEXT, separator="/"),
    TEXT.str.slice(1).str.replace_all("b", "c", literal=True).str.len_chars() > 1,
    *(getattr(TS.dt, part)() for part in ("year", "quarter", "month", "week", "day", "ordinal_day", "weekday")),
    *(getattr(TS.dt, part)() for part in ("hour", "minute", "second", "microsecond", "date")),
    *(
        getattr(DAY.dt, part)()
        for part in ("year", "quarter", "month", "week", "day", "ordinal_day", "weekday", "date")
    ),
    *(TS.dt.truncate(every) for every in ("3 us", "15 minutes", "1 hour", "7 hours", "1 day", "5 days", "1 week")),
    *(TS.dt.truncate(every) for every in ("2 weeks", "1 month", "1 quarter", "1 year")),
    *(DAY.dt.truncate(every) for every in ("1 week", "1 month", "1 quarter", "1 year")),
    TS - col("at"),
    TS + GAP,
    GAP + TS,
    TS - GAP,
    TS + timedelta(days=1),
    TS - timedelta(days=-1, microseconds=1),
    GAP + GAP,
    GAP - timedelta(microseconds=1),
    GAP * col("small"),
    col("n") * GAP,
    GAP * 3,
    -GAP,
    abs(GAP),
    timedelta(0) < GAP,
    (TS - TS.dt.truncate("1 day")) < timedelta(hours=6),
    TS.dt.date() == DAY,
    TS.dt.hour().isin([0, 13]),
]

OTHERS: list[Expr] = [
    TEXT.str.to_lowercase(),
    TEXT.str.to_uppercase(),
    TEXT.str.strip_chars(),
    TEXT.str.contains("a"),
    TEXT.str.replace("a", "b", literal=True),
    TEXT.str.replace_all("a", "b"),
    TEXT.str.slice(-2),
    TEXT.str.split_part(",", -1),
    TEXT.str.split_part("\\E", 0),
    TEXT.call("utf8_reverse"),
    TS.dt.truncate("2 months"),
    TS.dt.convert_time_zone("Europe/Berlin").dt.hour(),
    TS.dt.replace_time_zone("Europe/Berlin"),
    TEXT.cast("float64", strict=False),
    DAY.dt.truncate("2 weeks"),
    DAY + timedelta(1),
    DAY - DAY,
    GAP / 2,
    GAP / timedelta(1),
    GAP.dt.total_seconds(),
    GAP * 0.5,
]


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session whose clocks are those of a zone, which must make no difference."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield spark
    spark.conf.set(name, before or "UTC")


def started(spark: SparkSession, table: pa.Table) -> Any:
    return uc.flow(spark.createDataFrame(table), time="ts", tuning=uc.Tuning(files="never"))


def is_native(flow: Any, expr: Expr) -> bool:
    return "Spark itself" in flow.with_columns(made=expr).explain()


def require_equal(flow: Any, table: pa.Table, expressions: list[Expr]) -> None:
    """One query for all of them, with a number by which its rows are put in order."""
    made = flow.with_columns(**{f"c{i}": expr for i, expr in enumerate(expressions)})
    assert "Spark itself" in made.explain()
    found = made.df.toArrow().sort_by("row")
    for i, expr in enumerate(expressions):
        wanted = expr.evaluate(table)
        assert plain(found[f"c{i}"].cast(wanted.type)) == plain(wanted), expr


def plain(column: Any) -> list[Any]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def numbered(seed: int) -> pa.Table:
    """Each value of each column, and random rows after them."""
    most = max(len(values) for _, values in COLUMNS.values())
    every = [[values[i % len(values)] for i in range(most)] for _, values in COLUMNS.values()]
    drawn = rows(random.Random(seed), 60)
    table = pa.concat_tables([pa.table(every, schema=drawn.schema), drawn])
    return table.append_column("row", pa.array(range(table.num_rows)))


def test_what_spark_computes_itself_is_what_arrow_computes(session: SparkSession) -> None:
    table = numbered(0)
    flow = started(session, table)
    assert [expr for expr in NATIVE if not is_native(flow, expr)] == []
    require_equal(flow, table, NATIVE)


def test_what_differs_in_spark_stays_with_arrow(spark: SparkSession) -> None:
    flow = started(spark, numbered(0))
    assert [expr for expr in OTHERS if is_native(flow, expr)] == []


def test_conditions_keep_the_same_rows(session: SparkSession) -> None:
    table = numbered(1)
    flow = started(session, table)
    for predicate in (
        TEXT.str.contains(",", literal=True) & (TS.dt.hour() > 5),
        TEXT.str.len_chars() > 2,
        (TS - col("at") > timedelta(0)) | GAP.is_null(),
        concat(TEXT, col("word")) == "aAda",
    ):
        kept = flow.where(predicate)
        assert "Spark itself" in kept.explain()
        found = sorted(kept.df.toArrow()["row"].to_pylist())
        assert found == table.filter(predicate.evaluate(table).fill_null(False))["row"].to_pylist(), predicate


@pytest.mark.parametrize("seed", seeds(8))
def test_random_expressions_are_equal(seed: int, session: SparkSession) -> None:
    rng = random.Random(seed)
    table = numbered(seed)
    flow = started(session, table)
    native: list[Expr] = []
    for _ in range(60):
        expr = expression(rng)
        try:
            expr.evaluate(table)
        except UncombineError:
            continue
        if expr.columns and is_native(flow, expr):
            native.append(expr)
    assert len(native) >= 10
    require_equal(flow, table, native)


def test_arithmetic_of_times_is_arrows_where_spark_does_not_check_its_range(spark: SparkSession) -> None:
    flow = started(spark, numbered(0))
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        assert not is_native(flow, TS - col("at"))
        assert is_native(flow, TS.dt.hour())
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before or "true")


def test_combiners_of_texts_and_times_are_equal(spark: SparkSession) -> None:
    """A grouping whose combiners have such inputs runs in tasks, which read the columns of the expressions."""
    table = numbered(2)
    combiners = {
        "length": uc.Sum(TEXT.str.len_chars()),
        "words": uc.CollectSet(concat(TEXT, "-", col("word").str.to_uppercase())),
        "late": uc.CountIf(TS.dt.hour() >= 12),
        "longest": uc.Max(TS - col("at")),
    }
    grouped = started(spark, table).window(uc.Global()).combine(**combiners)
    found = grouped.df.toArrow().to_pylist()[0]
    kept = table.filter(table["ts"].is_valid())
    wanted = uc.aggregate(kept, **combiners).to_pylist()[0]
    for name in combiners:
        same = sorted if name == "words" else lambda value: value
        assert same(found[name]) == same(wanted[name]), name

"""Grouped-aggregate UDFs: every combiner against the same rows aggregated in memory, and against Spark's own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import every
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.sparkops.sql_types import spark_type
from uncombine.sparkops.stored.column_expressions import EXPRESSIONS

pytestmark = pytest.mark.skipif(not EXPRESSIONS, reason="expressions of accumulators need Spark 4.1")


def calls(combiners: dict[str, uc.Combiner], table: pa.Table, df: Any) -> list[Any]:
    """A call of each function on its columns; those that read none get some column."""
    return [
        udf(combiner, df)(*(combiner.bind(table.schema).columns or ["part"])).alias(name)
        for name, combiner in combiners.items()
    ]


def udf(combiner: uc.Combiner, schema: Any = None) -> Callable[..., Any]:
    return uc.Accumulator(combiner, schema=schema).udf


@pytest.mark.daily
def test_every_combiner(spark: SparkSession) -> None:
    table = every.rows(300, seed=1)
    df = every.frame(spark, table)
    found = df.groupBy("g").agg(*calls(every.EVERY, table, df))
    for name, combiner in every.EVERY.items():
        assert found.schema[name].dataType == spark_type(combiner.bind(table.schema).output, name)
    assert every.differing(every.EVERY, found.toArrow(), uc.aggregate(table, by="g", **every.EVERY), table) == []


@pytest.mark.parametrize(("count", "nulls"), [(1, 0.0), (1, 1.0), (0, 0.0)])
def test_few_rows(spark: SparkSession, count: int, nulls: float) -> None:
    table = every.rows(count, seed=2, nulls=nulls)
    df = every.frame(spark, table)
    found = df.groupBy("g").agg(*calls(every.ONE_OF_EACH, table, df)).toArrow()
    expected = uc.aggregate(table, by="g", **every.ONE_OF_EACH)
    assert found.num_rows == count
    assert every.differing(every.ONE_OF_EACH, found, expected, table) == []


def test_integers_beside_nulls_are_not_rounded(spark: SparkSession) -> None:
    df = spark.createDataFrame([(2**53 + 1,), (None,)], "x long")
    assert df.agg(udf(uc.Max("x"), df)("x")).first()[0] == 2**53 + 1


def test_windows(spark: SparkSession) -> None:
    table = every.rows(60, seed=5).append_column("at", pa.array(range(60)))
    df = every.frame(spark, table)
    combiners = {"top": uc.TopK("x_long", 2), "sum": uc.Sum("x_money"), "mode": uc.Mode("x_text")}
    whole = Window.partitionBy("g")
    frame = Window.partitionBy("g").orderBy("at").rowsBetween(-2, 1)
    running = Window.partitionBy("g").orderBy("at")
    columns = [
        udf(combiner, df)(*combiner.bind(table.schema).columns).over(window).alias(f"{name}_{of}")
        for name, combiner in combiners.items()
        for of, window in (("whole", whole), ("frame", frame), ("running", running))
    ]
    found = {row["at"]: row for row in df.select("at", "g", *columns).collect()}
    for key in set(table["g"].to_pylist()):
        mine = table.filter(pc.equal(table["g"], key) if key else pc.is_null(table["g"]))
        for i, at in enumerate(mine["at"].to_pylist()):
            frames = {"whole": mine, "frame": mine[max(0, i - 2) : i + 2], "running": mine[: i + 1]}
            for of, rows in frames.items():
                (expected,) = uc.aggregate(rows, **combiners).to_pylist()
                assert {name: found[at][f"{name}_{of}"] for name in combiners} == expected


def test_spark_lets_no_udf_stand_beside_its_own_aggregates(spark: SparkSession) -> None:
    """The page on batch says so, and names ways out; the day Spark allows it, the page is to be changed."""
    df = spark.createDataFrame([("a", 1), ("a", 3), ("b", 5)], "k string, x long")
    middle, total = uc.Accumulator(uc.Median("x"), schema=df), udf(uc.Sum("x"), df)
    ours = middle.udf
    middle.register(spark, "beside")
    df.createOrReplaceTempView("udf_beside")
    grouped = df.groupBy("k")
    for mixed in (
        grouped.agg(ours("x"), F.sum("x")),
        grouped.agg(ours("x"), F.count("*")),
        grouped.agg(middle.add("x"), F.first("x")),
        spark.sql("SELECT beside(x), count(*) FROM udf_beside GROUP BY k"),
    ):
        with pytest.raises(Exception, match="INVALID_PANDAS_UDF_PLACEMENT"):
            mixed.collect()
    expected = [("a", 2.0, 4), ("b", 5.0, 5)]
    by_key = Window.partitionBy("k")
    for way in (
        grouped.agg(ours("x"), total("x")),
        uc.sparkops.combine_per_key(df, "k", middle=uc.Median("x"), total=uc.Sum("x")),
        df.select("k", ours("x").over(by_key), F.sum("x").over(by_key)).distinct(),
    ):
        assert sorted(map(tuple, way.collect())) == expected


def test_structs_and_maps_in_windows(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 1, 1.5), ("a", 2, None), ("b", 3, 2.5)], "k string, at long, x double")
    both = udf(uc.Struct(best=uc.Max("x"), n=uc.Count("x")), df)
    each = udf(uc.PerKey(uc.Sum("at"), by="k"), df)
    frame = Window.orderBy("at").rowsBetween(-1, 0)
    found = df.select("at", both("x").over(frame).alias("both"), each("k", "at").over(frame).alias("each"))
    assert [(tuple(row["both"]), row["each"]) for row in found.orderBy("at").collect()] == [
        ((1.5, 1), {"a": 1}),
        ((1.5, 1), {"a": 3}),
        ((2.5, 1), {"a": 2, "b": 3}),
    ]


def test_sql(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 3), ("a", 9), ("b", None)], "k string, x long")
    df.createOrReplaceTempView("udf_rows")
    uc.Accumulator(uc.TopK("x", 2), schema=df).register(spark, "two_best")
    uc.Accumulator(uc.Count()).register(spark, "how_many")
    found = spark.sql("SELECT k, two_best(x) AS best, how_many(x) AS n FROM udf_rows GROUP BY k ORDER BY k").collect()
    assert [tuple(row) for row in found] == [("a", [9, 3], 2), ("b", [], 1)]
    with pytest.raises(uc.errors.InvalidArgument, match="register takes a name for SQL"):
        uc.Accumulator(uc.Count()).register(spark, "two best")


NATIVE: dict[str, tuple[uc.Combiner, str]] = {
    "sum": (uc.Sum("x_long"), "sum(x_long)"),
    "sum_money": (uc.Sum("x_money"), "CAST(sum(x_money) AS decimal(38, 2))"),
    "mean_money": (uc.Mean("x_money"), "avg(x_money)"),
    "count": (uc.Count("x_long"), "count(x_long)"),
    "rows": (uc.Count(), "count(*)"),
    "count_if": (uc.CountIf("x_flag"), "count_if(x_flag)"),
    "min": (uc.Min("x_double"), "min(x_double)"),
    "max": (uc.Max("x_double"), "max(x_double)"),
    "max_text": (uc.Max("x_text"), "max(x_text)"),
    "every": (uc.BoolAnd("x_flag"), "bool_and(x_flag)"),
    "some": (uc.BoolOr("x_flag"), "bool_or(x_flag)"),
    "bit_xor": (uc.BitXor("x_long"), "bit_xor(x_long)"),
    "distinct": (uc.CountDistinct("x_double"), "count(DISTINCT x_double)"),
    "distinct_pairs": (uc.CountDistinct(["x_text", "y_long"]), "count(DISTINCT x_text, y_long)"),
    "quantile": (uc.Quantile("x_tiny", 0.3), "percentile(x_tiny, 0.3)"),
    "median": (uc.Median("x_tiny"), "median(x_tiny)"),
    "set": (uc.CollectSet("x_text"), "sort_array(collect_set(x_text))"),
    "list": (uc.CollectList("x_long"), "sort_array(collect_list(x_long))"),
    "rows_of_two": (uc.CollectList(["x_text", "y_long"]), "sort_array(collect_list(struct(x_text, y_long)))"),
    "mean": (uc.Mean("x_tiny"), "avg(x_tiny)"),
    "var_samp": (uc.Variance("x_tiny"), "var_samp(x_tiny)"),
    "var_pop": (uc.Variance("x_tiny", population=True), "var_pop(x_tiny)"),
    "stddev": (uc.StdDev("x_tiny"), "stddev(x_tiny)"),
    "covar_samp": (uc.Covariance("x_tiny", "y_tiny"), "covar_samp(x_tiny, y_tiny)"),
    "corr": (uc.Correlation("x_tiny", "y_tiny"), "corr(x_tiny, y_tiny)"),
    "skewness": (uc.Skewness("x_tiny"), "skewness(x_tiny)"),
    "kurtosis": (uc.Kurtosis("x_tiny"), "kurtosis(x_tiny)"),
}
ROUNDED = {"mean", "var_samp", "var_pop", "stddev", "covar_samp", "corr", "skewness", "kurtosis", "quantile", "median"}
"""A result in floats, which each side adds up in another order."""


def test_as_spark_says(spark: SparkSession) -> None:
    table = every.rows(400, seed=6)
    df = every.frame(spark, table)
    ours = calls({name: ours for name, (ours, _) in NATIVE.items()}, table, df)
    found = {row["g"]: row for row in df.groupBy("g").agg(*ours).collect()}
    native = [F.expr(theirs).alias(name) for name, (_, theirs) in NATIVE.items()]
    for row in df.groupBy("g").agg(*native).collect():
        for name in NATIVE:
            got, wanted = found[row["g"]][name], row[name]
            if name in ROUNDED and got is not None:
                assert math.isclose(got, wanted, rel_tol=1e-12), name
            elif isinstance(got, float) and math.isnan(got):
                assert math.isnan(wanted), name
            else:
                assert got == wanted, name


def test_times_in_another_zone(spark: SparkSession) -> None:
    table = every.rows(100, seed=7)
    combiners = {
        "t": uc.Max("x_time"),
        "l": uc.Min("x_local"),
        "all": uc.CollectSet("x_time"),
        "day": uc.Mode("x_date"),
    }
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        df = every.frame(spark, table)
        found = df.groupBy("g").agg(*calls(combiners, table, df)).toArrow()
        assert every.differing(combiners, found, uc.aggregate(table, by="g", **combiners), table) == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_the_users_line_is_shown(spark: SparkSession) -> None:
    def careless(results: pa.Array) -> pa.Array:
        return pa.array([12 // value for value in results.to_pylist()], pa.int64())  # the user's line

    df = spark.createDataFrame([(3,), (-3,)], "x long")
    with pytest.raises(Exception, match="ZeroDivisionError") as caught:
        df.agg(udf(uc.Sum("x").map(careless), df)("x")).collect()
    told = str(caught.value)
    assert "12 // value for value" in told
    assert re.search(r'test_udfs\.py", line \d+, in careless', told)


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: udf(uc.Sum("score")),
        uc.errors.InvalidArgument,
        r"Accumulator\(Sum\('score'\)\) needs the type of 'score'.*df\.schema, or text such as schema='score bigint'",
    ),
    (
        lambda: udf(uc.Sum("scores"), pa.schema({"score": pa.int64()})),
        uc.errors.UnknownColumn,
        r"Sum\('scores'\) needs column 'scores'.*did you mean 'score'",
    ),
    (
        lambda: udf(uc.Sum("s"), pa.schema({"s": pa.string()})),
        uc.errors.TypeMismatch,
        "takes numbers, but 's' is string",
    ),
    (
        lambda: udf(uc.Sum("x"), pa.schema({"x": pa.uint64()})),
        uc.errors.TypeMismatch,
        "column 'x' is uint64 in Arrow, but Spark has no such type: cast it",
    ),
    (lambda: udf("Sum", "s long"), uc.errors.InvalidArgument, "takes a combiner such as"),  # type: ignore[arg-type]
    (lambda: udf(uc.Sum("s"), {"s": int}), uc.errors.InvalidArgument, r"schema= takes df\.schema or text"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "kind", "says"), WRONG)
def test_wrong_use_is_found_when_it_is_made(wrong: Callable[[], Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        wrong()


def test_a_schema_in_text(spark: SparkSession) -> None:
    df = spark.createDataFrame([(Decimal("1.50"),), (Decimal("2.25"),)], "x decimal(10, 2)")
    assert df.agg(udf(uc.Sum("x"), "x decimal(10, 2)")("x")).first()[0] == Decimal("3.75")
    with pytest.raises(uc.errors.InvalidArgument, match="schema= takes text such as"):
        udf(uc.Sum("x"), "x of some type")
    with pytest.raises(uc.errors.TypeMismatch, match="column 'x' is interval year"):
        udf(uc.Count("x"), "x interval year")


def test_too_few_columns(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 3)], "k string, x long")
    with pytest.raises(Exception, match=r"ArgMax\('k', 'x'.* takes 'x', 'k', in this order, but was given 1 col"):
        df.agg(udf(uc.ArgMax("k", "x"), df)("x")).collect()


def test_columns_by_name(spark: SparkSession) -> None:
    df = spark.createDataFrame([("p", 3), ("q", 9), ("r", 5)], "a string, b long")
    best = udf(uc.ArgMax("k", "x"), "k string, x long")
    assert df.agg(best(k="a", x="b")).first()[0] == "q"
    with pytest.raises(
        Exception, match="takes the columns 'x', 'k', all by name or all by place, but was given 'k' by name"
    ):
        df.agg(best("b", k="a")).collect()

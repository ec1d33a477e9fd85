"""Spark's own aggregation gives the same table as the tasks, to the last bit and type."""

from __future__ import annotations

import random
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from finals import FIRST, LAST
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from zones import in_utc, zone

import uncombine as uc
from uncombine.panes.flow import Flow

TYPES = {
    "b": "tinyint",
    "s": "smallint",
    "i": "int",
    "l": "bigint",
    "day": "date",
    "at": "timestamp",
    "text": "string",
    "yes": "boolean",
}
NATIVE: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    **{f"{kind.__name__}.{name}": kind(name) for kind in (uc.Count, uc.Min, uc.Max) for name in TYPES},
    **{f"sum_{name}": uc.Sum(name) for name in "bsil"},
    "all": uc.BoolAnd("yes"),
    "any": uc.BoolOr("yes"),
}
ALIGNED = (
    uc.Global(),
    uc.Fixed("1 minute"),
    uc.Fixed("7 seconds", "-3 seconds"),
    uc.Fixed("1 day", "6 hours"),
    uc.Fixed("30 days"),
    uc.Sliding("1 minute", "20 seconds"),
    uc.Sliding("50 seconds", "20 seconds", "7 seconds"),
    uc.Sliding("50 seconds", "20 seconds", "-33 seconds"),
)


def typed(spark: SparkSession, count: int, seed: int) -> DataFrame:
    """Rows of all the types, of which each may be null, with times before and after 1970."""
    r = random.Random(seed)
    given = []
    for _ in range(count):
        n = r.choice([None, 0, 1, -1, 127, -128])
        at = r.randrange(-3 * 10**8, 3 * 10**8) + r.choice([0, 10**15, 1_710_054_000 * 10**6])
        # The first and the last instant that can be shown, and those beside them, which are bad rows.
        far = [FIRST, FIRST - 1, FIRST + 10**7, LAST, LAST + 1, LAST - 10**7, None]
        given.append((r.choice(far) if r.random() < 0.2 else at, r.choice(["a", "b", None]), n))
    df = spark.createDataFrame(given, "micros bigint, k string, n int").repartition(3)
    return df.select(
        F.timestamp_micros("micros").alias("ts"),
        "k",
        *(F.col("n").cast(TYPES[name]).alias(name) for name in "bsil"),
        F.date_add(F.lit("1969-12-30").cast("date"), F.col("n")).alias("day"),
        F.timestamp_micros(F.col("n").cast("bigint") * 10**14).alias("at"),
        F.col("n").cast("string").alias("text"),
        (F.col("n") > 0).alias("yes"),
    )


def both(flow: Flow, window: uc.Window, by: Any, combiners: dict[str, uc.Combiner], **options: Any) -> list[DataFrame]:
    """The panes by Spark's own aggregation and by the tasks."""
    ways = []
    tasks = flow.where(lambda table: pa.array([True] * table.num_rows, pa.bool_()))
    for way, start in (("Spark's own", flow), ("merged in Python", tasks)):
        made = start.window(window, **options).combine(by=by, **combiners)
        assert way in made.explain().splitlines()[0]
        ways.append(made.df)
    return ways


def test_both_ways_give_one_table(spark: SparkSession) -> None:
    """In a session of another zone than UTC, too."""
    with zone(spark, "America/New_York"):
        df = typed(spark, 300, 1)
        pairs = []
        for i, window in enumerate(ALIGNED):
            timestamp = "start_of_window" if i % 3 == 1 else "end_of_window"
            pairs.append(both(uc.flow(df), window, ["k"] if i % 2 else [], NATIVE, timestamp=timestamp))
        for native, ours in pairs:
            assert native.dtypes == ours.dtypes
        tables = [in_utc(union([pair[way] for pair in pairs]).toArrow()) for way in (0, 1)]
    assert tables[0].num_rows > 200
    for i in range(len(ALIGNED)):
        native, ours = (table.filter(pc.equal(table["case"], i)) for table in tables)
        assert sorted(map(repr, native.to_pylist())) == sorted(map(repr, ours.to_pylist())), ALIGNED[i]


def union(frames: list[DataFrame]) -> DataFrame:
    made = [df.withColumn("case", F.lit(i)) for i, df in enumerate(frames)]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), made)


def test_what_is_not_the_same_is_not_left_to_spark(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "ts timestamp, here timestamp_ntz, x int, f double, m decimal(9, 2), d int")
    n = {"n": uc.Count()}
    fixed = uc.Fixed("1 minute")

    def why(flow: Flow, window: uc.Window, combiners: dict[str, uc.Combiner] = n, **options: Any) -> str:
        return flow.window(window, **options).combine(**combiners).explain()

    flow = uc.flow(df)
    assert why(flow, fixed).startswith("Spark's own aggregation")
    for window in (uc.Sessions("1 minute"), uc.Calendar("day"), uc.Sliding("1 minute", "2 minutes")):
        assert f"not Spark's own aggregation: {window!r} has" in why(flow, window)
    assert "Fixed('1 minute', per_key_phase=True) has" in why(flow, uc.Fixed("1 minute", per_key_phase=True))
    for combiner in (
        uc.Sum("f"),
        uc.Max("f"),
        uc.Sum("m"),
        uc.Mean("x"),
        uc.Sum(uc.col("x") + 1),
        uc.Count().map(pc.abs),
    ):
        assert f"n={combiner!r} has no exact equivalent" in why(flow, fixed, {"n": combiner})
    assert "another type" in why(uc.flow(df, "here"), fixed)
    assert "changelog" in why(uc.flow(df, diff="d"), fixed)
    assert "'latest'" in why(flow, fixed, timestamp="latest")
    assert "functions of Arrow tables" in why(flow.select("ts"), fixed)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert "wraps around" in why(flow, fixed)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_sum_that_is_too_large_is_told_by_both_ways(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0, 2**62), (0, 2**62)], "t bigint, x bigint").withColumn("ts", F.timestamp_micros("t"))
    for made in both(uc.flow(df), uc.Fixed("1 minute"), (), {"total": uc.Sum("x")}):
        with pytest.raises(
            Exception, match="a sum is 9223372036854775808, outside int64: cast the column to a decimal"
        ):
            made.collect()


def test_sums_of_large_integers_fit_if_only_the_result_does(spark: SparkSession) -> None:
    """Spark's own sum would overflow on the way."""
    groups = {"a": [2**63 - 1] * 3 + [-(2**63)] * 3 + [7], "b": [-(2**63), 2**62, 2**62 - 1], "c": [-1, -(2**32)]}
    rows = [(k, x) for k, values in groups.items() for x in (*values, None)] + [("d", None)]
    df = spark.createDataFrame(rows, "k string, x bigint").coalesce(1).withColumn("ts", F.timestamp_micros(F.lit(0)))
    expected = {k: sum(values) for k, values in groups.items()} | {"d": None}
    for made in both(uc.flow(df), uc.Global(), "k", {"total": uc.Sum("x")}):
        assert {row.k: row.total for row in made.collect()} == expected

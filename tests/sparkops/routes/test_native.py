"""Spark's own aggregation gives the same table as the tasks, to the last bit and type."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from finals import FIRST, LAST
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import changed
from zones import in_utc, zone

import uncombine as uc
from uncombine.flows.flow import Flow

TYPES = {
    "b": "tinyint",
    "s": "smallint",
    "i": "int",
    "l": "bigint",
    "day": "date",
    "at": "timestamp",
    "text": "string",
    "yes": "boolean",
    "money": "decimal(9, 2)",
    "float": "float",
    "double": "double",
}
NATIVE: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    **{f"{kind.__name__}.{name}": kind(name) for kind in (uc.Count, uc.Min, uc.Max) for name in TYPES},
    **{f"sum_{name}": uc.Sum(name) for name in (*"bsil", "money", "float", "double")},
    **{f"mean_{name}": uc.Mean(name) for name in ("float", "double")},
    "all": uc.BoolAnd("yes"),
    "any": uc.BoolOr("yes"),
}
ALIGNED = (
    uc.Global(),
    uc.Fixed("1 minute"),
    uc.Fixed("7 seconds", "-3 seconds"),
    uc.Fixed("1 day", "6 hours"),
    uc.Fixed("30 days"),
    uc.Sliding("50 seconds", "50 seconds", "7 seconds"),
    uc.Sliding("20 seconds", "20 seconds", "-33 seconds"),
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
        (F.col("n") / 100).cast(TYPES["money"]).alias("money"),
        *(special(F.col("n")).cast(TYPES[name]).alias(name) for name in ("float", "double")),
    )


def special(n: Column) -> Column:
    """Floats whose sums have no rounding: small whole numbers, a zero with a sign, infinity and NaN."""
    return F.when(n == -1, -0.0).when(n == 127, float("inf")).when(n == -128, float("nan")).otherwise(n.cast("double"))


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
    """In a session of another zone than UTC, too, and of times without a zone."""
    without = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}
    with zone(spark, "America/New_York"), changed(spark), changed(spark, without):
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
    df = spark.createDataFrame(
        [], "ts timestamp, here timestamp_ntz, x int, f double, m decimal(9, 2), d int, long decimal(29, 2)"
    )
    n = {"n": uc.Count()}
    fixed = uc.Fixed("1 minute")

    def why(flow: Flow, window: uc.Window, combiners: dict[str, uc.Combiner] = n, **options: Any) -> str:
        return flow.window(window, **options).combine(**combiners).explain()

    flow = uc.flow(df)
    assert why(flow, fixed).startswith("Spark's own aggregation")
    overlapping = uc.Sliding("1 minute", "59 seconds")
    for window in (uc.Sessions("1 minute"), uc.Calendar("day"), uc.Sliding("1 minute", "2 minutes"), overlapping):
        assert f"not Spark's own aggregation: {window!r} has" in why(flow, window)
    assert "Fixed('1 minute', per_key_phase=True) has" in why(flow, uc.Fixed("1 minute", per_key_phase=True))
    for combiner in (
        uc.Sum("f", exact=True),
        uc.Variance("f"),
        uc.Sum("long"),
        uc.Mean("m"),
        uc.Mean("x"),
        uc.Sum(uc.col("x") + 1),
        uc.Count().map(pc.abs),
    ):
        assert f"n={combiner!r} has no exact equivalent" in why(flow, fixed, {"n": combiner})
    assert "another type" in why(uc.flow(df, time="here"), fixed)
    assert "changelog" in why(uc.flow(df, diff="d"), fixed)
    assert "'latest'" in why(flow, fixed, timestamp="latest")
    assert "not Spark's own aggregation: native='never' was given" in why(
        uc.flow(df, tuning=uc.Tuning(native="never")), fixed
    )
    assert "native='never' was given" in why(
        uc.union(uc.flow(df.where("x > 1"), tuning=uc.Tuning(native="never")), flow), fixed
    )
    with pytest.raises(uc.UncombineError, match="native= must be 'auto' or 'never', but is 'no'"):
        uc.flow(df, tuning=uc.Tuning(native="no"))
    assert "functions of Arrow tables" in why(flow.map(lambda rows: rows), fixed)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert "wraps around" in why(flow, fixed, {"n": uc.Sum("x")})
        assert why(flow, fixed, {"n": uc.Sum("f")}).startswith("Spark's own aggregation")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_sum_that_is_too_large_is_told_by_both_ways(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0, 2**62), (0, 2**62)], "t bigint, x bigint").withColumn("ts", F.timestamp_micros("t"))
    for made in both(uc.flow(df), uc.Fixed("1 minute"), (), {"total": uc.Sum("x")}):
        with pytest.raises(
            Exception, match="a sum is 9223372036854775808, outside int64: cast the column to a decimal"
        ):
            made.collect()


@pytest.mark.daily
def test_sums_of_large_integers_fit_if_only_the_result_does(spark: SparkSession) -> None:
    """Spark's own sum would overflow on the way."""
    groups = {"a": [2**63 - 1] * 3 + [-(2**63)] * 3 + [7], "b": [-(2**63), 2**62, 2**62 - 1], "c": [-1, -(2**32)]}
    groups |= {"e": [2**33, 5, 2**40 + 3], "f": [random.Random(1).randrange(-(2**61), 2**61) for _ in range(3)]}
    rows = [(k, x) for k, values in groups.items() for x in (*values, None)] + [("d", None)]
    df = spark.createDataFrame(rows, "k string, x bigint").coalesce(1).withColumn("ts", F.timestamp_micros(F.lit(0)))
    expected = {k: sum(values) for k, values in groups.items()} | {"d": None}
    for made in both(uc.flow(df), uc.Global(), "k", {"total": uc.Sum("x")}):
        assert {row.k: row.total for row in made.collect()} == expected


def adversarial(seed: int) -> dict[str, list[float | None]]:
    """Groups of floats whose sums are hard: they cancel, or are large, small, special, missing."""
    r = random.Random(seed)
    mixed = [[r.choice((-1, 1)) * 2.0 ** r.uniform(low, high) for _ in range(60)] for low, high in RANGES]
    spread = {f"from 2**{low} to 2**{high}": values for (low, high), values in zip(RANGES, mixed, strict=True)}
    cancelling = {f"{name}, cancelling": [*values, *(-v for v in values), 1.0] for name, values in spread.items()}
    return {
        **spread,
        **cancelling,
        "lost digits": [1e16, 1.0, 1.0, 1.0, -1e16] * 9,
        "cents": [0.1] * 99,
        "nulls": [None, None],
        "null and one": [None, 5e-324, None],
        "infinite": [1.0, float("inf"), None],
        "not a number": [1.0, float("nan"), 2.0],
        "infinite both ways": [float("inf"), 1.0, float("-inf")],
    }


RANGES = ((-1, 1), (-30, 30), (-60, 60), (-1070, -1000), (900, 1000), (-1000, 1000))


def test_plain_sums_of_floats_keep_their_tolerance(spark: SparkSession) -> None:
    groups = adversarial(1)
    given = [(name, value) for name, values in groups.items() for value in values]
    random.Random(2).shuffle(given)
    df = (
        spark.createDataFrame(given, "k string, x double").repartition(3).withColumn("ts", F.timestamp_micros(F.lit(0)))
    )
    combiners = {"total": uc.Sum("x"), "mean": uc.Mean("x")}
    flow = uc.flow(df).window(uc.Fixed("1 minute")).combine(by="k", **combiners)
    assert "total: sum(x), within the tolerance of Sum('x')" in flow.explain()
    found = {row["k"]: row for row in flow.df.collect()}
    assert found.keys() == groups.keys()
    for name, values in groups.items():
        known = [value for value in values if value is not None]
        for column, combiner in combiners.items():
            [want] = uc.aggregate(pa.table({"x": pa.array(values, pa.float64())}), r=replace(combiner, exact=True))["r"]
            want, got = want.as_py(), found[name][column]
            if want is None or not math.isfinite(want):
                assert repr(got) == repr(want), (name, column)
            else:
                bound = combiner.tolerance([abs(value) for value in known], len(known)) + math.ulp(want) / 2
                assert abs(Fraction(got) - Fraction(want)) <= bound, (name, column)

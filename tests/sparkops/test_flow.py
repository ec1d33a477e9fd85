"""Flows over bounded rows: final panes against raw rows, several stages, ways to run, and what is refused."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded_flow, cut
from finals import COMBINERS, POLICIES, SCHEMA, WINDOWS, found, oracle, rows
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from test_lowering import in_utc, zone

import uncombine as uc
from uncombine.sparkops.sql_types import spark_schema


def same(table: pa.Table) -> pa.Table:
    return table


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@pytest.mark.parametrize("changelog", [False, True], ids=["rows", "changelog"])
def test_final_panes_by_the_tasks(window: uc.Window, changelog: bool) -> None:
    """Cut into tasks and batches in any way, some of them empty."""
    for seed, (count, by) in enumerate([(0, ("k",)), (1, ()), (60, ("k", "j")), (200, ("j",))]):
        table = rows(count, seed, changelog)
        policy = "end_of_window" if changelog else POLICIES[seed]
        flow = bounded_flow(cut(table, 4, seed), "ts", seed=seed, diff="d" if changelog else None, shards=3)
        panes = flow.window(window, timestamp=policy).combine(by=by, **COMBINERS).map(same).df.toArrow()
        assert set(panes["diff"].to_pylist()) <= {1}
        assert found(panes, by) == oracle(table, window, by, policy)


SOME = (
    uc.Global(),
    uc.Sliding("50 seconds", "20 seconds", "7 seconds"),
    uc.Sessions("30 seconds"),
    uc.Calendar("day", "America/New_York"),
    uc.Inherit(),
)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_final_panes_on_spark(spark: SparkSession, kind: str) -> None:
    """In a session of another zone than UTC, some partitions empty; a local time is taken as UTC."""
    table = rows(150, 5)
    with zone(spark, "America/New_York"):
        given = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us"))) if kind == "timestamp_ntz" else table
        df = spark.createDataFrame(given, spark_schema(given.schema)).repartition(5, "j")
        assert dict(df.dtypes)["ts"] == kind
        frames = [uc.flow(df).window(window).combine(by=("k", "j"), **COMBINERS).df for window in SOME]
        panes = in_utc(union(frames).toArrow())
    for i, window in enumerate(SOME):
        got = panes.filter(pc.equal(panes["case"], i))
        assert found(got, ("k", "j")) == oracle(table, window, ("k", "j"))


def union(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, [df.withColumn("case", F.lit(i)) for i, df in enumerate(frames)])


def test_no_rows_and_one_row(spark: SparkSession) -> None:
    one = spark.createDataFrame(rows(1, 3).slice(0, 1), spark_schema(SCHEMA))
    none, timeless = one.where("false"), one.withColumn("ts", F.lit(None).cast("timestamp"))
    windows = (uc.Fixed("1 minute"), uc.Sessions("1 minute"), uc.Global())
    frames = [uc.flow(df).window(w).combine(**COMBINERS).df for df in (one, none, timeless) for w in windows]
    assert sorted(row["case"] for row in union(frames).collect()) == [0, 1, 2]


def test_as_spark_has_it(spark: SparkSession) -> None:
    """Tumbling, sliding and session windows of Spark's, with combiners that are not lowered."""
    ids = spark.range(3000, numPartitions=3)
    df = ids.select(
        F.timestamp_micros((F.pmod(F.hash("id"), F.lit(4000)) - 2000).cast("bigint") * 1_234_567).alias("ts"),
        F.pmod(F.hash(F.col("id") + 1), F.lit(5)).alias("k"),
        F.pmod(F.hash(F.col("id") + 2), F.lit(100)).cast("bigint").alias("x"),
    )
    pairs: list[tuple[uc.Window, Any]] = [
        (uc.Fixed("1 hour", "7 minutes"), F.window("ts", "1 hour", startTime="7 minutes")),
        (uc.Sliding("10 minutes", "4 minutes"), F.window("ts", "10 minutes", "4 minutes")),
        (uc.Sessions("8 seconds"), F.session_window("ts", "8 seconds")),
    ]
    results = {"n": uc.Count(), "different": uc.CountDistinct("x"), "mid": uc.Median("x"), "total": uc.Sum("x")}
    for window, spans in pairs:
        aggregates = [F.count(F.lit(1)), F.countDistinct("x"), F.expr("percentile(x, 0.5)"), F.sum("x")]
        native = df.groupBy("k", spans.alias("w")).agg(*aggregates)
        ours = uc.flow(df).window(window).combine(by="k", **results).df.select("k", "window", *results)
        assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, native.collect())), window


def test_local_processing_times_are_utc(spark: SparkSession) -> None:
    """As they are in every other column, and whatever the session's zone: also hours that its clocks repeat or skip."""
    texts = ["2024-03-10T02:30:00.123456", "2024-11-03T01:30:00", "2024-11-03T06:30:00"]
    times = pa.array(texts).cast(pa.timestamp("us"))
    table = pa.table({"ts": times, "proc": times, "x": [1, 2, 3]})
    with zone(spark, "America/New_York"):
        df = spark.createDataFrame(table, "ts timestamp_ntz, proc timestamp_ntz, x bigint")
        flow = uc.flow(df, watermark="1 day", processing_time="proc", replay=True, shards=1)
        made = flow.window(uc.Global(), uc.Repeatedly(uc.AfterCount(1)), "discarding").combine(x=uc.Sum("x"))
        panes = made.df.select("x", F.unix_micros("pane.processing_time").alias("at")).toArrow().sort_by("x")
    assert panes["at"].to_pylist() == times.cast(pa.int64()).to_pylist()

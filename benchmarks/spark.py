"""Bounded data on Spark compared with Spark's own aggregation, over the same files and with the same result columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from datasets import files, orders, purchases
from harness import Row, wall
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.sparkops.routes.final import FinalPanes

TITLE = "Batch on Spark"

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this folder

ROWS = 6_000_000
SUMS = {"s": uc.Sum("v"), "c": uc.Count()}
NATIVE = "native groupBy(key, window)"


def rows() -> Iterator[Row]:
    spark = uc.session("benchmarks", cores=2)
    for keys, what in ((100_000, "100 k keys"), (100, "100 keys"), (3_000_000, "3 M keys")):
        yield from fixed(spark, files(ROWS, keys), what, few=keys == 100)
    path = files(ROWS, 100_000)
    yield from sessions(spark, path)
    yield from others(spark, path)
    yield from of_purchases(spark, purchases(ROWS, 100_000))
    yield from of_orders(spark, orders(ROWS))


def fixed(spark: SparkSession, path: str, what: str, few: bool) -> Iterator[Row]:
    df = spark.read.parquet(path)
    window = uc.Fixed("1 minute")
    native = done(df.groupBy("k", F.window("ts", "1 minute")).agg(F.sum("v"), F.count("*")))
    yield wall(f"sum, count by minute, {what}: files", done(of_files(spark, path, window)), native, NATIVE, 1 / 2)
    yield wall(f"sum, count by minute, {what}: DataFrame, native", done(of_df(df, window)), native, NATIVE, 1 / 0.95)
    packed = done(merged(df, window))
    # With few keys no way beats the JVM for rows that it already has, so the goal is the row with the floor below.
    most = None if few else 1 / 0.75
    yield wall(f"sum, count by minute, {what}: DataFrame, in Python", packed, native, NATIVE, most)
    if few:
        floor = done(df.select("k", "ts", "v").mapInArrow(nothing, "k bigint"))
        yield wall(f"the same, {what}", packed, floor, "mapInArrow that does nothing", 1 / 0.85)


def sessions(spark: SparkSession, path: str) -> Iterator[Row]:
    df = spark.read.parquet(path)
    window = uc.Sessions("30 seconds")
    native = done(df.groupBy("k", F.session_window("ts", "30 seconds")).agg(F.sum("v"), F.count("*")))
    against = "native session_window"
    yield wall("sessions, 30 s, 100 k keys: DataFrame", done(of_df(df, window)), native, against, 1 / 3, runs=3)
    yield wall("sessions, 30 s, 100 k keys: files", done(of_files(spark, path, window)), native, against, 1 / 6, runs=3)


def others(spark: SparkSession, path: str) -> Iterator[Row]:
    df = spark.read.parquet(path)
    total = F.pandas_udf(total_of, "long")
    one = spark.read.parquet(f"{path}/part-0.parquet")
    grouped = done(one.groupBy("k").agg(total("v")))
    ours = done(uc.sparkops.combine_per_key(one, "k", files="never", s=uc.Mean("v")))
    yield wall("by key, 1 M rows, 100 k keys", ours, grouped, "a grouped-agg pandas UDF", 1 / 10, runs=3)
    per_key = partial(per_file_key, spark, path)
    fast, exact = done(per_key(s=uc.Sum("x"))), done(per_key(s=uc.Sum("x", exact=True)))
    yield wall("exact float sum by key: files", exact, fast, "the fast form", 2)
    for name, combiner, native in (
        ("median", uc.Median("x"), F.expr("percentile(x, 0.5)")),
        ("count distinct", uc.CountDistinct("v"), F.countDistinct("v")),
    ):
        theirs = done(df.groupBy("k").agg(native))
        frame = done(uc.sparkops.combine_per_key(df, "k", files="never", r=combiner))
        yield wall(f"{name} by key, 100 k keys: DataFrame", frame, theirs, "native", 1 / 2, runs=3)
        yield wall(f"{name} by key, 100 k keys: files", done(per_key(r=combiner)), theirs, "native", 1 / 2, runs=3)


def total_of(v: pd.Series) -> int:
    """The body of a pandas UDF."""
    return v.sum()


def of_purchases(spark: SparkSession, path: str) -> Iterator[Row]:
    """Purchases of users: their ids are texts, the amounts floats with cents."""
    df = spark.read.parquet(path)
    minute, sliding, gap = uc.Fixed("1 minute"), uc.Sliding("10 minutes", "1 minute"), uc.Sessions("30 seconds")
    spans = F.window("ts", "1 minute"), F.window("ts", "10 minutes", "1 minute"), F.session_window("ts", "30 seconds")
    for what, by, window, span, of_file, of_frame in (
        ("windows by user", ["k"], minute, spans[0], 1 / 3, 1 / 0.95),
        ("windows by user and country", ["k", "country"], minute, spans[0], 1 / 2.2, 1 / 0.95),
        ("10-minute windows each minute, by user", ["k"], sliding, spans[1], 1 / 4, 1 / 0.95),
        ("sessions by user", ["k"], gap, spans[2], 1 / 8, 1 / 3),
    ):
        native = done(df.groupBy(*by, span).agg(F.sum("v"), F.count("*")))
        against = f"native groupBy({', '.join(by)}, {'session_window' if window is gap else 'window'})"
        read = done(of_files(spark, path, window, by))
        yield wall(f"purchases, {what}: files", read, native, against, of_file, runs=3)
        rows = done(of_df(df, window, by))
        yield wall(f"purchases, {what}: DataFrame", rows, native, against, of_frame, runs=3)
    user = done(of_files(spark, path, minute))
    floor = done(only_read(spark, path))
    yield wall("purchases, windows by user: files", user, floor, "two stages that only read", None, runs=3)
    five = {"s": uc.Sum("v"), "c": uc.Count(), "m": uc.Mean("v"), "low": uc.Min("v"), "high": uc.Max("v")}
    native = done(df.groupBy("k", spans[0]).agg(F.sum("v"), F.count("*"), F.avg("v"), F.min("v"), F.max("v")))
    made = (
        uc.flow(df, tuning=uc.Tuning(files="never"))
        .window(minute)
        .combine(by="k", **five)
        .df.select("k", "window", *five)
    )
    yield wall("purchases, five combiners by user: DataFrame", done(made), native, NATIVE, 1 / 0.95, runs=3)


def only_read(spark: SparkSession, path: str) -> DataFrame:
    """Two stages with Python in them: two tasks read the columns from the files, and send no row to the others."""
    names = sorted(map(str, Path(path).glob("*.parquet")))

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for task in batch.column("id").to_pylist():
                for name in names[task::2]:
                    pq.ParquetFile(name).read(["k", "ts", "v"], use_threads=False)
            yield batch.slice(0, 0)

    tasks = spark.range(2, numPartitions=2)
    return tasks.mapInArrow(read, "id bigint").repartition(2).mapInArrow(nothing, "id bigint")


def of_orders(spark: SparkSession, path: str) -> Iterator[Row]:
    """Events of orders: nearly every one is alone in its window, so that combining early saves nothing."""
    native = done(spark.read.parquet(path).groupBy("k", F.window("ts", "1 minute")).agg(F.sum("v"), F.count("*")))
    read = done(of_files(spark, path, uc.Fixed("1 minute")))
    yield wall("events of orders, windows by order: files", read, native, NATIVE, 1 / 2.2, runs=3)


def of_files(spark: SparkSession, path: str, window: Any, by: Any = "k") -> DataFrame:
    return shown(uc.flow(path, spark=spark).window(window).combine(by=by, **SUMS), by)


def per_file_key(spark: SparkSession, path: str, **combiners: Any) -> DataFrame:
    flow = uc.flow(path, spark=spark).window(uc.Global()).combine(by="k", **combiners)
    return flow.df.select("k", *combiners)


def of_df(df: DataFrame, window: Any, by: Any = "k") -> DataFrame:
    return shown(uc.flow(df, tuning=uc.Tuning(files="never")).window(window).combine(by=by, **SUMS), by)


def shown(flow: Any, by: Any) -> DataFrame:
    return flow.df.select(*([by] if isinstance(by, str) else by), "window", "s", "c")


def merged(df: DataFrame, window: Any) -> DataFrame:
    flow = uc.flow(df, tuning=uc.Tuning(files="never")).window(window).combine(by="k", **SUMS)
    return FinalPanes(flow, flow.source.input, "to be measured").df().select("k", "window", "s", "c")


def nothing(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield batch.slice(0, 0).select([0])


def done(df: DataFrame) -> Callable[[], None]:
    """Make Spark compute every row and every column, and keep none."""
    return lambda: df.write.format("noop").mode("overwrite").save()

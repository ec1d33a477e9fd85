"""Steps and joins in streams, compared with Spark's own: milliseconds a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from datasets import files
from harness import Row
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import LAG, both, stream

import uncombine as uc

TITLE = "Steps and joins in streams"

BATCHES, OF_JOINS = 8, 4
SECONDS = 60
"""The event time of a batch."""
DELAY, NEAR = "30 seconds", ("0 seconds", "10 seconds")


def rows() -> Iterator[Row]:
    spark = uc.session("benchmarks", cores=2)
    many = files(BATCHES * 1_000_000, 100_000, BATCHES, SECONDS * BATCHES)
    left, right = (files(BATCHES * 200_000, 20_000, BATCHES, SECONDS * BATCHES, seed) for seed in (1, 2))
    joined = partial(native_join, spark, left, right)
    against = "native stream-stream join"
    large = files(BATCHES * 5_000_000, 100_000, BATCHES, SECONDS * BATCHES, 3)
    once, of_many = partial(grouped, spark, many), partial(grouped, spark, large)
    measured: list[tuple[str, Callable[[], Any], Callable[[], DataFrame], str, float | None]] = [
        ("distinct: DataFrame", partial(distinct, spark, many, False), partial(deduplicated, spark, many),
         "dropDuplicatesWithinWatermark", 1),
        ("distinct: files", partial(distinct, spark, many, True), partial(deduplicated, spark, many),
         "dropDuplicatesWithinWatermark", 1),
        ("inner join within 10 seconds: DataFrame", partial(join, spark, left, right, False), joined, against, 1),
        ("inner join within 10 seconds: files", partial(join, spark, left, right, True), joined, against, 1 / 2),
        ("left join within 10 seconds: files", partial(join, spark, left, right, True, "left"),
         partial(joined, "left_outer"), against, 1 / 2),
        ("two groupings: files", lambda: regrouped(once()).df, lambda: once().df, "the first of them", 1.25),
        ("two groupings, 5 M rows a batch: files", lambda: regrouped(of_many()).df, lambda: of_many().df,
         "the first of them", 1.25),
        ("two results of one grouping: files", lambda: consumers(once(), "all", "large"), lambda: once().df,
         "the grouping alone", 1.3),
        ("two results of one grouping, 5 M rows a batch: files", lambda: consumers(of_many(), "all", "large"),
         lambda: of_many().df, "the grouping alone", 1.3),
        ("a result and a second grouping: files", lambda: consumers(once(), "all", "again"), lambda: once().df,
         "the grouping alone", None),
        ("windows and the rows they leave out: files", lambda: once().left_out, lambda: once().df,
         "windows alone", None),
    ]  # fmt: skip
    for row in measured:
        yield both(*row, batches=OF_JOINS if "join" in row[0] else BATCHES)


def source(spark: SparkSession, path: str, from_files: bool, lag: Any = LAG, name: str | None = None) -> uc.Flow:
    if from_files:
        return uc.flow(uc.Files(path, max_files_per_batch=1), spark=spark, watermark=lag, streaming=True, name=name)
    return uc.flow(stream(spark, path), watermark=lag, name=name, tuning=uc.Tuning(files="never"))


def distinct(spark: SparkSession, path: str, from_files: bool) -> DataFrame:
    rows = source(spark, path, from_files).select("k", "ts", "v")
    return rows.distinct("k", within=DELAY).df


def deduplicated(spark: SparkSession, path: str) -> DataFrame:
    return stream(spark, path).withWatermark("ts", DELAY).dropDuplicatesWithinWatermark(["k"])


def join(spark: SparkSession, left: str, right: str, from_files: bool, how: str = "inner") -> DataFrame:
    sides = [
        source(spark, path, from_files, name=name).select("k", "ts", "v") for path, name in ((left, "l"), (right, "r"))
    ]
    unmatched = "at_once" if how == "inner" else "final"
    return sides[0].join(sides[1], on="k", how=how, within=NEAR, unmatched=unmatched).df


def native_join(spark: SparkSession, left: str, right: str, how: str = "inner") -> DataFrame:
    a = stream(spark, left).withWatermark("ts", DELAY)
    b = stream(spark, right).withWatermark("ts", DELAY).select(*(F.col(n).alias(f"{n}_r") for n in ("k", "ts", "v")))
    near = F.expr("k = k_r AND ts_r >= ts AND ts_r <= ts + INTERVAL 10 SECONDS")
    return a.join(b, near, how)


def grouped(spark: SparkSession, path: str) -> uc.Flow:
    rows = source(spark, path, True)
    return rows.window(uc.Fixed("1 minute")).combine(by="k", s=uc.Sum("v"), c=uc.Count())


def consumers(flow: uc.Flow, *names: str) -> Any:
    """Flows that share a grouping, as one query."""
    flows = {"all": flow, "large": flow.where(uc.col("s") > 1_000_000), "again": regrouped(flow)}
    return uc.together(**{name: flows[name] for name in names})


def regrouped(flow: uc.Flow) -> uc.Flow:
    return flow.window(uc.Fixed("1 minute")).combine(s=uc.Sum("s"), keys=uc.Count())

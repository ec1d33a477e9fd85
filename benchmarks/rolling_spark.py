"""Rolling aggregates on Spark: `rangeBetween` of Spark over the same rows, and a stream against fixed windows.

A batch has two million rows of 30 days, or for the median 200,000, of which each sees 66 in the day before it. A batch
of the streams has a million rows of an hour, 10,000 keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from datasets import files
from harness import Row, wall
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from streams import both, stream

import uncombine as uc

TITLE = "Rolling aggregates on Spark"

DAY = 86_400
ROWS = {"sum": 2_000_000, "max": 2_000_000, "median": 200_000}
SEEN = 2_000
"""The rows of a key."""
OURS = {"sum": uc.Sum("x"), "max": uc.Max("x"), "median": uc.Median("x")}
# Spark's own median takes no range of rows.
THEIRS = {"sum": F.sum, "max": F.max, "median": lambda name: F.percentile(name, 0.5)}
AT_MOST = {"sum": 1 / 5, "max": 1 / 5, "median": 1 / 8}

BATCHES = 6
LAG = uc.BoundedLag("30 seconds")
SCHEMA = "k bigint, ts timestamp, v bigint, x double"


def rows() -> Iterator[Row]:
    """All rows of the table."""
    spark = uc.session("benchmarks", cores=2)
    for name, rows in ROWS.items():
        path = files(rows, rows // SEEN, 6, 30 * DAY)
        theirs = _by_range(spark, path, THEIRS[name])
        what = f"{name} of {rows:,} rows"
        for kind, flow, most in (
            ("files", _of_files(spark, path), AT_MOST[name]),
            ("DataFrame", _of_frame(spark, path), 1 / 2),
        ):
            ours = _written(flow.rolling("1 day", by="k").combine(r=OURS[name]))
            yield wall(f"{what}: {kind}", ours, theirs, "rangeBetween of Spark", most, runs=3, before=1)
    path = files(BATCHES * 1_000_000, 10_000, BATCHES, 3_600 * BATCHES)
    fixed = lambda: _streamed(spark, path).window("10 minutes").combine(by="k", s=uc.Sum("x")).df  # noqa: E731
    for period in ("10 minutes", "1 hour"):
        rolled = lambda period=period: _streamed(spark, path).rolling(period, by="k").combine(s=uc.Sum("x")).df  # noqa: E731
        yield both(f"stream, {period}: files", rolled, fixed, "fixed windows of ten minutes", 2.5, batches=BATCHES)
    rolled = lambda: _framed(spark, path).rolling("10 minutes", by="k").combine(s=uc.Sum("x")).df  # noqa: E731
    framed = lambda: _framed(spark, path).window("10 minutes").combine(by="k", s=uc.Sum("x")).df  # noqa: E731
    yield both("stream, 10 minutes: DataFrame", rolled, framed, "fixed windows of ten minutes", 2.5, batches=BATCHES)


def _by_range(spark: SparkSession, path: str, function: Callable[..., Any]) -> Callable[[], None]:
    day = Window.partitionBy("k").orderBy(F.unix_micros("ts")).rangeBetween(1 - DAY * 1_000_000, 0)
    return lambda: _noop(spark.read.parquet(path).withColumn("r", function("x").over(day)))


def _of_files(spark: SparkSession, path: str) -> uc.Flow:
    return uc.flow(path, spark=spark)


def _of_frame(spark: SparkSession, path: str) -> uc.Flow:
    return uc.flow(spark.read.parquet(path), tuning=uc.Tuning(files="never"))


def _streamed(spark: SparkSession, path: str) -> uc.Flow:
    return uc.flow(uc.Files(path, max_files_per_batch=1), spark=spark, watermark=LAG, streaming=True)


def _framed(spark: SparkSession, path: str) -> uc.Flow:
    return uc.flow(stream(spark, path, SCHEMA), watermark=LAG, tuning=uc.Tuning(files="never"))


def _written(flow: uc.Flow) -> Callable[[], None]:
    return lambda: _noop(flow.df)


def _noop(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()

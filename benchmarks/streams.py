"""Micro-batches of a million rows, compared with Spark's own streaming aggregation: milliseconds a batch."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import START, files, purchases
from harness import Row
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import uncombine as uc
from uncombine.sparkops.stream_writer import checked_writer

TITLE = "Streams"

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this folder

SCHEMA = "k bigint, ts timestamp, v bigint"
PURCHASES = "k string, country string, ts timestamp, v double"
LAG = uc.BoundedLag("30 seconds")
SUMS = {"s": uc.Sum("v"), "c": uc.Count()}
BATCHES = 10


def rows() -> Iterator[Row]:
    spark = uc.session("benchmarks", cores=2)
    path = files(BATCHES * 1_000_000, 100_000, BATCHES, 120 * BATCHES)
    minute, gap = uc.Fixed("1 minute"), uc.Sessions("30 seconds")

    def native(column: Any, path: str, schema: str = SCHEMA) -> Callable[[], DataFrame]:
        rows = stream(spark, path, schema).withWatermark("ts", "30 seconds")
        return lambda: rows.groupBy("k", column).agg(F.sum("v"), F.count("*"))

    spans = F.window("ts", "1 minute"), F.session_window("ts", "30 seconds")
    windows, sessions = (native(span, path) for span in spans)
    yield both("fixed windows: DataFrame", lambda: ours(spark, path, minute), windows, "native groupBy(window)", 0.8)
    yield both("fixed windows: files", lambda: read(spark, path, minute), windows, "native groupBy(window)", 1 / 3)
    yield both("sessions: DataFrame", lambda: ours(spark, path, gap), sessions, "native session_window", 1 / 1.5)
    yield both("sessions: files", lambda: read(spark, path, gap), sessions, "native session_window", 1 / 3)
    bought = purchases(BATCHES * 1_000_000, 100_000, BATCHES, 120 * BATCHES)
    for what, window, span, of_file, of_frame in (
        ("windows by user", minute, spans[0], 1 / 3, 1 / 1.5),
        ("sessions by user", gap, spans[1], 1 / 4, 1 / 2.2),
    ):
        theirs = native(span, bought, PURCHASES)
        against = f"native groupBy({'session_window' if window is gap else 'window'})"
        frame = partial(ours, spark, bought, window, PURCHASES)
        yield both(f"purchases, {what}: DataFrame", frame, theirs, against, of_frame)
        yield both(f"purchases, {what}: files", partial(read, spark, bought, window), theirs, against, of_file)
    early = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
    options = {"trigger": early, "mode": "retracting", "allowed_lateness": "1 minute"}
    yield both(
        "early, on-time and late panes, retracting: files",
        lambda: read(spark, path, minute, **options),
        lambda: read(spark, path, minute),
        "on-time panes only",
        1.5,
    )
    small = files(BATCHES * 100_000, 10_000, BATCHES, 120 * BATCHES)
    yield both(
        "100 k rows, 10 k keys: DataFrame",
        lambda: ours(spark, small, minute),
        lambda: per_key(spark, small),
        "transformWithStateInPandas by key",
        1 / 15,
        batches=4,
    )
    yield both(
        "10 k windows touched of 5 M held: files",
        lambda: read(spark, held(5_000_000), uc.Fixed("1 day")),
        lambda: read(spark, held(50_000), uc.Fixed("1 day")),
        "of 50 k held",
        1.5,
    )
    tiny = files(BATCHES * 10, 5, BATCHES, 120 * BATCHES)
    against = "native groupBy(window)"
    few = lambda: (  # noqa: E731
        stream(spark, tiny)
        .withWatermark("ts", "30 seconds")
        .groupBy("k", F.window("ts", "1 minute"))
        .agg(F.sum("v"), F.count("*"))
    )
    yield both("a batch of 10 rows: files", lambda: read(spark, tiny, minute), few, against, 1.3)
    for what, place in (("a batch of 10 rows", tiny), ("fixed windows", path)):
        yield metered(f"{what}, with metrics for Prometheus: files", partial(read, spark, place, minute), 1.05)


def stream(spark: SparkSession, path: str, schema: str = SCHEMA) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)


def ours(spark: SparkSession, path: str, window: Any, schema: str = SCHEMA) -> DataFrame:
    flow = uc.flow(stream(spark, path, schema), watermark=LAG, tuning=uc.Tuning(files="never"))
    return flow.window(window).combine(by="k", **SUMS).df


def read(spark: SparkSession, path: str, window: Any, **options: Any) -> DataFrame:
    flow = uc.flow(uc.Files(path, max_files_per_batch=1), spark=spark, watermark=LAG, streaming=True)
    return flow.window(window, **options).combine(by="k", **SUMS).df


def held(windows: int) -> str:
    """Files of which the first opens `windows` windows, and each of the others touches 10,000 of them."""
    folder = Path(tempfile.mkdtemp(prefix="uncombine-bench-"))
    rng = np.random.default_rng(2)
    for i in range(BATCHES):
        keys = np.arange(windows) if i == 0 else rng.integers(0, windows, 10_000)
        times = pa.array(np.full(len(keys), START + i), pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"k": keys, "ts": times, "v": keys}), folder / f"{i}.parquet")
    return str(folder)


class CountByKey(StatefulProcessor):
    """The code that a user would write by hand: a sum and a count for each key."""

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("state", "s bigint, c bigint")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        total, count = self.state.get() or (0, 0)
        for frame in rows:
            total, count = total + int(frame["v"].sum()), count + len(frame)
        self.state.update((total, count))
        yield pd.DataFrame({"k": [key[0]], "s": [total], "c": [count]})

    def close(self) -> None:
        pass


def per_key(spark: SparkSession, path: str) -> DataFrame:
    out = "k bigint, s bigint, c bigint"
    return stream(spark, path).groupBy("k").transformWithStateInPandas(CountByKey(), out, "append", "None")


def _taken(results: Mapping[str, DataFrame], batch: int) -> None:
    for df in results.values():
        df.write.format("noop").mode("overwrite").save()


def both(
    what: str,
    ours: Callable[[], Any],
    other: Callable[[], DataFrame],
    against: str,
    target: float | None,
    batches: int = BATCHES,
) -> Row:
    """Run both queries twice, in turn; the medians of their batches without the first two of each query."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(2):
        for make, kept in zip((ours, other), times, strict=True):
            kept += run(make(), batches)[2:]
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), target, against)


def metered(what: str, make: Callable[[], Any], target: float) -> Row:
    """Run a query with the numbers for Prometheus, and without, as `both` does."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        times[1].extend(run(make(), BATCHES)[2:])
        exporter = uc.metrics.prometheus(0)
        times[0].extend(run(make(), BATCHES)[2:])
        exporter.stop()
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), target, "without metrics")


def run(made: Any, batches: int) -> list[float]:
    """The milliseconds of each batch with data, of a DataFrame or of flows that run together."""
    checkpoint = tempfile.mkdtemp(prefix="uncombine-bench-")
    if isinstance(made, DataFrame):
        writer = checked_writer(made.writeStream).format("noop").option("checkpointLocation", checkpoint)
    else:
        writer = made.write_stream(checkpoint=checkpoint).foreach_batch(_taken)
    query = writer.trigger(availableNow=True).start()
    while query.isActive and sum(p["numInputRows"] > 0 for p in query.recentProgress) < batches:
        query.awaitTermination(0.2)
    query.stop()
    done = [p for p in query.recentProgress if p["numInputRows"] > 0][:batches]
    for number, stage in enumerate(uc.progress(done[-1]).stages, 1):
        split = {key: f"{value / 1000:.0f} ms" for key, value in vars(stage).items() if key.endswith("_us")}
        took = done[-1]["durationMs"]["triggerExecution"]
        print(f"<!-- grouping {number}, last batch of {took} ms, over tasks: {split} -->")
    shutil.rmtree(checkpoint, ignore_errors=True)
    return [p["durationMs"]["triggerExecution"] for p in done]

"""Time and memory over sizes: rows, keys, windows held, overlap, stages, late rows, shards, large values.

The first curves are jobs of Spark over Parquet files on two cores, with the memory of its largest Python worker; the
others are steps of the grouping operator on one thread, each size in a fresh process, with the memory that a step adds.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import files
from flatness import workers
from harness import Curve, point
from pyspark.sql import DataFrame, SparkSession
from streams import LAG, run

import uncombine as uc
from uncombine.panes import Grouping, Operator

TITLE = "What a size does"

MINUTE = 60_000_000
STAMP = pa.timestamp("us", "UTC")
SUMS = {"s": uc.Sum("v"), "c": uc.Count()}
BATCHES = 5


def rows() -> Iterator[Curve]:
    spark = uc.session("benchmarks", cores=2)
    many = (1_000_000, 4_000_000, 16_000_000, 60_000_000)
    yield curve("rows, 100 k keys by minute, batch", many, lambda n: batch(spark, files(n, 100_000, 6, n // 8_000)))
    yield curve(
        "keys, 6 M rows by minute, batch",
        (100, 10_000, 100_000, 1_000_000, 10_000_000),
        lambda n: batch(spark, files(6_000_000, n)),
    )
    path = files(BATCHES * 1_000_000, 100_000, BATCHES, 120 * BATCHES)
    yield curve(
        "groupings one after the other, 1 M rows a batch, stream", (1, 2, 3, 4, 5), lambda n: chain(spark, path, n)
    )
    yield curve("shards, 1 M rows a batch, stream", (1, 2, 4, 8, 16), lambda n: chain(spark, path, 1, n))
    yield steps("windows held, 10 k touched", (10_000, 100_000, 1_000_000, 10_000_000), holding, touch)
    yield steps("windows a row is in, 1 M rows of 1 k keys", (1, 6, 60, 600), overlapping, touch)
    yield steps(
        "percent of rows that are late and corrected, 1 M rows of 100 k keys", (1, 25, 50, 75, 100), late, touch
    )
    yield steps("bytes of a value, 10 k of 100 k windows touched", (10, 100, 1_000, 10_000), large, touch)


def curve(what: str, sizes: tuple[int, ...], job: Callable[[int], Callable[[], float]]) -> Curve:
    """Jobs of Spark: the median of three, after one that does not count."""
    seconds, peaks = [], []
    for size in sizes:
        done = job(size)
        with largest_worker() as peak:
            done()
            seconds.append(statistics.median(done() for _ in range(3)))
        peaks.append(peak[0])
    return Curve(what, sizes, tuple(seconds), tuple(peaks))


def steps(what: str, sizes: tuple[int, ...], prepare: Callable[[int], Any], work: Callable[[Any], Any]) -> Curve:
    seconds, peaks = zip(*(point(prepare, work, size) for size in sizes), strict=True)
    return Curve(what, sizes, seconds, peaks)


@contextmanager
def largest_worker() -> Iterator[list[int]]:
    """The most memory that one Python worker of Spark has while the block runs."""
    peak, ended = [1], threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            peak[0] = max([*peak, *workers()])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def batch(spark: SparkSession, path: str) -> Callable[[], float]:
    df = uc.flow(path, spark=spark).window(uc.Fixed("1 minute")).combine(by="k", **SUMS).df

    def done() -> float:
        started = time.perf_counter()
        df.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    return done


def chain(spark: SparkSession, path: str, groupings: int, shards: int = 2) -> Callable[[], float]:
    """The median time of a batch of a stream whose windows are grouped again and again."""

    def made() -> DataFrame:
        flow = uc.flow(
            uc.Files(path, max_files_per_batch=1),
            spark=spark,
            watermark=LAG,
            streaming=True,
            tuning=uc.Tuning(shards=shards),
        )
        flow = flow.window(uc.Fixed("1 minute")).combine(by="k", **SUMS)
        for _ in range(groupings - 1):
            flow = flow.window(uc.Fixed("1 minute")).combine(by="k", s=uc.Sum("s"), c=uc.Sum("c"))
        return flow.df

    return lambda: statistics.median(run(made(), BATCHES)[2:]) / 1000


def touch(job: tuple[Operator, Any, pa.Table, int]) -> Any:
    operator, state, bundle, watermark = job
    return operator.step(state, bundle, watermark=watermark, processing_time=0)


def operator(schema: pa.Schema, window: Any, combiners: Any = None, **options: Any) -> Operator:
    return Operator(Grouping(combiners or SUMS, window, by="k", **options), schema)


def given(keys: np.ndarray, times: np.ndarray | int = 0, values: Any = 1) -> pa.Table:
    count = len(keys)
    stamps = pa.array(np.broadcast_to(times, count).astype(np.int64)).cast(STAMP)
    values = np.broadcast_to(values, count) if np.isscalar(values) else values
    return pa.table({"k": keys, "ts": stamps, "v": values})


def holding(windows: int) -> tuple[Operator, Any, pa.Table, int]:
    """A step that touches 10,000 windows of those that are held."""
    few = given(np.random.default_rng(1).choice(windows, 10_000, replace=False))
    trigger = uc.AfterWatermark(early=uc.AfterCount(1000), late=uc.AfterCount(1))
    made = operator(few.schema, uc.Fixed("1 hour"), trigger=trigger)
    state = made.initial()
    for first in range(0, windows, 1_000_000):
        part = given(np.arange(first, min(first + 1_000_000, windows)))
        state = made.step(state, part, watermark=0, processing_time=0).state
    return made, state, few, 0


def overlapping(windows: int) -> tuple[Operator, Any, pa.Table, int]:
    """Sliding windows of a minute, of which each row is in so many."""
    rng = np.random.default_rng(0)
    table = given(rng.integers(0, 1_000, 1_000_000), np.sort(rng.integers(0, 3 * MINUTE, 1_000_000)))
    period = f"{60_000 // windows} milliseconds"
    made = operator(table.schema, uc.Sliding("1 minute", period), allow_finish=True)
    return made, made.initial(), table, 0


def late(percent: int) -> tuple[Operator, Any, pa.Table, int]:
    """A step of rows so many of which belong to windows that were shown, and retract what these said."""
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"mode": "retracting", "allowed_lateness": "1 day"}
    trigger = uc.AfterWatermark(late=uc.AfterCount(1))
    everyone = given(np.arange(100_000))
    made = operator(everyone.schema, uc.Fixed("1 minute"), trigger=trigger, **options)
    state = made.step(made.initial(), everyone, watermark=MINUTE, processing_time=0).state
    times = np.where(rng.random(1_000_000) * 100 < percent, 0, MINUTE)
    return made, state, given(rng.integers(0, 100_000, 1_000_000), times), MINUTE


def large(size: int) -> tuple[Operator, Any, pa.Table, int]:
    """A step that touches 10,000 windows of 100,000, each of which holds a text of this size."""
    keys = np.arange(100_000)
    texts = pa.array([f"{k:0{size}d}" for k in range(100)]).take(pa.array(keys % 100))
    table = given(keys, 0, texts)
    trigger = uc.AfterWatermark(early=uc.AfterCount(1000), late=uc.AfterCount(1))
    made = operator(table.schema, uc.Fixed("1 hour"), {"last": uc.Max("v")}, trigger=trigger)
    state = made.step(made.initial(), table, watermark=0, processing_time=0).state
    few = np.random.default_rng(1).choice(len(keys), 10_000, replace=False)
    return made, state, table.take(pa.array(few)), 0

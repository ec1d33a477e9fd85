"""Watermark strategies in streams: processing time wakes a query, and checkpoints name the strategy of the sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from engine import Engine
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from streams import START, read_stream, rows_flow, written

import uncombine as uc

SECOND = 1_000_000
EVENTS = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})


def events(*found: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "ts": START + t * SECOND, "v": v} for k, t, v in found], EVENTS)


def at(seconds: float) -> int:
    """Milliseconds of a batch's time."""
    return START // 1000 + int(seconds * 1000)


def counted(watermark: Any, shards: int = 2, **options: Any) -> Any:
    flow = rows_flow(EVENTS, watermark=watermark, shards=shards)
    return flow.window(uc.Fixed("1 minute"), **options).combine(by="k", n=uc.Count())


def of(panes: pa.Table) -> list[tuple[str, int, float]]:
    """Key, count and second of processing time of each pane."""
    rows = [(row["k"], row["n"], row["pane"]["processing_time"]) for row in panes.to_pylist()]
    return sorted((k, n, (uc.timestamp(now) - START) / SECOND) for k, n, now in rows)


def test_windows_fire_at_their_own_instants_in_batches_without_data() -> None:
    engine = Engine(counted(uc.ProcessingTime("10 seconds"), shards=1))
    engine.batch(events(("a", 30, 1), ("b", 61, 1)), at(31))
    (handle,) = engine.store.values()
    assert handle.timers == {at(70)}
    engine.restart()
    assert engine.batch(None, at(69.999))[0].num_rows == 0
    assert of(engine.batch(None, at(100))[0]) == [("a", 1, 70.0)]
    panes, counts = engine.batch(events(("a", 59, 1), ("b", 62, 1)), at(129))
    assert (panes.num_rows, counts[0]["rows_dropped"]) == (0, 1)
    assert of(engine.batch(None, at(131))[0]) == [("b", 2, 130.0)]
    assert not handle.timers


def test_with_a_watermark_of_each_batch_every_micro_batch_shows_its_windows() -> None:
    flow = counted("each_batch").window(uc.Fixed("1 hour")).combine(total=uc.Sum("n"))
    engine = Engine(flow)
    left = []
    for i, rows in enumerate(([("a", 100, 1), ("b", 5, 1)], [], [("a", 1, 1), ("a", 101, 1)], [("b", 7, 1)])):
        panes, counts = engine.batch(events(*rows), at(i))
        assert not any(of_stage.get("rows_dropped") for of_stage in counts)
        left += [(row["total"], row["diff"], row["pane"]["timing"]) for row in panes.to_pylist()]
    assert left == [(2, 1, "ON_TIME"), (2, -1, "ON_TIME"), (4, 1, "LATE"), (4, -1, "LATE"), (5, 1, "LATE")]


def test_sources_of_a_users_strategy_are_in_the_checkpoint_under_its_name() -> None:
    @dataclass(frozen=True)
    class OfKeys(uc.WatermarkStrategy):
        """A source for each key, which reports the times of rows whose v is not less than a bound."""

        least: int

        @property
        def columns(self) -> tuple[str, ...]:
            return ("k", "v")

        def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
            return rows["k"], np.where(np.asarray(rows["v"]) >= self.least, times, self.NONE)

    engine = Engine(counted(OfKeys(1)))
    engine.batch(events(("a", 1, 1), ("b", 2, 1)), at(0))
    kept, other = engine.snapshot(), engine.snapshot()
    engine = Engine(counted(OfKeys(1)), restored=kept)
    assert engine.batch(events(("a", 61, 1)), at(1))[0].num_rows == 0
    assert of(engine.batch(events(("b", 62, 0), ("b", 60, 1)), at(2))[0]) == [("a", 1, 2.0), ("b", 1, 2.0)]
    # Under another name the sources start again: b is not known any more.
    renamed = Engine(counted(OfKeys(0)), restored=other)
    assert of(renamed.batch(events(("a", 61, 1)), at(1))[0]) == [("a", 1, 1.0), ("b", 1, 1.0)]


def test_a_query_with_strategies_of_the_clock_and_of_a_user(spark: SparkSession, tmp_path: Path) -> None:
    """The rows come once. A second later their window is passed by time alone, in a batch without rows."""

    class Second(uc.WatermarkStrategy):
        """Reports the times of rows of one key."""

        columns = ("k",)

        def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
            return None, np.where([k == "b" for k in rows["k"].to_pylist()], times, self.NONE)

    folder = written([events(("a", 0, 1), ("a", 7, 1), ("b", 5, 1))], tmp_path / "files")
    df = read_stream(spark, folder, EVENTS)
    now = df.withColumn("ts", F.current_timestamp())  # the time of the batch
    window = uc.Fixed("1 second")
    clock = uc.flow(now, watermark=uc.ProcessingTime("1 second"), name="clock").window(window).combine(n=uc.Count())
    own = uc.flow(df, watermark=Second(), name="own").window(window).combine(by="k", n=uc.Count())
    both = clock.df.select("window", "n").unionByName(own.df.select("window", "n", "k"), allowMissingColumns=True)
    writer = both.writeStream.format("memory").queryName("strategies")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="200 milliseconds").start()
    try:
        for _ in range(300):
            assert not query.awaitTermination(0.1), "it goes on by itself"
            if spark.table("strategies").count() == 2:
                break
        shown = spark.table("strategies").collect()
    finally:
        query.stop()
    assert sorted((row.k or "", row.n) for row in shown) == [("", 3), ("a", 1)]

"""Timers of processing time: in batches without data, in the order of time, and of sources that fall silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engine import Engine
from pyspark.sql import SparkSession
from reference.byrule.agree import combiners_of
from reference.byrule.transcripts import SCHEMA
from scripts import locally, scripted
from streams import MARK, ORIGIN, START, in_order, play, punctuated, punctuated_schema, read_stream, rows_flow, written

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.panes.state.manifest import extra_of
from uncombine.panes.watermarks.stored_watermarks import read_extra
from uncombine.triggers import uses_processing_time

SECOND = 1_000_000
EVENTS = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})


def events(*found: tuple[str, int, int]) -> pa.Table:
    rows = [{"k": k, "ts": START + t * SECOND, "v": v} for k, t, v in found]
    return pa.Table.from_pylist(rows, EVENTS)


def at(seconds: float) -> int:
    """Milliseconds of a batch's time."""
    return START // 1000 + int(seconds * 1000)


def moments(panes: pa.Table) -> list[float]:
    """When each pane says that it was made, in seconds."""
    times = pa.compute.struct_field(panes["pane"], "processing_time").cast(pa.int64()).to_pylist()
    return [(t - START) / SECOND for t in times]


@pytest.mark.weekly
def test_random_scripts_whose_clock_is_that_of_the_batches() -> None:
    """A move of the clock is a batch without data, in which Spark calls only the shards that asked for it."""
    played = 0
    for seed in range(120):
        script, options = scripted(seed)
        given = dict(options)
        diff, by = given.pop("diff"), given.pop("by")
        one = options["timestamp"] in ("earliest", "latest") or options["window"] == uc.Global()
        marks = uc.Punctuated(MARK, source=ORIGIN)
        try:
            source = rows_flow(punctuated_schema(SCHEMA), "ts", marks, 1 if one else 3, diff=diff)
            flow = source.window(**given).combine(by=by, **combiners_of(options))
        except InvalidArgument:
            continue
        if not uses_processing_time(flow.stages[0].grouping.effective_trigger):
            continue
        batches = [
            None if isinstance(entry, uc.Clock) else rows
            for entry, rows in zip(script, punctuated(script, SCHEMA), strict=True)
        ]
        times = [(entry.t if isinstance(entry, uc.Clock) else entry.at) // 1000 for entry in script]
        got = play(flow, batches, times, seed, lambda engine, i: engine.restart() if i % 2 else None)
        assert in_order(got.filter(pa.compute.not_equal(got["diff"], 0))) == in_order(locally(script, options))
        played += 1
    assert played > 10


def test_timers_that_are_overdue_fire_at_their_own_instants_in_order() -> None:
    trigger = uc.Repeatedly(uc.AtPeriod("2 seconds"))
    flow = rows_flow(EVENTS, watermark=uc.Monotonic(), shards=2)
    engine = Engine(flow.window(uc.Fixed("1 day"), trigger).combine(by="k", n=uc.Count()))
    engine.batch(events(("a", 1, 1)), at(1))
    engine.batch(events(("b", 2, 1)), at(2.5))
    panes, _ = engine.batch(None, at(2.9))
    assert panes.num_rows == 0
    panes, _ = engine.batch(None, at(60))
    assert sorted(zip(panes["k"].to_pylist(), moments(panes), strict=True)) == [("b", 4.0)]
    assert all(not handle.timers for handle in engine.store.values())


def test_a_timer_is_set_again_when_something_is_due_earlier() -> None:
    trigger = uc.Repeatedly(uc.AfterDelay("10 seconds"))
    flow = rows_flow(EVENTS, watermark=uc.Monotonic(), shards=1)
    engine = Engine(flow.window(uc.Fixed("1 second"), trigger).combine(n=uc.Count()))
    engine.batch(events(("a", 100, 1)), at(1))
    (handle,) = engine.store.values()
    assert handle.timers == {at(11)}
    engine.restart()
    engine.batch(events(("a", 100, 1)), at(2))
    assert handle.timers == {at(11)}
    panes, _ = engine.batch(None, at(11))
    assert moments(panes) == [11.0]
    assert not handle.timers


def test_a_timer_within_a_millisecond_is_called_at_the_next() -> None:
    flow = rows_flow(EVENTS, watermark=uc.Monotonic(), shards=1)
    trigger = uc.Repeatedly(uc.AfterDelay("1500 microseconds"))
    engine = Engine(flow.window(uc.Fixed("1 day"), trigger).combine(n=uc.Count()))
    engine.batch(events(("a", 1, 1)), at(1))
    (handle,) = engine.store.values()
    assert handle.timers == {at(1) + 2}
    panes, _ = engine.batch(None, at(1) + 2)
    assert moments(panes) == [1.0015]


def test_a_source_that_falls_silent_no_longer_holds_the_watermark() -> None:
    silent = uc.PerSource("k", idle_after="10 seconds")
    flow = rows_flow(EVENTS, watermark=silent, shards=2).window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count())
    engine = Engine(flow)
    panes, _ = engine.batch(events(("a", 30, 1), ("b", 40, 1)), at(0))
    assert panes.num_rows == 0
    panes, _ = engine.batch(events(("b", 90, 1)), at(5))
    assert panes.num_rows == 0, "a has only come to 30"
    engine.restart()
    panes, _ = engine.batch(None, at(9.999))
    assert panes.num_rows == 0
    panes, _ = engine.batch(None, at(12))
    assert sorted(zip(panes["k"].to_pylist(), moments(panes), strict=True)) == [("a", 10.0), ("b", 10.0)]
    panes, counts = engine.batch(events(("a", 31, 1), ("a", 91, 1)), at(13))
    assert panes.num_rows == 0
    assert counts[0]["rows_dropped"] == 1
    panes, _ = engine.batch(events(("b", 200, 1)), at(14))
    assert panes.num_rows == 0, "a counts again, and holds the watermark at 91"


def test_a_silent_source_stays_known_when_idle_after_is_given_later() -> None:
    def flow(idle_after: str | None) -> uc.Flow:
        rows = rows_flow(EVENTS, watermark=uc.PerSource("k", idle_after=idle_after), shards=1)
        return rows.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count())

    engine = Engine(flow(None))
    engine.batch(events(("a", 30, 1), ("b", 40, 1)), at(0))
    panes, _ = engine.batch(events(("b", 90, 1)), at(50))
    assert panes.num_rows == 0, "a holds the watermark"
    later = Engine(flow("10 seconds"), restored=engine.store)
    panes, _ = later.batch(events(("b", 91, 1)), at(60))
    assert sorted(panes["k"].to_pylist()) == ["a", "b"]
    (handle,) = later.store.values()
    marks = read_extra(extra_of(bytes(handle.states["manifest"]["value"][0])))["marks"]
    assert {name: (time - START) // 1_000_000 for name, time, _ in marks["sources"]} == {"a": 30, "b": 91}


def test_a_query_runs_batches_without_data(spark: SparkSession, tmp_path: Path) -> None:
    """Rows come once, and then only time goes by: their windows are shown a second later, in a batch without rows."""
    df = read_stream(spark, written([events(("a", 1, 1), ("b", 2, 1), ("a", 3, 1))], tmp_path / "files"), EVENTS)
    trigger = uc.Repeatedly(uc.AfterDelay("1 second"))
    delayed = uc.flow(df, watermark=uc.Monotonic()).window(uc.Fixed("1 day"), trigger).combine(by="k", n=uc.Count())
    writer = delayed.write_stream(checkpoint=tmp_path / "checkpoint").format("memory").queryName("delayed")
    query = writer.trigger(processingTime="200 milliseconds").start()
    try:
        for _ in range(1_200):
            assert not query.awaitTermination(0.1), "it goes on by itself"
            if spark.table("delayed").count():
                break
        shown = sorted(spark.table("delayed").collect())
        batches = query.recentProgress
        for _ in range(600):
            last = uc.progress(query)
            assert last is not None
            if last.batch > batches[-1]["batchId"] and last.stages[0].step_us == 0:
                break  # a batch that woke no shard
            query.awaitTermination(0.1)
    finally:
        query.stop()
    kept = last.stages[0]
    assert (kept.step_us, kept.windows_held, uc.timestamp(kept.watermark or 0)) == (0, 2, START + 3_000_000)
    assert [(row.k, row.n) for row in shown] == [("a", 2), ("b", 1)]
    numbers = [(batch["numInputRows"], uc.progress(batch).stages[0]) for batch in batches]
    rows = [(count, row.rows_in, row.panes_early) for count, row in numbers if count or row.panes_early]
    assert rows == [(3, 3, 0), (0, 0, 2)]
    waited = [row.pane.processing_time.timestamp() for row in shown]
    assert waited[0] == waited[1], "both were due at one instant, whichever batch it was"


@pytest.mark.parametrize("trigger", [uc.AfterDelay("1 second"), uc.AtPeriod("1 second")], ids=str)
def test_without_wake_what_is_due_comes_with_the_next_data(trigger: Any) -> None:
    flow = rows_flow(EVENTS, watermark=uc.Monotonic(), shards=1, wake=False)
    engine = Engine(flow.window(uc.Fixed("1 day"), uc.Repeatedly(trigger)).combine(n=uc.Count()))
    engine.batch(events(("a", 1, 1)), at(0.5))
    panes, _ = engine.batch(None, at(30))
    assert panes.num_rows == 0
    panes, _ = engine.batch(events(("a", 2, 1)), at(40))
    assert panes["n"].to_pylist() == [1]
    assert moments(panes)[0] <= 1.5

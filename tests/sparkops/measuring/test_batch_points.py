"""The metrics of queries: those of a report of Spark, and those of a real query with a live table."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kept_metrics import KeptMetrics
from pyspark.sql import SparkSession
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.metrics import instruments as of
from uncombine.panes.state.lateness import BOUNDS
from uncombine.sparkops.measuring import batch_points
from uncombine.sparkops.measuring.batch_points import METRICS
from uncombine.sparkops.measuring.far_listener import plain
from uncombine.sparkops.measuring.stage_triggers import StageTriggers
from uncombine.sparkops.progress_log import ProgressLog
from uncombine.sparkops.spark_private import await_events

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "d": pa.int64()})


def event(**other: Any) -> dict[str, Any]:
    late = {f"lateness_{place}": place for place in range(9)}
    counts = {"rows_in": 10, "panes_late": 2, "retractions": 1, "rows_bad": 3, "load_us": 1_500_000, **late}
    times = {"watermark": 60_000_000, "latest": 90_000_000, "processing_time": 10**12, "lateness_seconds": 77}
    sources = [[1, "a", 60_000_000, 0, False], [1, "b", 80_000_000, 0, True], [1, "c", None, None, False]]
    files = {"files_skipped": 4, "rows_unreadable": 5}
    return {
        "id": "i",
        "runId": "r",
        "name": "q",
        "batchId": 7,
        "timestamp": "2024-05-01T12:00:00.250Z",
        "durationMs": {"triggerExecution": 1_250, "addBatch": 900, "commitOffsets": 30},
        "stateOperators": [{"commitTimeMs": 400}, {"commitTimeMs": 100}],
        "observedMetrics": {
            "uncombine clicks 1": {"counts": {**counts, **times, "sources": json.dumps(sources)}},
            "uncombine clicks files": files,
        },
        **other,
    }


def test_the_numbers_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_points, "TRIGGERS", StageTriggers())  # other tests have queries of these names
    with KeptMetrics() as kept:
        METRICS.batch("q", event())
    at = ("q", "clicks", "1")
    assert kept[of.ROWS_IN, at] == 10
    assert kept[of.ROWS_LEFT_OUT, (*at, "bad")] == 3
    assert kept[of.ROWS_LEFT_OUT, ("q", "clicks", "source", "unreadable")] == 5
    assert kept[of.FILES_SKIPPED, ("q", "clicks")] == 4
    assert kept[of.PANES_SHOWN, (*at, "", "late")] == 2
    assert kept[of.PANES_RETRACTED, (*at, "")] == 1
    assert kept[of.STAGE_TIME, (*at, "", "load")] == 1.5
    assert kept[of.COMMIT_TIME, ("q",)] == 0.5
    assert kept[of.BATCH_TIME, ("q", "commitOffsets")] == 0.03
    assert kept[of.BATCH_DURATION, ("q",)] == 1.25
    assert kept[of.BATCH_END, ("q",)] == 1_714_564_801.5
    assert (kept[of.WATERMARK, at], kept[of.LATEST, at], kept[of.WATERMARK_LAG, at]) == (60, 90, 30)
    assert kept[of.CLOCK_LAG, at] == 10**6 - 60
    lags = {values[-1]: number for (instrument, values), number in kept.items() if instrument is of.SOURCE_LAG}
    idle = {values[-1]: number for (instrument, values), number in kept.items() if instrument is of.SOURCE_IDLE}
    # "c" has not reported, and holds the watermark where it is.
    assert (lags, idle) == ({"a": 30, "b": 10, "c": 30}, {"a": 0, "b": 1, "c": 0})
    [late] = [point for point in kept.points if point.instrument is of.ROWS_LATENESS]
    assert (late.number, list(late.classes)) == (77, list(range(9)))
    [span] = kept.spans
    assert (span.end - span.start, span.attributes["uncombine.rows.in"]) == (1_250_000_000, 10)
    assert span.start == 1_714_564_800_250_000_000
    never = {of.TABLE_ROWS, of.TABLE_DURATION}
    assert {instrument for instrument, _ in kept} == {*of.INSTRUMENTS} - never


def test_the_classes_of_lateness_are_those_of_the_shards() -> None:
    assert of.LATENESS_BOUNDS == BOUNDS


def test_a_report_that_a_query_waits_is_no_batch() -> None:
    with KeptMetrics() as kept:
        METRICS.batch("q", event(durationMs={"latestOffset": 1, "triggerExecution": 1}, observedMetrics={}))
    assert not kept.points
    assert not kept.spans


def test_an_end_is_told_by_the_name_of_the_query() -> None:
    log = ProgressLog()
    with KeptMetrics() as kept:
        log.batch(event())
        log.end({"id": "i", "runId": "r", "exception": "boom"})
        log.end({"id": "of others", "runId": "s", "exception": "boom"})
    assert (kept[of.RUNNING, ("q",)], kept[of.FAILURES, ("q",)]) == (0, 1)


def test_rows_of_spark_connect_have_the_same_numbers() -> None:
    def far(row: dict[str, Any]) -> dict[str, Any]:
        values = [far(value) if isinstance(value, dict) else value for value in row.values()]
        return {"values": values, "schema": {"type": "struct", "fields": [{"name": name} for name in row]}}

    observed = {metric: far(row) for metric, row in event()["observedMetrics"].items()}
    assert plain(event(observedMetrics=observed)) == event()


@pytest.mark.parametrize("name", [None, "counts"])
def test_the_metrics_of_a_live_table(
    name: str | None, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every batch is counted once, against plain counts of the rows."""
    minute = 60_000_000
    tables = [
        pa.Table.from_pylist([{"k": k, "ts": START + at * minute, "d": 1} for k, at in rows], SCHEMA)
        for rows in ([("a", 0), ("b", 0), ("a", 30)], [("a", 0), ("b", 31), ("a", 28)])
    ]
    place = written(tables, tmp_path / "in")
    flow = uc.flow(read_stream(spark, place, SCHEMA), watermark="1 minute", diff="d")
    hour = flow.window("1 minute", "each row", mode="retracting", allowed_lateness="10 minutes")
    with changed(spark), KeptMetrics() as kept, caplog.at_level(logging.WARNING, "uncombine"):
        live = hour.combine(by="k", n=uc.Count()).to_table(
            f"parquet:{tmp_path}/live",
            checkpoint=tmp_path / "c",
            trigger={"availableNow": True},
            query_name=name,
        )
        live.awaitTermination()
        await_events(spark)
    table = f"the Parquet folder {tmp_path}/live"
    query = name or table
    at = (query, "flow", "1")
    assert kept[of.ROWS_IN, at] == 6
    assert kept[of.ROWS_LEFT_OUT, (*at, "late")] == 1
    # The watermark was 29 minutes in: a row came 28 minutes after the end of its window, one at the end of its own.
    [_, late] = [point for point in kept.points if point.instrument is of.ROWS_LATENESS]
    assert (late.number, list(late.classes)) == (28 * 60, [1, 0, 0, 0, 1, 0, 0, 0, 0])
    assert (kept[of.WATERMARK, at], kept[of.LATEST, at]) == tuple(START / 1e6 + 60 * m for m in (30, 31))
    assert kept[of.WATERMARK_LAG, at] == 60
    assert (kept[of.TABLE_ROWS, (query, table)], kept.count(of.TABLE_DURATION)) == (5, 2)
    assert sum(kept[of.PANES_SHOWN, (*at, "Always()", timing)] for timing in ("early", "on_time", "late")) == 5
    assert (kept[of.RUNNING, (query,)], kept[of.FAILURES, (query,)], len(kept.spans)) == (0, 0, 2)

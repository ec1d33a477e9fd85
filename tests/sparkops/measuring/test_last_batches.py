"""A batch that touches no state keeps the numbers of the state that the batch before it left."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from kept_metrics import KeptMetrics

import uncombine as uc
from uncombine.metrics import instruments as of
from uncombine.metrics.prometheus_numbers import PrometheusNumbers
from uncombine.metrics.receivers import RECEIVERS
from uncombine.sparkops.measuring import batch_numbers
from uncombine.sparkops.measuring.last_batches import LAST_BATCHES
from uncombine.sparkops.progress import progress_of
from uncombine.sparkops.progress_log import ProgressLog
from uncombine.sparkops.routes.shard_rows import CLOCKS, COUNTS

SOURCES = [[1, "s3", 60_000_000, 10**12, False], [1, "s1", 80_000_000, 10**12, False]]


def touched(rows: int = 10, windows: int = 24, **more: Any) -> dict[str, Any]:
    times = {"watermark": 60_000_000, "latest": 90_000_000, "processing_time": 10**12}
    counts = {"rows_in": rows, "windows_held": windows, "chunks": 2, "state_bytes": 2048, "step_us": 5, **times}
    return {**counts, "shards": 4, "sources": json.dumps(SOURCES), **more}


def untouched() -> dict[str, Any]:
    """The counts of a stage of which no shard ran, as Spark gives them."""
    return {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(CLOCKS), "shards": 0, "sources": None, "inputs": "[null]"}


def event(batch: int, *stages: dict[str, Any], query: str = "i", run: str = "r") -> dict[str, Any]:
    return {
        "id": query,
        "runId": run,
        "name": "q",
        "batchId": batch,
        "timestamp": "2024-05-01T12:00:00.250Z",
        "durationMs": {"triggerExecution": 100, "addBatch": 50},
        "observedMetrics": {f"uncombine sensors {i}": {"counts": one} for i, one in enumerate(stages, 1)},
    }


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAST_BATCHES, "_last", {})


def query_of(*reports: dict[str, Any]) -> Any:
    last = reports[-1]
    return SimpleNamespace(recentProgress=list(reports), lastProgress=last, id=last["id"], runId=last["runId"])


def test_the_line_of_an_empty_batch_says_the_state_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    log = ProgressLog()
    with caplog.at_level(logging.INFO, "uncombine"):
        for batch in (event(1, touched()), event(2, untouched()), event(3, untouched()), event(4, touched(1, 25))):
            log.batch(batch)
        log.batch(event(5, untouched()))
    states = [line.partition("0 rows left out, ")[2] for line in caplog.messages]
    held = "watermark 1970-01-01 00:01:00 (lag 0:00:30), 24 windows in 2 KiB"
    assert states == [held, held, held, held.replace("24", "25"), held.replace("24", "25")]
    assert "batch 2, 0.1 s: 0 rows in, 0 panes" in caplog.messages[1]


def test_timers_of_a_few_shards_do_not_make_the_state_look_small() -> None:
    """The counts of state are sums over the shards that ran, and the clocks those of them."""
    log, timers = ProgressLog(), event(2, touched(0, 1, shards=1, watermark=70_000_000, panes_early=1))
    log.batch(event(1, touched()))
    log.batch(timers)
    (stage,) = progress_of(timers).stages
    assert (stage.windows_held, stage.state_bytes, stage.shards, stage.panes) == (24, 2048, 4, 1)
    assert stage.watermark == datetime.fromtimestamp(70, UTC)
    log.batch(event(3, touched(1, 25, shards=5)))
    assert progress_of(event(4, untouched())).stages[0].windows_held == 25


def test_the_clocks_of_a_stage_are_those_of_its_shards() -> None:
    assert batch_numbers._CLOCKS == CLOCKS


def test_gauges_keep_their_last_value_and_sums_do_not_grow() -> None:
    log, numbers = ProgressLog(), PrometheusNumbers()
    RECEIVERS.add(numbers)
    try:
        with KeptMetrics() as kept:
            log.batch(event(1, touched(), touched(windows=3)))
            log.batch(event(2, untouched(), touched(windows=4)))
    finally:
        RECEIVERS.remove(numbers)
    at = ("q", "sensors", "1")
    assert kept[of.ROWS_IN, at] == 10
    now = {instrument: numbers.numbers[instrument] for instrument in (of.WINDOWS, of.WATERMARK, of.WATERMARK_LAG)}
    assert (now[of.WINDOWS][at], now[of.WINDOWS]["q", "sensors", "2"]) == (24, 4)
    assert (now[of.WATERMARK][at], now[of.WATERMARK_LAG][at]) == (60, 30)
    assert numbers.numbers[of.SOURCE_TIME][(*at, "1", "s3")] == 60


def test_the_lag_against_the_clock_grows_in_batches_without_rows() -> None:
    first = event(1, touched())
    later = event(2, untouched()) | {"timestamp": "2024-05-01T12:00:42.250Z"}
    log = ProgressLog()
    with KeptMetrics() as kept:
        log.batch(first)
        log.batch(later)
        at = ("q", "sensors", "1")
        assert kept[of.CLOCK_LAG, at] - (10**6 - 60) == 42
        assert kept[of.WATERMARK_LAG, at] == 30
    progress = uc.progress(query_of(first, later))
    assert progress is not None
    assert progress.ended == datetime(2024, 5, 1, 12, 0, 42, 350_000, tzinfo=UTC)
    assert progress.stages[0].clock_lag == timedelta(seconds=10**6 - 60 + 42)


def test_progress_keeps_state_clocks_and_sources() -> None:
    """Also where nobody listens, as over Spark Connect, from the reports that Spark keeps."""
    first, second = event(1, touched()), event(2, untouched())
    progress = uc.progress(query_of(first, second, event(3, untouched())))
    assert progress is not None
    (stage,) = progress.stages
    assert (progress.batch, stage.rows_in, stage.windows_held, stage.state_bytes) == (3, 0, 24, 2048)
    assert [one.name for one in stage.sources] == ["s3", "s1"]
    assert not progress_of(second).state_known
    ProgressLog().batch(first)
    assert progress_of(second).stages[0].windows_held == 24
    assert not progress_of(event(4, untouched())).state_known  # batches in between are not known


def test_a_restart_whose_first_batch_is_empty() -> None:
    """In this process the state is known; in another one nothing is said in its place."""
    log, untold = ProgressLog(), event(2, untouched(), query="other", run="t")
    log.batch(event(1, touched()))
    log.end({"id": "i", "runId": "r", "exception": None})
    log.batch(event(2, untouched(), run="s"))
    again = uc.progress(query_of(event(2, untouched(), run="s")))
    assert again is not None
    assert again.stages[0].windows_held == 24
    with KeptMetrics() as kept:
        log.batch(untold)
    assert kept.count(of.WINDOWS) == kept.count(of.WATERMARK) == 0
    assert str(progress_of(untold)).endswith("0 rows left out, state not touched since the start")
    # An older copy of the checkpoint is in its place: what was known is of batches that are not done any more.
    log.batch(event(1, untouched(), run="u"))
    assert not progress_of(event(1, untouched(), run="u")).state_known


def test_a_query_that_waits_after_a_restart_says_since_when_and_after_which_batch() -> None:
    idle = {**event(2), "runId": "s", "durationMs": {"latestOffset": 1, "triggerExecution": 1}}
    later = {**idle, "timestamp": "2024-05-01T12:09:00.250Z"}
    assert str(uc.progress(query_of(idle, later))) == "waiting since 2024-05-01 12:00:00; after batch 1"
    ProgressLog().batch(event(1, touched()))
    progress = uc.progress(query_of(idle, later))
    assert str(progress) == (
        "waiting since 2024-05-01 12:00:00; after batch 1: watermark 1970-01-01 00:01:00 (lag 0:00:30), "
        "24 windows in 2 KiB"
    )
    assert progress is not None
    assert progress.to_dict()["waiting_since"] == "2024-05-01T12:00:00.250000+00:00"
    assert uc.progress(query_of({**idle, "batchId": 0})) is None
    # In the run that had the batch it is that batch, however many reports of waiting came since.
    waits = {**idle, "runId": "r"}
    assert str(uc.progress(query_of(waits, waits))).startswith("batch 1, 0.1 s: 10 rows in")

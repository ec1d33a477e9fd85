"""The log of queries: a line for each batch, by one listener a session, and what is said of a start and an end."""

from __future__ import annotations

import json
import logging
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from kept_metrics import KeptMetrics
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.metrics import instruments as of
from uncombine.sparkops.progress import FlowProgress, Progress, StageProgress
from uncombine.sparkops.progress_log import ProgressLog, listen
from uncombine.sparkops.spark_private import await_events

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "d": pa.int64()})
NOW = {"availableNow": True}


def event(**other: Any) -> dict[str, Any]:
    counts = {"rows_in": 10, "panes_late": 2, "watermark": 60_000_000, "load_us": 1_500, "chunks": 3}
    batch = {"id": "q", "runId": "r", "name": None, "batchId": 7, "durationMs": {"addBatch": 900}}
    metrics = {"uncombine clicks 1": {"counts": counts}}
    return {**batch, "durationMs": {"triggerExecution": 1_250}, "observedMetrics": metrics, **other}


def test_a_batch_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log = ProgressLog()
    sources = [{"description": "files", "endOffset": {"logOffset": 3}}]
    with caplog.at_level(logging.INFO, "uncombine"):
        log.batch(event(sources=sources))
        log.batch(event(name="visits", runId="s"))
        log.batch(event(observedMetrics={"other": {"x": 1}}, runId="t"))
        log.batch({"id": "of others", "runId": "u", "batchId": 0, "durationMs": {}})
        log.begin("q", "r", table="table 'totals' of shop.db")
        log.batch({"id": "q", "runId": "r", "batchId": 8, "durationMs": {"triggerExecution": 900}})
    line = "batch 7, 1.2 s: 10 rows in, 2 panes (2 late), 0 retracted, 0 rows left out, watermark"
    assert [words.partition(line)[0] for words in caplog.messages[:2]] == ["the query 'q': ", "the query 'visits': "]
    assert caplog.messages[2:] == ["table 'totals' of shop.db: batch 8, 0.9 s"]
    numbers: Any = vars(caplog.records[0])["progress"]
    assert numbers["flows"]["clicks"]["stages"][0]["rows_in"] == 10
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "uncombine"):
        log.batch(event(sources=sources))
    assert caplog.messages[1].split("; ") == [
        "table 'totals' of shop.db: batch 7: triggerExecution 1250 ms",
        "stage 1 of clicks: load 2 ms, step 0 ms, save 0 ms, 3 chunks",
        "files to {'logOffset': 3}",
    ]


def test_an_end_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log = ProgressLog()
    own = "org.apache.spark.api.python.PythonException: Traceback\nuncombine.errors.TableMismatch: t is gone\n\tat"
    with caplog.at_level(logging.INFO, "uncombine"):
        for words in (None, own, "java.lang.IllegalStateException: full\n\tat"):
            log.batch(event())
            log.end({"id": "q", "runId": "r", "exception": words})
        log.end({"id": "of others", "runId": "s", "exception": None})
    ends = [(record.levelname, record.getMessage()) for record in caplog.records][1::2]
    assert ends == [
        ("INFO", "the query 'q': the query has ended"),
        ("ERROR", "the query 'q': the query has failed: TableMismatch: t is gone"),
        ("ERROR", "the query 'q': the query has failed: java.lang.IllegalStateException: full"),
    ]


def test_a_query_that_fails_before_its_first_batch(caplog: pytest.LogCaptureFixture) -> None:
    """Its end may be heard before the one who started it says so; each run is told of once."""
    log, failed = ProgressLog(), {"id": "q", "exception": "boom"}
    with KeptMetrics() as kept, caplog.at_level(logging.INFO, "uncombine"):
        log.begin("q", "r", "visits")
        assert (kept[of.RUNNING, ("visits",)], kept[of.FAILURES, ("visits",)]) == (1, 0)
        log.end({"runId": "r", **failed})
        assert (kept[of.RUNNING, ("visits",)], kept[of.FAILURES, ("visits",)]) == (0, 1)
        log.end({"runId": "s", **failed})  # of nobody, until somebody says so
        assert kept[of.FAILURES, ("visits",)] == 1
        log.begin("q", "s", "visits")
        assert (kept[of.RUNNING, ("visits",)], kept[of.FAILURES, ("visits",)]) == (0, 2)
        log.batch(event(runId="t", name="visits"))
        log.end({"runId": "t", "id": "q", "exception": None})
        log.begin("q", "t", "visits")  # too late to say it
        assert (kept[of.RUNNING, ("visits",)], kept[of.FAILURES, ("visits",)]) == (0, 2)
    ends = [words for words in caplog.messages if "batch 7" not in words]
    assert ends == [*2 * ["the query 'visits': the query has failed: boom"], "the query 'visits': the query has ended"]


def test_nothing_is_said_that_nobody_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    log = ProgressLog()
    with caplog.at_level(logging.WARNING, "uncombine"):
        log.batch(event())
        log.end({"id": "q", "runId": "r", "exception": "boom"})
    assert caplog.messages == ["the query 'q': the query has failed: boom"]


def test_numbers_as_plain_values() -> None:
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    stage = StageProgress(
        rows_in=3,
        panes_early=1,
        panes_late=2,
        watermark=at,
        latest=at.replace(second=30),
        processing_time=at.replace(minute=2),
    )
    progress = Progress(
        7, 1.25, {"clicks": FlowProgress((stage, StageProgress()), 4, 5), "views": FlowProgress((), 1, 2)}
    )
    assert (progress.files_skipped, progress.rows_unreadable) == (5, 7)
    numbers = progress.to_dict()
    assert json.loads(json.dumps(numbers)) == numbers
    clicks = numbers["flows"]["clicks"]
    assert (numbers["batch"], numbers["seconds"]) == (7, 1.25)
    assert (clicks["files_skipped"], clicks["rows_unreadable"]) == (4, 5)
    first, second = clicks["stages"]
    assert (first["rows_in"], first["panes"], first["panes_late"]) == (3, 3, 2)
    assert (first["lag_seconds"], first["clock_lag_seconds"]) == (30, 120)
    assert (first["watermark"], second["watermark"]) == ("2024-05-01T12:00:00+00:00", None)
    assert first["watermark"] == stage.watermark.isoformat() if stage.watermark else False
    assert (second["lag_seconds"], second["clock_lag_seconds"]) == (None, None)


def test_the_line_says_the_reasons_and_the_lag_of_event_time() -> None:
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    stage = StageProgress(rows_in=1, panes_early=1, panes_on_time=3_000, panes_late=2, rows_dropped=1, rows_bad=1)
    times = {"watermark": at, "latest": at.replace(second=30), "processing_time": at.replace(year=2026)}
    assert str(replace(stage, retractions=2, **times)) == (
        "1 row in, 3,003 panes (1 early, 3,000 on time, 2 late), 2 retracted, 2 rows left out (1 late, 1 bad), "
        "watermark 2024-05-01 12:00:00 (lag 0:00:30), 0 windows in 0 B"
    )
    others = str(StageProgress(panes_late=1, rows_finished=1))
    assert others.startswith("0 rows in, 1 pane (1 late), 0 retracted, 1 row left out (1 finished), watermark none, ")


def test_a_batch_that_runs_for_long_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uc.sparkops.progress, "LONG", 0.0)
    turns = iter([False, False, False, True])

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return next(turns)

    status = {"message": "Processing new data", "isTriggerActive": True}
    query: Any = SimpleNamespace(
        awaitTermination=wait, lastProgress=event(durationMs={"addBatch": 900}), status=status, isActive=True
    )
    uc.watch(query, every=0.01)
    lines = capsys.readouterr().out.split("\r")
    assert ["has run for" in line for line in lines] == [False, False, True, True, True]


@pytest.mark.parametrize("waits", [True, False])
def test_silence_is_told_while_a_query_waits_for_rows(waits: bool, capsys: pytest.CaptureFixture[str]) -> None:
    batch = event(timestamp="2024-05-01T12:00:00Z", durationMs={"addBatch": 900})
    status = {"message": "Waiting", "isTriggerActive": False, "isDataAvailable": not waits}
    query: Any = SimpleNamespace(
        awaitTermination=lambda seconds: True, lastProgress=batch, status=status, isActive=True
    )
    uc.watch(query)
    line = capsys.readouterr().out
    assert ("; no batch for " in line and ", since no rows came" in line) is waits


def test_ctrl_c_ends_the_watch_outside_of_calls_into_the_jvm(capsys: pytest.CaptureFixture[str]) -> None:
    """A handler that raises would break the call that waits; the watch lets it end."""
    calls = list[float]()

    def wait(seconds: float) -> bool:
        signal.raise_signal(signal.SIGINT)
        calls.append(seconds)
        return False

    before = signal.getsignal(signal.SIGINT)
    uc.watch(SimpleNamespace(awaitTermination=wait, lastProgress=None, status={"message": "idle"}), every=60)  # type: ignore[arg-type]
    assert (calls, signal.getsignal(signal.SIGINT)) == ([0.5], before)
    assert capsys.readouterr().out == "\rwaiting for the first batch: idle\n"


def flow_of(spark: SparkSession, folder: Path) -> uc.Flow:
    source = uc.flow(read_stream(spark, folder, SCHEMA), watermark="1 minute", diff="d")
    return source.window(uc.Fixed("1 minute"), uc.Always(), mode="retracting").combine(by="k", n=uc.Count())


def rows(*keys: str, weight: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "ts": START, "d": weight} for k in keys], SCHEMA)


def test_the_lines_of_a_live_table(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place, checkpoint = written([rows("a", "b"), rows("a")], tmp_path / "in"), tmp_path / "c"
    listen(spark)
    listen(SparkSession.getActiveSession() or spark)  # another object of Python for the same session
    target = f"parquet:{tmp_path}/live"
    with changed(spark), caplog.at_level(logging.INFO, "uncombine"):
        for _ in range(2):
            live = flow_of(spark, place).to_table(target, checkpoint=checkpoint, trigger=NOW)
            live.awaitTermination()
            await_events(spark)
    name = f"the Parquet folder {tmp_path}/live"
    start = "waiting for its first batch, for which Spark starts Python processes"
    said = [words for words in caplog.messages if words.startswith(name)]
    assert said[0] == f"{name}: a query starts a new checkpoint {checkpoint}: {start}"
    batches = [words for words in said if words.startswith(f"{name}: batch ")]
    assert [words.partition(" s: ")[2].split(",")[0] for words in batches] == ["2 rows in", "1 row in"]
    assert f"{name}: a query starts after batch 1 of checkpoint {checkpoint}: {start}" in said
    assert said[-1] == f"{name}: the query has ended"
    assert len(said) == 6


def test_the_lines_of_a_writer_and_of_a_query_that_fails(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = written([rows("a"), rows("b", "b")], tmp_path / "in")
    plain = uc.flow(read_stream(spark, place, SCHEMA), watermark="1 minute", diff="d")
    with changed(spark), caplog.at_level(logging.INFO, "uncombine"):
        writer = flow_of(spark, place).write_stream(checkpoint=tmp_path / "c").format("noop")
        writer.queryName("of a writer").trigger(availableNow=True).start().awaitTermination()
        live = plain.to_table(f"parquet:{tmp_path}/live", "k", checkpoint=tmp_path / "d", trigger=NOW)
        with pytest.raises(StreamingQueryException):
            live.awaitTermination()
        await_events(spark)
    starts = [words for words in caplog.messages if words.startswith(f"a query starts with checkpoint {tmp_path}/c: ")]
    assert len(starts) == 1
    assert [words.split(",")[0] for words in caplog.messages if words.startswith("the query 'of a writer': batch")] == [
        "the query 'of a writer': batch 0",
        "the query 'of a writer': batch 1",
    ]
    assert "the query 'of a writer': the query has ended" in caplog.messages
    errors = [record for record in caplog.records if (record.name, record.levelname) == ("uncombine", "ERROR")]
    [failed] = [record.getMessage() for record in errors]
    words = "the query has failed: InvalidArgument: a table has one row for each key"
    assert failed.startswith(f"the Parquet folder {tmp_path}/live: {words}")


def test_the_progress_of_a_query_that_waits_is_that_of_its_last_batch() -> None:
    """Spark reports every ten seconds that nothing happened, under the number of the batch that is next."""
    ran = event(durationMs={"addBatch": 900, "triggerExecution": 1_250})
    idle = event(batchId=8, durationMs={"latestOffset": 1, "triggerExecution": 1}, observedMetrics={})
    reports = [event(batchId=6, durationMs={"addBatch": 1}), ran, idle, idle]
    progress = uc.progress(SimpleNamespace(recentProgress=reports, lastProgress=idle))
    assert progress is not None
    assert (progress.batch, progress.stages[0].rows_in) == (7, 10)
    assert uc.progress(SimpleNamespace(recentProgress=[], lastProgress=None)) is None

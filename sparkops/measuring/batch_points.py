"""The metrics of a query, made of what Spark reports about each of its batches.

Guarded by tests/sparkops/measuring/test_batch_points.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ...metrics import instruments as of
from ...metrics.instruments import Point
from ...metrics.receivers import RECEIVERS, BatchSpan
from ..naming import Label, parsed, shown_names
from ..progress import Progress, StageProgress, progress_of
from .stage_triggers import TRIGGERS

SOURCE = "source"
"""The stage of rows that the files of a source have, and no stage gets."""


class QueryMetrics:
    """Sends the numbers of the batches and ends of queries to those who receive metrics."""

    def batch(self, query: str, event: Mapping[str, Any]) -> None:
        """Send the numbers of a batch. A report without one, such as that a query waits, has none."""
        if not RECEIVERS.on or "addBatch" not in event["durationMs"]:
            return
        progress = progress_of(event)
        span = _span(query, event, progress)
        RECEIVERS.take([*_of_batch(query, event, span), *_of_flows(query, event, progress)], query)
        RECEIVERS.span(span)

    def begin(self, query: str) -> None:
        """Send that a query runs, before its first batch: the sum of its failures begins at 0."""
        if RECEIVERS.on:
            RECEIVERS.take([Point(of.RUNNING, (query,), 1), Point(of.FAILURES, (query,), 0)], query)

    def end(self, query: str, failed: bool) -> None:
        """Send the end of a run of a query."""
        if RECEIVERS.on:
            failures = [Point(of.FAILURES, (query,), int(failed))]
            RECEIVERS.take([Point(of.RUNNING, (query,), 0), *failures], query)


def _span(query: str, event: Mapping[str, Any], progress: Progress) -> BatchSpan:
    """The batch as a span, with the numbers of the rows that first stages got, and of the panes of last ones."""
    begin = datetime.fromisoformat(event["timestamp"])
    start = int(begin.timestamp() * 1000) * 1_000_000
    millis = event["durationMs"].get("triggerExecution", 0)
    attributes: dict[str, str | int | float] = {"uncombine.query": query, "uncombine.batch": int(event["batchId"])}
    stages = [flow.stages for flow in progress.flows.values() if flow.stages]
    attributes[of.ROWS_IN.name] = sum(some[0].rows_in for some in stages)
    attributes[of.PANES_SHOWN.name] = sum(some[-1].panes for some in stages)
    attributes[of.PANES_RETRACTED.name] = sum(some[-1].retractions for some in stages)
    for part, spent in event["durationMs"].items():
        attributes[f"uncombine.part.{part}"] = spent / 1000
    return BatchSpan(start, start + millis * 1_000_000, attributes)


def _of_batch(query: str, event: Mapping[str, Any], span: BatchSpan) -> Iterator[Point]:
    durations = dict(event["durationMs"])
    yield Point(of.RUNNING, (query,), 1)
    yield Point(of.FAILURES, (query,), 0)
    yield Point(of.BATCH_END, (query,), span.end / 1e9)
    yield Point(of.BATCH_DURATION, (query,), durations.pop("triggerExecution", 0) / 1000)
    for part, millis in durations.items():
        yield Point(of.BATCH_TIME, (query, part), millis / 1000)
    commits = (operator.get("commitTimeMs") or 0 for operator in event.get("stateOperators", ()))
    yield Point(of.COMMIT_TIME, (query,), sum(commits) / 1000)


def _of_flows(query: str, event: Mapping[str, Any], progress: Progress) -> Iterator[Point]:
    labels = {label for metric in event.get("observedMetrics", ()) if (part := parsed(metric)) for label in part[:1]}
    by_name: dict[str, Label] = {name: label for label, name in shown_names(labels).items()}
    for name, flow in progress.flows.items():
        here = (query, name)
        yield Point(of.FILES_SKIPPED, here, flow.files_skipped)
        yield Point(of.ROWS_LEFT_OUT, (*here, SOURCE, "unreadable"), flow.rows_unreadable)
        for number, stage in enumerate(flow.stages, 1):
            trigger = TRIGGERS[by_name[name].metric(str(number))]
            yield from _of_stage((*here, str(number)), trigger, stage)


def _of_stage(here: tuple[str, str, str], trigger: str, stage: StageProgress) -> Iterator[Point]:
    yield Point(of.ROWS_IN, here, stage.rows_in)
    yield Point(of.ROWS_UNCOMBINED, here, stage.rows_uncombined)
    lost = {"late": stage.rows_dropped, "finished": stage.rows_finished}
    for reason, rows in {**lost, "unassigned": stage.rows_unassigned, "bad": stage.rows_bad}.items():
        yield Point(of.ROWS_LEFT_OUT, (*here, reason), rows)
    yield Point(of.ROWS_LATENESS, here, stage.lateness_seconds, stage.lateness)
    panes = {"early": stage.panes_early, "on_time": stage.panes_on_time, "late": stage.panes_late}
    for timing, count in panes.items():
        yield Point(of.PANES_SHOWN, (*here, trigger, timing), count)
    yield Point(of.PANES_RETRACTED, (*here, trigger), stage.retractions)
    for phase, micros in {"load": stage.load_us, "step": stage.step_us, "save": stage.save_us}.items():
        yield Point(of.STAGE_TIME, (*here, trigger, phase), micros / 1e6)
    if stage.state_known:
        yield Point(of.WINDOWS, here, stage.windows_held)
        yield Point(of.SIZE, here, stage.state_bytes)
        yield Point(of.CHUNKS, here, stage.chunks)
    times = {of.WATERMARK: stage.watermark, of.LATEST: stage.latest}
    yield from (Point(instrument, here, time.timestamp()) for instrument, time in times.items() if time is not None)
    lags = {of.WATERMARK_LAG: stage.lag, of.CLOCK_LAG: stage.clock_lag}
    yield from (Point(instrument, here, lag.total_seconds()) for instrument, lag in lags.items() if lag is not None)
    yield from _of_sources(here, stage)


def _of_sources(here: tuple[str, str, str], stage: StageProgress) -> Iterator[Point]:
    for source in stage.sources:
        at = (*here, str(source.input), source.name or "")
        yield Point(of.SOURCE_IDLE, at, int(source.idle))
        if source.watermark is not None:
            yield Point(of.SOURCE_TIME, at, source.watermark.timestamp())
        # One that has not reported yet holds the watermark where it is.
        reached = source.watermark or (None if source.idle else stage.watermark)
        if reached is not None and stage.latest is not None:
            yield Point(of.SOURCE_LAG, at, max(stage.latest - reached, timedelta(0)).total_seconds())


METRICS = QueryMetrics()
"""The metrics of the queries of this process."""

__all__ = ["METRICS", "QueryMetrics"]

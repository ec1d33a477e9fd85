"""Progress of a streaming query, as numbers and as one line, from the metrics of its stages."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import reduce
from os import PathLike
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import InvalidArgument, TypeMismatch
from ..flows.flow import Flow
from ..tables.interrupts import ended_within, interrupts, unbroken
from ..windows import MAX_TIME, MIN_TIME
from .checkpoints.before_start import before_start, waiting
from .measuring.batch_numbers import FlowProgress, Progress, SourceProgress, StageProgress
from .measuring.last_batches import LAST_BATCHES
from .naming import FILES, Label, parsed, shown_names
from .routes.pass_through import LOST
from .routes.shard_rows import CLOCKS, COUNTS, INPUTS, LATENESS, SHARDS, SOURCES

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import StreamingQueryProgress

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LONG = 5.0
"""The seconds from which on a batch that runs is told of."""

SILENT = 10.0
"""The seconds from which on it is told that no batch comes."""


def progress(query: StreamingQuery | StreamingQueryProgress | Mapping[str, Any]) -> Progress | None:
    """The progress of the last batch of a query over flows; None before the first.

    While a query waits for rows, Spark reports every ten seconds that nothing happened; such reports are no batches.
    A query that has been started again, and waits for its first rows, has the last batch before the start with the
    state after it. What this process has not seen of it is read once from the checkpoint, in a job of Spark.
    The argument can also be one of `query.recentProgress`, or the `progress` of a listener's event.

    Examples
    --------
    >>> import tempfile, uncombine as uc
    >>> spark = uc.session()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> ticks = uc.flow(rates, time="timestamp", watermark=uc.Monotonic())
    >>> counts = ticks.window(uc.Fixed("1 hour")).combine(n=uc.Count())
    >>> writer = counts.write_stream(checkpoint=tempfile.mkdtemp()).format("noop")
    >>> query = writer.trigger(once=True).start()
    >>> query.awaitTermination()
    >>> uc.progress(query).stages[0].rows_in
    10
    >>> [uc.progress(batch).batch for batch in query.recentProgress]
    [0]
    """
    _check_query(query, "progress()")
    return unbroken(lambda: _last_batch(query)) if hasattr(query, "lastProgress") else progress_of(query)


def _last_batch(query: Any) -> Progress | None:
    """The last batch of a query, in this run or before it; None if it has had none."""
    last = query.lastProgress
    if last is None:
        return None
    reports = [last] if is_batch(last) else []  # the usual case, in which a hundred reports need not be read
    reports = reports or [report for report in query.recentProgress if is_batch(report)]
    if not reports:
        began = _value(query.recentProgress[0], "timestamp")
        known = LAST_BATCHES.of(str(query.id), str(query.runId))
        return known or waiting(query, int(_value(last, "batchId")) - 1, datetime.fromisoformat(began))
    if (progress := progress_of(reports[-1])).state_known:
        return progress
    every = [_as_reported(report) for report in query.recentProgress if is_batch(report)]
    whole = reduce(lambda before, one: one.with_state_of(before), [*every, progress])
    if whole.state_known or len(whole.flows) != 1:
        return whole
    before = before_start(query, flow=next(iter(whole.flows)))
    return whole if before is None else whole.with_state_of(before)


def is_batch(report: Any) -> bool:
    """True for the report of a batch, and False for one that a query waits."""
    return "addBatch" in _durations(report)


def _durations(report: Any) -> Mapping[str, int]:
    durations: Mapping[str, int] = _value(report, "durationMs")
    return durations


def _value(report: Any, name: str) -> Any:
    """A value of a report, which is an object or what JSON has for one."""
    return report[name] if isinstance(report, Mapping) else getattr(report, name)


def _check_query(query: object, who: str) -> None:
    """Raise for a flow, a DataFrame, or a folder, in the place of the query that runs it."""
    if isinstance(query, str | PathLike):
        raise TypeMismatch(
            f"{who} takes a query of this process, and not a folder: uc.checkpoint({str(query)!r}) and "
            f"uc.why({str(query)!r}) tell of one from outside"
        )
    if isinstance(query, Flow) or hasattr(query, "writeStream"):
        start = "flow.df" if isinstance(query, Flow) else "df"
        raise TypeMismatch(
            f"{who} takes a running query, but was given a {type(query).__name__}: write "
            f"query = {start}.writeStream.option('checkpointLocation', folder).start(), then uc.{who[:-1]}query)"
        )


def progress_of(report: Any) -> Progress:
    """The progress in one of `query.recentProgress`, or in the `progress` of a listener's event.

    Where it touched no state, it has the state that the batch before it left, as far as that is known here.
    """
    id = report.get("id") if isinstance(report, Mapping) else report.id
    return LAST_BATCHES.completed(str(id), _as_reported(report))


def taken(event: Mapping[str, Any]) -> Progress:
    """The progress of the next batch of a query, which is remembered."""
    return LAST_BATCHES.take(str(event["id"]), str(event["runId"]), _as_reported(event))


def _as_reported(report: Any) -> Progress:
    """The progress in a report alone."""
    observed = report.get("observedMetrics", {}) if isinstance(report, Mapping) else report.observedMetrics
    parts: dict[Label, dict[str, Mapping[str, Any]]] = {}
    for metric, row in observed.items():
        if (label_and_part := parsed(metric)) is not None:
            parts.setdefault(label_and_part[0], {})[label_and_part[1]] = fields_of(row)
    flows = {name: _flow(parts[label]) for label, name in shown_names(parts).items()}
    seconds = _durations(report).get("triggerExecution", 0) / 1000
    began = report.get("timestamp") if isinstance(report, Mapping) else report.timestamp
    ended = None if began is None else datetime.fromisoformat(began) + timedelta(seconds=seconds)
    read, waiting = _files(report)
    return Progress(
        batch=int(_value(report, "batchId")),
        seconds=seconds,
        flows=flows,
        ended=ended,
        files_read=read,
        files_waiting=waiting,
    )


def _files(report: Any) -> tuple[int | None, int | None]:
    """The numbers of files that are read and that wait, of sources that know them."""
    sources = report.get("sources", ()) if isinstance(report, Mapping) else report.sources
    counts = []
    for source in sources:
        end = _value(source, "endOffset")
        offset = json.loads(end) if isinstance(end, str) and '"counts"' in end else end
        if isinstance(offset, Mapping) and "counts" in offset:
            counts.append(offset["counts"])
    return (sum(read for read, _ in counts), sum(waiting for _, waiting in counts)) if counts else (None, None)


def _flow(parts: Mapping[str, Mapping[str, Any]]) -> FlowProgress:
    numbers = sorted(int(part) for part in parts if not part.startswith(FILES))
    files = [row for part, row in parts.items() if part.startswith(FILES)]
    counts = {name: sum(int(row.get(name) or 0) for row in files) for name in LOST}
    stages = tuple(_stage(parts[str(number)].get("counts") or {}) for number in numbers)
    return FlowProgress(stages=stages, **counts)


def watch(query: StreamingQuery, every: float = 1.0, out: TextIO | None = None) -> None:
    """Show the last batch of a query in one line that changes, until the query ends or the user interrupts.

    The line has all flows of the query, with their names if there are several. It looks the same in a terminal and in a
    notebook. An interrupt ends the display and not the query.

    Examples
    --------
    >>> import tempfile, uncombine as uc
    >>> spark = uc.session()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> ticks = uc.flow(rates, time="timestamp", watermark=uc.Monotonic())
    >>> counts = ticks.window(uc.Fixed("1 hour")).combine(n=uc.Count())
    >>> writer = counts.write_stream(checkpoint=tempfile.mkdtemp()).format("noop")
    >>> uc.watch(writer.trigger(once=True).start())  # doctest: +ELLIPSIS
    <BLANKLINE>
    ...batch 0, ... s: 10 rows in, 0 panes, 0 retracted, ...
    """
    _check_query(query, "watch()")
    if every <= 0:
        raise InvalidArgument(f"every= must be more than 0 seconds, but is {every!r}")
    out = sys.stdout if out is None else out
    width, running, batch = 0, True, _RunningBatch()
    with suppress(KeyboardInterrupt), interrupts() as interrupted:
        while running and not interrupted():
            running = not ended_within(query.awaitTermination, every, interrupted)
            last = progress(query)
            line = str(last or f"waiting for the first batch: {query.status['message']}") + batch.told(query, last)
            out.write("\r" + line.ljust(width))
            out.flush()
            width = len(line)
    out.write("\n")


class _RunningBatch:
    """The batch that runs while a query is watched, and since when it is seen; or the silence since the last one."""

    def __init__(self) -> None:
        self.after: int | None = None
        self.began: float | None = None

    def told(self, query: StreamingQuery, last: Progress | None) -> str:
        """The end of a line of the last batch: for how long the next one has run, or none has, if that is long."""
        if last is None or not query.isActive:
            self.after = None
            return ""
        status = query.status
        if not status["isTriggerActive"] or last.batch != self.after:
            self.after, self.began = last.batch, None
            waits = not status["isTriggerActive"] and not status["isDataAvailable"]
            return _silence(last) if waits else ""
        if self.began is None:
            self.began = time.monotonic()
        seconds = time.monotonic() - self.began
        return f"; the next batch has run for {seconds:.0f} s" if seconds >= LONG else ""


def _silence(last: Progress) -> str:
    """That nothing has come for some time, as the end of a line; and that this lets no window pass."""
    seconds = 0.0 if last.ended is None else (datetime.now(UTC) - last.ended).total_seconds()
    if seconds < SILENT:
        return ""
    sources = [source for flow in last.flows.values() for stage in flow.stages for source in stage.sources]
    idle = ", all sources are idle" if sources and all(source.idle for source in sources) else ""
    return f"; no batch for {seconds:.0f} s, since no rows came{idle}"


def _stage(counts: Any) -> StageProgress:
    numbers = fields_of(counts)
    values: dict[str, Any] = {name: int(numbers.get(name) or 0) for name in COUNTS}
    values["lateness"] = tuple(values.pop(name) for name in LATENESS)
    values |= {name: _time(numbers.get(name)) for name in CLOCKS}
    rows = json.loads(numbers.get(SOURCES) or "[]")
    names = dict(enumerate(json.loads(numbers.get(INPUTS) or "[]"), 1))
    sources = tuple(
        SourceProgress(place, names.get(place) if name is None else name, _time(at), _time(last), idle, *read)
        for place, name, at, last, idle, *read in rows
    )
    shards = int(numbers.get(SHARDS, 1))
    return StageProgress(**values, sources=sources, shards=shards, state_known=shards > 0)


def fields_of(row: Any) -> Mapping[str, Any]:
    """The fields of a row; the JSON of a progress has objects in the place of rows.

    A server of Spark Connect sends each row, and each row in it, as a list of values beside its schema.
    """
    values: Mapping[str, Any] = row if isinstance(row, Mapping) else row.asDict()
    if values.keys() != {"values", "schema"}:
        return values
    names = [column["name"] for column in values["schema"]["fields"]]
    return dict(zip(names, values["values"], strict=True))


def _time(micros: int | None) -> datetime | None:
    if micros is None or not MIN_TIME < micros < MAX_TIME:
        return None
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


__all__ = [
    "FlowProgress",
    "Progress",
    "SourceProgress",
    "StageProgress",
    "fields_of",
    "is_batch",
    "progress",
    "progress_of",
    "taken",
    "watch",
]

"""Progress of a streaming query, as numbers and as one line, from the metrics of its stages."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import InvalidArgument, TypeMismatch
from ..flows.flow import Flow
from ..tables.interrupts import ended_within, interrupts
from ..windows import MAX_TIME, MIN_TIME
from .measuring.number_words import counted_noun, shown_size
from .naming import FILES, Label, parsed, shown_names
from .routes.pass_through import LOST
from .routes.shard_rows import CLOCKS, COUNTS, INPUTS, LATENESS, SOURCES

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import StreamingQueryProgress

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SourceProgress:
    """A source of a stage: the time that it has reached, and the processing time of its last report.

    >>> from uncombine.sparkops.progress import SourceProgress
    >>> SourceProgress(1, "clicks").idle
    False
    """

    input: int
    """The input of the stage, from 1 on: the right side of a join is 2."""
    name: str | None
    """The name in the watermark strategy, such as a partition, else that of the flow; None if neither has one."""
    watermark: datetime | None = None
    last_report: datetime | None = None
    idle: bool = False
    offset: int | None = None
    """The next offset of a partition of Kafka; None for other sources."""
    end: int | None = None
    """The offset at which the partition ended when the batch was planned."""

    @property
    def behind(self) -> int | None:
        """The number of offsets of a partition that were there and not read; None for other sources."""
        return None if self.offset is None or self.end is None else self.end - self.offset

    def to_dict(self) -> dict[str, Any]:
        """The source as values that JSON has."""
        times = {name: getattr(self, name) for name in ("watermark", "last_report")}
        return {
            **asdict(self),
            "behind": self.behind,
            **{name: None if time is None else time.isoformat() for name, time in times.items()},
        }


@dataclass(frozen=True)
class StageProgress:
    """The counts of one grouping in a batch, over all its shards; counts of state are those after the batch.

    `rows_uncombined` counts the rows that went to their shards one by one, because a task found that combining them
    does not pay, or because the shards need them.
    The times in microseconds are summed over tasks: loading the state, the step, saving.
    `watermark` is the least of all shards; it is None at the beginning and at the end of time. `latest` is the latest
    event time that a source has seen, as its watermark reports tell. `sources` are those of the data, the one that
    holds the watermark first: all of them, up to a hundred. `lateness` has the numbers of rows of a grouping that came
    after the end of their window, whether they were still taken in or not, by how far the watermark had passed it: up
    to a second, 10 seconds, a minute, 10 minutes, an hour, 6 hours, a day, a week, and longer. `lateness_seconds` is
    the sum over these rows.

    >>> from uncombine.sparkops.progress import StageProgress
    >>> StageProgress(rows_in=10, panes_on_time=2).panes
    2
    """

    rows_in: int = 0
    rows_uncombined: int = 0
    panes_early: int = 0
    panes_on_time: int = 0
    panes_late: int = 0
    retractions: int = 0
    rows_dropped: int = 0
    rows_finished: int = 0
    rows_unassigned: int = 0
    rows_bad: int = 0
    windows_held: int = 0
    chunks: int = 0
    state_bytes: int = 0
    load_us: int = 0
    step_us: int = 0
    save_us: int = 0
    lateness: tuple[int, ...] = (0, 0, 0, 0, 0, 0, 0, 0, 0)
    lateness_seconds: int = 0
    watermark: datetime | None = None
    output_watermark: datetime | None = None
    processing_time: datetime | None = None
    latest: datetime | None = None
    sources: tuple[SourceProgress, ...] = ()

    @property
    def panes(self) -> int:
        """The number of panes: early, on time and late."""
        return self.panes_early + self.panes_on_time + self.panes_late

    @property
    def lag(self) -> timedelta | None:
        """The time from the watermark to the latest event time seen, which does not grow with the age of the data."""
        if self.watermark is None or self.latest is None:
            return None
        return max(self.latest - self.watermark, timedelta(0))

    @property
    def clock_lag(self) -> timedelta | None:
        """The time from the watermark to the clock."""
        if self.watermark is None or self.processing_time is None:
            return None
        return self.processing_time - self.watermark

    def to_dict(self) -> dict[str, Any]:
        """The counts and times, with the number of panes and the lags in seconds, as values that JSON has."""
        counts = {**asdict(self), "lateness": list(self.lateness)}
        times = {name: None if counts[name] is None else counts[name].isoformat() for name in CLOCKS}
        lags = {"lag_seconds": self.lag, "clock_lag_seconds": self.clock_lag}
        seconds = {name: None if lag is None else lag.total_seconds() for name, lag in lags.items()}
        sources = [source.to_dict() for source in self.sources]
        return {**counts, **times, "sources": sources, "panes": self.panes, **seconds}

    def __str__(self) -> str:
        mark = "none" if self.watermark is None else f"{self.watermark:%Y-%m-%d %H:%M:%S}"
        lag = "" if self.lag is None else f" (lag {timedelta(seconds=int(self.lag.total_seconds()))})"
        panes = counted_noun(
            self.panes, "pane", early=self.panes_early, on_time=self.panes_on_time, late=self.panes_late
        )
        lost = {"late": self.rows_dropped, "finished": self.rows_finished}
        lost |= {"unassigned": self.rows_unassigned, "bad": self.rows_bad}
        return (
            f"{counted_noun(self.rows_in, 'row')} in, {panes}, {self.retractions:,} retracted, "
            f"{counted_noun(sum(lost.values()), 'row', ' left out', **lost)}, watermark {mark}{lag}, "
            f"{self.windows_held:,} windows in {shown_size(self.state_bytes)}"
        )


@dataclass(frozen=True)
class FlowProgress:
    """The progress of one flow in a batch: its stages in order, and the numbers of files that it skipped, of rows of
    other files or messages that it left out because they are unreadable, and of offsets of Kafka that were not read and
    are not in their topic any more. `rows_bad` counts messages of a changelog that cannot be read and come to no step;
    a step counts its own.

    >>> from uncombine.sparkops.progress import FlowProgress
    >>> FlowProgress(files_skipped=2).stages
    ()
    """

    stages: tuple[StageProgress, ...] = ()
    files_skipped: int = 0
    rows_unreadable: int = 0
    offsets_lost: int = 0
    rows_bad: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All numbers, with those of the stages, as values that JSON has."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**numbers, "stages": [stage.to_dict() for stage in self.stages]}

    def __str__(self) -> str:
        lost = [f"{self.rows_unreadable:,} unreadable rows left out"] if self.rows_unreadable else []
        lost += [f"{self.offsets_lost:,} offsets lost"] if self.offsets_lost else []
        lost += [f"{self.rows_bad:,} bad messages left out"] if self.rows_bad else []
        if len(self.stages) == 1:
            return "; ".join([str(self.stages[0]), *lost])
        return "; ".join([*(f"stage {i}: {stage}" for i, stage in enumerate(self.stages, 1)), *lost])


@dataclass(frozen=True)
class Progress:
    """A batch of a query: its number, its duration, and its flows by name.

    Flows of the same name are numbered from 1, in the order in which their DataFrames were made. "flow" is the name of
    a flow without a name.

    >>> from uncombine.sparkops.progress import FlowProgress, Progress, StageProgress
    >>> clicks, views = (FlowProgress((StageProgress(rows_in=rows),)) for rows in (3, 4))
    >>> Progress(7, 1.25, {"clicks": clicks}).stages[0].rows_in
    3
    >>> both = Progress(7, 1.25, {"clicks": clicks, "views": views})
    >>> both.flows["views"].stages[0].rows_in
    4
    """

    batch: int
    seconds: float
    flows: Mapping[str, FlowProgress] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[StageProgress, ...]:
        """The stages of the only flow, in order."""
        if len(self.flows) > 1:
            names = " and ".join(map(repr, self.flows))
            raise InvalidArgument(
                f"the query has {len(self.flows)} flows, {names}: write which one you mean, such as "
                f"flows[{next(iter(self.flows))!r}].stages"
            )
        return next((flow.stages for flow in self.flows.values()), ())

    @property
    def files_skipped(self) -> int:
        """The number of skipped files of all flows."""
        return sum(flow.files_skipped for flow in self.flows.values())

    @property
    def rows_unreadable(self) -> int:
        """The number of rows of files that all flows left out because they are unreadable."""
        return sum(flow.rows_unreadable for flow in self.flows.values())

    @property
    def rows_bad(self) -> int:
        """The number of bad rows and messages that all flows left out, in their steps and where they have none."""
        return sum(flow.rows_bad + sum(stage.rows_bad for stage in flow.stages) for flow in self.flows.values())

    def to_dict(self) -> dict[str, Any]:
        """The numbers as values that JSON has: times as texts in ISO 8601, and the lag in seconds.

        >>> from datetime import UTC, datetime
        >>> from uncombine.sparkops.progress import FlowProgress, Progress, StageProgress
        >>> stage = StageProgress(rows_in=3, panes_late=1, watermark=datetime(2024, 5, 1, tzinfo=UTC))
        >>> numbers = Progress(7, 1.25, {"clicks": FlowProgress((stage,))}).to_dict()
        >>> numbers["seconds"], numbers["flows"]["clicks"]["stages"][0]["watermark"]
        (1.25, '2024-05-01T00:00:00+00:00')
        """
        flows = {name: flow.to_dict() for name, flow in self.flows.items()}
        return {"batch": self.batch, "seconds": self.seconds, "flows": flows}

    def __str__(self) -> str:
        head = f"batch {self.batch}, {self.seconds:.1f} s"
        if len(self.flows) != 1:
            return "; ".join([head, *(f"{name}{_with_files(flow)}" for name, flow in self.flows.items())])
        return head + _with_files(next(iter(self.flows.values())))


def _with_files(flow: FlowProgress) -> str:
    """The text of a flow, which follows its name."""
    skipped = f", {flow.files_skipped} files skipped" if flow.files_skipped else ""
    told = str(flow)
    return f"{skipped}{': ' if len(flow.stages) <= 1 else '; '}{told}" if told else skipped


def progress(query: StreamingQuery | StreamingQueryProgress | Mapping[str, Any]) -> Progress | None:
    """The progress of the last batch of a query over flows; None before the first.

    While a query waits for rows, Spark reports every ten seconds that nothing happened; such reports are no batches.
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
    last = _last_batch(query) if hasattr(query, "lastProgress") else query
    return None if last is None else progress_of(last)


def _last_batch(query: Any) -> Any:
    """The last report of a query that is one of a batch; its last report if Spark has none of a batch any more."""
    last = query.lastProgress
    if last is None or _is_batch(last):  # the usual case, in which a hundred reports need not be read
        return last
    return next(filter(_is_batch, reversed(query.recentProgress)), last)


def _is_batch(report: Any) -> bool:
    return "addBatch" in _durations(report)


def _durations(report: Any) -> Mapping[str, int]:
    durations: Mapping[str, int] = report["durationMs"] if isinstance(report, Mapping) else report.durationMs
    return durations


def _check_query(query: object, who: str) -> None:
    """Raise for a flow, or a DataFrame, in the place of the query that runs it."""
    if isinstance(query, Flow) or hasattr(query, "writeStream"):
        start = "flow.df" if isinstance(query, Flow) else "df"
        raise TypeMismatch(
            f"{who} takes a running query, but was given a {type(query).__name__}: write "
            f"query = {start}.writeStream.option('checkpointLocation', folder).start(), then uc.{who[:-1]}query)"
        )


def progress_of(last: Any) -> Progress:
    """The progress in one of `query.recentProgress`, or in the `progress` of a listener's event."""
    observed = last.get("observedMetrics", {}) if isinstance(last, Mapping) else last.observedMetrics
    durations = _durations(last)
    batch = last["batchId"] if isinstance(last, Mapping) else last.batchId
    parts: dict[Label, dict[str, Mapping[str, Any]]] = {}
    for metric, row in observed.items():
        if (label_and_part := parsed(metric)) is not None:
            parts.setdefault(label_and_part[0], {})[label_and_part[1]] = fields_of(row)
    flows = {name: _flow(parts[label]) for label, name in shown_names(parts).items()}
    return Progress(batch=int(batch), seconds=durations.get("triggerExecution", 0) / 1000, flows=flows)


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
    width, running = 0, True
    with suppress(KeyboardInterrupt), interrupts() as interrupted:
        while running and not interrupted():
            running = not ended_within(query.awaitTermination, every, interrupted)
            line = str(progress(query) or f"waiting for the first batch: {query.status['message']}")
            out.write("\r" + line.ljust(width))
            out.flush()
            width = len(line)
    out.write("\n")


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
    return StageProgress(**values, sources=sources)


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

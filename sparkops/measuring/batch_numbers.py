"""The numbers of a batch of a query: of its flows, their stages, and the sources of these.

Guarded by tests/sparkops/test_progress_log.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from ...errors import InvalidArgument
from .number_words import counted_noun, shown_size

_CLOCKS = ("watermark", "output_watermark", "processing_time", "latest")
"""The times of a stage, by the names that its shards give them."""


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
    does not pay, or because the shards need them. `rows_out` counts the rows of a step that gives no panes, such as
    `process` or a join, and their retractions.
    The times in microseconds are summed over tasks: loading the state, the step, saving.
    `watermark` is the least of all shards; it is None at the beginning and at the end of time. `latest` is the latest
    event time that a source has seen, as its watermark reports tell. `sources` are those of the data, the one that
    holds the watermark first: all of them, up to a hundred. `lateness` has the numbers of rows of a grouping that came
    after the end of their window, whether they were still taken in or not, by how far the watermark had passed it: up
    to a second, 10 seconds, a minute, 10 minutes, an hour, 6 hours, a day, a week, and longer. `lateness_seconds` is
    the sum over these rows.
    A batch in which no shard of the stage had anything to do leaves its state, clocks and sources as they were, so
    these are those of the batch before. `state_known` is False where nobody has seen that one: in a query that has been
    started again, until its first batch with rows. `shards` is the number of shards whose state is counted: where
    timers woke a few of them alone, the counts of state are those of the last batch of all.

    >>> from uncombine.sparkops.progress import StageProgress
    >>> StageProgress(rows_in=10, panes_on_time=2).panes
    2
    """

    rows_in: int = 0
    rows_uncombined: int = 0
    panes_early: int = 0
    panes_on_time: int = 0
    panes_late: int = 0
    rows_out: int = 0
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
    shards: int = 0
    state_known: bool = True

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
        times = {name: None if counts[name] is None else counts[name].isoformat() for name in _CLOCKS}
        lags = {"lag_seconds": self.lag, "clock_lag_seconds": self.clock_lag}
        seconds = {name: None if lag is None else lag.total_seconds() for name, lag in lags.items()}
        sources = [source.to_dict() for source in self.sources]
        return {**counts, **times, "sources": sources, "panes": self.panes, **seconds}

    def with_state_of(self, before: StageProgress, elapsed: timedelta = timedelta(0)) -> StageProgress:
        """The counts of this batch, with the state of one before it; its clocks and sources too if no shard ran.

        The clock of processing time has gone on since, for as long as has `elapsed`.
        """
        names = _HELD if self.state_known else _STATE
        whole = replace(self, **{name: getattr(before, name) for name in names})
        if self.state_known or before.processing_time is None:
            return whole
        return replace(whole, processing_time=before.processing_time + max(elapsed, timedelta(0)))

    @property
    def state(self) -> str:
        """The watermark and the state, as text."""
        if not self.state_known:
            return "state not touched since the start"
        mark = "none" if self.watermark is None else f"{self.watermark:%Y-%m-%d %H:%M:%S}"
        lag = "" if self.lag is None else f" (lag {timedelta(seconds=int(self.lag.total_seconds()))})"
        windows = counted_noun(self.windows_held, "window")
        return f"watermark {mark}{lag}, {windows} in {shown_size(self.state_bytes)}"

    def __str__(self) -> str:
        return self.text({})

    def text(self, unread: Mapping[str, int]) -> str:
        """The numbers as text; `unread` are rows that were left out before they came to the stage, by the reason."""
        panes = counted_noun(
            self.panes, "pane", early=self.panes_early, on_time=self.panes_on_time, late=self.panes_late
        )
        given = f"{panes}, {self.retractions:,} retracted"
        if self.rows_out:
            given = f"{counted_noun(self.rows_out, 'row')} out"
        lost = {"late": self.rows_dropped, "finished": self.rows_finished}
        lost |= {"unassigned": self.rows_unassigned, "bad": self.rows_bad + unread.get("bad", 0)}
        lost |= {"unreadable": unread.get("unreadable", 0)}
        return (
            f"{counted_noun(self.rows_in, 'row')} in, {given}, "
            f"{counted_noun(sum(lost.values()), 'row', ' left out', **lost)}, {self.state}"
        )


_HELD = ("windows_held", "chunks", "state_bytes", "shards")
"""The counts of state, which are sums over shards."""

_STATE = (*_HELD, *_CLOCKS, "sources", "state_known")
"""The numbers of a stage that a batch leaves as they were if it does not touch the state."""


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
        unread = {"unreadable": self.rows_unreadable, "bad": self.rows_bad}
        first = self._of_stages(lambda stage: stage.text(unread if stage is self.stages[0] else {}))
        count = 0 if first else sum(unread.values())
        rows = [counted_noun(count, "row", " left out", **unread)] if count else []
        lost = [counted_noun(self.offsets_lost, "offset", " lost")] if self.offsets_lost else []
        return "; ".join([*first, *rows, *lost])

    @property
    def state(self) -> str:
        """The watermarks and states of its stages, as text."""
        return "; ".join(self._of_stages(lambda stage: stage.state))

    def _of_stages(self, text: Callable[[StageProgress], str]) -> list[str]:
        """A text of each stage, which has its number if it is one of several."""
        several = len(self.stages) > 1
        return [f"stage {i}: {text(one)}" if several else text(one) for i, one in enumerate(self.stages, 1)]


@dataclass(frozen=True)
class Progress:
    """A batch of a query: its number, its duration, and its flows by name.

    Flows of the same name are numbered from 1, in the order in which their DataFrames were made. "flow" is the name of
    a flow without a name. A query that has been started again and waits for its first rows has `waiting_since`; then
    the batch is the last one before the start, and its stages have their state and clocks alone. `ended` is the time at
    which the batch ended, as far as Spark says it. `files_read` and `files_waiting` are the numbers of files of
    `uc.Files` with `order=` that are read, and of those that were there and not read when the batch was planned; None
    for other sources.

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
    waiting_since: datetime | None = None
    ended: datetime | None = None
    files_read: int | None = None
    files_waiting: int | None = None

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
        times = {"waiting_since": self.waiting_since, "ended": self.ended}
        told = {name: time.isoformat() for name, time in times.items() if time is not None}
        files = {"files_read": self.files_read, "files_waiting": self.files_waiting}
        return {"batch": self.batch, "seconds": self.seconds, **files, "flows": flows, **told}

    def with_state_of(self, before: Progress) -> Progress:
        """The batch, with the state of one before it where it touched none."""
        flows = dict(self.flows)
        elapsed = timedelta(0) if self.ended is None or before.ended is None else self.ended - before.ended
        for name, flow in self.flows.items():
            others = before.flows[name].stages if name in before.flows else ()
            if len(others) == len(flow.stages):
                pairs = zip(flow.stages, others, strict=True)
                stages = tuple(
                    one.with_state_of(other, elapsed) if one.shards < other.shards else one for one, other in pairs
                )
                flows[name] = replace(flow, stages=stages)
        return replace(self, flows=flows)

    @property
    def state_known(self) -> bool:
        """True if the state of each stage after the batch is known."""
        return all(stage.state_known for flow in self.flows.values() for stage in flow.stages)

    def __str__(self) -> str:
        if self.waiting_since is not None:
            states = [
                flow.state if len(self.flows) == 1 else f"{name}: {flow.state}" for name, flow in self.flows.items()
            ]
            after = f"after batch {self.batch}" + (f": {'; '.join(states)}" if states else "")
            return f"waiting since {self.waiting_since:%Y-%m-%d %H:%M:%S}; {after}"
        head = f"batch {self.batch}, {self.seconds:.1f} s"
        if self.files_waiting:
            read = self.files_read or 0
            head += f", {read:,} of {read + self.files_waiting:,} files"
        if len(self.flows) != 1:
            return "; ".join([head, *(f"{name}{_with_files(flow)}" for name, flow in self.flows.items())])
        return head + _with_files(next(iter(self.flows.values())))


def _with_files(flow: FlowProgress) -> str:
    """The text of a flow, which follows its name."""
    skipped = f", {counted_noun(flow.files_skipped, 'file', ' skipped')}" if flow.files_skipped else ""
    told = str(flow)
    return f"{skipped}{': ' if len(flow.stages) <= 1 else '; '}{told}" if told else skipped


__all__ = ["FlowProgress", "Progress", "SourceProgress", "StageProgress"]

"""One shard of one stage: it takes bundles, gives panes, and fires every timer at its own processing time.

Local runs, replays and streams drive shards. None of them has its own loop that waits for timers.
Guarded by tests/panes/test_shards.py and tests/panes/test_parts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from ...windows.times import MAX_TIME, MIN_TIME
from ..operators.state import OperatorState, Stepped
from ..operators.stateful import StatefulOperator
from ..watermarks import Watermarks
from .parcels import AT, Parcel, parts

END = MAX_TIME
"""The time of the arrival that closes a shard: it comes after all others and does not move processing time."""

Report: TypeAlias = tuple[str | None, int | None]
"""A watermark report: the source and its event time; the time is None if the source only shows that it is active."""


@dataclass(frozen=True)
class Played:
    """The result of one step of a shard, and the processing time of the step."""

    at: int
    stepped: Stepped
    output_watermark: int
    whole: bool = False
    """True if the watermark ran from the beginning to the end of time."""
    closes: bool = False
    """True if the step ended the input."""

    @property
    def panes(self) -> pa.Table:
        return self.stepped.panes


@dataclass(frozen=True)
class Arrival:
    """Everything that reaches a shard at one processing time: rows, cells, watermark reports."""

    rows: Sequence[pa.Table] = ()
    cells: Sequence[Parcel] = ()
    reports: Sequence[Report] = ()
    whole: bool = False
    """True if the watermark runs from the beginning to the end of time within the bundle."""


@dataclass(frozen=True)
class Shard:
    """A shard between two bundles, as a value: the state of its operator, and the watermarks of its sources.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.shard.shard import Arrival, Shard
    >>> schema = pa.schema({"ts": pa.timestamp("us")})
    >>> shard = Shard.start(uc.Operator(uc.Grouping({"n": uc.Count()}, uc.Fixed("1 minute")), schema))
    >>> rows = pa.table({"ts": [0, 1]}).cast(schema)
    >>> shard, played = shard.take(5, Arrival([rows], reports=[(None, 60_000_000)]))
    >>> [(step.at, step.panes["n"].to_pylist()) for step in played]
    [(5, [2])]
    """

    operator: StatefulOperator
    state: OperatorState
    watermarks: Watermarks

    @classmethod
    def start(cls, operator: StatefulOperator, sources: Iterable[str] = (), idle_after: int | None = None) -> Shard:
        """A shard before any row. All of the `sources` must report before its watermark moves."""
        known: dict[str | None, tuple[int, int]] = dict.fromkeys(sources, (MIN_TIME, MIN_TIME))
        return cls(operator, operator.initial(), Watermarks(known, idle_after))

    def play(self, arrivals: Mapping[int, Arrival], until: int | None = None) -> tuple[Shard, list[Played]]:
        """Take all arrivals in order of processing time, and fire the timers that are due by then, or by `until`.

        The arrival at `END` closes the shard.
        """
        shard, out = self, list[Played]()
        for at, arrival in sorted(arrivals.items()):
            shard, played = shard.close(arrival) if at == END else shard.take(at, arrival)
            out += played
        if until is not None:
            shard, played = shard.wait(until)
            out += played
        return shard, out

    def take(self, at: int, arrival: Arrival) -> tuple[Shard, list[Played]]:
        """Fire all timers that are due by `at`, and then take one bundle."""
        shard, out = self.wait(at)
        shard = replace(shard, watermarks=shard.watermarks.told(arrival.reports, at))
        shard, played = shard._step(shard._bundle(arrival), arrival.whole)
        return shard, [*out, played]

    def wait(self, now: int) -> tuple[Shard, list[Played]]:
        """Move processing time on to `now`, and fire every timer that is due by then at its own time."""
        shard, out = self, list[Played]()
        while (due := shard.next_timer) is not None and due <= now:
            shard, played = shard._at(due)._step(shard.operator.schema.empty_table())
            out.append(played)
        return shard._at(now), out

    def close(self, arrival: Arrival = Arrival()) -> tuple[Shard, list[Played]]:
        """End the input: the watermark goes to the end of time, in one step with the rows that come last.

        These are the panes that the close of the grouping before gives.
        """
        ended = replace(self, watermarks=Watermarks(least=MAX_TIME, now=self.watermarks.now))
        shard, played = ended._step(ended._bundle(arrival))
        return shard, [replace(played, closes=True)]

    @property
    def next_timer(self) -> int | None:
        """The next processing time at which a window has a deadline or a source becomes idle; None if there is none."""
        timer = self.operator.next_timer(self.state)
        due = min(MAX_TIME if timer is None else timer, self.watermarks.next_idle)
        return due if due < MAX_TIME else None

    def _at(self, now: int) -> Shard:
        return replace(self, watermarks=self.watermarks.at(now))

    def _bundle(self, arrival: Arrival) -> Any:
        schema = self.operator.schema
        rows = pa.concat_tables([schema.empty_table(), *(table.select(schema.names) for table in arrival.rows)])
        return self.operator.bundle(rows, arrival.cells, self.watermarks.now)

    def _step(self, bundle: Any, whole: bool = False) -> tuple[Shard, Played]:
        marks = self.watermarks
        percents = marks.percentiles(self.operator.percents)
        stepped = self.operator.step(self.state, bundle, marks.least, marks.now, percents, whole)
        return replace(self, state=stepped.state), Played(marks.now, stepped, self.operator.hold(stepped.state), whole)


@dataclass(frozen=True)
class _Parts:
    """The parts of one bundle, collected from parcels."""

    rows: list[pa.Table] = field(default_factory=list)
    cells: list[Parcel] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def arrivals(parcels: Sequence[Parcel]) -> dict[int, Arrival]:
    """The arrivals in parcels, by processing time."""
    found: dict[int, _Parts] = {}
    for parcel in parcels:
        match parcel.kind:
            case "cells":
                found.setdefault(parcel.at, _Parts()).cells.append(parcel)
            case "rows":
                for at, part in parts(parcel.table, AT):
                    found.setdefault(at, _Parts()).rows.append(part)
            case "marks":
                for at, reports in reports_by_time(parcel.table).items():
                    found.setdefault(at, _Parts()).reports.extend(reports)
    return {at: Arrival(part.rows, part.cells, part.reports) for at, part in found.items()}


def by_bundle(played: Iterable[Played]) -> dict[int, list[Played]]:
    """The steps of a grouping by the time of the bundle that their panes make for the next grouping.

    The steps of one processing time make one bundle. The step that ends the input makes a bundle of its own, at `END`.
    """
    found: dict[int, list[Played]] = {}
    for done in played:
        found.setdefault(END if done.closes else done.at, []).append(done)
    return found


def reports_by_time(marks: pa.Table) -> dict[int, list[Report]]:
    """Watermark reports by their processing time. A time without reports has an empty list."""
    found: dict[int, list[Report]] = {}
    columns = (marks[name].to_pylist() for name in ("source", "time", "at"))
    for source, time, at in zip(*columns, strict=True):  # few: one a task and source
        reports = found.setdefault(at, [])
        if source is not None or time is not None:
            reports.append((source, time))
    return found


__all__ = ["END", "Arrival", "Played", "Report", "Shard", "arrivals", "by_bundle", "reports_by_time"]

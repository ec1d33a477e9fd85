"""Scripts through the operator as a worker runs it: parcels to shards, and steps with everything at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

import uncombine as uc
from uncombine.flows.left_out import REASONS
from uncombine.panes import Counts, Grouping, Operator, StepResult, Watermarks
from uncombine.panes.grouping.lift import Lift
from uncombine.panes.parcels import MARKS, Parcel
from uncombine.panes.shard.arrivals import arrivals
from uncombine.panes.shard.shard import Shard
from uncombine.panes.signals import SignalInput, SignalLift, Signals
from uncombine.panes.transforms import applied
from uncombine.panes.watermarks.watermarks import InputWatermarks
from uncombine.triggers import signals_of
from uncombine.windows import span, timestamp
from uncombine.windows.times import MAX_TIME, MIN_TIME


@dataclass(frozen=True)
class Bundle:
    """An entry of a script: the rows, the watermark reports and the processing time that come together."""

    at: int
    rows: pa.Table
    reports: list[tuple[str | None, int]]
    is_elements: bool


@dataclass
class Outcome:
    """The panes of a script for each shard, as `flow.run(script)` gives them."""

    schema: pa.Schema
    reasons: Sequence[str]
    """The reasons to leave a row out."""
    panes: list[pa.Table] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    counts: Counts = field(default_factory=Counts)
    held: int = 0
    atoms: int = 0
    output_watermarks: dict[int, int] = field(default_factory=dict)

    @property
    def table(self) -> pa.Table:
        """The panes, with the entry of the script that each came from in `step`."""
        return pa.concat_tables([self.schema.append(pa.field("step", pa.int64())).empty_table(), *self.panes])

    def add(self, step: int, stepped: StepResult) -> None:
        self.panes.append(stepped.panes.append_column("step", pa.array([step] * stepped.panes.num_rows, pa.int64())))
        for why in self.reasons:
            if count := len(stepped.left_out.get(why, ())):
                self.left_out[why] += count
        self.output_watermarks[step] = stepped.output_watermark

    def end(self, states: Iterable[Any]) -> Outcome:
        for state in states:
            self.counts += state.counts
            self.held += len(state.windows)
            self.atoms += len(state.atoms or ())
        return self


def bundles(script: Sequence[Any], schema: pa.Schema) -> list[Bundle]:
    """The entries of a script with the processing time that it has come to."""
    now, out = MIN_TIME, []
    for entry in script:
        told = entry.t if isinstance(entry, uc.Clock) else entry.at
        now = now if told is None else max(now, timestamp(told))
        elements = isinstance(entry, uc.Elements)
        rows = entry.rows if elements else []
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows], schema)
        given = entry.watermarks if elements else [entry] if isinstance(entry, uc.Watermark) else []
        reports = [(report.source, MAX_TIME if report.t is None else timestamp(report.t)) for report in given]
        out.append(Bundle(now, table, reports, elements))
    return out


def grouping_of(options: dict[str, Any], combiners: dict[str, Any]) -> tuple[Grouping, int | None]:
    """The grouping of the options of `run_script`, and after how long a source is idle."""
    given = {name: value for name, value in options.items() if name not in ("watermark", "idle_after")}
    idle = options.get("idle_after")
    return Grouping(combiners, **given), None if idle is None else int(span(idle))


def at_once(script: Sequence[Any], schema: pa.Schema, options: dict[str, Any], combiners: dict[str, Any]) -> Outcome:
    """A step for each entry, whose clock jumps with nothing on the way."""
    grouping, idle = grouping_of(options, combiners)
    operator, ports = operator_of(grouping, schema)
    state, marks, out = (
        operator.initial(),
        InputWatermarks((Watermarks(idle_after=idle),)),
        Outcome(operator.output_schema, reasons_of(grouping)),
    )
    for step, bundle in enumerate(bundles(script, schema)):
        marks = marks.told([bundle.reports], bundle.at)
        percents = marks.percentiles(operator.percents)
        each_batch = options.get("watermark") == "each_batch" and bundle.is_elements
        tables = [applied(through, bundle.rows) for through in ports]
        stepped = operator.step(
            state, operator.bundle(tables, [], bundle.at), marks.least, bundle.at, percents, each_batch
        )
        state = stepped.state
        out.add(step, stepped)
    return out.end([state])


def in_parcels(
    script: Sequence[Any],
    schema: pa.Schema,
    options: dict[str, Any],
    combiners: dict[str, Any],
    r: random.Random,
    shards: int = 1,
    rows: bool = False,
) -> Outcome:
    """The loop of a shard: entries in micro-batches of any size, rows cut into any tasks, timers on the way.

    With `rows` all travel as rows, as in a flow whose rows left out are shown.
    """
    grouping, idle = grouping_of(options, combiners)
    operator, ports = operator_of(grouping, schema)
    out, given = Outcome(operator.output_schema, reasons_of(grouping)), bundles(script, schema)
    lift = Lift(operator.compiled, shards, timed=True, rows=rows)
    marks = [Watermarks(idle_after=idle) for _ in ports]
    running = [Shard.start(operator, *marks, ports=tuple(range(len(ports)))) for _ in range(shards)]
    for first, last in _batches(given, r):
        reports = [replace(_reports(given[first:last]), input=port) for port in range(len(ports))]
        parts: list[list[Parcel]] = [list(reports) for _ in running]
        for shard, parcel in _lifted(lift, given[first:last], r):
            parts[shard].append(Parcel.unpack(parcel.pack()))
        for bundle in given[first:last] if len(ports) > 1 else ():
            for shard, parcel in SignalLift(grouping.time, shards)(applied(ports[1], bundle.rows), bundle.at):
                parts[shard].append(Parcel.unpack(replace(parcel, input=1).pack()))
        early = _between(given, first, r)
        for shard, parcels in enumerate(parts):
            if not one_by_one(grouping):
                r.shuffle(parcels)
            played = []
            if early is not None:
                running[shard], played = running[shard].wait(early)
            running[shard], more = running[shard].play(*arrivals(parcels, len(ports)), until=given[last - 1].at)
            for instant in [*played, *more]:
                step = next(i for i in range(first, last) if given[i].at >= instant.at)
                out.add(step, instant.result)
    return out.end(shard.state for shard in running)


def operator_of(grouping: Grouping, schema: pa.Schema) -> tuple[Operator, list[list[Any]]]:
    """The operator, and the transforms of the rows of each port: rows, and those of them that are signals."""
    parts = signals_of(grouping.effective_trigger)
    if not parts:
        return Operator(grouping, schema), [[]]
    signals = Signals(tuple((1 << place, part) for place, part in enumerate(parts)), grouping.diff)
    kind = applied([signals], schema.empty_table()).schema
    return Operator(grouping, schema, kind, inputs=(SignalInput(grouping.time),)), [[], [signals]]


def reasons_of(grouping: Grouping) -> Sequence[str]:
    """The reasons to leave a row out; late rows with a window of their own are not left out."""
    return [why for why in REASONS if why != "late" or grouping.late == "drop"]


def one_by_one(grouping: Grouping) -> bool:
    """True if the order of the rows of an instant matters, so that they come from one task."""
    return grouping.granularity == "record"


def _batches(given: Sequence[Bundle], r: random.Random) -> Iterable[tuple[int, int]]:
    """Entries of different instants may come in one micro-batch; those of one instant would be one bundle."""
    first = 0
    while first < len(given):
        last = first + 1
        while last < len(given) and given[last].at > given[last - 1].at and r.random() < 0.4:
            last += 1
        yield first, last
        first = last


def _between(given: Sequence[Bundle], first: int, r: random.Random) -> int | None:
    """Some instant after the last batch and before this one, at which a batch without data looks for timers."""
    if first == 0 or given[first - 1].at == MIN_TIME or given[first].at - given[first - 1].at < 2 or r.random() < 0.6:
        return None
    return r.randrange(given[first - 1].at + 1, given[first].at)


def _reports(given: Sequence[Bundle]) -> Parcel:
    """The watermark reports and the clock: a row of two nulls is of no source."""
    rows: list[tuple[str | None, int | None, int]] = []
    for bundle in given:
        rows += [(source, time, bundle.at) for source, time in bundle.reports]
        rows.append((None, None, bundle.at))
    columns = zip(*rows, strict=True)
    return Parcel("marks", pa.table([pa.array(c, f.type) for c, f in zip(columns, MARKS, strict=True)], schema=MARKS))


def _lifted(lift: Lift, given: Sequence[Bundle], r: random.Random) -> Iterable[tuple[int, Parcel]]:
    """Rows from one task, which may see several instants at once, or from a task or two for each instant."""
    if r.random() < 0.5:
        rows = pa.concat_tables([bundle.rows for bundle in given])
        yield from lift(rows, np.repeat([bundle.at for bundle in given], [bundle.rows.num_rows for bundle in given]))
        return
    for bundle in given:
        cut = 0 if one_by_one(lift.compiled.grouping) else r.randrange(bundle.rows.num_rows + 1)
        for part in (bundle.rows.slice(0, cut), bundle.rows.slice(cut)):
            yield from lift(part, bundle.at)

"""One shard of one stage as it runs: parcels in, panes out, timers at their own instants on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ..windows.times import MAX_TIME, MIN_TIME
from .cells import Cells
from .operator import Operator
from .parcels import (
    AT,
    Parcel,
    cells_back,
    cells_of_rows,
    cells_table,
    live_numbers,
    needs_rows,
    parts,
    together,
    whole_windows,
)
from .state import OperatorState, Stepped
from .watermarks import Watermarks


@dataclass(frozen=True)
class Played:
    """What one instant of processing time gave."""

    at: int
    stepped: Stepped

    @property
    def panes(self) -> pa.Table:
        return self.stepped.panes


@dataclass
class _Bundle:
    """Everything of one instant of processing time."""

    cells: list[Parcel] = field(default_factory=list)
    rows: list[pa.Table] = field(default_factory=list)
    marks: list[tuple[str | None, int | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Running:
    """A shard between two batches, as a value: what its operator knows, and what its sources said.

    `lag` is taken off every time that a source names.
    """

    operator: Operator
    state: OperatorState
    marks: Watermarks

    @classmethod
    def start(cls, operator: Operator, sources: Iterable[str] = (), idle_after: int | None = None) -> Running:
        """A shard that has seen nothing; all of the `sources` must be heard of before its watermark moves."""
        known: dict[str | None, tuple[int, int]] = dict.fromkeys(sources, (MIN_TIME, MIN_TIME))
        return cls(operator, operator.initial(), Watermarks(known, idle_after))

    def play(self, parcels: Sequence[Parcel], until: int | None = None) -> tuple[Running, list[Played]]:
        """All that the parcels bring, in order of processing time, and the timers that are due by then, or `until`."""
        running, out = self, list[Played]()
        for at, bundle in sorted(_bundles(parcels).items()):
            running = running._wait_until(at, out)
            running = running._bundle(at, bundle, out)
        if until is not None:
            running = running._wait_until(until, out)
        return running, out

    def close(self) -> tuple[Running, list[Played]]:
        """The input has ended: the watermark goes to the end of time."""
        out = list[Played]()
        ended = replace(self, marks=Watermarks(least=MAX_TIME, now=self.marks.now))
        return ended._step(ended.operator.schema.empty_table(), out), out

    @property
    def next_timer(self) -> int | None:
        """The next processing time at which something is due without new data; None if nothing is."""
        return next_timer(self.state, self.marks)

    def _wait_until(self, now: int, out: list[Played]) -> Running:
        running = self
        while (due := running.next_timer) is not None and due <= now:
            running = replace(running, marks=running.marks.at(due))
            running = running._step(running.operator.schema.empty_table(), out)
        return replace(running, marks=running.marks.at(now))

    def _bundle(self, at: int, bundle: _Bundle, out: list[Played]) -> Running:
        running = replace(self, marks=self.marks.told(bundle.marks, at))
        op = running.operator
        rows = pa.concat_tables([op.schema.empty_table(), *(table.select(op.schema.names) for table in bundle.rows)])
        if needs_rows(op.grouping) or not bundle.cells:
            return running._step(rows, out)
        parcels = bundle.cells
        if rows.num_rows:  # one task saw rows of one instant and could combine them, another could not
            cells = cells_of_rows(op, rows, at)
            parcels = [*parcels, Parcel("cells", cells_table(cells, live_numbers(op)), at, cells.bad, cells.unassigned)]
        cells = cells_back(op, parcels)
        if len(parcels) > 1:
            cells = together(op, cells)
        return running._step(whole_windows(op, cells), out)

    def _step(self, bundle: pa.Table | Cells, out: list[Played]) -> Running:
        marks = self.marks
        percents = marks.percentiles(self.operator.percents)
        stepped = self.operator.step(self.state, bundle, marks.least, marks.now, percents)
        out.append(Played(marks.now, stepped))
        return replace(self, state=stepped.state)


def next_timer(state: OperatorState, marks: Watermarks) -> int | None:
    """The next processing time at which a window has a deadline or a source becomes idle; None if there is none."""
    due = min(state.windows.least("processing"), marks.next_idle)
    return due if due < MAX_TIME else None


def _bundles(parcels: Sequence[Parcel]) -> dict[int, _Bundle]:
    bundles: dict[int, _Bundle] = {}
    for parcel in parcels:
        match parcel.kind:
            case "cells":
                bundles.setdefault(parcel.at, _Bundle()).cells.append(parcel)
            case "rows":
                for at, part in parts(parcel.table, AT):
                    bundles.setdefault(at, _Bundle()).rows.append(part)
            case "marks":
                columns = (parcel.table[name].to_pylist() for name in ("source", "time", "at"))
                for source, time, at in zip(*columns, strict=True):  # few: what each task saw of each source
                    told = bundles.setdefault(at, _Bundle()).marks
                    if source is not None or time is not None:
                        told.append((source, time))
    return bundles

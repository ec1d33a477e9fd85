"""Arrivals: everything that reaches a shard from one input at one processing time, from scripts or from parcels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ..parcels import AT, Parcel, parts
from ..watermarks.watermarks import Read, Report, Watermarks


@dataclass(frozen=True)
class Arrival:
    """Everything that reaches a shard from one input at one processing time: rows, cells, watermark reports, a hold."""

    rows: Sequence[pa.Table] = ()
    cells: Sequence[Parcel] = ()
    reports: Sequence[Report] = ()
    whole: bool = False
    """True if the watermark runs from the beginning to the end of time within the bundle."""
    hold: int | None = None
    """The least time of the rows of the input that are there and not read yet; None if it is as before."""
    reads: Mapping[str, Read] | None = None
    """The place to which each source of the input has been read; None if it is as before, or not known."""
    marks: Watermarks | None = None
    """The watermarks that the input has from now on, as a former flow left them; None if they are as before."""


@dataclass(frozen=True)
class _Parts:
    """The parts of one arrival, collected from parcels."""

    rows: list[pa.Table] = field(default_factory=list)
    cells: list[Parcel] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    holds: list[int] = field(default_factory=list)
    reads: dict[str, Read] = field(default_factory=dict)

    def arrival(self, whole: bool) -> Arrival:
        return Arrival(
            rows=self.rows,
            cells=self.cells,
            reports=self.reports,
            whole=whole and bool(self.rows or self.cells),
            hold=min(self.holds, default=None),
            reads=self.reads or None,
        )


def arrivals(parcels: Sequence[Parcel], inputs: int = 1, whole: bool = False) -> list[dict[int, Arrival]]:
    """The arrivals in parcels, for each of a number of inputs by processing time; `whole` is for those with rows."""
    by_input: list[dict[int, _Parts]] = [{} for _ in range(inputs)]
    for parcel in parcels:
        here = by_input[parcel.input]
        match parcel.kind:
            case "cells":
                here.setdefault(parcel.at, _Parts()).cells.append(parcel)
            case "rows":
                for at, part in parts(parcel.table, AT):
                    here.setdefault(at, _Parts()).rows.append(part)
            case "marks":
                for at, reports in reports_by_time(parcel.table).items():
                    here.setdefault(at, _Parts()).reports.extend(reports)
            case "reads":
                for row in parcel.table.to_pylist():  # few: one a source
                    read = Read(row["offset"], row["end"], row["idle"])
                    here.setdefault(row["at"], _Parts()).reads[row["source"]] = read
            case "hold":
                for at, reports in reports_by_time(parcel.table).items():
                    here.setdefault(at, _Parts()).holds.extend(time for _, time in reports if time is not None)
    return [{at: part.arrival(whole) for at, part in here.items()} for here in by_input]


def all_at_once(arrivals: Mapping[int, Arrival]) -> Arrival:
    """The rows of an input of a bounded step as one bundle, whatever their processing times.

    >>> rows = [pa.table({"x": [x]}) for x in range(2)]
    >>> [table["x"].to_pylist() for table in all_at_once({7: Arrival([rows[0]]), 5: Arrival([rows[1]])}).rows]
    [[1], [0]]
    """
    return Arrival([table for at in sorted(arrivals) for table in arrivals[at].rows])


def clock_of(parcels: Sequence[Parcel], now: int | None = None) -> int | None:
    """The processing time that `now` and the clocks of other sources have come to; None without both.

    >>> from uncombine.panes.parcels import MARKS
    >>> clock_of([Parcel("clock", MARKS.empty_table(), at=7)]), clock_of([])
    (7, None)
    """
    clocks = [parcel.at for parcel in parcels if parcel.kind == "clock"]
    return max(clocks if now is None else [*clocks, now], default=None)


def reports_by_time(marks: pa.Table) -> dict[int, list[Report]]:
    """Watermark reports by their processing time. A time without reports has an empty list."""
    by_time: dict[int, list[Report]] = {}
    columns = (marks[name].to_pylist() for name in ("source", "time", "at"))
    for source, time, at in zip(*columns, strict=True):  # few: one a task and source
        reports = by_time.setdefault(at, [])
        if source is not None or time is not None:
            reports.append((source, time))
    return by_time


__all__ = ["Arrival", "all_at_once", "arrivals", "clock_of", "reports_by_time"]

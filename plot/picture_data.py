"""Panes and scripts as pictures need them: rows of any kind as dicts, and times as datetimes.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from ..combiners.aggregate import as_table
from ..errors import InvalidArgument, TypeMismatch, UncombineError, require_column
from ..flows.event_time import EventTime
from ..flows.result import Result
from ..flows.source_watermarks import SourceWatermarks
from ..local.script import Clock, Elements, Entry, Watermark, reports, tables_of
from ..panes.grouping.grouping import EVENT_TIME, MAX_FUTURE, RESERVED
from ..windows import timestamp
from .style import aware, from_micros

_LAST = 253_402_300_799_000_000
_END = from_micros(_LAST)
"""The time at which watermarks at the end of time are drawn."""

LAST_YEAR = 9000
"""A window that ends later has no end."""

Bounds = tuple[datetime, datetime]

Mark = tuple[datetime, datetime, int]
"""A processing time, the watermark from then on, and the place in the script."""


@dataclass(frozen=True)
class Pane:
    """A row of output: a pane, or the retraction of one."""

    key: tuple[Any, ...]
    bounds: Bounds | None
    """Start and end of the window; None if it is all of time."""
    value: Any
    diff: int
    timing: str
    at: datetime
    step: int
    before: datetime | None
    """The processing time of the pane before it of the same window; None if it is the first one."""


@dataclass(frozen=True)
class Point:
    """A row of the script."""

    event: datetime
    processing: datetime
    label: str
    late: bool
    dropped: bool
    step: int
    row: Mapping[str, Any]
    of: str | None = None
    """The column whose value is the label."""

    def key(self, names: Sequence[str]) -> tuple[Any, ...] | None:
        """The values of key columns; None if the row does not have them all, so that it is one of every key."""
        return tuple(_plain(self.row[name]) for name in names) if all(name in self.row for name in names) else None


def table_of(result: Any) -> pa.Table:
    """The rows of a result as a table: Arrow, a result of `run()`, pandas, Polars, or a bounded DataFrame of Spark."""
    if isinstance(result, Result):
        return result.panes
    if hasattr(result, "sparkSession"):
        if result.isStreaming:
            raise InvalidArgument(
                "a picture needs rows, and the result is a stream: draw a bounded flow, or the table that the stream "
                "writes"
            )
        return result.toArrow()
    if type(result).__module__.partition(".")[0] == "pandas" and hasattr(result, "columns"):
        rows = [name for name in result.columns if any(hasattr(value, "asDict") for value in result[name].head(1))]
        result = result.assign(**{n: [None if v is None else v.asDict() for v in result[n]] for n in rows})
    try:
        return as_table(result)
    except TypeMismatch:
        raise TypeMismatch(
            "a picture shows panes as an Arrow table, a result of flow.run(), or a DataFrame of pandas or Spark, but "
            f"was given a {type(result).__name__}"
        ) from None


def check_panes(table: pa.Table) -> None:
    """Raise unless the rows are those of a grouping."""
    for name in ("window", "diff", "pane"):
        if name not in table.column_names:
            raise InvalidArgument(
                f"a picture shows panes, but the result has no column {name!r}: draw the result of a grouping"
            )


def keys_of(table: pa.Table) -> list[str]:
    """The key columns of panes: those before the window."""
    names = table.column_names
    return names[: names.index("window")] if "window" in names else []


def shown_value(table: pa.Table, value: str | None, entries: Sequence[Entry]) -> str:
    """The result that is written into panes: the one asked for, or the first that is no column of the script."""
    names = [name for name in table.column_names if name not in RESERVED]
    columns = columns_of(entries)
    results = [name for name in names if name not in keys_of(table)]
    shown = value or next((n for n in results if n not in columns), next(iter([*results[-1:], *names[-1:]]), None))
    if shown is None or shown not in table.column_names:
        raise InvalidArgument(f"value= must be one of {names}, but is {value!r}")
    return shown


def columns_of(entries: Sequence[Entry]) -> set[str]:
    """The columns that rows of a script have."""
    columns: set[str] = set()
    for entry in entries:
        if isinstance(entry, Elements):
            rows: Any = entry.rows
            columns |= set(rows.column_names) if isinstance(rows, pa.Table) else {name for row in rows for name in row}
    return columns


def panes_of(table: pa.Table, value: str, where: Mapping[str, Any], clock: Sequence[datetime]) -> list[Pane]:
    """The panes of some keys, with the processing times at which they were emitted."""
    keys, rows = keys_of(table), table.to_pylist()
    for name, wanted in where.items():
        require_column(name, table.column_names, "where=")
        rows = [row for row in rows if row[name] == wanted]
    panes, before = [], dict[Any, datetime]()
    for row, at in zip(rows, _moments(rows, clock), strict=True):
        if row["window"] is None and row["pane"] is None:
            continue
        key, bounds = tuple(_plain(row[name]) for name in keys), _bounds(row["window"])
        pane = Pane(
            key=key,
            bounds=bounds,
            value=row[value],
            diff=row["diff"],
            timing=row["pane"]["timing"],
            at=at,
            step=row.get("step", 0),
            before=before.get((key, bounds)),
        )
        panes.append(pane)
        if pane.diff > 0:
            before[key, bounds] = at
    return panes


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, dict | list) else value


def _bounds(window: Mapping[str, datetime] | None) -> Bounds | None:
    if window is None or window["end"].year > LAST_YEAR:
        return None
    return aware(window["start"]), aware(window["end"])


def _moments(rows: Sequence[Mapping[str, Any]], clock: Sequence[datetime]) -> list[datetime]:
    """The processing time of each row. A retraction has the info of the retracted pane; the next row gives its time."""
    out: list[datetime] = []
    following: tuple[Any, datetime] | None = None
    for place, row in reversed(list(enumerate(rows))):
        step = row.get("step", len(clock) - 1)
        at = row["pane"]["processing_time"] if row["pane"] else None
        moment = clock[step] if clock else from_micros(0) + timedelta(minutes=place) if at is None else aware(at)
        if row["diff"] > 0:
            moment = moment if at is None else aware(at)
            following = (row.get("step"), moment)
        elif following is not None and following[0] == row.get("step"):
            moment = following[1]
        out.append(moment)
    return out[::-1]


def clock_of(entries: Sequence[Entry]) -> list[datetime]:
    """The processing time after each entry. Entries before the first with a time have that time."""
    times: list[int | None] = []
    now: int | None = None
    for entry in entries:
        reading = entry.t if isinstance(entry, Clock) else entry.at
        now = max(timestamp(reading), now or timestamp(reading)) if reading is not None else now
        times.append(now)
    start = next((t for t in times if t is not None), None)
    if start is None:  # no processing time at all: draw the entries a minute apart
        return [from_micros(60_000_000 * i) for i in range(len(entries))]
    return [from_micros(start if t is None else t) for t in times]


_FAR = timedelta(microseconds=int(MAX_FUTURE))
"""Bad rows whose times are so far after their arrival are not drawn."""


def is_timed(entries: Sequence[Entry]) -> bool:
    """True if some entry has a processing time, and not its place alone."""
    return any(isinstance(entry, Clock) or entry.at is not None for entry in entries)


def points_of(
    entries: Sequence[Entry],
    result: Any,
    time: str | Mapping[str, str] | None,
    datum: str | None,
    where: Mapping[str, Any],
    clock: Sequence[datetime],
    keys: Sequence[str] = (),
    value: str | None = None,
) -> list[Point]:
    """The rows of a script for some keys, each with its label, and whether it was late or dropped.

    The label is the number that the shown value is made of, and none for a count of rows.
    """
    gone = set(result.dropped_rows) if isinstance(result, Result) and result.rows_kept else set()
    points: list[Point] = []
    made, some_bad = _computed(result, time), is_timed(entries) and _has_bad(result)
    if time is None:
        time = _own_times(result)
    times = [time] if isinstance(time, str) else list(dict.fromkeys(time.values()))
    read = [column for one in made.values() for column in one.value.columns] or times
    if (columns := columns_of(entries)) and not columns & {*read, *times}:
        require_column(read[0], sorted(columns), "time=")
    if datum is not None and columns:
        require_column(datum, sorted(columns), "datum=")
    passed = _passed(entries, result)
    for step, (entry, table) in enumerate(zip(entries, tables_of(entries, [] if made else times), strict=True)):
        before = passed[step]
        if table is None:
            continue
        column = time if isinstance(time, str) else time.get(_input(entry) or "", times[0])
        if event_time := made.get(_input(entry), next(iter(made.values()), None) if len(made) == 1 else None):
            table, column = event_time(table), EVENT_TIME
        condition = {name: wanted for name, wanted in where.items() if name in table.column_names}
        label = datum or _read_by(result, value, table, {*where, *keys})
        for place, row in enumerate(table.to_pylist()):
            if any(row[name] != wanted for name, wanted in condition.items()) or row.get(column) is None:
                continue
            event = aware(row[column])
            text = "" if label is None or row[label] is None else str(row[label])
            late = before is not None and event < before
            if some_bad and event - clock[step] > _FAR:
                continue  # a bad row, whose time would stretch the picture over years
            points.append(
                Point(
                    event=event,
                    processing=clock[step],
                    label=text,
                    of=label,
                    late=late,
                    dropped=(step, place) in gone,
                    step=step,
                    row=row,
                )
            )
    return points


def _has_bad(result: Any) -> bool:
    """True if a run has left out rows whose times are none."""
    left_out = result.left_out if isinstance(result, Result) else pa.table({})
    return "why" in left_out.column_names and "bad" in left_out["why"].to_pylist()


def _read_by(result: Any, value: str | None, table: pa.Table, keys: Collection[str]) -> str | None:
    """The first column of numbers that is no key, of those that the combiner of the shown value reads, if it is known.

    A combiner of a later grouping reads what an earlier one gives, and says nothing of the rows.
    """
    kinds = {field.name: field.type for field in table.schema if field.name not in keys}
    grouping = result.last if isinstance(result, Result) else None
    combiner = None if grouping is None or value is None else grouping.combiners.get(value)
    if combiner is not None:
        with suppress(UncombineError):
            kinds = {name: kinds[name] for name in combiner.bind(table.schema).columns if name in kinds}
    return next((n for n, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)), None)


def _input(entry: Entry) -> str | None:
    return None if isinstance(entry, Clock) else entry.input


def inputs_of(entries: Sequence[Entry]) -> list[str | None]:
    """The inputs that the script names; None if it names none."""
    return list(dict.fromkeys(_input(entry) for entry in entries if _input(entry) is not None)) or [None]


def moved_by(entry: Entry, inputs: list[str | None]) -> list[str | None]:
    """The inputs whose watermark an entry moves."""
    return inputs if _input(entry) is None else [_input(entry)]


def _computed(result: Any, time: str | Mapping[str, str] | None) -> Mapping[str | None, EventTime]:
    """The computations of the event times of a run, unless `time` names another column than those that they read."""
    own = result.computed if isinstance(result, Result) else {}
    return {
        name: one
        for name, one in own.items()
        if time is None or (time if isinstance(time, str) else time.get(name or "")) in (EVENT_TIME, *one.value.columns)
    }


def _own_times(result: Any) -> str | Mapping[str, str]:
    """The event time columns of the run that gave a result; "ts" if nobody knows."""
    own = result.times if isinstance(result, Result) else {}
    return (
        {name or "": time for name, time in own.items()} if len({*own.values()}) > 1 else next(iter(own.values()), "ts")
    )


def _reported(entry: Watermark) -> datetime:
    return _END if entry.t is None else from_micros(timestamp(entry.t))


def _shown(watermark: int) -> datetime:
    """A watermark of a run as a time that can be drawn."""
    return _END if watermark > _LAST else from_micros(max(watermark, -_LAST // 5))


def _of_run(entries: Sequence[Entry], result: Any) -> Sequence[SourceWatermarks]:
    """The watermarks that the run of a script had; nothing if they are not known."""
    watermarks = result.watermarks if isinstance(result, Result) else []
    return watermarks if len(watermarks) == len(entries) else []


def _passed(entries: Sequence[Entry], result: Any) -> list[datetime | None]:
    """The watermark of all inputs by which the rows of each entry are late; None where some have not reported."""
    of_run = _of_run(entries, result)
    if of_run:
        sources = {name for one in of_run for name in one.after}
        return [_shown(min(one.before.values())) if len(one.before) == len(sources) > 0 else None for one in of_run]
    inputs, reached = inputs_of(entries), dict[str | None, datetime]()
    out: list[datetime | None] = []
    for entry in entries:
        out.append(min(reached.values()) if len(reached) == len(inputs) else None)
        for report in reports(entry):
            reached |= {
                name: max(_reported(report), reached.get(name, _reported(report))) for name in moved_by(entry, inputs)
            }
    return out


def marks_of(entries: Sequence[Entry], clock: Sequence[datetime], result: Any = None) -> dict[str | None, list[Mark]]:
    """For each input its watermarks.

    They are those of the run; without one, the reports of the script.
    """
    inputs, of_run = inputs_of(entries), _of_run(entries, result)
    out: dict[str | None, list[Mark]] = {}
    latest: dict[str | None, int] = {}
    for step, (one, at) in enumerate(zip(of_run, clock, strict=False)):
        for name, watermark in one.after.items():
            if latest.get(name) != watermark:
                latest[name] = watermark
                out.setdefault(name if len(inputs) > 1 else inputs[0], []).append((at, _shown(watermark), step))
    if of_run:
        return out
    for step, (entry, at) in enumerate(zip(entries, clock, strict=True)):
        for report in reports(entry):
            for name in moved_by(entry, inputs):
                out.setdefault(name, []).append((at, _reported(report), step))
    return out


def marks_of_panes(table: pa.Table) -> dict[str | None, list[Mark]]:
    """The watermark that the panes of a result tell of, at the processing times at which they were emitted.

    It is what the run had then; between two panes it may have moved earlier than the line does.
    """
    told = [
        (row["pane"]["processing_time"], row["pane"]["watermark"], row.get("step", 0))
        for row in table.select([n for n in ("pane", "diff", "step") if n in table.column_names]).to_pylist()
        if row["diff"] > 0 and row["pane"] is not None and row["pane"]["processing_time"] is not None
    ]
    marks: list[Mark] = []
    for at, watermark, step in sorted(told, key=lambda one: (one[0], one[1] is None, one[1] or one[0])):
        if watermark is None and not marks:
            continue  # the watermark has not started; later, none is its end
        reached = _END if watermark is None else aware(watermark)
        if not marks or reached > marks[-1][1]:
            marks.append((aware(at), reached, step))
    return {None: marks} if marks else {}


__all__ = [
    *("Bounds", "Mark", "Pane", "Point", "check_panes", "clock_of", "columns_of", "inputs_of", "is_timed", "keys_of"),
    *("marks_of", "marks_of_panes", "moved_by", "panes_of", "points_of", "shown_value", "table_of"),
]

"""Pictures of panes: event time to the right, processing time upwards, as in the Dataflow model.

Guarded by tests/panes/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import InvalidArgument, require_column
from ..grouping import RESERVED
from ..local_result import Result
from ..script import Clock, Elements, Entry, Watermark, check_script, reports, tables_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TIMING = {"EARLY": "#7fb3e6", "ON_TIME": "#6abf7b", "LATE": "#f0b45a"}
_RED, _GREEN = "#c8262b", "#2b6a3c"


@dataclass
class _Point:
    event: datetime
    processing: datetime
    label: str
    late: bool
    dropped: bool


def panes(
    result: pa.Table | Result,
    script: Sequence[Entry],
    *,
    time: str | Mapping[str, str] = "ts",
    value: str | None = None,
    datum: str | None = None,
    where: dict[str, Any] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the panes that `uc.local.run`, a replay or a query on Spark gave for a script.

    Rows are points with their values; late ones are hollow, dropped ones crossed out (unless a step before the first
    grouping may have left rows out, or made others of them). The watermark is a dashed line.
    Each pane is a rectangle over its window, up to the time at which it was emitted, with its value. Retractions are
    written in red.

    Parameters
    ----------
    result, script
        The panes, and the script that gave them. Panes from Spark are drawn in the order of their rows, without the
        dropped rows.
    time
        The event time column of the script's rows; if the inputs of a union have different ones, a dict by input.
    value
        The result that is written into the panes; the first if not given.
    datum
        The column that is written beside the points; the first column of numbers if not given.
    where
        The key to draw, such as {"user": "a"}, if there are several.
    title, ax
        The title, and the axes to draw on (new ones if not given).

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}], at=60_000_000), uc.Watermark(120_000_000)]
    >>> result = uc.local.run(script, window=uc.Fixed("1 minute"), total=uc.Sum("x"))
    >>> uc.plot.panes(result, script).axes[0].get_xlabel()
    'event time'
    """
    from matplotlib import pyplot
    from matplotlib.dates import DateFormatter

    entries = check_script(script)
    if not entries:
        raise InvalidArgument("script= has no entries, so there is nothing to draw: give the script of the run")
    for name in ("window", "diff", "pane"):
        if name not in result.column_names:
            raise InvalidArgument(
                f"a picture shows panes, but the result has no column {name!r}: draw the result of a grouping"
            )
    names = [name for name in result.column_names if name not in RESERVED]
    rows = result.to_pylist()
    for name, wanted in (where or {}).items():
        require_column(name, result.column_names, "where=")
        rows = [row for row in rows if row[name] == wanted]
    shown = value or (names[-1] if names else None)
    if value is None and names:
        shown = next((n for n in names if n not in _script_columns(entries)), names[-1])
    if shown is None or shown not in result.column_names:
        raise InvalidArgument(f"value= must be one of {names}, but is {value!r}")
    clock = _clock(entries)
    points = _points(entries, result, time, datum, where or {}, clock)
    figure = ax.figure if ax is not None else pyplot.figure(figsize=(9, 6.5), layout="constrained")
    axes = ax if ax is not None else figure.add_subplot()
    span = _span(points, rows)
    _draw_panes(axes, rows, shown, span, clock, points)
    _draw_watermark(axes, entries, clock, span)
    _draw_points(axes, points)
    axes.set_xlim(span[0], span[1])  # type: ignore[arg-type]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(DateFormatter("%H:%M:%S", tz=UTC))
    axes.set_xlabel("event time")
    axes.set_ylabel("processing time")
    if not any(isinstance(entry, Clock) or entry.at is not None for entry in entries):
        axes.set_yticks([])
        axes.set_ylabel("entries of the script")
    axes.tick_params(axis="x", labelrotation=30)
    axes.grid(alpha=0.25)
    if title:
        axes.set_title(title)
    _legend(axes, points, rows)
    return figure  # type: ignore[return-value]


def save(path: str | PathLike[str], result: pa.Table | Result, script: Sequence[Entry], **options: Any) -> None:
    """Draw panes into a file, without a window and without pyplot's list of open figures."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    panes(result, script, ax=figure.add_subplot(), **options)
    figure.savefig(path)


def _script_columns(entries: list[Entry]) -> set[str]:
    columns: set[str] = set()
    for entry in entries:
        if isinstance(entry, Elements):
            if isinstance(entry.rows, pa.Table):
                columns |= set(entry.rows.column_names)
            else:
                columns |= {name for row in entry.rows for name in row}
    return columns


def _clock(entries: list[Entry]) -> list[datetime]:
    """The processing time after each entry. Entries before the first with a time have that time."""
    from ...windows import timestamp

    known: list[int | None] = []
    now: int | None = None
    for entry in entries:
        given = entry.t if isinstance(entry, Clock) else entry.at
        now = max(timestamp(given), now or timestamp(given)) if given is not None else now
        known.append(now)
    start = next((t for t in known if t is not None), None)
    if start is None:  # no processing time at all: draw the entries a minute apart
        return [datetime.fromtimestamp(60 * i, UTC) for i in range(len(entries))]
    return [_datetime(start if t is None else t) for t in known]


def _datetime(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)


def _points(
    entries: list[Entry],
    result: pa.Table,
    time: str | Mapping[str, str],
    datum: str | None,
    where: dict[str, Any],
    clock: list[datetime],
) -> list[_Point]:
    gone = set(result.dropped_rows) if isinstance(result, Result) and result.rows_kept else set()
    watermarks: dict[str | None, datetime] = {}
    points: list[_Point] = []
    inputs, times = _inputs(entries), [time] if isinstance(time, str) else list(dict.fromkeys(time.values()))
    for step, (entry, table) in enumerate(zip(entries, tables_of(entries, times), strict=True)):
        before = min(watermarks.values()) if len(watermarks) == len(inputs) else None
        watermarks |= {name: _moved(report) for report in reports(entry) for name in _told(entry, inputs)}
        if table is None:
            continue
        column = time if isinstance(time, str) else time.get(_input(entry) or "", times[0])
        label = datum or next(
            (
                f.name
                for f in table.schema
                if f.name not in where and (pa.types.is_integer(f.type) or pa.types.is_floating(f.type))
            ),
            None,
        )
        for place, row in enumerate(table.to_pylist()):
            if any(row.get(name) != wanted for name, wanted in where.items()) or row.get(column) is None:
                continue
            event = row[column] if row[column].tzinfo else row[column].replace(tzinfo=UTC)
            text = "" if label is None or row[label] is None else str(row[label])
            late = before is not None and event < before
            points.append(_Point(event, clock[step], text, late, (step, place) in gone))
    return points


def _input(entry: Entry) -> str | None:
    return None if isinstance(entry, Clock) else entry.input


def _inputs(entries: list[Entry]) -> list[str | None]:
    """The inputs that the script names; None if it names none."""
    return list(dict.fromkeys(_input(entry) for entry in entries if _input(entry) is not None)) or [None]


def _told(entry: Entry, inputs: list[str | None]) -> list[str | None]:
    """The inputs whose watermark an entry moves."""
    return inputs if _input(entry) is None else [_input(entry)]


def _moved(entry: Watermark) -> datetime:
    from ...windows import timestamp

    return datetime.max.replace(tzinfo=UTC) if entry.t is None else _datetime(timestamp(entry.t))


def _span(points: list[_Point], rows: list[dict[str, Any]]) -> tuple[datetime, datetime]:
    times = [p.event for p in points]
    for row in rows:
        if row["window"] is not None:
            times += [row["window"]["start"], row["window"]["end"]]
    if not times:
        raise InvalidArgument(
            "the script has no rows and the result has no panes, so there is nothing to draw: draw another run"
        )
    low, high = min(times), max(times)
    margin = (high - low) * 0.04
    return low - margin, high + margin


def _draw_panes(
    axes: Any,
    rows: list[dict[str, Any]],
    shown: str,
    span: tuple[datetime, datetime],
    clock: list[datetime],
    points: list[_Point],
) -> None:
    bottom: dict[Any, datetime] = {}
    written: list[tuple[datetime, datetime]] = []
    start = _floor(clock)
    for row, top in zip(rows, _moments(rows, clock), strict=True):
        window = row["window"]
        bounds = span if window is None else (window["start"], window["end"])
        if row["diff"] < 0:
            axes.plot(bounds, [top] * 2, color=_RED, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
            beside = [*points, *(_Point(x, y, "", False, False) for x, y in written if y == top)]
            place = _place(bounds, top, beside, span, clock, above=True)
            written.append((place, top))
            axes.annotate(
                f"−{_text(row[shown])}",
                (place, top),
                xytext=(0, 3),
                textcoords="offset points",
                color=_RED,
                fontsize=10,
                ha="center",
                zorder=6,
            )
            continue
        low = bottom.get(bounds, start)
        colour = _TIMING[row["pane"]["timing"]]
        axes.fill_between(bounds, [low] * 2, [top] * 2, color=colour, alpha=0.28, linewidth=0, zorder=1)
        edges = [bounds[0], bounds[1], bounds[1], bounds[0], bounds[0]]
        axes.plot(edges, [low, low, top, top, low], color=colour, linewidth=1.2, zorder=2)
        place = _place(bounds, top, points, span, clock, above=False)
        axes.annotate(
            _text(row[shown]),
            (place, top),
            xytext=(0, -12),
            textcoords="offset points",
            ha="center",
            fontsize=12,
            fontweight="bold",
            zorder=6,
        )
        bottom[bounds] = top


def _place(
    bounds: tuple[datetime, datetime],
    top: datetime,
    points: list[_Point],
    span: tuple[datetime, datetime],
    clock: list[datetime],
    above: bool,
) -> datetime:
    """The place along an edge at which a value covers no point; lengths are parts of the axes."""
    wide, high = span[1] - span[0], max(clock) - _floor(clock)
    low, up = (-0.02, 0.05) if above else (-0.06, 0.02)
    near = [p.event for p in points if low < (p.processing - top) / high < up]
    share = (0.82, 0.5, 0.18, 0.66, 0.34) if above else (0.5, 0.35, 0.65, 0.2, 0.8)
    places = [bounds[0] + (bounds[1] - bounds[0]) * part for part in share]
    return next((x for x in places if all(not -0.05 < (p - x) / wide < 0.03 for p in near)), places[0])


def _floor(clock: list[datetime]) -> datetime:
    """The lower edge of the first panes: a little below the first points."""
    height = max(clock) - min(clock)
    return min(clock) - (height * 0.05 if height else timedelta(minutes=1))


def _moments(rows: list[dict[str, Any]], clock: list[datetime]) -> list[datetime]:
    """The processing time of each row. A retraction has the info of the retracted pane; the next row gives its time."""
    out: list[datetime] = []
    following: tuple[int, datetime] | None = None
    for row in reversed(rows):
        step = row.get("step", len(clock) - 1)
        moment = clock[step]
        if row["diff"] > 0:
            at = row["pane"]["processing_time"]
            moment = moment if at is None else at
            following = (step, moment)
        elif following is not None and following[0] == step:
            moment = following[1]
        out.append(moment)
    return out[::-1]


def _draw_watermark(axes: Any, entries: list[Entry], clock: list[datetime], span: tuple[datetime, datetime]) -> None:
    inputs = _inputs(entries)
    for name in inputs:
        xs: list[datetime] = []
        ys: list[datetime] = []
        for entry, at in zip(entries, clock, strict=True):
            for report in reports(entry) if name in _told(entry, inputs) else ():
                xs += [xs[-1] if xs else span[0], min(max(_moved(report), span[0]), span[1])]
                ys += [at, at]
        if xs:
            label = "watermark" if name is None else f"watermark of {name}"
            axes.plot(xs, ys, color=_GREEN, linestyle=(0, (4 + 3 * inputs.index(name), 2)), label=label, zorder=4)


def _draw_points(axes: Any, points: list[_Point]) -> None:
    for p in points:
        face = "white" if p.late or p.dropped else "#333333"
        edge = _RED if p.dropped else "#333333"
        axes.scatter([p.event], [p.processing], s=60, facecolor=face, edgecolor=edge, linewidth=1.5, zorder=5)
        if p.dropped:
            axes.scatter([p.event], [p.processing], s=110, marker="x", color=_RED, linewidth=1.8, zorder=6)
        axes.annotate(
            p.label, (p.event, p.processing), xytext=(7, -3), textcoords="offset points", fontsize=9, zorder=6
        )


def _legend(axes: Any, points: list[_Point], rows: list[dict[str, Any]]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for timing, colour in _TIMING.items():
        if any(row["diff"] > 0 and row["pane"]["timing"] == timing for row in rows):
            handles.append(Patch(facecolor=colour, alpha=0.5, label=timing.lower().replace("_", " ") + " pane"))
    if any(row["diff"] < 0 for row in rows):
        handles.append(Line2D([], [], color=_RED, linestyle="--", label="retracted"))
    handles += [line for line in axes.lines if line.get_color() == _GREEN]
    circle: dict[str, Any] = {"marker": "o", "linestyle": "", "markeredgecolor": "#333333"}
    handles.append(Line2D([], [], markerfacecolor="#333333", label="datum", **circle))
    if any(p.late and not p.dropped for p in points):
        handles.append(Line2D([], [], markerfacecolor="white", label="late datum", **circle))
    if any(p.dropped for p in points):
        handles.append(Line2D([], [], marker="x", linestyle="", color=_RED, label="dropped datum"))
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9, frameon=False)


def _text(value: Any) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


__all__ = ["panes", "save"]

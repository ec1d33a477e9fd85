"""A picture of a watermark: event time against processing time, its lag, and late rows.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ..local.script import Entry, check_script
from .picture_data import LAST_YEAR, Bounds, clock_of, is_timed, marks_of, points_of
from .style import GREEN, GREY, INK, RED, figure_of, finish, margins, mark_name, size_of_points, slanted, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Lines = Mapping[str | None, tuple[Sequence[datetime], Sequence[datetime]]]
"""The corners of the line of each watermark, as processing times and event times."""


def watermark(
    script: Sequence[Entry],
    result: Any = None,
    *,
    time: str | Mapping[str, str] | None = None,
    title: str | None = None,
    figsize: tuple[float, float] = (9.0, 6.5),
) -> Figure:
    """Draw the watermark of a script: the event times of rows and the watermark over processing time, and its lag.

    A row below the line of the watermark is late. The grey line is a row that arrives at once; the lag is the height
    from the watermark to it. A script without processing times (`at=`) is drawn over its entries, without the lag.

    Parameters
    ----------
    script
        Rows, and watermark reports.
    result
        The result of `flow.run(script)`: its watermarks are drawn, also those of sources with `watermark=`.
        Without it, those that the script reports.
    time
        The event time column of the rows: that of the flow of a result, else "ts"; or a dict of them by input.
    title, figsize
        The title, and the size in inches.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import uncombine as uc
    >>> rows = uc.Elements([{"ts": 0}], at=60_000_000)
    >>> script = [rows, uc.Watermark(30_000_000, at=90_000_000)]
    >>> [axes.get_ylabel() for axes in uc.plot.watermark(script).axes]
    ['event time (UTC, 1970-01-01)', 'lag (seconds)']
    """
    entries = check_script(script)
    clock = clock_of(entries)
    points, marks = points_of(entries, result, time, None, {}, clock), marks_of(entries, clock, result)
    if not points and not marks:
        raise InvalidArgument("the script has no rows and no watermark reports, so there is nothing to draw")
    if not any(m.year <= LAST_YEAR for some in marks.values() for _, m, _ in some):
        raise InvalidArgument(
            "the script reports no watermark before the end, so there is none to draw: give the result of the run too, "
            "as in uc.plot.watermark(script, result), if its flow has watermark="
            if result is None
            else "the run had no watermark before its end, so there is none to draw: give its flow watermark=, or its "
            "script uc.Watermark"
        )
    timed = is_timed(entries)
    figure, axes = figure_of(figsize, 2 if timed else 1)
    upper = axes[0, 0]
    at = [p.processing for p in points] + [at for some in marks.values() for at, _, _ in some]
    across = margins(min(at), max(at))
    moments = [p.event for p in points] + [m for some in marks.values() for _, m, _ in some if m.year <= LAST_YEAR]
    heights = [*moments, *at] if timed else moments
    time_axis(upper.yaxis, *margins(min(heights), max(heights)), "event time")
    time_axis(upper.xaxis, *across, "")
    upper.tick_params(labelbottom=False)
    if timed:
        upper.set_xlabel("")
        upper.plot(across, across, color=GREY, linewidth=1, label="row without delay")
    else:
        upper.set_xticks([])
        upper.set_xlabel("order of arrival")
    size = size_of_points(len(points)) / 2
    least = max(size, 9.0)  # a smaller circle would seem to be full
    for late, label in ((False, "row"), (True, f"late row ({sum(p.late for p in points)})")):
        some = [p for p in points if p.late is late]
        if some:
            style: dict[str, Any] = {"s": size, "color": INK}
            if late:
                style = {"s": least, "facecolor": "white", "edgecolor": RED, "linewidth": 1}
            upper.scatter([p.processing for p in some], [p.event for p in some], label=label, zorder=4, **style)
    lines = {name: _steps([(a, m) for a, m, _ in some if m.year <= LAST_YEAR], max(at)) for name, some in marks.items()}
    for number, (name, (xs, ys)) in enumerate(lines.items()):
        upper.plot(xs, ys, label=mark_name(name), zorder=3, **_style(number, len(lines)))
    finish(upper, title)
    upper.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9, frameon=False)
    if timed:
        _draw_lag(axes[1, 0], lines, across)
    return figure


def _style(number: int, count: int) -> dict[str, Any]:
    """The line of one of several watermarks."""
    return {"color": GREEN, "linestyle": (0, (4 + 3 * number, 2)) if count > 1 else "-"}


def _draw_lag(lower: Any, lines: Lines, across: Bounds) -> None:
    """Draw the lag of each watermark: how far it is before the processing time."""
    time_axis(lower.xaxis, *across, "processing time")
    lags = [(x - y).total_seconds() for line in lines.values() for x, y in zip(*line, strict=True)]
    unit, seconds = _unit(lags or [0.0])
    for number, (xs, ys) in enumerate(lines.values()):
        late = [(x - y).total_seconds() / seconds for x, y in zip(xs, ys, strict=True)]
        lower.plot(xs, late, **_style(number, len(lines)))
    lower.set_ylabel(f"lag ({unit})")
    finish(lower)
    slanted(lower)


def _steps(marks: Sequence[tuple[datetime, datetime]], end: datetime) -> tuple[list[datetime], list[datetime]]:
    """The corners of a line that stays as it is until the next report."""
    xs: list[datetime] = []
    ys: list[datetime] = []
    highest: datetime | None = None
    for at, mark in marks:
        if highest is not None:
            xs.append(at)
            ys.append(highest)
        highest = mark if highest is None else max(highest, mark)
        xs.append(at)
        ys.append(highest)
    if highest is not None:
        xs.append(end)
        ys.append(highest)
    return xs, ys


def _unit(lengths: Sequence[float]) -> tuple[str, float]:
    """The unit in which lengths of time are read best, and its seconds."""
    most = max(map(abs, lengths))
    for unit, seconds in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if most >= 2 * seconds:
            return unit, seconds
    return "seconds", 1.0


__all__ = ["watermark"]

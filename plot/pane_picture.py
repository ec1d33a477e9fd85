"""Pictures of panes: event time to the right, processing time upwards, as in the Dataflow model.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..combiners.column_names import key_names
from ..errors import InvalidArgument, require_column
from ..local.script import Clock, Entry, check_script
from .labels import Labels, along, around
from .picture_data import (
    Bounds,
    Pane,
    Point,
    check_panes,
    clock_of,
    keys_of,
    marks_of,
    panes_of,
    points_of,
    shown_value,
)
from .picture_data import table_of as table_of
from .style import (
    GREEN,
    INK,
    MOST_PANELS,
    RED,
    TIMING,
    finish,
    grid,
    margins,
    named,
    panels,
    size_of_points,
    slanted,
    text_of,
    time_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panes(
    result: Any,
    script: Sequence[Entry] | None = None,
    *,
    time: str | Mapping[str, str] = "ts",
    value: str | None = None,
    datum: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    labels: str | Collection[str] = "fit",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the panes that `flow.run(script)`, a replay or a query on Spark gave, with the script that gave them.

    Rows are points with their values; late ones are hollow, dropped ones crossed out (unless a step before the first
    grouping may have left rows out, or made others of them). The watermark of
    each source, as the run had it, is a dashed line.
    Each pane is a rectangle over its window, up to the time at which it was emitted, with its value. Retractions are
    written in red.

    Parameters
    ----------
    result
        The panes: the result of `run()`, an Arrow table, or a DataFrame of pandas or Spark. Panes from Spark are
        drawn in the order of their rows, without the dropped rows.
    script
        The script that gave them. Without it only panes are drawn.
    time
        The event time column of the script's rows; if the inputs of a union have different ones, a dict by input.
    value
        The result that is written into the panes; the first if not given.
    datum
        The column that is written beside the points; the first column of numbers if not given.
    where
        The key to draw, such as {"user": "a"}, if there are several.
    by
        The key columns for a panel for each key. An empty list draws all keys in one picture.
    labels
        The values that are written: "fit" (those that cover no other), "all", "none", or some of "panes",
        "retractions" and "rows".
    title, figsize, ax
        The title, the size in inches, and the axes to draw on (new ones if not given).

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}], at=60_000_000), uc.Watermark(120_000_000)]
    >>> result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    >>> uc.plot.panes(result, script).axes[0].get_xlabel()
    'event time (1970-01-01)'
    """
    from matplotlib import pyplot

    pictures = pictures_of(result, script, time=time, value=value, datum=datum, where=where, by=by)
    if ax is not None:
        if len(pictures) > 1:
            raise InvalidArgument("by= draws a panel for each key, so it takes no ax=: leave one of them out")
        pictures[0].draw(ax, labels, title)
        return ax.figure  # type: ignore[return-value]
    rows, columns = panels(len(pictures))
    size = figsize or ((9.0, 6.5) if len(pictures) == 1 else (3.0 + 5.2 * columns, 1.2 + 2.7 * rows))
    figure = pyplot.figure(figsize=size)
    draw_all(figure, pictures, labels, title)
    return figure


def draw_all(
    figure: Figure,
    pictures: Sequence[Picture],
    labels: str | Collection[str] = "fit",
    title: str | None = None,
    until: int | None = None,
) -> None:
    """Draw pictures into the panels of a figure; one legend says what all of them show."""
    rows, columns = panels(len(pictures))
    axes = list(grid(figure, rows, columns, top=0.8 if title and len(pictures) > 1 else 0.45).flat)
    for extra in axes[len(pictures) :]:
        extra.set_axis_off()
    if len(pictures) == 1:
        pictures[0].draw(axes[0], labels, title, until)
        return
    bounds, heights = _hull([p.bounds for p in pictures]), _hull([p.heights for p in pictures])
    for place, (picture, one) in enumerate(zip(pictures, axes, strict=False)):
        shared = replace(picture, bounds=bounds, heights=heights)
        shared.draw(one, labels, picture.name, until, legend=False)
        if place + columns < len(pictures):
            one.set_xlabel("")
            one.tick_params(labelbottom=False)
        if place % columns:
            one.set_ylabel("")
            one.tick_params(labelleft=False)
    handles = {handle.get_label(): handle for picture in pictures for handle in picture.legend()}
    _show_legend(axes[columns - 1], list(handles.values()))
    if title:
        figure.suptitle(title, fontsize=12)


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def pictures_of(
    result: Any,
    script: Sequence[Entry] | None,
    *,
    time: str | Mapping[str, str] = "ts",
    value: str | None = None,
    datum: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
) -> list[Picture]:
    """A picture of each key that is asked for, or one of all of them; raise if it is not said which."""
    entries = [] if script is None else check_script(script)
    if script is not None and not entries:
        raise InvalidArgument("script= has no entries, so there is nothing to draw: give the script of the run")
    table = table_of(result)
    check_panes(table)
    clock, shown, condition = clock_of(entries), shown_value(table, value, entries), dict(where or {})
    panes = panes_of(table, shown, condition, clock)
    keys = keys_of(table)
    names = keys if by is None else key_names(by)
    for name in names:
        require_column(name, keys, "by=")
    places = [keys.index(name) for name in names]
    several = sorted({tuple(pane.key[place] for place in places) for pane in panes}, key=_sortable)
    if by is None and len(several) > 1:
        example = dict(zip(keys, several[0], strict=True))
        raise InvalidArgument(
            f"the result has panes of {len(several)} keys: draw one with where={example!r}, a panel for each with "
            f"by={keys[0] if len(keys) == 1 else keys!r}, or all in one with by=[]"
        )
    if by is None or not names or not several:
        return [_picture(entries, result, panes, points_of(entries, result, time, datum, condition, clock), clock)]
    panels(len(several))
    out = []
    for key in several:
        wanted = {**condition, **dict(zip(names, key, strict=True))}
        own = [pane for pane in panes if tuple(pane.key[place] for place in places) == key]
        points = points_of(entries, result, time, datum, wanted, clock)
        out.append(_picture(entries, result, own, points, clock, named(key, names)))
    return out


def _sortable(key: tuple[Any, ...]) -> list[tuple[bool, str, Any]]:
    """A key that can be compared with others: null first, then by type, numbers by their size."""
    number = (int, float)
    return [
        (v is not None, "" if isinstance(v, number) else type(v).__name__, v if isinstance(v, number) else str(v))
        for v in key
    ]


def _picture(
    entries: Sequence[Entry],
    result: Any,
    panes: list[Pane],
    points: list[Point],
    clock: Sequence[datetime],
    name: str = "",
) -> Picture:
    times = [t for pane in panes if pane.bounds is not None for t in pane.bounds] + [p.event for p in points]
    if not times and not panes:
        raise InvalidArgument(
            "the script has no rows and the result has no panes, so there is nothing to draw: draw another run"
        )
    moments = list(clock) or [pane.at for pane in panes]
    times = times or moments
    height = max(moments) - min(moments)
    room = height * 0.05 if height else timedelta(minutes=1)
    timed = any(isinstance(entry, Clock) or entry.at is not None for entry in entries)
    timed |= not entries and len({pane.at for pane in panes}) > 1
    heights = (min(moments) - room, max(*moments, *(pane.at for pane in panes), min(moments)) + room)
    return Picture(
        panes=panes,
        points=points,
        marks=marks_of(entries, clock, result),
        bounds=margins(min(times), max(times)),
        heights=heights,
        timed=timed,
        name=name,
    )


@dataclass(frozen=True)
class Picture:
    """The panes, rows and watermarks of a picture, and the bounds of its axes."""

    panes: list[Pane]
    points: list[Point]
    marks: dict[str | None, list[tuple[datetime, datetime, int]]]
    bounds: Bounds
    heights: Bounds
    timed: bool
    name: str = ""

    def draw(
        self,
        axes: Axes,
        labels: str | Collection[str] = "fit",
        title: str | None = None,
        until: int | None = None,
        legend: bool = True,
    ) -> None:
        """Draw all, or the entries of the script up to one, on some axes."""
        time_axis(axes.yaxis, *self.heights, "processing time")
        time_axis(axes.xaxis, *self.bounds, "event time")
        if not self.timed:
            axes.set_yticks([])
            axes.set_ylabel("entries of the script" if self.marks or self.points else "panes in order")
        finish(axes, title)
        slanted(axes)
        points = [point for point in self.points if until is None or point.step <= until]
        panes = [pane for pane in self.panes if until is None or pane.step <= until]
        places = Labels(axes, labels)
        size = size_of_points(len(self.points))
        places.block([p.event for p in points], [p.processing for p in points], size**0.5)
        self._draw_panes(axes, panes, places)
        self._draw_watermarks(axes, until)
        self._draw_points(axes, points, size)
        for point in points:
            places.write("rows", text_of(point.label), around(point.event, point.processing), 8.5)
        if legend:
            _show_legend(axes, self.legend())

    def _draw_panes(self, axes: Any, panes: Sequence[Pane], places: Labels) -> None:
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.dates import date2num

        bottom: dict[Any, datetime] = {}
        boxes, colours, lines, values, retracted = [], [], [], [], []
        for pane in panes:
            bounds = self.bounds if pane.bounds is None else pane.bounds
            left, right = map(date2num, bounds)
            top = date2num(pane.at)
            if pane.diff < 0:
                lines.append([(left, top), (right, top)])
                retracted.append((pane, bounds))
                continue
            low = date2num(bottom.get((pane.key, bounds), self.heights[0]))
            boxes.append([(left, low), (right, low), (right, top), (left, top)])
            colours.append(TIMING[pane.timing])
            values.append((pane, bounds))
            bottom[pane.key, bounds] = pane.at
        axes.add_collection(PolyCollection(boxes, facecolors=colours, alpha=0.28, linewidths=0, zorder=1))
        axes.add_collection(PolyCollection(boxes, facecolors="none", edgecolors=colours, linewidths=1.2, zorder=2))
        axes.add_collection(LineCollection(lines, colors=RED, linewidths=1.2, linestyles=[(0, (4, 2))], zorder=3))
        for pane, bounds in values:
            places.write("panes", text_of(pane.value), along(bounds, pane.at, above=False), 11, bold=True)
        for pane, bounds in retracted:
            places.write("retractions", f"−{text_of(pane.value)}", along(bounds, pane.at, above=True), 9, color=RED)

    def _draw_watermarks(self, axes: Any, until: int | None) -> None:
        low, high = self.bounds
        for number, (name, marks) in enumerate(self.marks.items()):
            xs: list[datetime] = []
            ys: list[datetime] = []
            for at, mark, step in marks:
                if until is None or step <= until:
                    xs += [xs[-1] if xs else low, min(max(mark, low), high)]
                    ys += [at, at]
            if xs:
                axes.plot(xs, ys, color=GREEN, linestyle=(0, (4 + 3 * number, 2)), label=_mark_name(name), zorder=4)

    def _draw_points(self, axes: Any, points: Sequence[Point], size: float) -> None:
        groups: dict[tuple[bool, bool], list[Point]] = {}
        for point in points:
            groups.setdefault((point.late or point.dropped, point.dropped), []).append(point)
        for (hollow, dropped), some in groups.items():
            xs, ys = [p.event for p in some], [p.processing for p in some]
            edge = RED if dropped else INK
            axes.scatter(xs, ys, s=size, facecolor="white" if hollow else INK, edgecolor=edge, linewidth=1.4, zorder=5)
            if dropped:
                axes.scatter(xs, ys, s=size * 1.8, marker="x", color=RED, linewidth=1.8, zorder=6)

    def legend(self) -> list[Any]:
        """The marks that the picture has, with their names."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = []
        for timing, colour in TIMING.items():
            if any(pane.diff > 0 and pane.timing == timing for pane in self.panes):
                handles.append(Patch(facecolor=colour, alpha=0.5, label=timing.lower().replace("_", " ") + " pane"))
        if any(pane.diff < 0 for pane in self.panes):
            handles.append(Line2D([], [], color=RED, linestyle="--", label="retracted"))
        for number, name in enumerate(self.marks):
            handles.append(Line2D([], [], color=GREEN, linestyle=(0, (4 + 3 * number, 2)), label=_mark_name(name)))
        circle: dict[str, Any] = {"marker": "o", "linestyle": "", "markeredgecolor": INK}
        if self.points:
            handles.append(Line2D([], [], markerfacecolor=INK, label="datum", **circle))
        if any(p.late and not p.dropped for p in self.points):
            handles.append(Line2D([], [], markerfacecolor="white", label="late datum", **circle))
        if any(p.dropped for p in self.points):
            handles.append(Line2D([], [], marker="x", linestyle="", color=RED, label="dropped datum"))
        return handles


def _mark_name(name: str | None) -> str:
    return "watermark" if name is None else f"watermark of {text_of(name)}"


def _show_legend(axes: Axes, handles: list[Any]) -> None:
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9, frameon=False)


def save(path: str | PathLike[str], result: Any, script: Sequence[Entry], **options: Any) -> None:
    """Draw panes into a file, without a window and without pyplot's list of open figures. All keys are drawn."""
    from matplotlib.figure import Figure

    table = table_of(result)
    keys = keys_of(table)
    count = len(set(zip(*(table[name].to_pylist() for name in keys), strict=True))) if keys else 1
    by = keys if 1 < count <= MOST_PANELS else []
    pictures = pictures_of(result, script, by=by, **{k: v for k, v in options.items() if k != "title"})
    rows, columns = panels(len(pictures))
    size = (9.0, 6.5) if len(pictures) == 1 else (3.0 + 5.2 * columns, 1.2 + 2.7 * rows)
    figure = Figure(figsize=size)
    draw_all(figure, pictures, title=options.get("title"))
    figure.savefig(path)


__all__ = ["Picture", "draw_all", "panes", "pictures_of", "save"]

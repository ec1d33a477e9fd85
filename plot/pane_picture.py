"""Pictures of panes: event time to the right, processing time upwards, as in the Dataflow model.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ..local.script import Entry
from .dense_panes import MOST, draw_dense
from .labels import Labels, along, around
from .picture import History, Picture, pictures_of
from .picture_data import Point
from .style import (
    GREEN,
    INK,
    RED,
    TIMING,
    finish,
    grid,
    mark_name,
    panels,
    pyplot_figure,
    size_of_points,
    slanted,
    text_of,
    time_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_NUMBERS = 200
"""The most rows whose numbers are written, if it is not said which."""


def panes(
    result: Any,
    script: Sequence[Entry] | None = None,
    *,
    time: str | Mapping[str, str] | None = None,
    value: str | None = None,
    datum: str | None = None,
    where: Mapping[str, Any] | None = None,
    between: Sequence[Any] | None = None,
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
        The script that gave them. Without it no rows are drawn, and the watermark is the one that the panes tell of.
    time
        The event time column of the script's rows: that of the flow of a result, else "ts"; if the inputs of a union
        have different ones, a dict by input.
    value
        The result that is written into the panes; the first if not given.
    datum
        The column that is written beside the points; the first column of numbers if not given.
    where
        The key to draw, such as {"user": "a"}, if there are several.
    between
        Two event times: only the windows that have an instant between them are drawn, with all their rows, and the
        other rows between them. All of the run if not given.
    by
        The key columns for a panel for each key. An empty list draws all keys in one picture.
    labels
        The values that are written: "fit" (those that cover no other), "all", "none", or some of "panes",
        "retractions" and "rows". More than 60 panes of a panel are drawn as cells, without most of their values, unless
        it is "all".
    title, figsize, ax
        The title, the size in inches, and the axes to draw on (new ones if not given).

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}], at=60_000_000), uc.Watermark(120_000_000)]
    >>> result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    >>> uc.plot.panes(result, script).axes[0].get_xlabel()
    'event time (UTC, 1970-01-01)'
    """
    history = History.of(result, script, time=time, value=value, datum=datum, where=where, between=between)
    pictures = pictures_of(history, by)
    if ax is not None:
        if len(pictures) > 1:
            raise InvalidArgument("by= draws a panel for each key, so it takes no ax=: leave one of them out")
        draw(pictures[0], ax, labels, title)
        return ax.figure  # type: ignore[return-value]
    figure = pyplot_figure(figsize or size_of(len(pictures)))
    draw_all(figure, pictures, labels, title)
    return figure


def size_of(count: int) -> tuple[float, float]:
    """The size of a picture of so many panels, in inches."""
    rows, columns = panels(count)
    return (9.0, 6.5) if count == 1 else (3.0 + 5.2 * columns, 1.2 + 2.7 * rows)


def draw_all(
    figure: Figure,
    pictures: Sequence[Picture],
    labels: str | Collection[str] = "fit",
    title: str | None = None,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Draw pictures into the panels of a figure, calling `done` after each; one legend says what all of them show."""
    rows, columns = panels(len(pictures))
    axes = list(grid(figure, rows, columns, top=0.8 if title and len(pictures) > 1 else 0.45).flat)
    for extra in axes[len(pictures) :]:
        extra.set_axis_off()
    several = len(pictures) > 1
    written: list[set[str]] = []
    for place, (picture, one) in enumerate(zip(pictures, axes, strict=False)):
        written.append(draw(picture, one, labels, picture.name if several else title, legend=not several))
        if place + columns < len(pictures):
            one.set_xlabel("")
            one.tick_params(labelbottom=False)
        if place % columns:
            one.set_ylabel("")
            one.tick_params(labelleft=False)
        done()
    if several:
        handles = {
            handle.get_label(): handle
            for picture, kinds in zip(pictures, written, strict=True)
            for handle in _legend(picture, kinds, labels)
        }
        _show_legend(axes[columns - 1], list(handles.values()))
        if title:
            figure.suptitle(title, fontsize=12)


def draw(
    picture: Picture,
    axes: Axes,
    labels: str | Collection[str] = "fit",
    title: str | None = None,
    legend: bool = True,
) -> set[str]:
    """Draw a picture on some axes; the kinds of labels that it has."""
    time_axis(axes.yaxis, *picture.heights, "processing time")
    time_axis(axes.xaxis, *picture.bounds, "event time")
    if not picture.timed:
        axes.set_yticks([])
        axes.set_ylabel("order of arrival" if picture.marks or picture.points else "panes in order")
    finish(axes, title)
    slanted(axes)
    places = Labels(axes, labels)
    size = size_of_points(len(picture.points))
    if labels != "all" and _is_dense(picture):
        draw_dense(picture, axes, places)
    else:
        at = [p.event for p in picture.points], [p.processing for p in picture.points]
        places.block(*at, size**0.5)
        _draw_panes(picture, axes, places)
        for point in picture.points if len(picture.points) <= MOST_NUMBERS or labels != "fit" else ():
            places.write("rows", text_of(point.label), around(point.event, point.processing), 8.5)
    _draw_watermarks(picture, axes)
    _draw_points(picture.points, axes, size)
    if legend:
        _show_legend(axes, _legend(picture, places.written, labels))
    return places.written


def _is_dense(picture: Picture) -> bool:
    """True for more panes than have a place each, which are drawn as cells."""
    return sum(pane.diff > 0 for pane in picture.panes) > MOST


def _draw_panes(picture: Picture, axes: Any, places: Labels) -> None:
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.dates import date2num

    boxes, colours, lines, values, retracted = [], [], [], [], []
    for pane in picture.panes:
        bounds = picture.bounds if pane.bounds is None else pane.bounds
        left, right = map(date2num, bounds)
        top = date2num(pane.at)
        if pane.diff < 0:
            lines.append([(left, top), (right, top)])
            retracted.append((pane, bounds))
            continue
        low = date2num(pane.before or picture.heights[0])
        boxes.append([(left, low), (right, low), (right, top), (left, top)])
        colours.append(TIMING[pane.timing])
        values.append((pane, bounds))
    axes.add_collection(PolyCollection(boxes, facecolors=colours, alpha=0.28, linewidths=0, zorder=1))
    axes.add_collection(PolyCollection(boxes, facecolors="none", edgecolors=colours, linewidths=1.2, zorder=2))
    axes.add_collection(LineCollection(lines, colors=RED, linewidths=1.6, linestyles=[(0, (4, 2))], zorder=7))
    last = {id(pane) for pane in picture.standing}
    # What stands at the end comes first where there is no room for all.
    for pane, bounds in sorted(values, key=lambda shown: id(shown[0]) not in last):
        spots = along(bounds, pane.at, above=False, deep=places.high(pane.before or picture.heights[0], pane.at))
        places.write("panes", text_of(pane.value), spots, 11, bold=True, above=id(pane) in last)
    for pane, bounds in retracted:
        places.write("retractions", f"−{text_of(pane.value)}", along(bounds, pane.at, above=True), 9, color=RED)


def _draw_watermarks(picture: Picture, axes: Any) -> None:
    low, high = picture.bounds
    for number, (name, marks) in enumerate(picture.marks.items()):
        xs: list[datetime] = []
        ys: list[datetime] = []
        for at, mark, _ in marks:
            xs += [xs[-1] if xs else low, min(max(mark, low), high)]
            ys += [at, at]
        if xs:
            axes.plot(xs, ys, color=GREEN, linestyle=(0, (4 + 3 * number, 2)), label=mark_name(name), zorder=4)


def _draw_points(points: Sequence[Point], axes: Any, size: float) -> None:
    groups: dict[tuple[bool, bool], list[Point]] = {}
    for point in points:
        groups.setdefault((point.late or point.dropped, point.dropped), []).append(point)
    for (hollow, dropped), some in sorted(groups.items()):
        xs, ys = [p.event for p in some], [p.processing for p in some]
        edge = RED if dropped else INK
        shown = max(size, 11.0) if hollow else size  # a small circle would seem to be full
        axes.scatter(
            xs, ys, s=shown, facecolor="white" if hollow else INK, edgecolor=edge, linewidth=min(1.4, shown**0.5 / 4),
            zorder=5,
        )  # fmt: skip
        if dropped:
            axes.scatter(xs, ys, s=max(size * 1.8, 36), marker="x", color=RED, linewidth=1.6, zorder=8)


def _legend(picture: Picture, written: Collection[str], labels: str | Collection[str]) -> list[Any]:
    """The marks that a picture has, with their names, and what its numbers are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for timing, colour in TIMING.items():
        if any(pane.diff > 0 and pane.timing == timing for pane in picture.panes):
            handles.append(Patch(facecolor=colour, alpha=0.5, label=timing.lower().replace("_", " ") + " pane"))
    if any(pane.diff < 0 for pane in picture.panes):
        dot: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 4, "markeredgewidth": 0}
        mark = dot if labels != "all" and _is_dense(picture) else {"linestyle": "--"}
        handles.append(Line2D([], [], color=RED, label="retracted", **mark))
    for number, name in enumerate(picture.marks):
        handles.append(Line2D([], [], color=GREEN, linestyle=(0, (4 + 3 * number, 2)), label=mark_name(name)))
    circle: dict[str, Any] = {"marker": "o", "linestyle": "", "markeredgecolor": INK}
    if any(not (p.late or p.dropped) for p in picture.points):
        handles.append(Line2D([], [], markerfacecolor=INK, label="datum", **circle))
    if any(p.late and not p.dropped for p in picture.points):
        handles.append(Line2D([], [], markerfacecolor="white", label="before watermark", **circle))
    if any(p.dropped for p in picture.points):
        handles.append(Line2D([], [], marker="x", linestyle="", color=RED, label="dropped datum"))
    digits: dict[str, Any] = {"linestyle": "", "color": "black", "markeredgewidth": 0.4}
    if "panes" in written:
        label = f"{text_of(picture.value, 10)} of a pane"
        handles.append(Line2D([], [], marker=r"$\mathbf{12}$", markersize=13, label=label, **digits))
    if "rows" in written and len(names := {p.of for p in picture.points if p.label}) == 1:
        label = f"{text_of(names.pop(), 10)} of a datum"
        handles.append(Line2D([], [], marker="$12$", markersize=10, label=label, **digits))
    return handles


def _show_legend(axes: Axes, handles: list[Any]) -> None:
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9, frameon=False)


__all__ = ["draw_all", "panes", "size_of"]

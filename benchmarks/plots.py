"""Pictures of the measured tables: how many times as fast as the other each row is, and curves of what a size does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from report import Measured, factor, measured

OURS, OTHER, INK = "#1f6feb", "#c8262b", "#57606a"
SUITES = {
    "spark": "Batch: times as fast as native Spark",
    "streams": "Streams: times as fast as the other",
    "stream_steps": "Steps and joins in streams: times as fast as the other",
}


def draw(folder: Path) -> None:
    """All pictures of the tables that there are."""
    matplotlib.use("Agg")
    folder.mkdir(exist_ok=True)
    for suite, title in SUITES.items():
        if rows := list(measured(suite)):
            _save(ratios(rows, title), folder / f"{suite}.png")
    if rows := list(measured("nexmark_queries")):
        _save(nexmark(rows), folder / "nexmark_queries.png")
    if rows := list(measured("world")):
        _save(world(rows), folder / "world.png")
    if rows := list(measured("scaling")):
        _save(curves(rows), folder / "scaling.png")


def ratios(rows: Sequence[Measured], title: str) -> Any:
    """A bar a row from 1, to the right where ours is faster."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.32 * len(rows)), layout="constrained")
    values = [row.times_as_fast for row in rows]
    places = range(len(rows), 0, -1)
    colours = [OURS if value >= 1 else OTHER for value in values]
    axes.barh(places, [value - 1 for value in values], left=1, color=colours, height=0.7)
    axes.set_xscale("log")
    axes.set_xlim(min(0.4, *(0.7 * value for value in values)), 1.6 * max(values))
    for place, value in zip(places, values, strict=True):
        right = value >= 1
        axes.text(value * (1.04 if right else 0.96), place, factor(value), va="center", ha="left" if right else "right")
    axes.set_yticks(list(places), [f"{row.what}\nagainst {row.against}" for row in rows], fontsize=7)
    axes.set_ylim(0.4, len(rows) + 0.6)
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_title(title)
    _plain(axes.xaxis)
    return figure


def nexmark(rows: Sequence[Measured]) -> Any:
    """A panel for each way, with a bar for each query: longer than the line is faster than the other side."""
    from matplotlib import pyplot

    panels: dict[str, dict[str, float]] = {}
    for row in rows:
        query, _, way = row.what.partition(", ")
        against = "query 0, where Spark has no such query" if row.against.startswith("q0") else row.against
        kind = "as a batch" if way == "batch" else "as a stream"
        panels.setdefault(f"{kind}, against\n{against}", {})[query] = row.times_as_fast
    queries = list(dict.fromkeys(query for some in panels.values() for query in some))
    figure, drawn = pyplot.subplots(
        1, len(panels), figsize=(4.1 * len(panels), 1.2 + 0.28 * len(queries)), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (title, some) in zip(drawn[0], panels.items(), strict=True):
        for query, value in some.items():
            place = -queries.index(query)
            axes.barh(place, value, color=INK if "query 0" in title else OURS if value >= 1 else OTHER, height=0.7)
            axes.annotate(factor(value), (value, place), (3, 0), textcoords="offset points", va="center", fontsize=8)
        axes.axvline(1, color=INK, linewidth=1)
        axes.set_xlim(0, 1.18 * max(1, *some.values()))
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("times as fast", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    drawn[0, 0].set_yticks([-i for i in range(len(queries))], queries)
    return figure


NAME = "uncombine"


def world(rows: Sequence[Measured]) -> Any:
    """The seconds of each system, a panel a task."""
    from matplotlib import pyplot

    tasks: dict[str, dict[str, float]] = {}
    for row in rows:
        ours, other = row.seconds
        name, on_spark, _ = row.what.partition(", on Spark")
        task = tasks.setdefault(name, {})
        task.setdefault(f"{NAME}{' on Spark' if on_spark else ''}", ours)
        task[row.against] = other
    figure, panels = pyplot.subplots(
        len(tasks), 1, figsize=(10, 0.6 + sum(0.5 + 0.3 * len(task) for task in tasks.values())), layout="constrained",
        squeeze=False, height_ratios=[1 + len(task) for task in tasks.values()],
    )  # fmt: skip
    for axes, (name, task) in zip(panels[:, 0], tasks.items(), strict=True):
        places = list(range(len(task), 0, -1))
        task = dict(sorted(task.items(), key=lambda bar: not bar[0].startswith(NAME)))
        axes.barh(places, list(task.values()), color=[OURS if n.startswith(NAME) else INK for n in task], height=0.7)
        for place, value in zip(places, task.values(), strict=True):
            axes.text(value, place, f" {value:.2f} s", va="center", fontsize=8)
        axes.set_yticks(places, list(task), fontsize=8)
        axes.set_xlim(0, 1.12 * max(task.values()))
        axes.set_title(name, fontsize=9, loc="left")
    return figure


def curves(rows: Sequence[Measured]) -> Any:
    """Seconds over sizes, both as logarithms, a panel a curve."""
    from matplotlib import pyplot

    high = (len(rows) + 1) // 2
    figure, panels = pyplot.subplots(high, 2, figsize=(11, 2.6 * high), layout="constrained")
    for axes, row in zip(panels.flat, rows, strict=False):
        sizes = [_size(cell) for cell in row.cells[0].split(",")]
        seconds = [float(cell) for cell in row.cells[1].split(",")]
        axes.loglog(sizes, seconds, "o-", color=OURS)
        axes.set_xticks(sizes, [cell.strip() for cell in row.cells[0].split(",")])
        axes.minorticks_off()
        axes.set_ylim(0.5 * min(seconds), 2 * max(seconds))
        _plain(axes.yaxis)
        axes.set_ylabel("seconds")
        axes.set_title(f"{row.what}: exponent {row.cells[2]}", fontsize=9)
    for axes in panels.flat[len(rows) :]:
        axes.set_axis_off()
    return figure


def _size(cell: str) -> float:
    value, _, unit = cell.strip().partition(" ")
    return float(value) * {"": 1.0, "k": 1e3, "M": 1e6}[unit]


def _plain(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.savefig(path, dpi=90)
    pyplot.close(figure)

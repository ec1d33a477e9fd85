"""A picture of a changelog: the rows of a table as they come, change and go.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..combiners.column_names import key_names
from ..errors import InvalidArgument, require_column
from .labels import Labels
from .picture_data import keys_of, table_of
from .style import RED, aware, figure_of, finish, from_micros, margins, slanted, text_of, time_axis, width_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 60
"""The most keys that a picture shows."""

_COLOURS = ("#7fb3e6", "#b4d4f3")


def changelog(
    rows: Any,
    keys: str | Sequence[str] | None = None,
    *,
    value: str | None = None,
    time: str | None = None,
    diff: str = "diff",
    where: Mapping[str, Any] | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Draw the life of a table: for each key the values that it has one after the other, from its changelog.

    Parameters
    ----------
    rows
        Rows with weights, in their order: a result of `run()`, an Arrow table, or a DataFrame of pandas or Spark.
    keys
        The columns that tell one row of the table from another; the keys of the grouping and its window if not given.
    value
        The column that is written; the first that is no key if not given.
    time
        The column with the time of each change. If not given: the processing times of panes, else the steps of a
        script of several, else the order of the rows.
    diff
        The weight column.
    where
        The keys to draw, such as {"user": "a"}.
    title, figsize
        The title, and the size in inches.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import pyarrow as pa, uncombine as uc
    >>> users = ["a", "a", "a", "b"]
    >>> rows = pa.table({"user": users, "n": [1, 1, 2, 7], "diff": [1, -1, 1, 1]})
    >>> figure = uc.plot.changelog(rows, keys="user")
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['b', 'a']
    """
    table = table_of(rows)
    require_column(diff, table.column_names, "diff=")
    names = key_names(keys) if keys is not None else _own_keys(table)
    for name in [*names, *([value] if value else []), *([time] if time else []), *(where or {})]:
        require_column(name, table.column_names, "changelog()")
    others = [n for n in table.column_names if n not in (*names, diff, "pane", "event_time", "step", time, "window")]
    shown = value or (others[0] if others else names[-1])
    matches = [row for row in table.to_pylist() if all(row[n] == wanted for n, wanted in (where or {}).items())]
    if not matches:
        raise InvalidArgument("the changelog has no rows, so there is nothing to draw: give rows, or another where=")
    moments, timed = _moments(matches, time)
    spans, ends = _spans(matches, names, shown, diff, moments), (min(moments), max(moments))
    if len(spans) > MOST:
        raise InvalidArgument(f"the changelog has {len(spans)} keys, and a picture holds {MOST}: give where=")
    figure, [[axes]] = figure_of(figsize or (9.0, 1.6 + 0.36 * len(spans)), legend=0.4)
    starts = [
        dict(part)["start"] for key in spans for name, part in zip(names, key, strict=True) if name == "window" and part
    ]
    starts += [part for key in spans for part in key if isinstance(part, datetime)]
    days = all(start.hour == start.minute == start.second == 0 for start in starts)
    labels = [_label(key, names, "%Y-%m-%d" if days else "%Y-%m-%d %H:%M:%S") for key in spans]
    wide = figure.get_size_inches()[0]
    figure.subplots_adjust(left=min(0.25 + max(width_of(text, 9) for text in labels) / 72, wide * 0.4) / wide)
    low, end = margins(*ends, 0.06)
    current = [(width_of(life[-1][0], 9), life[-1][1]) for life in spans.values() if life[-1][2] is None]
    bar = (figure.subplotpars.right - figure.subplotpars.left) * wide * 72
    beside = [width for width, start in current if width > bar * ((end - start) / (end - low))]
    if beside:  # values of rows that came last, which are longer than their bars
        figure.subplots_adjust(right=1 - (max(beside) / 72 + 0.15) / wide)
    time_axis(axes.xaxis, low, end, "processing time" if timed else "order of changes")
    axes.set_ylim(-0.6, len(spans) - 0.4)
    written = Labels(axes)
    for place, life in enumerate(spans.values()):
        y = len(spans) - 1 - place
        for number, (text, start, stop) in enumerate(life):
            until = end if stop is None else stop
            axes.barh(y, until - start, left=start, height=0.62, color=_COLOURS[number % 2], edgecolor="white")
            if stop is not None:
                axes.vlines(stop, y - 0.31, y + 0.31, color=RED, linewidth=1.5)
            pixels = axes.transData.transform([[axes.convert_xunits(t), 0] for t in (start, until)])
            if width_of(text, 9) * written.pixels < pixels[1][0] - pixels[0][0]:
                axes.annotate(text, (start + (until - start) / 2, y), ha="center", va="center", fontsize=9)
            elif stop is None and beside:
                axes.annotate(
                    text, (1, y), (4, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                    va="center", fontsize=9,
                )  # fmt: skip
    axes.set_yticks(range(len(spans)), list(reversed(labels)))
    if not timed:
        axes.set_xticks([])
        axes.set_xlabel("order of changes")
    finish(axes, title)
    axes.grid(axis="y", visible=False)
    slanted(axes)
    return figure


def _own_keys(table: Any) -> list[str]:
    if "window" not in table.column_names:
        raise InvalidArgument("the rows are no panes, so their keys are unknown: give keys=")
    return [*keys_of(table), "window"]


def _moments(rows: Sequence[Mapping[str, Any]], time: str | None) -> tuple[list[datetime], bool]:
    """The time of each change, and True if it is one of a clock."""
    if time is not None:
        return [aware(row[time]) for row in rows], True
    times = [_arrived(row) for row in rows]
    at = [moment for moment in times if moment is not None]
    if len(at) == len(rows):
        # A retraction has the time of the pane that it retracts, and comes with the pane after it.
        out: list[datetime] = []
        following = aware(at[-1])
        for row, moment in zip(reversed(rows), reversed(at), strict=True):
            following = aware(moment) if row["diff"] > 0 else following
            out.append(following)
        return out[::-1], True
    steps: list[Any] = [row.get("step") for row in rows]
    order = list(range(len(rows))) if len(set(steps)) == 1 else steps
    return [from_micros(60_000_000 * place) for place in order], False


def _arrived(row: Mapping[str, Any]) -> datetime | None:
    """The processing time of a pane, also where its columns are flat; None for other rows."""
    pane = row if "timing" in row else row.get("pane") or {}
    return pane.get("processing_time")


def _spans(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], value: str, diff: str, moments: Sequence[datetime]
) -> dict[tuple[Any, ...], list[tuple[str, datetime, datetime | None]]]:
    """For each key its values, each with the times at which it came and went."""
    spans: dict[tuple[Any, ...], list[tuple[str, datetime, datetime | None]]] = {}
    for row, at in zip(rows, moments, strict=True):
        life = spans.setdefault(tuple(_plain(row[name]) for name in keys), [])
        text = text_of(row[value])
        if row[diff] > 0:
            life.append((text, at, None))
            continue
        place = next((i for i in range(len(life) - 1, -1, -1) if life[i][0] == text and life[i][2] is None), None)
        if place is not None:
            life[place] = (text, life[place][1], at)
    return spans


def _plain(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, dict) else str(value) if isinstance(value, list) else value


def _label(key: Sequence[Any], names: Sequence[str], form: str) -> str:
    parts = []
    for name, part in zip(names, key, strict=True):
        if name == "window":
            start = dict(part)["start"] if part is not None else None
            parts.append("all of time" if start is None else start.strftime(form))
        else:
            parts.append(part.strftime(form) if isinstance(part, datetime) else text_of(part))
    return ", ".join(parts)


__all__ = ["changelog"]

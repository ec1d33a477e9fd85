"""A picture of windows: the rows of a time line, and the windows that they are in.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, require_column
from ..local.script import Elements, with_times
from ..windows import Length, Window, as_window, time_column, times_of
from ..windows.times import FIRST, LAST
from .labels import Labels
from .picture_data import Bounds, table_of
from .style import INK, TIMING, figure_of, finish, from_micros, margins, slanted, text_of, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 400
"""The most windows that a panel shows."""


def windows(
    window: Window | Length | Sequence[Window | Length],
    rows: Any,
    *,
    time: str = "ts",
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Draw the windows of some rows of one key, a panel for each kind of window, with the number of rows in each.

    Parameters
    ----------
    window
        A window or its words, or several to compare.
    rows
        The event times, or rows with the column `time`, as a table, a list of dicts or a script.
    time
        The event time column.
    title, figsize
        The title, and the size in inches.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import uncombine as uc
    >>> times = ["2016-01-20T12:00:05Z", "2016-01-20T12:00:50Z", "2016-01-20T12:03:00Z"]
    >>> figure = uc.plot.windows([uc.Fixed("1 minute"), "sessions 1 minute"], times)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ["Fixed('1 minute')", "Sessions('1 minute')"]
    """
    several = window if isinstance(window, Sequence) and not isinstance(window, str) else [window]
    kinds = [as_window(one, "windows()") for one in several]
    table, times = _rows(rows, time)
    if not len(times):
        raise InvalidArgument("there are no rows with a time, so there is nothing to draw: give rows")
    spans = [_assigned(kind, times, table) for kind in kinds]
    ends = [t for some in spans for low, high, _ in some for t in (low, high) if t not in (FIRST, LAST)]
    low, high = margins(from_micros(int(min([*times, *ends]))), from_micros(int(max([*times, *ends]))))
    figure, axes = figure_of(figsize or (9.0, 1.3 + 1.8 * len(kinds)), len(kinds), legend=0.35)
    for kind, some, [one] in zip(kinds, spans, axes, strict=True):
        _draw(one, some, times, (low, high))
        one.set_title(repr(kind), loc="left", fontsize=10, pad=8)
        if one is not axes[-1][0]:
            one.set_xlabel("")
            one.tick_params(labelbottom=False)
    slanted(axes[-1][0])
    if title:
        figure.suptitle(title, fontsize=12)
        figure.subplots_adjust(top=max(1 - 0.8 / figure.get_size_inches()[1], 0.5))
    return figure


def _rows(rows: Any, time: str) -> tuple[Any, np.ndarray]:
    if isinstance(rows, list | tuple) and any(isinstance(row, Elements) for row in rows):
        tables = [with_times(table_of(entry.rows), [time]) for entry in rows if isinstance(entry, Elements)]
        rows = pa.concat_tables(tables, promote_options="permissive")
    if isinstance(rows, list | tuple | np.ndarray) and not any(isinstance(row, dict) for row in rows):
        values, valid = time_column(times_of(rows))
        return None, values[valid]
    table = with_times(table_of(rows), [time])
    require_column(time, table.column_names, "time=")
    values, valid = time_column(flat(table[time]))
    return table.filter(valid), values[valid]


def _assigned(window: Window, times: np.ndarray, table: Any) -> list[tuple[int, int, int]]:
    """Start, end and number of rows of each window."""
    window.check(table.schema) if table is not None else None
    order = np.zeros(len(times), np.uint64)
    assigned = window.assign(times, order if window.needs_key_hash else None, table)
    start, end = assigned.start, assigned.end
    if window.merging:
        merged = window.merge(np.zeros(len(start), np.int64), start, end)
        start, end = merged.start, merged.end
    bounds = np.unique(np.column_stack([start, end]), axis=0)
    if len(bounds) > MOST:
        raise InvalidArgument(f"{window!r} gives {len(bounds)} windows, and a picture holds {MOST}: give fewer rows")
    return [
        (max(int(low), FIRST), min(int(high), LAST), int(((times >= low) & (times < high)).sum()))
        for low, high in bounds
    ]


def _draw(axes: Any, spans: Sequence[tuple[int, int, int]], times: np.ndarray, bounds: Bounds) -> None:
    """Windows as bars, in as many lanes as windows lie over each other, over the ticks of the rows."""
    ends: list[int] = []
    placed = []
    for low, high, count in spans:
        lane = next((i for i, end in enumerate(ends) if end <= low), len(ends))
        ends[lane : lane + 1] = [high]
        placed.append((low, high, count, lane))
    time_axis(axes.xaxis, *bounds, "event time")
    axes.set_ylim(-0.9, len(ends))
    labels = Labels(axes)
    colours = list(TIMING.values())
    for number, (low, high, count, lane) in enumerate(placed):
        left, right = (min(max(from_micros(t), bounds[0]), bounds[1]) for t in (low, high))
        colour = colours[number % 2]
        axes.barh(lane + 0.45, right - left, left=left, height=0.72, color=colour, alpha=0.45, edgecolor=colour)
        wide = axes.transData.transform([[axes.convert_xunits(left), 0], [axes.convert_xunits(right), 0]])
        if wide[1][0] - wide[0][0] > 8 * labels.pixels * len(str(count)):
            axes.text(left + (right - left) / 2, lane + 0.45, text_of(count), ha="center", va="center", fontsize=9)
    axes.vlines([from_micros(int(t)) for t in times], -0.75, -0.15, color=INK, linewidth=1.2)
    axes.set_yticks([])
    finish(axes)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)


__all__ = ["windows"]

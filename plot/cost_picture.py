"""A picture of what triggers cost: the wait for results against panes and corrections.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from .costs import trigger_costs as costs_of
from .style import RED, TIMING, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def trigger_costs(
    results: Mapping[str, Any], *, title: str | None = None, figsize: tuple[float, float] | None = None
) -> Figure:
    """Draw what triggers cost: for each the wait for the first and the last pane, and the panes and corrections.

    Parameters
    ----------
    results
        For each trigger the panes that it gave for the same rows, as for `uc.trigger_costs`.
    title, figsize
        The title, and the size in inches.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import uncombine as uc
    >>> rows = uc.Elements([{"ts": 0, "x": 5}], at=1_000_000)
    >>> script = [rows, uc.Watermark(None, at=90_000_000)]
    >>> counts = uc.flow(script).window("1 minute").combine(n=uc.Count())
    >>> runs = {"at the end": counts.run()}
    >>> [axes.get_xlabel() for axes in uc.plot.trigger_costs(runs).axes]
    ['wait after the end of the window (seconds)', 'panes for each window']
    """
    rows = costs_of(results).to_pylist()
    if not any(row["panes"] for row in rows):
        raise InvalidArgument("the results have no panes, so there is nothing to draw: give those of other runs")
    figure, [[left, right]] = figure_of(figsize or (11.0, 1.7 + 0.5 * len(rows)), 1, 2, legend=0.3)
    longest = max(len(row["trigger"]) for row in rows)
    figure.subplots_adjust(
        left=min(0.03 + 0.0072 * min(longest, 40), 0.34), wspace=0.08, bottom=0.8 / figure.get_size_inches()[1]
    )
    waits = [value for row in rows for value in (row["first_wait"], row["last_wait"]) if value is not None]
    unit, seconds = _unit(waits)
    for place, row in enumerate(rows):
        y = len(rows) - 1 - place
        first, last = ((row[name] or 0) / seconds for name in ("first_wait", "last_wait"))
        left.plot([first, last], [y, y], color="#9aa3ad", linewidth=2, zorder=1)
        left.scatter([first], [y], color=TIMING["EARLY"], s=70, zorder=2, label="first pane" if place == 0 else None)
        left.scatter([last], [y], color=TIMING["ON_TIME"], s=70, zorder=2, label="last pane" if place == 0 else None)
        shown = row["panes"] / max(row["windows"], 1)
        right.barh(y, 1 if shown else 0, color=TIMING["ON_TIME"], height=0.5, label="first" if place == 0 else None)
        corrections = row["corrections"] / max(row["windows"], 1)
        right.barh(
            y, corrections, left=1, color=RED, alpha=0.55, height=0.5, label="corrections" if place == 0 else None
        )
        right.annotate(f"{shown:.1f}", (shown, y), (5, 0), textcoords="offset points", va="center", fontsize=9)
    left.set_yticks(range(len(rows)), [_cut(row["trigger"]) for row in reversed(rows)])
    right.set_yticks(range(len(rows)), [""] * len(rows))
    for axes in (left, right):
        finish(axes)
        axes.set_ylim(-0.6, len(rows) - 0.4)
    left.axvline(0, color="#9aa3ad", linewidth=1, zorder=0)
    left.set_xlabel(f"wait after the end of the window ({unit})")
    right.set_xlabel("panes for each window")
    right.set_xlim(0, max(row["panes"] / max(row["windows"], 1) for row in rows) * 1.12 or 1)
    for axes in (left, right):
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=9, frameon=False)
    if title:
        figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    return figure


def _unit(waits: list[float]) -> tuple[str, float]:
    most = max(map(abs, waits), default=0.0)
    units = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))
    return next(((unit, seconds) for unit, seconds in units if most >= 2 * seconds), ("seconds", 1.0))


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


__all__ = ["trigger_costs"]

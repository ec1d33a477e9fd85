"""Draws the picture of the design pages, a row's way through a flow: `python docs/design_picture.py`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[1]
INK, SOFT, PAPER = "#22313f", "#5d6d7e", "#ffffff"
WIDTH, TOP, HEIGHT = 2.3, 3.85, 2.05


@dataclass(frozen=True)
class Station:
    """One station of a row's way."""

    name: str
    lines: str
    code: str
    color: str


STATIONS = (
    Station("file", "rows lie in files;\na task reads them\nas Arrow tables", "read", "#eef3f7"),
    Station("lift", "rows get times, and\nare combined to one\ncell a key and window", "Intake, Lift", "#e3f1e6"),
    Station("parcel", "the cells that one\nshard gets, packed\nas Arrow bytes", "Parcel", "#e3f1e6"),
    Station("shuffle", "few wide rows (shard,\nlo, payload), each to\nits shard's partition", "WIRE", "#fdf1dc"),
    Station("shard", "one step: cells meet\nthe windows in hand,\ntriggers are asked", "Shard, Step", "#e6e9f7"),
    Station("pane", "a result with its time,\nits diff (+1 or -1)\nand why it was emitted", "emit", "#e6e9f7"),
    Station("sink", "a DataFrame of panes,\nfor any sink of Spark\nor another flow", "Flow.df", "#eef3f7"),
)


def left(place: int) -> float:
    """The left edge of a station."""
    return 0.35 + place * (WIDTH + 0.5)


def middle(place: int) -> float:
    """The middle of a station."""
    return left(place) + WIDTH / 2


def box(axes: Axes, x: float, y: float, width: float, height: float, color: str) -> None:
    """A box with round corners, its lower left corner at (x, y)."""
    shape = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, facecolor=color, edgecolor=INK, linewidth=1.1))


def arrow(
    axes: Axes, tail: tuple[float, float], head: tuple[float, float], color: str = INK, both: bool = False
) -> None:
    """A straight arrow from one point to another, or between the two."""
    style = {"arrowstyle": "<|-|>" if both else "-|>", "color": color, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=head, xytext=tail, arrowprops=style)


def stations(axes: Axes) -> None:
    """The stations from left to right."""
    for i, station in enumerate(STATIONS):
        box(axes, left(i), TOP, WIDTH, HEIGHT, station.color)
        axes.text(middle(i), TOP + 1.68, station.name, ha="center", va="center", size=13, weight="bold", color=INK)
        axes.text(middle(i), TOP + 0.93, station.lines, ha="center", va="center", size=9, color=INK, linespacing=1.35)
        axes.text(
            middle(i), TOP + 0.2, station.code, ha="center", va="center", size=8.5, color=SOFT, family="monospace"
        )
        if i:
            arrow(axes, (left(i) - 0.5, TOP + HEIGHT / 2), (left(i), TOP + HEIGHT / 2))


def places(axes: Axes) -> None:
    """Above the stations: the process that does the work."""
    spans = (
        (0, 2, "a lifting task: a Python worker of Spark"),
        (3, 3, "Spark"),
        (4, 5, "the shard's task"),
        (6, 6, "Spark"),
    )
    for first, last, text in spans:
        y = TOP + HEIGHT + 0.3
        axes.plot([left(first), left(last) + WIDTH], [y, y], color=SOFT, linewidth=2.2, solid_capstyle="butt")
        axes.text(
            (left(first) + left(last) + WIDTH) / 2, y + 0.28, text, ha="center", va="center", size=9.5, color=SOFT
        )


def reports(axes: Axes) -> None:
    """Under the stations: watermark reports travel beside the parcels."""
    y, color = TOP - 0.75, "#b9770e"
    axes.plot([middle(1), middle(1)], [TOP, y], color=color, linewidth=1.4)
    axes.plot([middle(1), middle(4) - 0.6], [y, y], color=color, linewidth=1.4)
    arrow(axes, (middle(4) - 0.6, y), (middle(4) - 0.6, TOP), color)
    text = "watermark reports: each lift sends what it saw of each source to every shard, in the same shuffle"
    axes.text((middle(1) + middle(4) - 0.6) / 2, y - 0.22, text, ha="center", va="center", size=9, color=color)


def state(axes: Axes) -> None:
    """Under the shard: its state."""
    x, y, width = left(4) + 0.75, 1.45, WIDTH + 0.9
    arrow(axes, (middle(4) + 0.6, y + 1.25), (middle(4) + 0.6, TOP), both=True)
    box(axes, x, y, width, 1.25, "#f4ecf7")
    axes.text(x + width / 2, y + 0.97, "state store", ha="center", va="center", size=10.5, weight="bold", color=INK)
    lines = "a manifest, and chunks of windows\nwith their outstanding panes"
    axes.text(x + width / 2, y + 0.47, lines, ha="center", va="center", size=9, color=INK, linespacing=1.35)


def chain(axes: Axes) -> None:
    """At the bottom: panes are the rows of the next grouping."""
    y, color = 0.95, "#2e7d4f"
    x = middle(5) + 0.75
    axes.plot([x, x], [TOP, y], color=color, linewidth=1.4)
    axes.plot([x, left(1) + 0.5], [y, y], color=color, linewidth=1.4)
    arrow(axes, (left(1) + 0.5, y), (left(1) + 0.5, TOP), color)
    text = (
        "another grouping: the shard's task lifts the panes as rows with a weight, "
        "and reports its output watermark as a source of its own"
    )
    axes.text((x + left(1) + 0.5) / 2, y - 0.26, text, ha="center", va="center", size=9, color=color)


def figure() -> Figure:
    """The picture."""
    made = Figure(figsize=(15, 5.2))
    FigureCanvasAgg(made)
    axes = made.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, left(len(STATIONS) - 1) + WIDTH + 0.35)
    axes.set_ylim(0.3, TOP + HEIGHT + 0.95)
    axes.axis("off")
    for draw in (stations, places, reports, state, chain):
        draw(axes)
    return made


def main(target: Path) -> None:
    """Draw the picture."""
    target.parent.mkdir(parents=True, exist_ok=True)
    figure().savefig(target, dpi=144, facecolor=PAPER)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "design" / "row.png")

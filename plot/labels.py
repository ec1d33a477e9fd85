"""Places for labels: each goes to the first of its places at which it covers nothing, and is hidden if there is none.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .style import width_of

KINDS = ("panes", "retractions", "rows")

GAP = 4.0
"""The points between labels beside each other: two numbers must not look like one."""


LINE = 12.0
"""The points from one line of labels to the next."""


@dataclass(frozen=True)
class Place:
    """A place for a label: a point of the axes, and the offset from it in points."""

    x: datetime
    y: datetime
    right: float = 0.0
    up: float = 0.0
    ha: str = "center"


@dataclass
class Labels:
    """The labels of some axes, and the boxes that they and other marks cover, in pixels."""

    axes: Any
    shown: str | Collection[str] = "fit"
    boxes: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))
    """The boxes of labels."""
    marks: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))
    """The boxes of other marks."""
    written: set[str] = field(default_factory=set)
    """The kinds of which some label is seen."""

    def __post_init__(self) -> None:
        allowed = ("fit", "all", "none")
        if isinstance(self.shown, str) and self.shown not in allowed:
            self.shown = (self.shown,)
        if not isinstance(self.shown, str) and (wrong := [kind for kind in self.shown if kind not in KINDS]):
            raise InvalidArgument(
                f"labels= takes 'fit', 'all', 'none' or some of {', '.join(map(repr, KINDS))}, but was given "
                f"{wrong[0]!r}"
            )

    @property
    def pixels(self) -> float:
        """The pixels of a point."""
        return float(self.axes.figure.dpi) / 72

    def high(self, low: datetime, top: datetime) -> float:
        """The points from one time to another of the axis upwards."""
        x = self.axes.get_xlim()[0]
        (_, start), (_, end) = self.axes.transData.transform([(x, t) for t in self._numbers([low, top])])
        return float(end - start) / self.pixels

    def block(self, xs: Sequence[datetime], ys: Sequence[datetime], size: float) -> None:
        """Keep labels off marks of this size, in points, at some points of the axes."""
        if len(xs):
            at = self._at(xs, ys)
            half = size * self.pixels / 2
            self.marks = np.concatenate([self.marks, np.hstack([at - half, at + half])])

    def write(
        self,
        kind: str,
        text: str,
        places: Sequence[Place],
        size: float = 9,
        bold: bool = False,
        above: bool = False,
        **style: Any,
    ) -> None:
        """Write a label of a kind at the first place that is free. A hidden one stays in the axes' list of texts.

        One that stands `above` marks may cover them, if there is no other place.
        """
        from matplotlib.patheffects import withStroke

        wanted = self.shown if isinstance(self.shown, str) else "fit" if kind in self.shown else "none"
        place, free = places[0], wanted == "all"
        if wanted == "fit" and text:
            taken = [self.boxes, self.marks]
            boxes = [(spot, self._box(spot, text, size, bold)) for spot in places]
            found = next((both for both in boxes if self._is_free(both[1], *taken)), None)
            if found is None and above:
                found = next((both for both in boxes if self._is_free(both[1], self.boxes)), None)
            if found is not None:
                place, free = found[0], True
                self.boxes = np.vstack([self.boxes, found[1]])
        if free and text:
            self.written.add(kind)
        self.axes.annotate(
            text,
            (place.x, place.y),
            xytext=(place.right, place.up),
            textcoords="offset points",
            ha=place.ha,
            va="center",
            fontsize=size,
            fontweight="bold" if bold else "normal",
            visible=free,
            zorder=6,
            path_effects=[withStroke(linewidth=2, foreground="white", alpha=0.75)],
            **style,
        )

    def _at(self, xs: Sequence[datetime], ys: Sequence[datetime]) -> np.ndarray:
        points = np.column_stack([self._numbers(xs), self._numbers(ys)])
        return np.asarray(self.axes.transData.transform(points))

    @staticmethod
    def _numbers(times: Sequence[datetime]) -> np.ndarray:
        from matplotlib.dates import date2num

        return np.asarray(date2num(list(times)))

    def _box(self, place: Place, text: str, size: float, bold: bool) -> np.ndarray:
        [at] = self._at([place.x], [place.y])
        wide, high = (width_of(text, size, bold) + GAP) * self.pixels, 1.3 * size * self.pixels
        left = {"center": wide / 2, "left": GAP * self.pixels / 2, "right": wide - GAP * self.pixels / 2}[place.ha]
        x, y = at[0] + place.right * self.pixels - left, at[1] + place.up * self.pixels - high / 2
        return np.array([x, y, x + wide, y + high])

    def _is_free(self, box: np.ndarray, *taken: np.ndarray) -> bool:
        edge = self.axes.bbox
        if box[0] < edge.x0 - 2 or box[2] > edge.x1 + 2 or box[1] < edge.y0 - 2 or box[3] > edge.y1 + 14:
            return False
        x0, y0, x1, y1 = np.concatenate(taken).T
        return not bool(((box[0] < x1) & (box[2] > x0) & (box[1] < y1) & (box[3] > y0)).any())


def around(x: datetime, y: datetime, far: float = 7.0) -> list[Place]:
    """The places for the label of a mark: right, left, above and below it."""
    return [
        Place(x=x, y=y, right=far, up=0.0, ha="left"),
        Place(x=x, y=y, right=-far, up=0.0, ha="right"),
        Place(x=x, y=y, right=0.0, up=far + 4.0),
        Place(x=x, y=y, right=0.0, up=-far - 4.0),
    ]


def along(bounds: tuple[datetime, datetime], y: datetime, above: bool, deep: float = 0.0) -> list[Place]:
    """The places for the label of an edge from side to side: in the middle first, for one below it.

    A label below an edge may lie so many points deep.
    """
    shares = (0.82, 0.5, 0.18, 0.66, 0.34) if above else (0.5, 0.35, 0.65, 0.2, 0.8)
    length = bounds[1] - bounds[0]
    rows = [8.0] if above else [-9.0 - LINE * row for row in range(1 + max(0, int((deep - 16) / LINE)))]
    return [Place(x=bounds[0] + length * share, y=y, right=0.0, up=up) for up in rows for share in shares]


__all__ = ["KINDS", "Labels", "Place", "along", "around"]

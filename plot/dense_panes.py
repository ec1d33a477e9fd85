"""Many panes as cells: each has the colour of the latest timing in it, and is strong where panes were emitted.

Rectangles and values of hundreds of panes would cover each other. A cell is a few points wide, so that a picture of any
number of panes has the same number of marks, and a late pane is seen among thousands.

Guarded by tests/plot/test_dense_panes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from .labels import Labels, along
from .picture import Picture
from .picture_data import Bounds, Pane
from .style import RED, TIMING, text_of, width_of

MOST = 60
"""The most panes of a panel that are drawn as rectangles with their values."""

CELL = 3.0
"""The width and height of a cell, in points."""

STATES = list(TIMING)
"""The timings in their order: a cell has the number of its latest, counted from 1."""


@dataclass(frozen=True)
class Cells:
    """The cells of a picture, from bottom to top and from left to right."""

    shown: np.ndarray
    """For each cell the latest timing of the panes that lie over it; 0 without any."""
    emitted: np.ndarray
    """The same of the panes that were emitted in it."""
    retracted: np.ndarray
    """True where a pane was retracted."""

    @classmethod
    def of(cls, picture: Picture, columns: int, rows: int) -> Cells:
        """The panes of a picture, in so many cells."""
        shown, emitted = np.zeros((rows, columns), np.uint8), np.zeros((rows, columns), np.uint8)
        retracted = np.zeros((rows, columns), bool)
        # A pane covers a rectangle of cells, so that there is no array to do it for all panes at once.
        for pane in picture.panes:
            start, end = (_share(t, picture.bounds) * columns for t in pane.bounds or picture.bounds)
            left = min(int(start + 0.5), columns - 1)
            across = slice(left, max(int(end + 0.5), left + 1))
            edges = pane.before or picture.heights[0], pane.at
            low, top = (min(int(_share(t, picture.heights) * rows), rows - 1) for t in edges)
            if pane.diff < 0:
                retracted[top, across] = True
                continue
            state = STATES.index(pane.timing) + 1
            np.maximum(shown[low : top + 1, across], state, out=shown[low : top + 1, across])
            np.maximum(emitted[top, across], state, out=emitted[top, across])
        return cls(shown=shown, emitted=emitted, retracted=retracted)


def _share(time: datetime, bounds: Bounds) -> float:
    low, high = bounds
    return (time - low) / (high - low)


def draw_dense(picture: Picture, axes: Any, places: Labels) -> None:
    """Draw the panes of a picture as cells, the ends of windows that are wide enough, and their last values."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb
    from matplotlib.dates import date2num

    size = CELL * places.pixels
    columns, rows = (max(int(length / size), 8) for length in (axes.bbox.width, axes.bbox.height))
    cells = Cells.of(picture, columns, rows)
    colours = np.array([(1, 1, 1), *map(to_rgb, TIMING.values())])
    image = np.zeros((rows, columns, 4))
    image[..., :3] = colours[np.where(cells.emitted > 0, cells.emitted, cells.shown)]
    image[..., 3] = np.select([cells.emitted > 0, cells.shown > 0], [0.95, 0.3])
    extent = (*date2num(picture.bounds), *date2num(picture.heights))
    axes.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="nearest", zorder=1)
    last = picture.standing
    wide = [pane for pane in last if pane.bounds and _width(pane, picture, axes) > 4 * size]
    ends = [[(x, extent[2]), (x, date2num(pane.at))] for pane in wide for x in date2num(pane.bounds)]
    axes.add_collection(LineCollection(ends, colors=axes.get_facecolor(), linewidths=1, zorder=2))
    ys, xs = np.nonzero(cells.retracted)
    axes.scatter(
        extent[0] + (xs + 0.5) * (extent[1] - extent[0]) / columns,
        extent[2] + (ys + 0.5) * (extent[3] - extent[2]) / rows,
        s=16, color=RED, linewidth=0, zorder=7,
    )  # fmt: skip
    if len({pane.key for pane in last}) > 1:
        return  # a value would not say whose it is
    for pane in sorted(last, key=lambda pane: pane.at, reverse=True):
        text = text_of(pane.value)
        # A value that is wider than its window would seem to be one of the windows beside it.
        if pane.timing == "LATE" or width_of(text, 9, bold=True) * places.pixels < _width(pane, picture, axes):
            spots = along(pane.bounds or picture.bounds, pane.at, above=False)
            places.write("panes", text, spots, 9, bold=True)


def _width(pane: Pane, picture: Picture, axes: Any) -> float:
    """The width of a window in pixels."""
    (start, end), (low, high) = pane.bounds or picture.bounds, picture.bounds
    return float((end - start) / (high - low) * axes.bbox.width)


__all__ = ["CELL", "MOST", "Cells", "draw_dense"]

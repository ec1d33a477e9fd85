"""Colours, time axes, texts and figures that all pictures share.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, LibraryMissing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIMING = {"EARLY": "#7fb3e6", "ON_TIME": "#6abf7b", "LATE": "#f0b45a"}
RED, GREEN, INK, GREY = "#c8262b", "#2b6a3c", "#333333", "#8a8f98"

LONGEST_TEXT = 16
"""The number of characters of a value that a picture shows."""

LONGEST_KEY = 200
"""The number of characters of a key where a page has room to wrap it."""

MOST_PANELS = 12

DAY = timedelta(days=1)

_MISSING = (
    "a picture needs the library matplotlib, which is not installed: pip install 'uncombine[plot]', or draw with "
    "uc.plot.animation, which needs none"
)


def text_of(value: Any, longest: int = LONGEST_TEXT) -> str:
    """A value in few characters; the rest of a long one is cut off."""
    if value is None:
        return "–"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def width_of(text: str, points: float, bold: bool = False) -> float:
    """About the width of a text in points; never less than its true width for most texts."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return points * ((0.72 if bold else 0.64) * (len(text) - wide) + 1.05 * wide)


def new_figure(figsize: tuple[float, float]) -> Figure:
    """A figure that pyplot does not know, so that no window shows it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LibraryMissing(_MISSING) from None
    return Figure(figsize=figsize)


def pyplot_figure(figsize: tuple[float, float]) -> Figure:
    """A figure of pyplot, which notebooks and windows show."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise LibraryMissing(_MISSING) from None
    return pyplot.figure(figsize=figsize)


def figure_of(figsize: tuple[float, float], rows: int = 1, columns: int = 1, legend: float = 2.0) -> tuple[Figure, Any]:
    """A figure and its axes in a grid. Its margins are fixed, so that places of labels are known without drawing it."""
    figure = pyplot_figure(figsize)
    return figure, grid(figure, rows, columns, legend)


def grid(figure: Figure, rows: int = 1, columns: int = 1, legend: float = 2.0, top: float = 0.45) -> Any:
    """Axes in rows and columns, with room for a legend on the right and titles above (in inches)."""
    wide, high = figure.get_size_inches()
    axes = figure.subplots(rows, columns, squeeze=False)
    inner = (wide - 0.95 - legend) / columns
    figure.subplots_adjust(
        left=0.95 / wide,
        right=max(1 - legend / wide, 0.95 / wide + 0.1),
        bottom=min(1.05 / high, 0.4),
        top=max(1 - top / high, 0.5),
        hspace=0.62 / max((high - 1.5) / rows - 0.5, 0.5),
        wspace=0.3 / max(inner - 0.3, 0.5),
    )
    return axes


def margins(low: datetime, high: datetime, share: float = 0.04) -> tuple[datetime, datetime]:
    """The bounds with a little room around them."""
    room = (high - low) * share or timedelta(minutes=1)
    first, last = (end.replace(tzinfo=low.tzinfo) for end in (datetime.min, datetime.max))
    return low - min(room, low - first), high + min(room, last - high)


def time_axis(axis: Any, low: datetime, high: datetime, name: str) -> None:
    """Show times on an axis, with as much of the date as its length needs, and as many ticks as it has room for."""
    from matplotlib.dates import DAILY, HOURLY, MINUTELY, MONTHLY, SECONDLY, AutoDateLocator, DateFormatter

    axis.axes.set_xlim(low, high) if axis.axis_name == "x" else axis.axes.set_ylim(low, high)
    length = high - low
    if length <= DAY:
        inner = (low + length / 20, high - length / 20)  # without the margins
        same = inner[0].date() == inner[1].date()
        low = inner[0]
        form = (
            "%H:%M:%S.%f" if length < timedelta(seconds=4) else "%H:%M:%S" if length < timedelta(hours=4) else "%H:%M"
        )
        form, label = (
            (form, f"{name} (UTC, {low:%Y-%m-%d})") if same else (f"%b %d, {form}", f"{name} (UTC, {high:%Y})")
        )
    elif length <= timedelta(days=4):
        form, label = "%b %d, %H:%M", f"{name} (UTC, {high:%Y})"
    elif length <= timedelta(days=300):
        form, label = "%b %d", f"{name} (UTC, {high:%Y})" if low.year == high.year else f"{name} (UTC)"
        form = form if low.year == high.year else "%Y-%m-%d"
    else:
        form, label = "%Y-%m-%d", f"{name} (UTC)"
    form = form.replace(", ", "\n") if axis.axis_name == "y" else form
    pixels = axis.axes.get_window_extent()
    inches = (pixels.width if axis.axis_name == "x" else pixels.height) / axis.axes.figure.dpi
    room = inches * 1.6 if axis.axis_name == "x" else min(inches / (0.42 if "\n" in form else 0.25), 8)
    locator = AutoDateLocator(tz=UTC, minticks=2, maxticks=max(int(room), 3))
    locator.intervald[HOURLY] = [1, 2, 3, 4, 6, 12, 24]
    locator.intervald[MINUTELY] = locator.intervald[SECONDLY] = [1, 2, 5, 10, 15, 30, 60]
    locator.intervald[DAILY] = [1, 2, 3, 7, 14, 21, 31]
    locator.intervald[MONTHLY] = [1, 2, 3, 4, 6, 12]
    axis.set_major_locator(locator)
    axis.set_major_formatter(DateFormatter(form, tz=UTC))
    axis.set_label_text(label)


def finish(axes: Axes, title: str | None = None) -> None:
    """The look that all pictures have."""
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if title:
        axes.set_title(title, fontsize=11, pad=10)


def slanted(axes: Axes) -> None:
    """Ticks of the lower axis at a slant, so that dates have room."""
    for tick in axes.get_xticklabels():
        tick.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", labelrotation=30)


def panels(count: int) -> tuple[int, int]:
    """The rows and columns of a grid of so many panels."""
    if count > MOST_PANELS:
        raise InvalidArgument(
            f"by= gives {count} panels, and a picture holds at most {MOST_PANELS}: draw some keys with where="
        )
    columns = 1 if count <= 3 else 2 if count <= 8 else 3
    return -(-count // columns), columns


def aware(time: datetime) -> datetime:
    """The time in UTC; one without a time zone is taken as UTC."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def from_micros(micros: int) -> datetime:
    """The time of so many microseconds since 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def size_of_points(count: int) -> float:
    """The size of the marker of a row, among so many."""
    return 60.0 if count <= 60 else 26.0 if count <= 200 else 11.0 if count <= 1000 else 3.0


def mark_name(name: str | None) -> str:
    """The name of the watermark of an input, or of the only one."""
    return "watermark" if name is None else f"watermark of {text_of(name)}"


def named(values: Sequence[Any], names: Sequence[str], longest: int = LONGEST_TEXT) -> str:
    """The values of keys with their names, such as `user=ada`."""
    return ", ".join(f"{name}={text_of(value, longest)}" for name, value in zip(names, values, strict=True))


__all__ = [
    *("DAY", "GREEN", "GREY", "INK", "LONGEST_KEY", "LONGEST_TEXT", "MOST_PANELS", "RED", "TIMING"),
    *("aware", "figure_of", "finish", "from_micros", "grid", "margins", "mark_name", "named"),
    *("new_figure", "panels", "pyplot_figure", "size_of_points", "slanted", "text_of", "time_axis", "width_of"),
]

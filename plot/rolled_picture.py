"""Pictures of rolling results: the value of each row over event time, and what was shown before a correction.

Guarded by tests/plot/test_rolled_picture.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..combiners.column_names import key_names
from ..errors import InvalidArgument, require_column
from .picture_data import table_of
from .style import RED, aware, finish, margins, named, pyplot_figure, size_of_points, slanted, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_KEYS = 10
"""The most keys of a picture, each of which has a colour."""


def rolling(
    result: Any,
    value: str | None = None,
    *,
    by: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the results of `flow.rolling(...)` or `join_rolling(...)` over event time, with their corrections.

    Each row that stands is a point at its time, joined by a line. What was shown and retracted since is a hollow red
    point, with a line to what stands there now.

    Parameters
    ----------
    result
        The result of `run()`, an Arrow table, or a DataFrame of pandas.
    value
        The result column that is drawn; the last one if not given.
    by
        The key columns; each key has a line of its own.
    where
        Some of the rows, such as {"user": "a"}.
    title, figsize, ax
        The title, the size in inches, and the axes to draw on (new ones if not given).

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import pyarrow as pa, uncombine as uc
    >>> rows = uc.flow(pa.table({"ts": [0, 40_000_000], "x": [1, 2]}))
    >>> result = rows.rolling("1 minute").combine(total=uc.Sum("x")).run()
    >>> uc.plot.rolling(result).axes[0].get_ylabel()
    'total'
    """
    table, names = table_of(result), key_names(by)
    for name in ("event_time", "diff"):
        if name not in table.column_names:
            raise InvalidArgument(
                f"a picture of rolling results shows times and corrections, but the rows have no column {name!r}: draw "
                "the result of flow.rolling(...).combine(...)"
            )
    results = [field.name for field in table.schema if _is_number(field.type) and field.name not in ("diff", "step")]
    shown = value if value is not None else next(iter(results[-1:]), "")
    if shown not in results:
        raise InvalidArgument(f"value= must be a column of numbers, one of {results}, but is {value!r}")
    for name in (*names, *(where or {})):
        require_column(name, table.column_names, "by=" if name in names else "where=")
    rows = [row for row in table.to_pylist() if all(row[name] == one for name, one in (where or {}).items())]
    keys = _by_key(rows, names, shown)
    if not keys:
        raise InvalidArgument("the result has no rows, so there is nothing to draw")
    if len(keys) > MOST_KEYS:
        raise InvalidArgument(
            f"the result has {len(keys)} keys, and a picture holds {MOST_KEYS}: draw some with where="
        )
    figure = pyplot_figure(figsize or (9.0, 4.5)) if ax is None else None
    axes = ax if figure is None else figure.subplots()
    assert axes is not None
    _draw(axes, keys, names, shown)
    finish(axes, title)
    slanted(axes)
    if figure is not None:
        figure.tight_layout()
    return axes.figure  # type: ignore[return-value]


Shown = dict[tuple[datetime, float], int]
"""The sums of the weights of each value at a time, in the order in which values were first shown."""


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _by_key(rows: Sequence[Mapping[str, Any]], names: Sequence[str], value: str) -> dict[tuple[Any, ...], Shown]:
    keys: dict[tuple[Any, ...], Shown] = {}
    for row in rows:
        if row[value] is not None:
            shown = keys.setdefault(tuple(row[name] for name in names), {})
            point = aware(row["event_time"]), float(row[value])
            shown[point] = shown.get(point, 0) + row["diff"]
    return keys


def _draw(axes: Any, keys: Mapping[tuple[Any, ...], Shown], names: Sequence[str], value: str) -> None:
    times = [time for shown in keys.values() for time, _ in shown]
    size, corrections = size_of_points(len(times)), False
    for place, (key, shown) in enumerate(keys.items()):
        standing = sorted(point for point, weight in shown.items() if weight > 0)
        label = named(key, names) if names else value
        axes.plot([t for t, _ in standing], [x for _, x in standing], color=f"C{place}", alpha=0.5, linewidth=1.2)
        axes.scatter(
            [t for t, _ in standing], [x for _, x in standing], s=size, color=f"C{place}", label=label, zorder=3
        )
        for (time, old), weight in shown.items():
            if weight <= 0:
                now = [x for at, x in standing if at == time]
                axes.plot([time] * (1 + len(now)), [old, *now], color=RED, linestyle=":", linewidth=1)
                label = "" if corrections else "shown before, and retracted"
                axes.scatter([time], [old], s=size, facecolors="white", edgecolors=RED, label=label or None, zorder=2)
                corrections = True
    time_axis(axes.xaxis, *margins(min(times), max(times)), "event time")
    axes.set_ylabel(value)
    if names or corrections:
        axes.legend(fontsize=9, frameon=False)


__all__ = ["rolling"]

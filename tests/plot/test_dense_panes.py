"""Pictures of many panes: cells in place of rectangles."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import matplotlib
import numpy as np
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.plot.dense_panes import MOST, Cells
from uncombine.plot.picture import History

matplotlib.use("agg")

AT = datetime(2024, 5, 1, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def closed() -> Any:
    """Close the figures of a test."""
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def minutes(count: int, late: int | None = None) -> tuple[uc.Result, list[Any]]:
    """A pane a minute, on time, and one that is shown again at the end, late."""
    script: list[Any] = []
    for i in range(count):
        now = AT + timedelta(minutes=i + 1)
        script += [uc.Elements([{"ts": AT + timedelta(minutes=i), "x": 1}], at=now), uc.Watermark(now)]
    if late is not None:
        script += [uc.Elements([{"ts": AT + timedelta(minutes=late), "x": 1}], at=AT + timedelta(minutes=count + 1))]
    flow = uc.flow(script).window("1 minute", mode="retracting", allowed_lateness="1 day")
    return flow.combine(n=uc.Sum("x")).run(), script


@pytest.mark.weekly
@pytest.mark.parametrize(("count", "images"), [(MOST, 0), (MOST + 1, 1)])
def test_more_panes_than_have_room_are_cells(count: int, images: int) -> None:
    axes = uc.plot.panes(*minutes(count)).axes[0]
    assert (len(axes.images), len(axes.texts) > count) == (images, images == 0)


@pytest.mark.weekly
def test_one_late_pane_among_hundreds_is_seen() -> None:
    axes = uc.plot.panes(*minutes(100, late=20)).axes[0]
    [image] = axes.images
    red, _, blue, opaque = np.moveaxis(image.get_array(), 2, 0)
    late = (opaque > 0) & (red > 0.9) & (blue < 0.5)
    columns = np.flatnonzero(late.any(axis=0))
    assert (columns.mean() + 0.5) / late.shape[1] == pytest.approx((20.5 + 0.04 * 100) / (1.08 * 100), abs=0.005)
    assert late[:, columns[0]].mean() > 0.6, "it lies over its window until it is shown again"
    assert len(columns) <= 2


@pytest.mark.weekly
def test_the_last_values_of_wide_windows_are_written() -> None:
    script: list[Any] = [
        uc.Elements([{"ts": AT + timedelta(seconds=i * 120), "x": 1}], at=AT + timedelta(seconds=i * 120))
        for i in range(90)
    ]
    hours = uc.flow(script).window("1 hour", "early every 1 row", mode="retracting")
    axes = uc.plot.panes(hours.combine(n=uc.Sum("x")).run(), script).axes[0]
    assert [text.get_text() for text in axes.texts if text.get_visible()] == ["30", "30", "30"]


def test_values_of_sessions_that_have_grown_are_left_out() -> None:
    script: list[Any] = [uc.Elements([{"ts": AT + timedelta(minutes=i), "x": 1}]) for i in range(MOST + 5)]
    grown = uc.flow(script).window("sessions 1 hour", "early every 1 row", mode="retracting")
    axes = uc.plot.panes(grown.combine(n=uc.Sum("x")).run(), script).axes[0]
    assert [text.get_text() for text in axes.texts if text.get_visible()] == [str(MOST + 5)]


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(8))
def test_a_cell_has_the_latest_timing_over_it(seed: int) -> None:
    """Against every cell and every pane, one by one."""
    r, now, script = random.Random(seed), AT, list[Any]()
    for _ in range(60):
        now += timedelta(seconds=r.choice([1, 10, 40]))
        rows = [{"ts": now - timedelta(seconds=r.choice([0, 10, 90])), "k": r.randrange(2), "x": 1}]
        script += [uc.Elements(rows, at=now), uc.Watermark(now - timedelta(seconds=20))]
    window = r.choice(["1 minute", "sessions 20 seconds", "global"])
    flow = uc.flow(script).window(window, "early every 1 row", mode="retracting", allowed_lateness="1 hour")
    picture = History.of(flow.combine(by="k", n=uc.Sum("x")).run(), script).whole()
    columns, rows_of_cells = 23, 17
    cells = Cells.of(picture, columns, rows_of_cells)

    def place(time: datetime, bounds: tuple[datetime, datetime], count: int) -> float:
        return (time - bounds[0]).total_seconds() / (bounds[1] - bounds[0]).total_seconds() * count

    order = ["", "EARLY", "ON_TIME", "LATE"]
    for y in range(rows_of_cells):
        for x in range(columns):
            shown, emitted, retracted = 0, 0, False
            for pane in picture.panes:
                start, end = pane.bounds or picture.bounds
                left, right = (int(place(side, picture.bounds, columns) + 0.5) for side in (start, end))
                if not left <= x < max(right, left + 1):
                    continue
                top = int(place(pane.at, picture.heights, rows_of_cells))
                low = 0 if pane.before is None else int(place(pane.before, picture.heights, rows_of_cells))
                if pane.diff < 0:
                    retracted |= y == top
                elif low <= y <= top:
                    shown = max(shown, order.index(pane.timing))
                    emitted = max(emitted, order.index(pane.timing) if y == top else 0)
            assert (cells.shown[y, x], cells.emitted[y, x], cells.retracted[y, x]) == (shown, emitted, retracted)

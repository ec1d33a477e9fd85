"""The watermark of a picture without a script is the one that the run had when each pane was emitted."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import matplotlib
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.plot.picture_data import marks_of_panes

matplotlib.use("agg")
BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)
LAG = timedelta(seconds=10)


def replayed(seed: int, **end: Any) -> tuple[list[dict[str, Any]], uc.Result]:
    """Random rows, and the panes of their replay."""
    rng = random.Random(seed)
    seen = [BEGIN + timedelta(seconds=7 * n) for n in range(60)]
    rows = [{"ts": at - timedelta(seconds=rng.choice([0, 0, 5, 60])), "seen": at, "x": n} for n, at in enumerate(seen)]
    history = uc.flow(rows, watermark="10 seconds", processing_time="seen").replay(**end)
    windows = history.window("30 seconds", "watermark", mode="retracting", allowed_lateness="1 hour")
    return rows, windows.combine(total=uc.Sum("x")).run()


@pytest.mark.parametrize("seed", seeds(4))
def test_marks_are_those_of_the_strategy(seed: int) -> None:
    rows, result = replayed(seed)
    marks = marks_of_panes(result.panes)[None]
    emitted = {row["pane"]["processing_time"] for row in result.to_pylist() if row["diff"] > 0}
    highest = {at: max(row["ts"] for row in rows if row["seen"] <= at) - LAG for at in emitted}
    # A watermark that did not move since the pane before has no mark of its own.
    first = {mark: min(at for at in emitted if highest[at] == mark) for mark in highest.values()}
    assert [(mark, at) for at, mark, _ in marks] == sorted(first.items())
    assert len(marks) > 5


def test_a_picture_of_a_replay_has_its_watermark() -> None:
    _, result = replayed(1, close_at_end=True)
    for panes in (result, result.panes, result.panes.to_pandas()):
        [axes] = uc.plot.panes(panes).axes
        [line] = [line for line in axes.get_lines() if line.get_label() == "watermark"]
        assert list(line.get_xdata()) == sorted(line.get_xdata())
        assert max(line.get_xdata()) >= max(row["window"]["end"] for row in result.to_pylist())


def test_panes_without_a_watermark_have_no_line() -> None:
    rows = [{"ts": 0, "x": 5}]
    bounded = uc.flow(rows).window("1 minute").combine(total=uc.Sum("x")).run()
    assert marks_of_panes(bounded.panes) == {}
    script = [uc.Elements(rows, at=1), uc.Clock(60_000_000)]
    clocked = uc.flow(script).window("global", "every 1 row").combine(total=uc.Sum("x")).run()
    assert clocked.num_rows > 0
    assert marks_of_panes(clocked.panes) == {}

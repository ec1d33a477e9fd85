"""Pictures of a part of a run: the windows between two times, with their rows, steps and watermarks."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.plot.picture import History

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def run_of(seed: int) -> tuple[uc.Result, list[Any]]:
    draw = random.Random(seed)
    script: list[Any] = []
    for minute in range(40):
        rows = [
            {"ts": NOON + timedelta(minutes=minute, seconds=-draw.randint(0, 200)), "user": draw.choice("ab"), "x": 1}
            for _ in range(draw.randint(0, 3))
        ]
        if rows:
            script.append(uc.Elements(rows, at=NOON + timedelta(minutes=minute)))
    script.append(uc.Watermark(None, at=NOON + timedelta(hours=1)))
    flow = uc.flow(script, watermark="1 minute").window("sessions 1 minute", "early every row, late every row")
    return flow.combine(by="user", n=uc.Sum("x")).run(), script


@pytest.mark.parametrize("seed", range(6))
def test_a_part_has_the_windows_and_rows_of_the_whole(seed: int) -> None:
    result, script = run_of(seed)
    low, high = NOON + timedelta(minutes=7 + seed), NOON + timedelta(minutes=15 + seed)
    whole = History.of(result, script)
    part = History.of(result, script, between=(low, high))
    first = script.index(part.entries[0])

    def panes(history: History, step: int) -> list[Any]:
        return [
            (pane.key, pane.bounds, pane.value, pane.at, pane.diff, pane.step + step)
            for pane in history.panes
            if pane.bounds is not None and pane.bounds[0] < high and pane.bounds[1] > low
        ]

    assert panes(part, first) == panes(whole, 0)
    assert len(part.panes) == len(panes(part, first)) < len(whole.panes)
    spans = {(pane.key, pane.bounds) for pane in part.panes}
    wanted = [
        (p.event, p.processing, p.step)
        for p in whole.points
        if low <= p.event < high
        or any(key == (p.row["user"],) and bounds and bounds[0] <= p.event < bounds[1] for key, bounds in spans)
    ]
    assert [(p.event, p.processing, p.step + first) for p in part.points] == wanted
    assert {pane.step for pane in part.panes} | {p.step for p in part.points} >= {0, len(part.entries) - 1}
    for name, marks in part.marks.items():
        for at, mark, step in marks:
            stood = [m for _, m, s in whole.marks[name] if s <= step + first][-1]
            assert (mark, at) == (stood, part.clock[step])
    assert "Panes" in uc.plot.animation(result, script, between=(low, high)).html


def test_a_picture_of_a_part_shows_its_times() -> None:
    result, script = run_of(1)
    times = ("2024-05-01T12:10Z", "2024-05-01T12:20Z")
    figure = uc.plot.panes(result, script, by=[], between=times)
    assert figure.axes[0].get_xlabel() == "event time (UTC, 2024-05-01)"
    few = figure.axes[0].get_xlim()
    all_of_it = uc.plot.panes(result, script, by=[]).axes[0].get_xlim()
    assert few[1] - few[0] < (all_of_it[1] - all_of_it[0]) / 2


def test_panes_without_a_script_are_cut_too() -> None:
    result, _ = run_of(2)
    whole = History.of(result, None)
    part = History.of(result, None, between=("2024-05-01T12:10Z", "2024-05-01T12:20Z"))
    assert 0 < len(part.panes) < len(whole.panes)


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (("2025-01-01", "2025-01-02"), r"no window and no row is between .* the run has times from 2024-05-01 1"),
        (("2024-05-01T13:00Z", "2024-05-01T12:00Z"), "the earlier time first"),
        ("2024-05-01", "takes two event times"),
        (("2024-05-01",), "takes two event times"),
    ],
)
def test_what_is_no_part_is_refused(between: Any, words: str) -> None:
    result, script = run_of(3)
    with pytest.raises(InvalidArgument, match=words):
        uc.plot.panes(result, script, by=[], between=between)

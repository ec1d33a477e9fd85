"""Retractions that equal no row are told in the log, in whichever step of a run they leave."""

from __future__ import annotations

from typing import Any

import pytest

import uncombine as uc
from uncombine.panes.rows import unmet

SECOND = 1_000_000


def row(t: int, x: int, diff: int = 1, seen: int = 0) -> dict[str, Any]:
    return {"ts": t * SECOND, "x": x, "seen": seen, "diff": diff}


def rolling(source: uc.Flow, **options: Any) -> uc.Flow:
    return source.rolling("1 minute", **options).combine(n=uc.Count())


STEPS = {
    "rolling": rolling,
    "rolling, final": lambda source: rolling(source, emit="final"),
    "rolling, ticks": lambda source: rolling(source, every="10 seconds"),
    "in_order": lambda source: source.in_order(),
}
UNEQUAL = [row(0, 1), row(5, 2), row(0, 1, -1, seen=9), row(5, 2, -2, seen=9)]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(unmet, "_told", 0)
    return caplog


def counts(told: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(" no row")[0] for record in told.records]


@pytest.mark.parametrize("step", STEPS)
def test_retractions_that_equal_no_row(step: str, told: pytest.LogCaptureFixture) -> None:
    name = step.partition(",")[0]
    STEPS[step](uc.flow(UNEQUAL, diff="diff")).run()
    assert counts(told) == [f"{name}: 3 retractions have met"]
    assert ", x=1, seen=9: a retraction equals its row in all columns" in told.text
    told.clear()
    # One entry after the other; they leave with the watermark, and the first has met its row before.
    script = [
        uc.Elements([row(5, 2, -1), row(0, 1)]),
        uc.Elements([row(0, 1, -1, seen=9), row(5, 2)]),
        uc.Watermark(300 * SECOND),
        uc.Elements([row(400, 4, -1)]),
        uc.Watermark(None),
    ]
    STEPS[step](uc.flow(script, diff="diff", watermark="20 seconds")).run()
    assert counts(told) == [f"{name}: 1 retraction has met"] * 2


@pytest.mark.parametrize("step", STEPS)
def test_retractions_that_equal_their_rows(step: str, told: pytest.LogCaptureFixture) -> None:
    equal = [row(0, 1, -1), row(0, 1), row(5, 2), row(5, 2), row(5, 2, -2)]
    STEPS[step](uc.flow(equal, diff="diff")).run()
    STEPS[step](uc.flow(UNEQUAL, diff="diff", processing_time="seen")).run()
    script = [uc.Elements([one]) for one in equal]
    STEPS[step](uc.flow([*script, uc.Watermark(None)], diff="diff", watermark="20 seconds")).run()
    assert counts(told) == [f"{step.partition(',')[0]}: 1 retraction has met"]  # of UNEQUAL, whose last weighs two


def test_a_process_tells_of_some(told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmet, "MOST_TOLD", 2)
    for _ in range(3):
        rolling(uc.flow(UNEQUAL, diff="diff")).run()
    assert len(told.records) == 2

"""Watermarks of a shard come back from its state as they were, with the hold of files that are not read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from uncombine.errors import StateMismatch
from uncombine.panes.watermarks.stored_watermarks import read_extra, restored, stored
from uncombine.panes.watermarks.watermarks import InputWatermarks, Watermarks


def again(marks: InputWatermarks, strategies: list[str], now: list[str] | None = None) -> InputWatermarks:
    """The watermarks as a restarted query has them."""
    made_by = {"made_by": {"stage": "1 of 1"}, "timer": None}
    extra = read_extra(json.dumps({**made_by, **stored(marks, strategies)}).encode())
    return restored(extra, [Watermarks() for _ in marks.inputs], now or strategies)


@pytest.mark.parametrize("inputs", [1, 2])
def test_a_hold_comes_back(inputs: int) -> None:
    marks = InputWatermarks(tuple(Watermarks() for _ in range(inputs)))
    marks = marks.told([[("a", 30)]] * inputs, 5, [20, None][:inputs])
    strategies = ["BoundedLag()"] * inputs
    back = again(marks, strategies)
    assert back == marks
    assert back.told([[]] * inputs, 6, [25, None][:inputs]).least == 25
    # Sources start again under another strategy, and the files are as unread as before.
    other = again(marks, strategies, ["Monotonic()"] * inputs)
    assert other.told([[("b", 40)]] * inputs, 6).least == 20


@pytest.mark.parametrize("other", [None, "'15 seconds'", "'1 hour'"])
def test_sources_stay_under_another_idle_after(other: str | None) -> None:
    """The watermark neither moves back nor waits for a source that is idle under the new one."""
    strategy = "PerSource(column='idle_after=x', lag='30 seconds', idle_after={})"
    marks = InputWatermarks((Watermarks().told([("a", 30), ("b", 90)], 5),), least=30, now=5)
    back = again(marks, [strategy.format("'1 minute'")], [strategy.format(other)])
    assert back.inputs[0].sources == {"a": (30, 5), "b": (90, 5)}
    idle = replace(back, inputs=(replace(back.inputs[0], idle_after=10),)).told([[("b", 95)]], 16)
    assert (idle.least, idle.inputs[0].idles("a")) == (95, True)
    assert back.told([[("b", 95)]], 16).least == 30
    another = again(marks, [strategy.format(other)], [strategy.replace("30", "40").format(other)])
    assert another.inputs[0].sources == {}, "with another lag they have come to other times"
    assert another.least == 30


def test_a_shard_without_a_hold_is_stored_as_before() -> None:
    marks = InputWatermarks((Watermarks().told([("a", 30)], 5),))
    assert "hold" not in json.dumps(stored(marks, ["BoundedLag()"]))


@pytest.mark.parametrize("hold", ["soon", 2**80, None])
def test_a_damaged_hold_is_refused(hold: Any) -> None:
    marks = {"sources": [["a", 5, 7]], "least": 5, "now": 7, "hold": hold}
    extra = {"made_by": {"stage": "1 of 1"}, "timer": None, "strategy": "BoundedLag()", "marks": marks}
    with pytest.raises(StateMismatch):
        read_extra(json.dumps(extra).encode())

"""The published results of the Dataflow model's example, pane by pane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from golden import KEYS, Case, cases, seen

import uncombine as uc


def expected(case: Case, got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The golden panes, without what a case leaves open."""
    panes = [dict(pane) for pane in case.panes]
    for pane, other in zip(panes, got, strict=False):
        if "timing" not in pane and "timing" in other:
            other.pop("timing")
    return panes


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_case_as_written(case: Case) -> None:
    result = case.run()
    got = seen(case, result, None)
    assert got == expected(case, got)
    if case.dropped is not None:
        assert result.dropped == case.dropped


@pytest.mark.parametrize("case", cases(keyed=True), ids=lambda c: c.name)
def test_case_under_three_keys_at_once(case: Case) -> None:
    result = case.run()
    for key in KEYS:
        got = seen(case, result, key)
        assert got == expected(case, got)
    if case.dropped is not None:
        assert result.dropped == case.dropped * len(KEYS)


EVERY_MINUTE = uc.Repeatedly(uc.AtPeriod("1 minute")).or_finally(uc.AfterWatermark())
BY_HAND = {
    "Listing 4": uc.SequenceOf(EVERY_MINUTE, uc.Repeatedly(uc.AfterCount(1))),
    "patent 6I": uc.SequenceOf(EVERY_MINUTE, uc.Repeatedly(uc.AfterWatermark())),
}


@pytest.mark.parametrize("trigger", BY_HAND)
@pytest.mark.parametrize("case", [c for c in cases() if "early=" in repr(c.options["trigger"])], ids=lambda c: c.name)
def test_early_and_late_firings_by_hand_are_the_published_ones(case: Case, trigger: str) -> None:
    got = seen(case, replace(case, options={**case.options, "trigger": BY_HAND[trigger]}).run(), None)
    assert got == expected(case, got)


def test_a_perfect_watermark_has_no_late_pane() -> None:
    """The left half of Figure 7: early panes each minute, and on-time ones when all of a window has come."""
    by_name = {case.name: case for case in cases()}
    guessed, perfect = by_name["early_late_accumulating"], by_name["watermark_perfect"]
    panes = replace(perfect, options=guessed.options).run().to_pylist()
    last = {row["window"]["start"]: (row["pane"]["timing"], row["sum"]) for row in panes}
    assert list(last.values()) == [("ON_TIME", total) for total in (14, 22, 3, 12)]
    assert all(row["pane"]["timing"] != "LATE" for row in panes)
    early = [f"{row['pane']['processing_time']:%S}" for row in panes if row["pane"]["timing"] == "EARLY"]
    assert early == ["00"] * 7


def test_there_are_eighteen_cases() -> None:
    assert len(cases()) == 18

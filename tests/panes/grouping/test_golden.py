"""The published results of the Dataflow model's example, pane by pane."""

from __future__ import annotations

from typing import Any

import pytest
from golden import KEYS, Case, cases, seen


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


def test_there_are_eighteen_cases() -> None:
    assert len(cases()) == 18

"""The published results of the Dataflow model's example, by the model that is read off the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from golden.cases import KEYS, Case, cases, seen
from reference.byrule.runner import Result, run

import uncombine as uc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def total(rows: list[tuple[dict[str, Any], int]]) -> int:
    return sum(row["value"] * weight for row, weight in rows)


def outcome(case: Case) -> Result:
    options = {name: value for name, value in case.options.items() if value is not None}
    default = uc.Repeatedly(uc.AfterWatermark())
    return run(case.script, aggregates={"sum": total}, default_trigger=default, **options)


def as_table(result: Result) -> pa.Table:
    """The rows with times as the operator's result has them."""
    rows = [
        {
            **row,
            "window": None
            if row["window"] is None
            else dict(zip(("start", "end"), map(instant, row["window"]), strict=True)),
            "pane": {
                "timing": row["pane"]["timing"],
                "processing_time": instant(max(row["pane"]["processing_time"], 0)),
            },
        }
        for row in result.rows
    ]
    return pa.Table.from_pylist(rows)


def instant(time: int) -> datetime:
    return EPOCH + timedelta(microseconds=time)


def expected(case: Case, got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for pane, other in zip(case.panes, got, strict=False):
        if "timing" not in pane:
            other.pop("timing", None)
    return case.panes


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_case_as_written(case: Case) -> None:
    result = outcome(case)
    got = seen(case, as_table(result), None)
    assert got == expected(case, got)
    if case.dropped is not None:
        assert result.dropped == case.dropped


@pytest.mark.parametrize("case", cases(keyed=True), ids=lambda c: c.name)
def test_case_under_three_keys_at_once(case: Case) -> None:
    result = outcome(case)
    for key in KEYS:
        got = seen(case, as_table(result), key)
        assert got == expected(case, got)
    if case.dropped is not None:
        assert result.dropped == case.dropped * len(KEYS)

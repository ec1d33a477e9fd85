"""The model that is read off the rules: published results, some by hand, and what holds of any transcript.

`test_reference.py` compares the operator with it.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from golden import KEYS, Case, cases, seen
from reference.byrule.agree import count
from reference.byrule.agree import total as total_x
from reference.byrule.runner import Result, run
from reference.byrule.transcripts import shrink, sources_of, transcripts
from seeds import seeds

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
                "processing_time": instant(row["pane"]["processing_time"] or 0),
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


CHUNK = 20
NOON = 1_453_291_200_000_000


def by_hand(script: list[Any], **options: Any) -> list[tuple[Any, ...]]:
    """Window (seconds), count, diff, timing and whether it is last, of each output row."""
    result = run(script, aggregates={"n": count}, default_trigger=uc.Repeatedly(uc.AfterWatermark()), **options)
    return [
        (
            *((bound - NOON) // 10**6 for bound in row["window"]),
            row["n"],
            row["diff"],
            row["pane"]["timing"],
            row["pane"]["is_last"],
        )
        for row in result.rows
    ]


def rows(*times: int, diff: int = 1) -> uc.Elements:
    return uc.Elements([{"ts": NOON + t * 10**6, "d": diff} for t in times])


def mark(t: int) -> uc.Watermark:
    return uc.Watermark(NOON + t * 10**6)


def test_rule_09_a_late_row_that_joins_a_live_session_is_kept() -> None:
    got = by_hand([rows(50), mark(60), rows(35), mark(80)], window=uc.Sessions("20 seconds"))
    assert got == [(35, 70, 2, 1, "ON_TIME", True)]


def test_rule_19_counts_add_when_windows_merge() -> None:
    trigger = uc.Repeatedly(uc.AfterCount(3))
    got = by_hand([rows(0), rows(30), rows(15)], window=uc.Sessions("20 seconds"), trigger=trigger)
    assert got == [(0, 50, 3, 1, "EARLY", False)]


def test_rule_23_a_merged_sequence_is_in_the_earliest_phase() -> None:
    trigger = uc.SequenceOf(uc.AfterCount(3), uc.Repeatedly(uc.AfterCount(1)))
    script = [rows(0, 1, 2), rows(30), rows(15), rows(16)]
    got = by_hand(script, window=uc.Sessions("20 seconds"), trigger=trigger)
    # The window of 30 had seen one of its three rows, so the merged one waits for two more.
    assert got == [(0, 22, 3, 1, "EARLY", False), (0, 50, 6, 1, "EARLY", False)]


def test_rule_31_the_last_pane_is_the_closing_one() -> None:
    trigger = uc.AfterCount(1)
    got = by_hand([rows(5), mark(60)], window=uc.Fixed("1 minute"), trigger=trigger, closing="always")
    assert got == [(0, 60, 1, 1, "EARLY", False), (0, 60, 1, 1, "ON_TIME", True)]


def test_rule_37_an_on_time_pane_is_never_before_the_output_watermark() -> None:
    script = [rows(5), mark(70), mark(100), mark(130)]
    options = {"window": uc.Fixed("1 minute"), "trigger": uc.Never(), "allowed_lateness": "1 minute"}
    result = run(script, aggregates={"n": count}, **options)
    assert [row["pane"]["timing"] for row in result.rows] == ["ON_TIME"]
    assert result.output_watermarks[1:] == [NOON + 59_999_999, NOON + 59_999_999, NOON + 130_000_000]


def test_rule_40_a_session_splits_when_its_bridge_is_retracted() -> None:
    script = [rows(0, 15, 30), rows(15, diff=-1), mark(100)]
    trigger = uc.Repeatedly(uc.AfterCount(1))
    got = by_hand(script, window=uc.Sessions("20 seconds"), trigger=trigger, mode="retracting", diff="d")
    assert [row[:4] for row in got] == [(0, 50, 3, 1), (0, 50, 3, -1), (0, 20, 1, 1), (30, 50, 1, 1)]


@pytest.mark.parametrize("first", seeds(80, 400, step=CHUNK))
def test_rule_41_one_value_of_each_window_is_left_and_the_state_is_empty(first: int) -> None:
    for seed in range(first, first + CHUNK):
        script, options = transcripts(seed)
        changes = {
            "mode": "retracting",
            "closing": "non_empty",
            "late": "drop",
            "watermark": None,
            "idle_after": None,
        }
        ends = [uc.Watermark(None, source) for source in sources_of(script) or {None}]
        result = run(
            [*script, *ends],
            aggregates={"n": count, "total": total_x},
            default_trigger=uc.Repeatedly(uc.AfterWatermark()),
            **{**options, **changes},
        )
        assert result.live == []
        left: Counter[str] = Counter()
        for row in result.rows:
            place = (*(row[name] for name in options["by"]), row["window"])
            left[place, repr({name: part for name, part in row.items() if name not in ("diff", "step")})] += row["diff"]
        assert set(left.values()) <= {0, 1}
        places = [place for (place, _), weight in left.items() if weight]
        assert len(set(places)) == len(places)


def test_shrinking_leaves_what_fails() -> None:
    script = [rows(1, 2, 3), mark(5), rows(7)]
    small = shrink(
        script,
        lambda s: any(isinstance(e, uc.Elements) and any(r["ts"] == NOON + 2 * 10**6 for r in e.rows) for e in s),
    )
    assert [len(entry.rows) for entry in small] == [1]

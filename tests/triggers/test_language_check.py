"""Facts about a trigger before any data flows, compared with the operator's work on rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from opened import run_script
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.local.script import Entry
from uncombine.panes import Grouping, Operator
from uncombine.triggers import check_trigger, may_finish
from uncombine.triggers.properties import finishes_only_at_the_end, fires_only_at_the_end
from uncombine.windows import span

ONE, TWO = uc.AfterCount(1), uc.AfterCount(2)
PASSED, EARLY, LATE = uc.AfterWatermark(), uc.AfterWatermark(early=ONE), uc.AfterWatermark(late=ONE)
LEAVES = [PASSED, EARLY, LATE, uc.AfterWatermark(early=PASSED), uc.WatermarkPercentile(100), uc.WatermarkPercentile(50)]
LEAVES += [ONE, TWO, uc.AfterDelay("2 microseconds"), uc.OnPunctuation(uc.col("x") > 3), uc.Always(), uc.Never()]
WINDOWS = [uc.Fixed("10 microseconds"), uc.Sessions("3 microseconds")]


def tree(rng: random.Random, depth: int) -> uc.Trigger:
    """A random trigger; finishing ones are as likely as others."""
    if depth == 0:
        return rng.choice(LEAVES)
    parts = [tree(rng, depth - 1) for _ in range(2)]
    one, two = parts
    shapes = [
        uc.FirstOf(*parts),
        uc.AllOf(*parts),
        uc.SequenceOf(*parts),
        uc.RepeatUntil(one, two),
        uc.RepeatUntil(two, one),
    ]
    return rng.choice([*shapes, uc.RepeatCount(one, 2), uc.Repeatedly(one)])


def script(rng: random.Random) -> list[Entry]:
    """Rows in and out of order, one at a time, between moves of two watermarks and the clock."""
    entries: list[Entry] = [uc.Clock(0), uc.Watermark(-5, source="a"), uc.Watermark(-5, source="b")]
    for step in range(1, 14):
        row = {"ts": rng.randint(max(0, step - 3), step + 2), "x": rng.randint(0, 5)}
        entries.append(uc.Elements([row], at=step))
        if rng.random() < 0.4:
            entries.append(uc.Watermark(step + rng.randint(0, 4), source=rng.choice("ab")))
    return entries


def lost(trigger: uc.Trigger, seed: int, lateness: str, allow_finish: bool) -> int:
    """The number of rows that came to windows whose trigger had finished."""
    entries = script(random.Random(seed))
    options = {"allowed_lateness": lateness, "allow_finish": allow_finish}
    window = WINDOWS[seed % 2]
    return run_script(entries, window=window, trigger=trigger, n=uc.Count(), **options).counts()["finished"]


def test_the_scripts_make_triggers_finish_too_early() -> None:
    """Without this the next test could not fail."""
    assert lost(uc.RepeatUntil(ONE, EARLY), 0, "0 seconds", True) > 0
    assert lost(uc.RepeatCount(EARLY, 2), 1, "0 seconds", True) > 0


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(80))
def test_rule_26_a_trigger_that_is_accepted_loses_no_rows(seed: int) -> None:
    rng = random.Random(seed)
    trigger = tree(rng, rng.choice([1, 1, 2]))
    if finishes_only_at_the_end(trigger) or not may_finish(trigger):
        assert lost(trigger, seed, "0 seconds", False) == 0
    else:
        with pytest.raises(InvalidArgument, match=r"use Repeatedly\("):
            lost(trigger, seed, "0 seconds", False)
    if not may_finish(trigger):
        assert lost(trigger, seed, "1 day", False) == 0


@pytest.mark.parametrize(
    ("trigger", "fires", "finishes"),
    [
        (PASSED, True, True),
        (EARLY, False, True),
        (uc.AfterWatermark(early=PASSED), True, True),
        (uc.WatermarkPercentile(100), True, True),
        (uc.WatermarkPercentile(99), False, False),
        (ONE, False, False),
        (uc.RepeatUntil(ONE, PASSED), False, True),
        (uc.RepeatUntil(ONE, EARLY), False, False),
        (uc.RepeatUntil(ONE, LATE), False, True),
        (uc.RepeatUntil(PASSED, LATE), True, True),
        (uc.RepeatCount(PASSED, 1), True, True),
        (uc.RepeatCount(EARLY, 1), False, False),
        (uc.FirstOf(uc.Always(), PASSED), False, True),
        (uc.FirstOf(ONE, PASSED), False, False),
        (uc.AllOf(ONE, PASSED), True, True),
        (uc.AllOf(ONE, EARLY), False, True),
        (uc.SequenceOf(ONE, PASSED), False, True),
        (uc.SequenceOf(PASSED, ONE), True, True),
    ],
    ids=repr,
)
def test_what_happens_only_at_the_end(trigger: uc.Trigger, fires: bool, finishes: bool) -> None:
    assert fires_only_at_the_end(trigger) == fires
    assert finishes_only_at_the_end(trigger) == finishes


def test_rule_26_the_end_is_no_end_where_late_rows_are_allowed() -> None:
    window = uc.Fixed("1 hour")
    check_trigger(PASSED, window, span("0 seconds"), bounded=False, allow_finish=False)
    check_trigger(PASSED, window, span("1 day"), bounded=False, allow_finish=True)
    with pytest.raises(
        InvalidArgument, match=r"^AfterWatermark\(\) can finish.*: use Repeatedly\(AfterWatermark\(\)\), or"
    ):
        check_trigger(PASSED, window, span("1 day"), bounded=False, allow_finish=False)


def test_rule_27_what_waits_for_the_end_of_time_only() -> None:
    for never in (PASSED, LATE, uc.Repeatedly(PASSED), uc.AllOf(ONE, PASSED), uc.SequenceOf(PASSED, ONE), uc.Never()):
        with pytest.raises(InvalidArgument, match="can never fire on Global"):
            check_trigger(never, uc.Global(), span("0 seconds"), bounded=False, allow_finish=True)
        check_trigger(never, uc.Global(), span("0 seconds"), bounded=True, allow_finish=True)
    for fires in (EARLY, ONE, uc.FirstOf(ONE, PASSED), uc.SequenceOf(ONE, PASSED), uc.RepeatUntil(ONE, PASSED)):
        check_trigger(fires, uc.Global(), span("0 seconds"), bounded=False, allow_finish=True)


def test_where_windows_do_not_expire_a_trigger_that_finishes_is_refused() -> None:
    """Each batch: the first bundle would finish the window and all that came later be lost."""
    script = [uc.Elements([{"ts": 0, "x": 1}]), uc.Elements([{"ts": 0, "x": 2}])]
    options = {"window": uc.Fixed("1 minute"), "watermark": "each_batch", "n": uc.Count()}
    with pytest.raises(InvalidArgument, match=r"do not expire.*Repeatedly\(AfterWatermark\(\)\).*allow_finish"):
        run_script(script, trigger=PASSED, **options)
    taken = run_script(script, trigger=PASSED, allow_finish=True, **options)
    assert (taken["n"].to_pylist(), taken.counts()["finished"]) == ([1], 1)
    assert run_script(script, trigger=uc.Repeatedly(PASSED), **options)["n"].to_pylist() == [1, 2]
    grouping = Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), trigger=PASSED)
    operator = Operator(grouping, pa.schema({"ts": pa.timestamp("us", "UTC")}))
    with pytest.raises(InvalidArgument, match="do not expire"):
        operator.step(operator.initial(), operator.schema.empty_table(), watermark=0, each_batch=True)


def test_record_by_record_no_row_is_lost_to_a_trigger_that_finishes_with_its_window() -> None:
    rows = [{"ts": 0, "x": x} for x in range(3)]
    script = [uc.Elements(rows), uc.Watermark(30_000_000), uc.Elements(rows), uc.Watermark(60_000_000)]
    panes = uc.flow(script).window(uc.Fixed("1 minute"), PASSED, granularity="record").combine(n=uc.Count()).run()
    assert (panes["n"].to_pylist(), panes.counts()["finished"]) == ([6], 0)

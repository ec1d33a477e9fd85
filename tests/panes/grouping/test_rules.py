"""One test or more for each numbered rule of docs/semantics.md; times are seconds after 12:00."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from opened import run_script
from pipelines import Stage, pipeline
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument, NotRetractable
from uncombine.panes import Grouping, Operator
from uncombine.panes.grouping.grouping import MODES
from uncombine.panes.watermarks.watermarks import InputWatermarks, Watermarks
from uncombine.windows import MAX_TIME, MIN_TIME

NOON = 1_714_564_800_000_000
REPEATED = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))


def t(seconds: float) -> int:
    return NOON + round(seconds * 1e6)


def add(*rows: tuple[Any, ...], at: float | None = None) -> uc.Elements:
    """Rows (seconds, x), (seconds, x, key) or (seconds, x, key, diff)."""
    full = [(*row, *("a", 1)[len(row) - 2 :]) for row in rows]
    dicts = [{"ts": None if s is None else t(s), "x": x, "k": k, "d": d} for s, x, k, d in full]
    return uc.Elements(dicts, at=None if at is None else t(at))


def mark(seconds: float, source: str | None = None) -> uc.Watermark:
    return uc.Watermark(t(seconds), source)


END = uc.Watermark(None)


def run(script: list[Any], window: Any = None, **options: Any) -> pa.Table:
    options.setdefault("by", "k")
    if not any(isinstance(value, uc.Combiner) for value in options.values()):
        options["sum"] = uc.Sum("x")
    return run_script(script, window=window or uc.Fixed("1 minute"), **options)


def shown(result: pa.Table, *fields: str) -> list[tuple[Any, ...]]:
    """Rows as (start, end, sum, diff) in seconds after noon, and fields of the pane."""
    out = []
    for row in result.to_pylist():
        w = row["window"]
        bounds = (None, None) if w is None else tuple(_seconds(w[name]) for name in ("start", "end"))
        out.append((*bounds, row["sum"], row["diff"], *(row["pane"][name] for name in fields)))
    return out


def _seconds(time: Any) -> float:
    return (uc.timestamp(time) - NOON) / 1e6


def test_rule_01_windows_are_half_open_and_global_ends_with_time() -> None:
    assert shown(run([add((0, 1), (59.999999, 2), (60, 4)), END])) == [(0, 60, 3, 1), (60, 120, 4, 1)]
    assert shown(run([add((0, 1)), mark(10**6)], uc.Global())) == []
    assert shown(run([add((0, 1)), END], uc.Global())) == [(None, None, 1, 1)]


def test_rule_02_fixed_windows_start_at_multiples_before_1970_too() -> None:
    result = run([uc.Elements([{"ts": -1, "x": 1, "k": "a"}]), END], uc.Fixed("1 minute", offset="10 seconds"))
    window = result.to_pylist()[0]["window"]
    assert (uc.timestamp(window["start"]), uc.timestamp(window["end"])) == (-50_000_000, 10_000_000)


def test_rule_02_per_key_phase_shifts_each_key_by_itself() -> None:
    rows = [{"ts": NOON, "x": 1, "k": f"key {i}"} for i in range(40)]
    result = run([uc.Elements(rows), END], uc.Fixed("1 hour", per_key_phase=True))
    again = run([uc.Elements(rows[::-1]), END], uc.Fixed("1 hour", per_key_phase=True))
    starts = {row["k"]: row["window"]["start"] for row in result.to_pylist()}
    assert len(set(starts.values())) > 20
    assert starts == {row["k"]: row["window"]["start"] for row in again.to_pylist()}
    assert all(-3600 < _seconds(start) <= 0 for start in starts.values())


def test_rule_03_sliding_windows_overlap_and_gaps_are_counted() -> None:
    assert shown(run([add((30, 1), (90, 2)), END], uc.Sliding("2 minutes", "1 minute"))) == [
        (-60, 60, 1, 1),
        (0, 120, 3, 1),
        (60, 180, 2, 1),
    ]
    result = run([add((5, 1), (30, 2)), END], uc.Sliding("10 seconds", "1 minute"))
    assert shown(result) == [(0, 10, 1, 1)]
    assert result.counts()["unassigned"] == 1


def test_rule_04_a_row_opens_a_session_of_one_gap() -> None:
    assert shown(run([add((7, 1)), END], uc.Sessions("1 minute"))) == [(7, 67, 1, 1)]


def test_rule_05_sessions_that_share_an_instant_merge_and_those_that_touch_do_not() -> None:
    window = uc.Sessions("1 minute")
    assert shown(run([add((0, 1), (59, 2), (118, 4)), END], window)) == [(0, 178, 7, 1)]
    assert shown(run([add((0, 1), (60, 2)), END], window)) == [(0, 60, 1, 1), (60, 120, 2, 1)]
    assert len(shown(run([add((0, 1, "a"), (1, 2, "b")), END], window))) == 2


def test_rule_06_a_session_that_grows_is_a_new_window_with_the_old_outstanding_panes() -> None:
    result = run([add((0, 1)), add((30, 2)), END], uc.Sessions("1 minute"), trigger=REPEATED, mode="retracting")
    assert shown(result, "index") == [
        (0, 60, 1, 1, 0),
        (0, 60, 1, -1, 0),
        (0, 90, 3, 1, 0),
        (0, 90, 3, -1, 0),
        (0, 90, 3, 1, 1),
    ]


def test_rule_07_the_watermark_never_goes_back() -> None:
    result = run([add((0, 1)), mark(60), mark(10), add((30, 2))])
    assert result.dropped == 1
    assert result.output_watermarks[-1] == t(60)


def test_rule_08_a_window_passes_at_its_end_and_expires_after_its_lateness() -> None:
    script = [add((0, 1)), mark(59.999999), mark(60), mark(89), mark(90)]
    result = run(script, allowed_lateness="30 seconds")
    assert result["step"].to_pylist() == [2]
    held = [run(script[:n], allowed_lateness="30 seconds").counts()["held"] for n in (4, 5)]
    assert held == [1, 0]


def test_rule_09_a_late_row_that_joins_a_live_session_is_kept() -> None:
    window = uc.Sessions("1 minute")
    script = [add((100, 1)), mark(130), add((50, 2))]
    assert run([*script, END], window).dropped == 0
    assert shown(run([*script, END], window)) == [(50, 160, 3, 1)]
    lonely = [add((100, 1)), mark(130), add((30, 2))]
    assert run(lonely, window).dropped == 1
    bridged_in_one_bundle = [add((100, 1)), mark(130), add((30, 2), (60, 4))]
    assert shown(run([*bridged_in_one_bundle, END], window)) == [(30, 160, 7, 1)]


def test_rule_09_late_rows_are_left_out_or_given_a_window_of_their_own() -> None:
    script = [add((0, 1)), mark(60), add((30, 2), (70, 4)), END]
    dropped = run(script)
    assert [(row["why"], row["row"]["x"], row["step"]) for row in dropped.left_out.to_pylist()] == [("late", 2, 2)]
    assert shown(dropped) == [(0, 60, 1, 1), (60, 120, 4, 1)]
    duplicated = run(script, late="duplicate")
    assert shown(duplicated, "timing", "is_first", "is_last", "trigger")[1] == (0, 60, 2, 1, "LATE", True, True, "late")
    assert duplicated.dropped == 1
    for wrong, named in (({"mode": "retracting"}, "mode='retracting'"), ({"mode": "discarding", "diff": "d"}, "diff=")):
        with pytest.raises(InvalidArgument, match=f"late='duplicate' .* cannot be used with {named}"):
            run(script, late="duplicate", **wrong)


def test_rule_09_rows_are_judged_by_the_watermark_from_before_their_bundle() -> None:
    together = uc.Elements(add((30, 2)).rows, watermarks=[mark(60)])
    assert shown(run([add((0, 1)), together])) == [(0, 60, 3, 1)]
    assert run([add((0, 1)), mark(60), add((30, 2))]).dropped == 1
    reports = [mark(70, "one"), mark(30, "two")]
    assert shown(run([uc.Elements(add((0, 1)).rows, watermarks=reports), mark(60, "two")], timestamp="watermark")) == [
        (0, 60, 1, 1)
    ]
    for wrong in (t(60), uc.Watermark(t(60), at=t(1))):
        with pytest.raises(InvalidArgument, match="watermarks= of entry 0"):
            run([uc.Elements([], watermarks=[wrong])])


def test_rule_10_the_watermark_is_the_least_of_the_sources_that_are_not_idle() -> None:
    script = [add((0, 1)), mark(70, "one"), mark(30, "two"), mark(60, "two")]
    one_known = run(script[:2])
    assert shown(one_known) == [(0, 60, 1, 1)]
    later = [mark(1, "one"), mark(1, "two"), *script]
    assert run(later)["step"].to_pylist() == [5]
    idle = [uc.Clock(t(0)), mark(1, "one"), mark(1, "two"), add((0, 1)), uc.Clock(t(20)), mark(70, "one")]
    assert shown(run(idle)) == []
    assert shown(run(idle, idle_after="20 seconds")) == [(0, 60, 1, 1)]


def test_rule_10_the_watermark_moves_when_a_source_becomes_idle() -> None:
    """One is idle from 20 on and two from 30 on; the next entry comes at 100."""
    script = [uc.Clock(t(0)), mark(1, "one"), add((0, 1)), uc.Watermark(t(70), "two", at=t(10)), uc.Clock(t(100))]
    rows = run(script, idle_after="20 seconds").to_pylist()
    assert [(row["sum"], _seconds(row["pane"]["processing_time"]), row["step"]) for row in rows] == [(1, 20, 4)]


def test_rule_10_percentiles_over_sources() -> None:
    marks = Watermarks()
    for source, time in (("a", 10), ("b", 20), ("c", 30), ("d", 40)):
        marks = marks.advanced(source, time, now=0)
    assert [marks.percentile(p) for p in (100, 75, 50, 25, 1)] == [10, 20, 30, 40, 40]


def test_rule_10_a_grouping_is_one_source_however_many_shards_it_has() -> None:
    shards = InputWatermarks((Watermarks.of_step(["shard 0", "shard 1"]),))
    shards = shards.told([[("shard 0", 10), ("shard 1", 50)]], now=0)
    assert shards.percentiles([1, 50, 100]) == {1: 10, 50: 10, 100: 10}
    both = InputWatermarks((shards.inputs[0], Watermarks())).told([[], [(None, 20)]], now=0)
    assert both.percentiles([50, 100]) == {50: 20, 100: 10}


def test_rule_11_rows_without_a_time_or_far_in_the_future_are_bad() -> None:
    result = run([add((None, 1), (0, 2), (2 * 86_400, 4), at=0), END])
    assert result.counts()["bad"] == 2
    assert shown(result) == [(0, 60, 2, 1)]
    assert run([add((2 * 86_400, 4), at=0), END], max_future="3 days").counts()["bad"] == 0


def test_rule_12_each_batch_fires_windows_that_got_rows_and_expires_none() -> None:
    script = [add((0, 1), (60, 2)), add((30, 4)), add((90, 8))]
    assert shown(run(script, watermark="each_batch")) == [
        (0, 60, 1, 1),
        (60, 120, 2, 1),
        (0, 60, 5, 1),
        (60, 120, 10, 1),
    ]


def test_rule_12_the_panes_of_a_timer_are_a_batch_of_the_next_grouping() -> None:
    """No rows come when the delay is over, and none come to the second grouping later."""
    kinds = {"ts": pa.timestamp("us", "UTC"), "x": pa.int64(), "k": pa.string(), "d": pa.int64()}
    source = uc.flow(pa.schema(kinds), watermark=uc.EachBatch())
    delayed = uc.Repeatedly(uc.AfterDelay("3 seconds", "processing"))
    first = source.window(uc.Fixed("1 minute"), delayed, mode="discarding").combine(sum=uc.Sum("x"))
    second = first.window(uc.Inherit()).combine(sum=uc.Sum("sum"))
    result = second.run([add((0, 1), (1, 2), at=0), uc.Clock(t(9))])
    assert shown(result) == [(0, 60, 3, 1)]


def test_rule_12_the_percentiles_run_again_for_each_batch() -> None:
    options: dict[str, Any] = {"watermark": "each_batch", "trigger": uc.Repeatedly(uc.WatermarkPercentile(50))}
    script = [add((0, 1)), add((1, 2)), uc.Clock(t(9)), add((2, 4), (60, 8))]
    assert shown(run(script, **options)) == [(0, 60, 1, 1), (0, 60, 3, 1), (0, 60, 7, 1), (60, 120, 8, 1)]
    options["trigger"] = uc.Repeatedly(uc.SequenceOf(uc.AfterCount(1), uc.WatermarkPercentile(50)))
    result = run([add((0, 1)), add((0, 2)), add((0, 4))], **options)
    assert shown(result, "trigger") == [
        (0, 60, 1, 1, "rows"),
        (0, 60, 1, 1, "watermark"),
        (0, 60, 3, 1, "rows"),
        (0, 60, 7, 1, "rows"),
    ]


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("window", [uc.Inherit(), uc.Sessions("1 second")])
def test_rule_12_the_percentiles_run_again_at_the_end_of_the_input(window: Any, others: int) -> None:
    """Also for a window that fired in a bundle before, and that the last bundle may have passed by."""
    kinds = {"ts": pa.timestamp("us", "UTC"), "x": pa.int64(), "k": pa.string(), "d": pa.int64()}
    source = uc.flow(pa.schema(kinds), watermark=uc.EachBatch())
    first = source.window(uc.Fixed("1 minute"), uc.Repeatedly(uc.AfterCount(2)), mode="discarding")
    sums = first.combine(by="k", sum=uc.Sum("x"))
    second = sums.window(window, uc.Repeatedly(uc.WatermarkPercentile(80)), closing="never")
    passing = [add((0, 1, "b"), (1, 1, "b"), at=2) for _ in range(others)]
    script = [add((0, 1), (1, 2), at=0), add((2, 4), at=1), *passing, END]
    result = second.combine(by="k", sum=uc.Sum("sum")).run(script)
    found = [(row["sum"], row["pane"]["trigger"]) for row in result.to_pylist() if row["k"] == "a"]
    assert found == [(3, "watermark"), (7, "watermark")]


@pytest.mark.parametrize("empty", [0, 1, 3])
def test_rule_13_a_step_by_which_no_clock_moves_asks_only_the_windows_that_it_touches(empty: int) -> None:
    """After the on-time firing the percentile is ready at once. Steps for others must not use it up."""
    trigger = uc.Repeatedly(uc.SequenceOf(uc.AfterWatermark(), uc.WatermarkPercentile(80), uc.AfterWatermark()))
    others = [add((600, 1, "b")) for _ in range(empty)]
    script = [add((0, 1)), mark(60), *others, add((1, 2))]
    result = run(script, trigger=trigger, on_time="non_empty", closing="never", allowed_lateness="1 hour")
    found = [(row["sum"], row["pane"]["watermark_percentile"]) for row in result.to_pylist() if row["k"] == "a"]
    assert found == [(1, 80.0), (3, 80.0)]


@pytest.mark.parametrize("granularity", ["bundle", "record"])
@pytest.mark.parametrize("window", [uc.Fixed("1 minute"), uc.Sessions("1 minute")])
@pytest.mark.parametrize("diff", [None, "d"])
def test_rule_12_a_window_is_asked_again_as_each_batch_passes_it(granularity: str, window: Any, diff: Any) -> None:
    trigger = uc.Repeatedly(uc.FirstOf(uc.AfterCount(1), uc.AfterWatermark()))
    script = [add((0, 1), (100, 2, "b")), add((0, 4)), add((0, 8, "b"))]
    options: dict[str, Any] = {"trigger": trigger, "diff": diff, "mode": "retracting", "granularity": granularity}
    result = run(script, window, watermark="each_batch", **options)
    new = [row for row in result.to_pylist() if row["diff"] > 0]
    assert [(row["k"], row["sum"], row["pane"]["timing"], row["step"]) for row in new] == [
        ("a", 1, "EARLY", 0),
        ("b", 2, "EARLY", 0),
        ("a", 1, "ON_TIME", 0),
        ("b", 2, "ON_TIME", 0),
        ("a", 5, "EARLY", 1),
        ("b", 8, "EARLY", 2),
        ("b", 8, "ON_TIME", 2),
    ]


def test_rule_12_a_window_that_still_waits_is_asked_only_with_rows_of_its_own() -> None:
    trigger = uc.Repeatedly(uc.SequenceOf(uc.AfterCount(2), uc.AfterWatermark()))
    script = [add((0, 1), (1, 1)), add((60, 2, "b"))]
    assert shown(run(script, trigger=trigger, watermark="each_batch", on_time="non_empty")) == [(0, 60, 2, 1)]


def test_rule_12_sessions_over_a_changelog_live_on_between_batches() -> None:
    script = [add((0, 1), (50, 2)), add((50, 2, "a", -1)), add((0, 1, "a", -1))]
    result = run(script, uc.Sessions("1 minute"), mode="retracting", diff="d", watermark="each_batch", n=uc.Count())
    values = [(row["n"], row["diff"], row["step"]) for row in result.to_pylist()]
    assert values == [(2, 1, 0), (2, -1, 1), (1, 1, 1), (1, -1, 2)]


def test_rule_13_timers_fire_before_the_bundle_and_the_watermark_after_it() -> None:
    trigger = uc.AfterWatermark(early=uc.AfterDelay("10 seconds"), late=uc.AfterCount(1))
    result = run([add((0, 1), at=0), add((30, 2), at=10), mark(60)], trigger=trigger)
    assert shown(result, "trigger") == [(0, 60, 1, 1, "processing"), (0, 60, 3, 1, "watermark")]
    operator = Operator(Grouping({"sum": uc.Sum("x")}, uc.Fixed("1 minute")), SCHEMA)
    stepped = operator.step(operator.initial(), _bundle([(0, 1)]), t(60), t(0))
    assert stepped.panes["sum"].to_pylist() == [1]


SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})


def _bundle(rows: list[tuple[float, int]]) -> pa.Table:
    times = pa.array([t(s) for s, _ in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "x": pa.array([x for _, x in rows], pa.int64())}, schema=SCHEMA)


def test_rule_14_by_record_the_cut_into_bundles_does_not_show() -> None:
    rows = [(5, 1, "a"), (1, 2, "a"), (3, 4, "b"), (2, 8, "a")]
    whole = run([add(*rows), END], trigger=REPEATED, granularity="record")
    assert [r[2] for r in shown(whole) if r[2] is not None][:4] == [2, 4, 10, 11]
    apart = run([add(row) for row in sorted(rows)] + [END], trigger=REPEATED)
    values = {key: [r["sum"] for r in whole.to_pylist() if r["k"] == key] for key in "ab"}
    assert values == {key: [r["sum"] for r in apart.to_pylist() if r["k"] == key] for key in "ab"}


def test_rule_15_a_window_fires_once_in_a_phase_however_much_is_due() -> None:
    early = uc.Repeatedly(uc.AtPeriod("1 second", domain="event"))
    result = run([add((0, 1)), mark(0), mark(50)], trigger=uc.AfterWatermark(early=early))
    assert shown(result, "timing") == [(0, 60, 1, 1, "EARLY")]
    counted = run([add(*[(i, 1) for i in range(10)])], trigger=uc.Repeatedly(uc.AfterCount(3)))
    assert shown(counted) == [(0, 60, 10, 1)]


def test_rule_16_the_same_steps_give_the_same_bytes_in_order() -> None:
    script = [add((70, 1, "b"), (0, 2, "b"), (0, 4, "a"), (5, 8, None)), add((1, 1, "b"), (0, 1, "a"))]
    options: dict[str, Any] = {"trigger": REPEATED, "mode": "retracting"}
    first, second = run([*script, END], **options), run([*script, END], **options)
    assert _bytes(first.panes) == _bytes(second.panes)
    keys = [(r["step"], r["k"] is not None, r["k"] or "", r["window"]["start"]) for r in first.to_pylist()]
    assert keys == sorted(keys)


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_rule_17_the_default_trigger_is_the_watermark_again_and_again() -> None:
    grouping = Grouping({"n": uc.Count()}, uc.Fixed("1 minute"))
    assert grouping.trigger == uc.Repeatedly(uc.AfterWatermark())


def test_rule_18_early_then_on_time_then_late() -> None:
    trigger = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(2))
    rows = [add((i, 1)) for i in range(3)]
    result = run([*rows, mark(60), *rows], trigger=trigger, allowed_lateness="1 hour")
    assert shown(result, "timing") == [(0, 60, 2, 1, "EARLY"), (0, 60, 3, 1, "ON_TIME"), (0, 60, 5, 1, "LATE")]


def test_rule_18_a_merge_can_put_a_window_back_into_its_early_phase() -> None:
    trigger = uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(100))
    script = [add((0, 1)), mark(60), add((55, 2)), add((56, 4)), mark(116)]
    result = run(script, uc.Sessions("1 minute"), trigger=trigger, allowed_lateness="1 hour")
    assert shown(result, "timing") == [
        (0, 60, 1, 1, "ON_TIME"),
        (0, 116, 7, 1, "EARLY"),
        (0, 116, 7, 1, "ON_TIME"),
    ]


def test_rule_19_counts_and_bytes_add_up_in_a_merge_whatever_the_diff() -> None:
    window, trigger = uc.Sessions("1 minute"), uc.Repeatedly(uc.AfterCount(3))
    result = run([add((0, 1)), add((100, 2)), add((50, 4))], window, trigger=trigger)
    assert shown(result) == [(0, 160, 7, 1)]
    by_bytes = uc.Repeatedly(uc.AfterBytes(24, of="x"))
    assert shown(run([add((0, 1)), add((1, 2)), add((2, 4)), add((3, 8))], trigger=by_bytes)) == [(0, 60, 7, 1)]
    retracted = [add((0, 5, "a", 1)), add((0, 5, "a", -1)), add((1, 7, "a", 1))]
    assert shown(run(retracted, trigger=trigger, diff="d", mode="retracting")) == [(0, 60, 7, 1)]


def test_rule_20_delays_and_periods_in_both_domains() -> None:
    delay = uc.Repeatedly(uc.AfterDelay("10 seconds"))
    result = run([add((0, 1), at=3), uc.Clock(t(12)), uc.Clock(t(13))], trigger=delay)
    assert result["step"].to_pylist() == [2]
    aligned = uc.Repeatedly(uc.AtPeriod("10 seconds", origin=t(2)))
    assert _times(run([add((0, 1), at=3), uc.Clock(t(100))], trigger=aligned)) == [12]
    assert _times(run([add((0, 1), at=12), uc.Clock(t(100))], trigger=aligned)) == [22]
    event = uc.Repeatedly(uc.AfterDelay("10 seconds", domain="event"))
    result = run([mark(0), add((0, 1)), mark(9), mark(10)], trigger=event)
    assert result["step"].to_pylist() == [3]


def _times(result: pa.Table) -> list[float]:
    return [_seconds(row["pane"]["processing_time"]) for row in result.to_pylist()]


def test_rule_20_the_earliest_deadline_stays_in_a_merge() -> None:
    delay = uc.Repeatedly(uc.AfterDelay("10 seconds"))
    script = [add((0, 1), at=0), add((100, 2), at=5), add((50, 4), at=6), uc.Clock(t(100))]
    assert _times(run(script, uc.Sessions("1 minute"), trigger=delay)) == [10]


def test_rule_21_every_pane_tells_the_percentile_that_has_reached_the_end() -> None:
    """Also a pane that another trigger fired, and a retraction as its pane did."""
    children = (uc.AfterCount(1), uc.WatermarkPercentile(50), uc.WatermarkPercentile(75))
    trigger = uc.Repeatedly(uc.FirstOf(*children, uc.AfterWatermark()))
    sources = [mark(0, s) for s in ("one", "two", "three", "four")]
    some = [mark(60, "one"), mark(60, "two"), add((1, 2)), mark(60, "three"), add((2, 4)), mark(60, "four")]
    ends = [mark(500, s) for s in ("one", "two", "three", "four")]
    script = [*sources, add((0, 1)), *some, add((3, 8)), *ends]
    result = run(script, trigger=trigger, mode="retracting", allowed_lateness="5 minutes", closing="always")
    told = [(row["sum"], row["diff"], row["pane"]["watermark_percentile"]) for row in result.to_pylist()]
    new = [(total, percent) for total, diff, percent in told if diff > 0]
    assert new == [(1, None), (3, 50.0), (7, 75.0), (7, 75.0), (15, 75.0), (15, 75.0)]
    assert [(total, percent) for total, diff, percent in told if diff < 0] == new[:-1]


def test_rule_21_a_percentile_of_the_watermark_fires_once_and_not_for_windows_born_behind_it() -> None:
    trigger = uc.Repeatedly(uc.FirstOf(uc.WatermarkPercentile(50), uc.AfterWatermark(late=uc.AfterCount(1))))
    sources = [mark(0, s) for s in ("one", "two")]
    result = run([*sources, add((0, 1)), mark(60, "one"), mark(60, "two")], trigger=trigger)
    assert shown(result, "timing", "watermark_percentile")[0] == (0, 60, 1, 1, "EARLY", 50.0)
    alone = uc.WatermarkPercentile(50)
    born_behind = [*sources, mark(60, "one"), add((0, 1)), mark(100, "one")]
    assert shown(run(born_behind, trigger=alone, allow_finish=True)) == []


def test_rule_22_predicates_over_rows_and_over_results() -> None:
    on_row = uc.Repeatedly(uc.OnPunctuation(uc.col("x") == 0))
    assert shown(run([add((0, 1)), add((1, 0)), add((2, 4))], trigger=on_row)) == [(0, 60, 1, 1)]
    on_result = uc.Repeatedly(uc.OnResult(uc.col("sum") > 5))
    assert shown(run([add((0, 3)), add((1, 3)), add((2, -6))], trigger=on_result)) == [(0, 60, 6, 1)]
    called = uc.Repeatedly(uc.OnResult(lambda table: pa.array([v > 5 for v in table["sum"].to_pylist()])))
    assert shown(run([add((0, 3)), add((1, 3))], trigger=called)) == [(0, 60, 6, 1)]


def test_rule_22_always_and_never() -> None:
    script = [add((0, 1)), add((1, 2)), mark(60)]
    assert shown(run(script, trigger=uc.Always())) == [(0, 60, 1, 1), (0, 60, 3, 1)]
    assert shown(run(script, trigger=uc.Never()), "trigger", "is_last") == [(0, 60, 3, 1, "expiry", True)]


def _fired_at(trigger: Any, script: list[Any], **options: Any) -> list[int]:
    return run(script, trigger=trigger, **options)["step"].to_pylist()


def test_rule_23_composites() -> None:
    ones = [add((i, 1)) for i in range(8)]
    count = uc.AfterCount
    assert _fired_at(uc.Repeatedly(uc.FirstOf(count(2), count(3))), ones) == [1, 3, 5, 7]
    assert _fired_at(uc.Repeatedly(uc.AllOf(count(2), count(3))), ones) == [2, 5]
    sequence = uc.SequenceOf(count(1), count(3), count(2))
    assert _fired_at(uc.Repeatedly(sequence), ones) == [0, 3, 5, 6]
    assert _fired_at(uc.RepeatCount(count(2), 2), ones, allow_finish=True) == [1, 3]
    until = uc.RepeatUntil(count(2), count(5))
    assert _fired_at(until, ones, allow_finish=True) == [1, 3, 4]
    assert count(2).or_finally(count(5)) == until


def test_rule_23_a_ready_child_of_all_stays_ready() -> None:
    trigger = uc.Repeatedly(uc.AllOf(uc.OnPunctuation(uc.col("x") == 0), uc.AfterCount(3)))
    assert _fired_at(trigger, [add((0, 0)), add((1, 1)), add((2, 1)), add((3, 1))]) == [2]


def test_rule_24_leaves_finish_when_they_fire_but_always_and_never() -> None:
    ones = [add((i, 1)) for i in range(4)]
    assert _fired_at(uc.AfterCount(1), ones, allow_finish=True) == [0]
    assert _fired_at(uc.Always(), ones) == [0, 1, 2, 3]
    assert run(ones, trigger=uc.AfterCount(1), allow_finish=True).counts()["finished"] == 3


def test_rule_25_children_that_would_fire_are_fired_and_others_keep_their_state() -> None:
    ones = [add((i, 1)) for i in range(6)]
    kept = uc.FirstOf(uc.Repeatedly(uc.AfterCount(2)), uc.Repeatedly(uc.AfterCount(3)))
    assert _fired_at(kept, ones) == [1, 2, 3, 5]


def test_rule_26_a_trigger_that_can_finish_is_an_error_unless_wanted() -> None:
    with pytest.raises(InvalidArgument, match=r"Repeatedly\(AfterCount\(1\)\)"):
        run([add((0, 1))], trigger=uc.AfterCount(1))
    with pytest.raises(InvalidArgument, match="allow_finish"):
        run([add((0, 1))], trigger=uc.AfterWatermark(), allowed_lateness="1 second")
    run([add((0, 1))], trigger=uc.AfterWatermark())
    finished = run([add((0, 1)), add((1, 2)), END], trigger=uc.AfterCount(1), allow_finish=True)
    assert shown(finished) == [(0, 60, 1, 1)]
    assert finished.counts()["finished"] == 1


def pairs(code: Any, start: Any, end: Any) -> Any:
    """The half minutes of a minute become one."""
    return np.unique(np.stack([code, start // 60_000_000]), axis=1, return_inverse=True)[1].ravel()


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (None, [(0, 61, 3, 1), (70, 150, 40, 1), (0, 61, 3, -1), (0, 170, 7, 1)]),
        ("d", [(0, 61, 3, 1), (70, 150, 40, 1), (70, 170, 196, 1)]),
    ],
)
def test_rule_26_a_dropped_row_merges_windows_but_over_a_changelog(diff: Any, expected: Any, eager: bool) -> None:
    options: dict[str, Any] = {"trigger": uc.AfterCount(2), "allow_finish": True, "mode": "retracting"}
    options |= {"eager_retractions": eager, "diff": diff, "allowed_lateness": "1 hour"}
    script = [
        add((0, 1), (1, 2), (70, 4), (70, 8, "b")),
        add((50, 16), (90, 32, "b")),
        add((80, 64), (110, 128)),
        mark(1000),
    ]
    result = run([*script, END], uc.Sessions("1 minute"), **options)
    assert shown(result) == expected
    assert result.counts()["finished"] == (1 if diff else 3)


def test_rule_26_a_dropped_retraction_leaves_a_finished_session_whole() -> None:
    script = [add((0, 1), (50, 2), (100, 4)), add((50, 2, "a", -1)), add((300, 8), at=0), END]
    options: dict[str, Any] = {"mode": "retracting", "diff": "d", "eager_retractions": True}
    result = run(script, uc.Sessions("1 minute"), trigger=uc.AfterCount(3), allow_finish=True, **options)
    assert shown(result) == [(0, 160, 7, 1), (300, 360, 8, 1)]
    assert result.counts()["finished"] == 1


def test_rule_26_nor_does_it_merge_custom_windows() -> None:
    def halves(times: Any) -> Any:
        start = times - times % 30_000_000
        return None, start, start + 30_000_000

    script = [add((0, 1)), add((40, 2)), add((61, 4)), mark(60), END]
    options: dict[str, Any] = {"mode": "retracting", "eager_retractions": True}
    result = run(script, uc.Custom(halves, pairs), trigger=uc.AfterCount(1), allow_finish=True, **options)
    assert shown(result) == [(0, 30, 1, 1), (60, 90, 4, 1)]
    assert result.counts()["finished"] == 1


def test_rule_27_a_trigger_that_cannot_fire_on_global_is_an_error() -> None:
    for trigger in (None, uc.Repeatedly(uc.AfterWatermark()), uc.Never()):
        with pytest.raises(InvalidArgument, match="never fire"):
            Grouping({"n": uc.Count()}, uc.Global(), trigger=trigger, bounded=False)
    Grouping({"n": uc.Count()}, uc.Global(), trigger=uc.Repeatedly(uc.AfterCount(9)), bounded=False)


@dataclass(frozen=True, repr=False)
class Quiet(uc.UserTrigger):
    """Fires when a key has been quiet for a while, by timer, and at once for a zero; counts what it saw."""

    pause: int = 10_000_000

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.state["seen"] = ctx.state.get("seen", 0) + 1
        ctx.set_timer("quiet", ctx.processing_time + self.pause)
        ctx.set_timer("end", window[1], "event")
        if row["x"] == 0:
            ctx.fire(clear=True)

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        ctx.state["seen"] = sum(source.state.get("seen", 0) for source in sources)
        ctx.set_timer("quiet", ctx.processing_time + self.pause)

    def on_timer(self, tag: str, time: int, ctx: uc.TriggerContext) -> None:
        ctx.fire(clear=False if tag == "end" else None)
        if ctx.state["seen"] >= 4:
            ctx.finish()


def test_rule_28_user_triggers_have_state_and_timers_in_both_domains() -> None:
    script = [add((0, 1), at=0), add((1, 2), at=5), uc.Clock(t(14)), uc.Clock(t(15)), add((2, 4), at=16), mark(60)]
    result = run(script, trigger=Quiet(), allow_finish=True)
    assert list(zip(_times(result), [r[2] for r in shown(result)], strict=True)) == [(15, 3), (16, 7)]
    cleared = run(
        [add((0, 1), at=0), add((1, 0), at=1), add((2, 4), at=2), uc.Clock(t(50))],
        trigger=Quiet(),
        mode="accumulating_by_default",
        allow_finish=True,
    )
    assert [r[2] for r in shown(cleared)] == [1, 4]


def test_rule_28_state_and_timers_of_merged_windows_are_there_at_the_merge() -> None:
    script = [add((0, 1), at=0), add((100, 2), at=1), add((50, 4), at=2), uc.Clock(t(100)), add((51, 8), at=101)]
    result = run([*script, uc.Clock(t(200))], uc.Sessions("1 minute"), trigger=Quiet(), allow_finish=True)
    assert list(zip(_times(result), [r[2] for r in shown(result)], strict=True)) == [(12, 7), (111, 15)]


def test_rule_28_children_of_composites_have_namespaces_of_their_own() -> None:
    trigger = uc.Repeatedly(uc.FirstOf(Quiet(), Quiet(3_000_000)))
    result = run([add((0, 1), at=0), add((1, 2), at=1), uc.Clock(t(50))], trigger=trigger)
    assert _times(result) == [4]


def test_rule_29_timing() -> None:
    options: dict[str, Any] = {"trigger": REPEATED, "allowed_lateness": "1 hour"}
    result = run([add((0, 1)), mark(60), add((1, 2)), mark(130), add((70, 4))], **options)
    assert shown(result, "timing") == [
        (0, 60, 1, 1, "EARLY"),
        (0, 60, 1, 1, "ON_TIME"),
        (0, 60, 3, 1, "LATE"),
        (60, 120, 4, 1, "LATE"),
    ]


def test_rule_30_on_time_panes_come_always_or_with_news_only() -> None:
    script = [add((0, 1)), mark(60)]
    assert len(run(script, trigger=REPEATED, on_time="always")) == 2
    assert len(run(script, trigger=REPEATED, on_time="non_empty")) == 1


def test_rule_30_a_timer_without_new_rows_gives_no_pane() -> None:
    """The table of differences says so: Flink, Apex and Beam's Python driver show the pane again here."""
    trigger = uc.FirstOf(uc.Repeatedly(uc.AtPeriod("10 seconds")), uc.AfterWatermark())
    script = [add((0, 1), at=1), uc.Clock(t(35)), add((1, 2), at=36), uc.Clock(t(59)), mark(60)]
    for mode in ("accumulating", "discarding", "retracting"):
        panes = [r for r in run(script, trigger=uc.Repeatedly(trigger), mode=mode).to_pylist() if r["diff"] > 0]
        times = [_seconds(row["pane"]["processing_time"]) for row in panes if row["pane"]["timing"] == "EARLY"]
        assert times == [10, 40], "the periods at 20, 30 and 50 seconds have nothing new"


def test_rule_31_closing_panes() -> None:
    trigger = uc.AfterWatermark(late=uc.AfterCount(5))
    script = [add((0, 1)), mark(60), add((1, 2)), mark(1000)]
    options: dict[str, Any] = {"trigger": trigger, "allowed_lateness": "1 minute"}
    assert shown(run(script, **options), "timing", "is_last")[1:] == [(0, 60, 3, 1, "LATE", True)]
    assert len(run(script, **options, closing="never")) == 1
    quiet = [add((0, 1)), mark(60), mark(1000)]
    assert len(run(quiet, **options)) == 1
    assert shown(run(quiet, **options, closing="always"), "is_last") == [(0, 60, 1, 1, False), (0, 60, 1, 1, True)]
    assert shown(run([add((0, 1)), mark(60)]), "is_last") == [(0, 60, 1, 1, True)]


def test_rule_31_with_closing_panes_always_only_they_are_last() -> None:
    finishing = run([add((0, 1)), mark(60)], trigger=uc.AfterCount(1), allow_finish=True, closing="always")
    assert shown(finishing, "trigger", "is_last") == [(0, 60, 1, 1, "rows", False), (0, 60, 1, 1, "expiry", True)]
    by_batch = run([add((0, 1))], trigger=uc.AfterCount(1), allow_finish=True, closing="always", watermark="each_batch")
    assert shown(by_batch, "is_last") == [(0, 60, 1, 1, False)]


def test_rule_32_indices() -> None:
    script = [add((0, 1)), add((1, 1)), mark(60), add((2, 1)), add((3, 1))]
    result = run(script, trigger=REPEATED, allowed_lateness="1 hour")
    assert [r[4:] for r in shown(result, "index", "nonspeculative_index", "is_first")] == [
        (0, -1, True),
        (1, -1, False),
        (2, 0, False),
        (3, 1, False),
        (4, 2, False),
    ]


def test_rule_33_discarding_accumulating_retracting() -> None:
    script = [add((0, 1)), add((1, 2))]
    assert shown(run(script, trigger=REPEATED, mode="discarding")) == [(0, 60, 1, 1), (0, 60, 2, 1)]
    assert shown(run(script, trigger=REPEATED, mode="accumulating")) == [(0, 60, 1, 1), (0, 60, 3, 1)]
    assert shown(run(script, trigger=REPEATED, mode="retracting"), "index") == [
        (0, 60, 1, 1, 0),
        (0, 60, 1, -1, 0),
        (0, 60, 3, 1, 1),
    ]


def test_rule_33_a_retraction_is_the_row_that_it_retracts() -> None:
    result = run([add((0, 1)), mark(30), add((1, 2))], trigger=REPEATED, mode="retracting", timestamp="watermark")
    first, back, _ = ({k: v for k, v in row.items() if k not in ("diff", "step")} for row in result.to_pylist())
    assert first == back


@pytest.mark.parametrize("eager", [False, True])
def test_rule_33_outstanding_panes_are_retracted_in_the_order_of_their_windows(eager: bool) -> None:
    script = [add((0, 1), (100, 2)), mark(60), add((50, 4))]
    options: dict[str, Any] = {"mode": "retracting", "allowed_lateness": "1 hour", "eager_retractions": eager}
    result = run(script, uc.Sessions("1 minute"), trigger=REPEATED, **options)
    assert [r[:2] for r in shown(result) if r[3] < 0 and r[2] < 3] == [(0, 60), (0, 60), (100, 160)]


def test_rule_33_eager_retractions_come_with_the_merge() -> None:
    trigger = uc.AfterWatermark(early=uc.Repeatedly(uc.AfterDelay("1 second")))
    script = [add((0, 1), at=0), add((100, 2), at=0), uc.Clock(t(5)), add((50, 4), at=5), uc.Clock(t(9))]
    options: dict[str, Any] = {"window": uc.Sessions("1 minute"), "trigger": trigger, "mode": "retracting"}
    lazy, eager = run(script, **options), run(script, **options, eager_retractions=True)
    assert [r[3] for r in shown(lazy)] == [r[3] for r in shown(eager)] == [1, 1, -1, -1, 1]
    assert lazy["step"].to_pylist() == [2, 2, 4, 4, 4]
    assert eager["step"].to_pylist() == [2, 2, 3, 3, 4]


def test_rule_33_of_a_session_that_falls_apart_panes_are_retracted_at_once_for_a_part_that_has_finished_too() -> None:
    """The first part had passed with the session, and its trigger had finished; the second part has not passed."""
    trigger = uc.AfterWatermark(early=uc.RepeatCount(uc.AfterCount(3), 1))
    script = [add((40, 3), (80, 2), (55, 7)), mark(110), add((90, 7), (55, 7, "a", -1))]
    options: dict[str, Any] = {"trigger": trigger, "mode": "retracting", "diff": "d", "on_time": "non_empty"}
    options |= {"allow_finish": True, "allowed_lateness": "1 minute", "eager_retractions": True}
    result = run(script, uc.Sessions("30 seconds"), **options)
    assert shown(result) == [(40, 110, 12, 1), (40, 110, 12, -1)]
    assert result["step"].to_pylist() == [0, 2]


def test_rule_34_only_updated_panes() -> None:
    script = [add((0, 1)), add((1, 0)), add((2, 2)), mark(60)]
    for mode, values in (("accumulating", [1, 3]), ("retracting", [1, 1, 3])):
        result = run(script, trigger=REPEATED, mode=mode, only_updated=True)
        assert [r[2] for r in shown(result)] == values


@pytest.mark.parametrize("mode", ["discarding", "discarding_by_default"])
def test_rule_34_differences_are_always_news(mode: str) -> None:
    script = [add((0, 5)), add((1, 5)), add((2, 0)), mark(60)]
    with pytest.raises(InvalidArgument, match=f"only_updated=True .* in mode='{mode}' each pane shows other rows"):
        run(script, trigger=REPEATED, mode=mode, only_updated=True)
    result = run(script, trigger=REPEATED, mode=mode)
    assert [r[2] for r in shown(result)] == [5, 5, 0, None]


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("discarding_by_default", [0, 1, 1, 0, 2, 1, 2]),
        ("accumulating_by_default", [0, 1, 1, 0, 2, 3, 2]),
        ("accumulating", [0, 1, 2, 4, 5, 7]),
    ],
)
def test_rule_34_a_pane_is_compared_with_the_last_if_that_kept_its_contents(mode: str, values: list[int]) -> None:
    script = [add((0, x)) for x in (0, 1, 1, 0, 2, 0, 1, 2)]
    for trigger in (Asks(), uc.FirstOf(uc.Never(), Asks())):
        result = run(script, trigger=trigger, mode=mode, only_updated=True, allow_finish=True)
        assert [r[2] for r in shown(result)] == values


@dataclass(frozen=True, repr=False)
class Asks(uc.UserTrigger):
    """Fires for each row as the row says: x = 1 clear, x = 2 accumulate, else as the mode has it."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.fire(clear={1: True, 2: False}.get(row["x"]))


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("discarding", [1, 2, 4, 8]),
        ("discarding_by_default", [1, 2, 6, 8]),
        ("accumulating_by_default", [1, 2, 6, 14]),
        ("accumulating", [1, 3, 7, 15]),
        ("retracting_by_default", [1, 1, 2, 2, 6, 6, 14]),
        ("retracting", [1, 1, 3, 3, 7, 7, 15]),
    ],
)
def test_rule_35_what_a_trigger_asks_for_counts_in_modes_that_end_in_by_default(mode: str, values: list[int]) -> None:
    script = [add((0, x)) for x in (1, 2, 4, 8)]
    assert [r[2] for r in shown(run(script, trigger=Asks(), mode=mode, allow_finish=True))] == values


def test_rule_35_a_trigger_that_clears_is_refused_where_nothing_is_cleared() -> None:
    for mode in ("discarding", "accumulating", "retracting"):
        with pytest.raises(InvalidArgument, match="use mode='retracting_by_default', or take Clearing"):
            run([add((0, 1))], trigger="every 2 rows and clear", mode=mode)
    with pytest.raises(NotRetractable, match="lets a trigger forget rows"):
        run([add((0, 1))], trigger="every 2 rows and clear", mode="retracting_by_default", diff="x")


def test_rule_35_a_window_that_is_cleared_begins_again_and_its_pane_is_retracted() -> None:
    script = [add((0, x)) for x in (1, 2, 4)] + [mark(60)]
    result = run(script, trigger="early every 2 rows and clear", mode="retracting_by_default")
    assert [(r[2], r[3]) for r in shown(result)] == [(3, 1), (3, -1), (4, 1)]
    idle = run(
        [*script[:2], mark(60)],
        trigger="early every 2 rows and clear",
        mode="retracting_by_default",
        on_time="non_empty",
    )
    assert [(r[2], r[3]) for r in shown(idle)] == [(3, 1)]


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [("end_of_window", 59.999999), ("start_of_window", 0), ("earliest", 10), ("latest", 40), ("watermark", 60)],
)
def test_rule_36_result_times(policy: str, seconds: float) -> None:
    result = run([add((40, 1), (10, 2)), mark(60)], timestamp=policy)
    assert [_seconds(row["event_time"]) for row in result.to_pylist()] == [seconds]


def test_rule_36_rows_before_the_output_watermark_do_not_count() -> None:
    late = uc.AfterWatermark(late=uc.AfterCount(1))
    script = [add((50, 1)), mark(60), add((5, 2))]
    result = run(script, timestamp="earliest", trigger=late, allowed_lateness="1 hour", mode="discarding")
    assert [_seconds(row["event_time"]) for row in result.to_pylist()] == [50, 59.999999]


@pytest.mark.weekly
@pytest.mark.parametrize("window", [uc.Global(), uc.Fixed("1 minute"), uc.Sessions("1 minute"), uc.Calendar("day")])
@pytest.mark.parametrize("policy", share([None, "end_of_window", "start_of_window", "earliest", "latest", "watermark"]))
def test_rule_36_results_hold_no_times_but_those_of_the_data(window: Any, policy: str | None) -> None:
    """Also before the watermark has started, at the end of time, after clearing, and for late rows."""
    script = [add((70, 1)), add((80, 2)), mark(75), add((10, 3)), add((5, 4, "b")), END]
    for mode in ("accumulating", "discarding", "retracting"):
        for each_batch in (None, "each_batch"):
            options = {"mode": mode, "watermark": each_batch, "on_time": "always", "closing": "always"}
            for trigger in (None, uc.Repeatedly(uc.AfterCount(1)), uc.Repeatedly(uc.AfterCount(3))):
                result = run(script, window, trigger=trigger, timestamp=policy, **options)
                times = result["event_time"].cast(pa.int64()).to_pylist()
                assert all(abs(time - NOON) < 2 * 86_400_000_000 for time in times)
                watermarks = result["pane"].combine_chunks().field("watermark").cast(pa.int64())
                assert set(watermarks.to_pylist()) <= {None, NOON + 75_000_000}
                assert len(result.to_pandas()) == result.num_rows


@pytest.mark.parametrize(("policy", "held"), [("earliest", 10), ("start_of_window", 0), ("end_of_window", 45)])
def test_rule_37_the_output_watermark_is_held_for_on_time_panes_to_come(policy: str, held: float) -> None:
    result = run([add((10, 1), (40, 2)), mark(45), mark(60)], timestamp=policy)
    assert [(w - NOON) / 1e6 for w in result.output_watermarks[1:]] == [held, 60]


@pytest.mark.parametrize(("window", "held"), [(uc.Fixed("1 minute"), 0), (uc.Sliding("1 minute", "20 seconds"), 0)])
def test_rule_37_the_output_watermark_waits_for_the_starts_of_windows_to_come(window: Any, held: float) -> None:
    result = run([mark(45), add((50, 1))], window, timestamp="start_of_window")
    assert [(w - NOON) / 1e6 for w in result.output_watermarks] == [held, held]


def test_rule_37_a_window_that_passed_without_its_on_time_pane_still_holds() -> None:
    late = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
    script = [add((10, 1)), mark(60), mark(80), add((20, 2))]
    result = run(script, trigger=late, on_time="non_empty", allowed_lateness="1 hour")
    assert shown(result, "timing") == [(0, 60, 1, 1, "EARLY"), (0, 60, 3, 1, "ON_TIME")]
    assert [(w - NOON) / 1e6 for w in result.output_watermarks[1:]] == [59.999999, 59.999999, 80]
    closing = run([add((10, 1)), mark(60), mark(90)], trigger=uc.Never(), allowed_lateness="30 seconds")
    assert shown(closing, "timing") == [(0, 60, 1, 1, "ON_TIME")]
    assert [(w - NOON) / 1e6 for w in closing.output_watermarks[1:]] == [59.999999, 90]


@dataclass(frozen=True, repr=False)
class EndsUnseen(uc.UserTrigger):
    """Is finished by its first row, without a firing."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.finish()


@pytest.mark.parametrize(("closing", "held"), [("always", 59.999999), ("non_empty", 59.999999), ("never", 70)])
def test_rule_37_a_finished_window_holds_for_its_closing_pane(closing: str, held: float) -> None:
    script = [add((10, 1)), mark(70), mark(100)]
    options: dict[str, Any] = {"trigger": EndsUnseen(), "allow_finish": True, "allowed_lateness": "30 seconds"}
    result = run(script, **options, closing=closing)
    assert [r[4] for r in shown(result, "timing")] == (["ON_TIME"] if held < 60 else [])
    assert [(w - NOON) / 1e6 for w in result.output_watermarks[1:]] == [held, 100]


def test_rule_37_a_value_and_its_retraction_share_their_fate_downstream() -> None:
    options: dict[str, Any] = {"trigger": REPEATED, "mode": "retracting", "allowed_lateness": "1 hour"}
    first = Stage(uc.Fixed("1 minute"), by="k", **options, n=uc.Count())
    second = Stage(uc.Fixed("1 minute"), time="event_time", diff="diff", **options, total=uc.Sum("n"))
    script = [add((0, 1)), mark(60), add((1, 1)), add((2, 1, "b")), mark(10**6)]
    result = pipeline([first, second], script)
    assert result.to_pylist()[-1]["total"] == 3
    assert sum(r["diff"] for r in result.to_pylist()) == 1


def test_rule_38_a_window_whose_rows_are_all_retracted_has_no_value() -> None:
    script = [add((0, 5, "a", 1)), add((0, 5, "a", -1)), mark(60)]
    result = run(script, trigger=REPEATED, mode="retracting", diff="d", max=uc.Max("x"), sum=uc.Sum("x"))
    assert shown(result) == [(0, 60, 5, 1), (0, 60, 5, -1)]


def test_rule_39_a_changelog_needs_a_mode_that_can_tell() -> None:
    script = [add((0, 5, "a", 1))]
    with pytest.raises(NotRetractable, match="retracting"):
        run(script, mode="accumulating", diff="d")
    with pytest.raises(NotRetractable, match="best="):
        run(script, mode="discarding", diff="d", best=uc.Max("x"))
    with pytest.raises(NotRetractable, match="retractable=True"):
        run(script, mode="retracting", diff="d", best=uc.Max("x", retractable=False))
    merging = [uc.Sessions("1 minute"), uc.Custom(assign=lambda ts: (None, ts, ts + 60), merge="overlap")]
    for window, mode in itertools.product([*merging, uc.Fixed("1 minute")], MODES):
        if mode != "retracting" and (mode != "discarding" or window in merging):
            with pytest.raises(NotRetractable, match=f"mode='{mode}' .* use mode='retracting'"):
                run(script, window, mode=mode, diff="d")
    differences = [add((0, 5, "a", 1)), add((0, 5, "a", -1), (1, 7, "a", 1))]
    assert shown(run(differences, trigger=REPEATED, mode="discarding", diff="d")) == [(0, 60, 5, 1), (0, 60, 2, 1)]


def test_rule_40_a_session_splits_when_its_bridge_is_retracted() -> None:
    script = [add((0, 1), (50, 2), (100, 4)), add((50, 2, "a", -1)), mark(10**4)]
    result = run(script, uc.Sessions("1 minute"), trigger=REPEATED, mode="retracting", diff="d", on_time="non_empty")
    assert shown(result) == [(0, 160, 7, 1), (0, 160, 7, -1), (0, 60, 1, 1), (100, 160, 4, 1)]
    assert result.counts()["held"] == 0


def test_rule_40_late_retractions_split_sessions_that_were_on_time() -> None:
    trigger = uc.AfterWatermark(late=uc.AfterCount(1))
    script = [add((0, 1), (50, 2), (100, 4)), mark(200), add((50, 2, "a", -1)), add((0, 1, "a", -1))]
    result = run(
        script, uc.Sessions("1 minute"), trigger=trigger, mode="retracting", diff="d", allowed_lateness="1 hour"
    )
    assert shown(result, "timing") == [
        (0, 160, 7, 1, "ON_TIME"),
        (0, 160, 7, -1, "ON_TIME"),
        (0, 60, 1, 1, "LATE"),
        (100, 160, 4, 1, "LATE"),
        (0, 60, 1, -1, "LATE"),
    ]


@pytest.mark.parametrize("clock", ["watermark", "processing time"])
def test_rule_40_a_clock_that_passes_one_session_of_a_key_leaves_the_others_alone(clock: str) -> None:
    """The third bundle brings a row of b and moves a clock past the first of two sessions of a."""
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64(), "d": pa.int64()})
    early = {"watermark": None, "processing time": uc.AfterDelay("10 seconds")}[clock]
    moves = {"watermark": [(1, 0), (1, 0), (12, 0), (60, 0)], "processing time": [(1, 0), (1, 8), (1, 12), (60, 40)]}
    rows = [(0, 1, "a"), (20, 2, "a"), (21, 4, "b"), None]
    options: dict[str, Any] = {"mode": "retracting", "diff": "d", "by": "k", "allowed_lateness": "1 hour"}
    trigger = uc.AfterWatermark(early=early, late=uc.AfterCount(1))
    op = Operator(Grouping({"sum": uc.Sum("x")}, uc.Sessions("10 seconds"), trigger, **options), schema)
    state, held, net = op.initial(), [], Counter[Any]()
    for row, (watermark, now) in zip(rows, moves[clock], strict=True):
        bundle = [] if row is None else [{"ts": t(row[0]), "x": row[1], "k": row[2], "d": 1}]
        stepped = op.step(state, pa.Table.from_pylist(bundle, schema), t(watermark), t(now))
        state = stepped.state
        held.append(len(state.windows))
        for pane in stepped.panes.to_pylist():
            net[pane["k"], pane["sum"]] += pane["diff"]
    assert held == [1, 2, 3, 3]
    assert net == {("a", 1): 1, ("a", 2): 1, ("b", 4): 1}


@pytest.mark.weekly
@pytest.mark.parametrize(
    "window", [uc.Fixed("1 minute"), uc.Sessions("20 seconds"), uc.Sliding("1 minute", "20 seconds")]
)
def test_rule_41_diffs_leave_the_accumulating_result(window: Any) -> None:
    rng = np.random.default_rng(41)
    rows = [(float(rng.integers(0, 300)), int(rng.integers(0, 9)), "abc"[rng.integers(0, 3)]) for _ in range(60)]
    script: list[Any] = []
    for i in range(0, 60, 5):
        script += [add(*rows[i : i + 5]), mark(i * 4)]
    result = run([*script, END], window, trigger=REPEATED, mode="retracting", allowed_lateness="1 hour")
    left: dict[Any, int] = {}
    for row in result.to_pylist():
        value = (row["k"], row["window"]["start"], row["window"]["end"], row["sum"])
        left[value] = left.get(value, 0) + row["diff"]
    final = run([add(*rows), END], window)
    expected = {(r["k"], r["window"]["start"], r["window"]["end"], r["sum"]): 1 for r in final.to_pylist()}
    assert {value: n for value, n in left.items() if n} == expected


def test_rule_42_the_chain_settles_what_a_grouping_leaves_open() -> None:
    script = [add((0, 1), (1, 2, "b")), mark(60), add((2, 4)), mark(10**6)]
    options: dict[str, Any] = {"window": uc.Fixed("1 minute"), "trigger": REPEATED}
    first = Stage(**options, allowed_lateness="1 hour", by="k", sum=uc.Sum("x"))
    result = pipeline([first, Stage(**options, sum=uc.Sum("sum"))], script)
    assert sum(row[2] * row[3] for row in shown(result)) == shown(result)[-1][2] == 7


def test_rule_43_panes_that_would_count_rows_twice_are_refused() -> None:
    options: dict[str, Any] = {"window": uc.Fixed("1 minute"), "trigger": REPEATED, "allowed_lateness": "1 hour"}
    second = Stage(uc.Fixed("1 minute"), n=uc.Count())
    first = Stage(**options, mode="accumulating", n=uc.Count())
    with pytest.raises(InvalidArgument, match="use mode='retracting'"):
        pipeline([first, second], [add((0, 1))])
    first = Stage(**options, mode="discarding", best=uc.Max("x"))
    with pytest.raises(NotRetractable, match="best= cannot show its changes as differences"):
        pipeline([first, second], [add((0, 1))])


def test_every_rule_has_a_test() -> None:
    named = {int(name.split("_")[2]) for name in globals() if name.startswith("test_rule_")}
    assert named == set(range(1, 44))
    assert MIN_TIME < 0 < MAX_TIME

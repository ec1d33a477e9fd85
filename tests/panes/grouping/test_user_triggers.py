"""Triggers of the user's own in trees with others, over windows that merge and fall apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from opened import run_script

import uncombine as uc
from uncombine.errors import InvalidArgument

MINUTE = 60_000_000


def bundle(*rows: tuple[int, ...]) -> uc.Elements:
    """Rows of (seconds, x), or (seconds, x, diff)."""
    return uc.Elements([{"ts": row[0] * 1_000_000, "x": row[1], "d": [*row, 1][2]} for row in rows])


def steps(trigger: uc.Trigger, script: list[Any], **options: Any) -> list[int]:
    """The entries of the script that bring a pane; windows are a minute wide and stay for an hour."""
    settings = {"window": uc.Fixed("1 minute"), "allowed_lateness": "1 hour", "closing": "never", "n": uc.Count()}
    panes = run_script(script, trigger=trigger, allow_finish=True, **{**settings, **options})
    return panes["step"].to_pylist()


@dataclass(frozen=True, repr=False)
class Says(uc.UserTrigger):
    """Does as the rows tell: fires for x = 1, ends for x = 2, both for x = 3."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        if row["x"] & 1:
            ctx.fire()
        if row["x"] & 2:
            ctx.finish()


def says(*values: int) -> list[Any]:
    """A bundle of one row for each value."""
    return [bundle((0, x)) for x in values]


def test_a_user_trigger_and_a_percentile_in_one_tree() -> None:
    script = [bundle((0, 0)), uc.Watermark(2 * MINUTE), bundle((0, 1))]
    assert steps(uc.FirstOf(uc.Repeatedly(uc.WatermarkPercentile(50)), Says()), script) == [1, 2]


@pytest.mark.parametrize(
    ("trigger", "values", "panes"),
    [
        (Says(), [1, 2, 1], [0]),
        (uc.Repeatedly(Says()), [1, 2, 1, 3, 1], [0, 2, 3, 4]),
        (uc.AfterWatermark(early=Says()), [2, 1, 2, 1], [1, 3]),
        (uc.RepeatUntil(Says(), uc.Never()), [2, 1], [1]),
        (uc.RepeatCount(Says(), 2), [1, 2, 1, 1], [0, 2]),
        (uc.SequenceOf(Says(), uc.AfterCount(2)), [2, 0, 0, 0], [2]),
        (uc.AllOf(Says(), uc.AfterCount(2)), [2, 0, 0], [1]),
        (uc.Repeatedly(uc.AllOf(Says(), Says())), [2, 1, 2, 1], [1, 3]),
        (uc.Repeatedly(uc.FirstOf(Says(), Says())), [2, 1], [1]),
        (uc.Repeatedly(uc.FirstOf(Says(), uc.AfterCount(3))), [2, 1, 0, 1], [2, 3]),
    ],
)
def test_what_ends_without_firing_is_reset_or_moved_on_from(
    trigger: uc.Trigger, values: list[int], panes: list[int]
) -> None:
    assert steps(trigger, says(*values)) == panes


def test_after_the_end_a_trigger_that_ended_unseen_late_starts_again() -> None:
    script = [*says(0), uc.Watermark(MINUTE), *says(2, 1)]
    assert steps(uc.AfterWatermark(late=Says()), script) == [1, 3]


@dataclass(frozen=True, repr=False)
class Again(uc.UserTrigger):
    """Fires by a timer that sets itself again for an instant that has come."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.set_timer("t", window[1], "event")

    def on_timer(self, tag: str, time: int, ctx: uc.TriggerContext) -> None:
        ctx.state["calls"] = ctx.state.get("calls", 0) + 1
        if ctx.state["calls"] < 3:
            ctx.set_timer("t", time, "event")
        if ctx.state["calls"] == 2:
            ctx.fire()


def test_a_timer_set_by_a_callback_is_of_a_later_asking() -> None:
    script = [bundle((0, 0)), uc.Watermark(MINUTE), uc.Watermark(MINUTE + 1), uc.Watermark(MINUTE + 2)]
    assert steps(Again(), script) == [2]


def test_a_repeated_child_that_stayed_ready_fires_with_its_parent() -> None:
    first, second = (uc.OnPunctuation(uc.col("x") == x) for x in (1, 2))
    trigger = uc.Repeatedly(uc.AllOf(uc.Repeatedly(uc.SequenceOf(first, second)), uc.AfterCount(2)))
    assert steps(trigger, says(1, 0, 1, 0, 2)) == [1, 4]
    counted = uc.AllOf(uc.AfterWatermark(early=uc.SequenceOf(first, second)), uc.AfterCount(2))
    assert steps(uc.Repeatedly(counted), says(1, 0, 1, 0, 2)) == [1, 4]


@dataclass(frozen=True, repr=False)
class Hears(uc.UserTrigger):
    """Fires for each row that it is told of."""

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.fire()


@pytest.mark.parametrize("trigger", [Hears(), uc.OnPunctuation(uc.col("x") == 2), uc.AfterCount(1)])
def test_all_parts_of_a_session_see_that_the_bridge_is_retracted(trigger: uc.Trigger) -> None:
    script = [bundle((0, 2), (50, 2), (100, 2)), bundle((50, 2, -1))]
    sessions = {"window": uc.Sessions("1 minute"), "mode": "retracting", "diff": "d"}
    panes = run_script(script, trigger=uc.Repeatedly(trigger), n=uc.Count(), **sessions)
    assert panes.select(["n", "diff", "step"]).to_pylist() == [
        {"n": 3, "diff": 1, "step": 0},
        {"n": 3, "diff": -1, "step": 1},
        {"n": 1, "diff": 1, "step": 1},
        {"n": 1, "diff": 1, "step": 1},
    ]


@pytest.mark.parametrize("of_rows", ["earliest", "latest"])
def test_a_session_without_rows_does_not_hold_the_output_watermark_for_one_that_is_gone(of_rows: str) -> None:
    sessions = {"window": uc.Sessions("1 minute"), "mode": "retracting", "diff": "d", "timestamp": of_rows}
    script = [bundle((10, 1)), bundle((10, 1, -1)), uc.Watermark(20 * 1_000_000)]
    trigger = uc.AfterWatermark(early=uc.AfterCount(9))
    result = run_script(script, trigger=trigger, n=uc.Count(), **sessions)
    assert result.counts()["held"] == 1
    assert result.output_watermarks[-1] == 20 * 1_000_000


def test_a_row_is_told_to_the_sessions_that_it_concerns_alone() -> None:
    """Of sessions that end in one bundle, linked by a new one, each part hears of the rows of its own alone."""
    script = [
        bundle((0, 2), (50, 2), (100, 2), (200, 2), (250, 2), (300, 2)),
        bundle((50, 2, -1), (150, 2), (250, 2, -1)),
    ]
    sessions = {"window": uc.Sessions("1 minute"), "mode": "retracting", "diff": "d"}
    panes = run_script(script, trigger=uc.Repeatedly(uc.AfterCount(3)), closing="never", n=uc.Count(), **sessions)
    ends = [((uc.timestamp(row["window"]["end"])) // 1_000_000, row["diff"]) for row in panes.to_pylist()]
    assert ends == [(160, 1), (360, 1), (360, -1), (260, 1)]


class Ends(uc.UserTrigger):
    """Is finished with the first row, without a firing."""

    def on_element(self, element: Any, window: Any, ctx: uc.TriggerContext) -> None:
        ctx.finish()


def test_a_watermark_asks_only_windows_that_wait_for_it() -> None:
    """All are ready when the first row has been told, which the next asking finds; no watermark has one."""
    trigger = uc.Repeatedly(uc.AllOf(Ends(), uc.Repeatedly(uc.AfterCount(1))))
    script = [uc.Elements([{"ts": 0, "x": 1}], watermarks=[uc.Watermark(1)]), uc.Elements([{"ts": 1, "x": 2}])]
    panes = uc.flow(script).window(uc.Fixed("1 minute"), trigger).combine(total=uc.Sum("x")).run()
    assert panes.select(["total", "step"]).to_pylist() == [{"total": 3, "step": 1}]


@dataclass(frozen=True, repr=False)
class Asks(uc.UserTrigger):
    """Fires with each row, and asks for the same each time."""

    how: bool

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.fire(clear=self.how)


@pytest.mark.parametrize("mode", ["discarding_by_default", "accumulating_by_default"])
def test_a_request_to_clear_wins_over_one_to_accumulate(mode: str) -> None:
    trigger = uc.Repeatedly(uc.FirstOf(Asks(False), Asks(True)))
    panes = uc.flow(says(0, 0)).window(uc.Fixed("1 minute"), trigger, mode=mode).combine(n=uc.Count()).run()
    assert panes["n"].to_pylist() == [1, 1]


@dataclass(frozen=True, repr=False)
class Reads(uc.UserTrigger):
    """Stores the results that it sees, and fires at a tenth second of either clock."""

    seen: Any

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        self.seen.append(("row", ctx.value("n"), ctx.value("total")))
        ctx.set_timer("p", 10_000_000)
        ctx.set_timer("e", 10_000_000, "event")

    def on_timer(self, tag: str, time: int, ctx: uc.TriggerContext) -> None:
        self.seen.append((tag, ctx.value("n"), ctx.value("total")))
        ctx.fire()

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("granularity", "in_a_bundle"),
    [("bundle", [(3, 7), (3, 7)]), ("record", [(2, 3), (3, 7)])],
)
def test_rule_28_a_value_is_what_a_pane_would_show_now(granularity: str, in_a_bundle: list[Any]) -> None:
    seen: list[Any] = []
    script = [
        *[uc.Clock(0), bundle((0, 1)), bundle((1, 2), (2, 4))],
        *[uc.Elements([{"ts": 3, "x": 8}], at=10_000_000, watermarks=[uc.Watermark(10_000_000)])],
    ]
    settings = {"window": uc.Fixed("1 minute"), "granularity": granularity, "mode": "discarding"}
    trigger = uc.Repeatedly(Reads(seen))
    panes = run_script(script, trigger=trigger, n=uc.Count(), total=uc.Sum("x"), **settings)
    # The timer of processing time comes before the row of its instant. What a pane shows is cleared.
    rows = [("row", 1, 1), *(("row", *pair) for pair in in_a_bundle)]
    assert seen == [*rows, ("p", 3, 7), ("row", 1, 8), ("e", 1, 8), ("p", 0, None)]
    assert panes.select(["n", "total"]).to_pylist() == [{"n": 3, "total": 7}, {"n": 1, "total": 8}]


def test_rule_28_a_window_without_rows_has_no_value() -> None:
    seen: list[Any] = []
    script = [uc.Clock(0), bundle((0, 1)), bundle((0, 1, -1)), bundle((1, 5))]
    settings = {"window": uc.Fixed("1 minute"), "mode": "retracting", "diff": "d"}
    run_script(script, trigger=uc.Repeatedly(Reads(seen)), n=uc.Count(), total=uc.Sum("x"), **settings)
    assert seen == [("row", 1, 1), ("row", None, None), ("row", 1, 5)]


@dataclass(frozen=True, repr=False)
class Meets(uc.UserTrigger):
    """Stores the windows that become one, and their results."""

    seen: Any

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        old = [(*(bound // 1_000_000 for bound in source.window), source.value("total")) for source in sources]
        self.seen.append((old, (*(bound // 1_000_000 for bound in ctx.window), ctx.value("total"), ctx.value("n"))))

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize("granularity", ["bundle", "record"])
def test_rule_28_windows_that_merge_have_their_bounds_and_results(granularity: str) -> None:
    seen: list[Any] = []
    script = [bundle((100, 4)), bundle((0, 1), (5, 2)), bundle((50, 8), (52, 16))]
    sessions = {"window": uc.Sessions("1 minute"), "granularity": granularity}
    run_script(script, trigger=uc.Repeatedly(Meets(seen)), n=uc.Count(), total=uc.Sum("x"), **sessions)
    grown = [([(0, 60, 1)], (0, 65, 1, 1))] if granularity == "record" else []
    merged = ([(0, 65, 3), (100, 160, 4)], (0, 160, 7, 3))
    assert seen == [*grown, merged]


def test_rule_28_windows_that_fall_apart_have_those_of_the_window_that_they_come_of() -> None:
    seen: list[Any] = []
    script = [bundle((0, 1), (50, 2), (100, 4)), bundle((50, 2, -1), (0, 1, -1)), bundle((0, 8))]
    sessions = {"window": uc.Sessions("1 minute"), "mode": "retracting", "diff": "d"}
    run_script(script, trigger=uc.Repeatedly(Meets(seen)), n=uc.Count(), total=uc.Sum("x"), **sessions)
    assert seen == [([(0, 160, 7)], (100, 160, 7, 3))]


def test_results_are_computed_for_triggers_that_ask_and_for_what_they_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    from uncombine.combiners.compiled import CompiledPlan

    asked: list[tuple[str, int]] = []
    compute = CompiledPlan.extract_one

    def extract_one(self: Any, name: str, accumulators: Any, places: Any) -> Any:
        asked.append((name, len(places)))
        return compute(self, name, accumulators, places)

    class One(Says):
        def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
            if row["x"]:
                ctx.value("n")

    monkeypatch.setattr(CompiledPlan, "extract_one", extract_one)
    steps(uc.Repeatedly(Says()), says(1, 2))
    assert asked == []
    # Of two windows in hand, and with two that got rows.
    steps(uc.Repeatedly(One()), [bundle((0, 0)), bundle((0, 1), (60, 0), (1, 1))], total=uc.Sum("x"))
    assert asked == [("n", 2)]


@dataclass(frozen=True, repr=False)
class Tells(uc.UserTrigger):
    """Fires with each row, with a tag for x above a bound."""

    tag: str
    above: int = 0

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        ctx.fire(tag=self.tag if row["x"] > self.above else None)


def causes(trigger: uc.Trigger, script: list[Any], **options: Any) -> list[tuple[int, str]]:
    panes = run_script(script, window=uc.Fixed("1 minute"), trigger=trigger, n=uc.Count(), **options)
    return [(row["diff"], row["pane"]["trigger"]) for row in panes.to_pylist()]


def test_rule_28_the_tags_of_all_that_fire_are_shown_in_the_order_of_the_trigger() -> None:
    two = uc.Repeatedly(uc.RepeatUntil(uc.FirstOf(Tells("b"), uc.Always(), Tells("a")), Tells("c", above=5)))
    assert causes(two, says(1, 9, 0)) == [(1, "b, a"), (1, "b, a, c"), (1, "rows")]
    same = uc.Repeatedly(uc.FirstOf(Tells("a"), Tells("b"), Tells("a")))
    assert causes(same, says(1)) == [(1, "a, b")]
    # The last call of a bundle counts; and each window has its own.
    script = [bundle((0, 1), (1, 0), (60, 0), (61, 3), (120, 0))]
    assert causes(uc.Repeatedly(Tells("a")), script) == [(1, "rows"), (1, "a"), (1, "rows")]


def test_rule_28_a_retraction_has_the_tag_of_its_pane() -> None:
    got = causes(uc.Repeatedly(Tells("a", above=1)), says(2, 1, 2), mode="retracting")
    assert got == [(1, "a"), (-1, "a"), (1, "rows"), (-1, "rows"), (1, "a")]


def test_rule_28_a_tag_counts_in_its_evaluation_only() -> None:
    trigger = uc.Repeatedly(uc.AllOf(Tells("a"), uc.OnPunctuation(uc.col("x") == 0)))
    assert causes(trigger, says(1, 0)) == [(1, "rows")]


@pytest.mark.parametrize("tag", ["", "a, b", 3], ids=repr)
def test_a_tag_is_a_text_without_a_comma(tag: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"^ctx.fire\(tag=\): tag must be a text without a comma, such as 'spike'"
    ):
        uc.TriggerContext((0, 1), 0, 0, {}).fire(tag=tag)

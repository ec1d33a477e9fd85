"""Composites of the user's own: they see which of their children want to fire, and decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from opened import run_script
from reference.byrule.transcripts import SCHEMA, has_own, is_merging, transcripts

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.panes.grouping.grouping import Grouping
from uncombine.triggers import compile_trigger, walk

MINUTE = 60_000_000


@dataclass(frozen=True, repr=False)
class First(uc.UserTrigger):
    """FirstOf, as a user would write it."""

    children: tuple[uc.Trigger, ...]

    def on_children(self, ctx: uc.TriggerContext) -> None:
        if any(child.wants for child in ctx.children):
            ctx.fire()

    def on_fire(self, ctx: uc.TriggerContext) -> None:
        if any(child.finished for child in ctx.children):
            ctx.finish()


@dataclass(frozen=True, repr=False)
class All(uc.UserTrigger):
    """AllOf."""

    children: tuple[uc.Trigger, ...]

    def on_children(self, ctx: uc.TriggerContext) -> None:
        ready = {*ctx.state.get("ready", []), *(i for i, child in enumerate(ctx.children) if child.wants)}
        ctx.state["ready"] = sorted(ready)
        if ready and all(child.finished or i in ready for i, child in enumerate(ctx.children)):
            ctx.fire()
            for i in ready:
                ctx.children[i].fire()

    def on_fire(self, ctx: uc.TriggerContext) -> None:
        ctx.state.clear()
        if all(child.finished for child in ctx.children):
            ctx.finish()

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        ctx.state["ready"] = sorted({i for source in sources for i in source.state.get("ready", [])})


@dataclass(frozen=True, repr=False)
class Sequence(uc.UserTrigger):
    """SequenceOf."""

    children: tuple[uc.Trigger, ...]

    def on_start(self, ctx: uc.TriggerContext) -> None:
        ctx.state["phase"] = 0
        self._rest(ctx)

    def on_children(self, ctx: uc.TriggerContext) -> None:
        if ctx.children[ctx.state["phase"]].wants:
            ctx.fire()

    def on_fire(self, ctx: uc.TriggerContext) -> None:
        if ctx.children[ctx.state["phase"]].finished:
            ctx.state["phase"] += 1
            self._rest(ctx)
        if ctx.state["phase"] == len(ctx.children):
            ctx.finish()

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        # A window whose rows have not been told yet has no phase.
        phases = [source.state.get("phase", 0) for source in sources]
        ctx.state["phase"] = phase = min(phases)
        there = [source for source, its in zip(sources, phases, strict=True) if its == phase]
        for i, child in enumerate(ctx.children):
            child.merge(there if i == phase else [])
        self._rest(ctx)
        ctx.finished = phase == len(ctx.children)

    def _rest(self, ctx: uc.TriggerContext) -> None:
        for i, child in enumerate(ctx.children):
            child.active = i == ctx.state["phase"]


@dataclass(frozen=True, repr=False)
class Times(uc.UserTrigger):
    """RepeatCount, and Repeatedly where n is 0."""

    children: tuple[uc.Trigger, ...]
    n: int = 0

    def on_children(self, ctx: uc.TriggerContext) -> None:
        if ctx.children[0].wants:
            ctx.fire()

    def on_fire(self, ctx: uc.TriggerContext) -> None:
        ctx.state["fired"] = ctx.state.get("fired", 0) + 1
        if ctx.children[0].finished:
            ctx.children[0].reset()
        if ctx.state["fired"] == self.n:
            ctx.finish()

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        ctx.state["fired"] = max(source.state.get("fired", 0) for source in sources)


def by_user(trigger: uc.Trigger) -> uc.Trigger:
    """The trigger with user-defined composites in place of the library's."""
    children = tuple(by_user(child) for child in trigger.children)
    match trigger:
        case uc.FirstOf():
            return First(children)
        case uc.AllOf():
            # A child that stays ready fires in a later evaluation, when composites of users below it no longer ask to.
            return All(trigger.children)
        case uc.SequenceOf():
            return Sequence(children)
        case uc.Repeatedly():
            return Times(children)
        case uc.RepeatCount(n=n):
            return Times(children, n)
        case uc.RepeatUntil():
            return uc.RepeatUntil(*children)
        case uc.AfterWatermark(early=early, late=late) if children:
            return uc.AfterWatermark(
                early=children[0] if early is not None else None, late=children[-1] if late is not None else None
            )
    return trigger


def panes_of(script: list[Any], options: dict[str, Any], trigger: uc.Trigger) -> list[dict[str, Any]]:
    tables = [
        replace(entry, rows=pa.Table.from_pylist([dict(row) for row in entry.rows], SCHEMA))
        if isinstance(entry, uc.Elements)
        else entry
        for entry in script
    ]
    given = {**options, "trigger": trigger, "allow_finish": True}
    return run_script(tables, **given, schema=SCHEMA, n=uc.Count(), total=uc.Sum("x")).to_pylist()


def of_composites(first: int, stop: int) -> Iterator[tuple[int, list[Any], dict[str, Any]]]:
    """Random scripts whose triggers are composites of the library."""
    for seed in range(first, stop):
        script, options = transcripts(seed)
        trigger = options["trigger"]
        if trigger is not None and not has_own(trigger) and has_own(by_user(trigger)):
            yield seed, script, options


def check_by_user(seed: int, script: list[Any], options: dict[str, Any]) -> None:
    trigger = options["trigger"]
    assert panes_of(script, options, by_user(trigger)) == panes_of(script, options, trigger), (seed, trigger)


@pytest.mark.weekly
def test_composites_of_the_library_can_be_written_by_users() -> None:
    found = list(of_composites(0, 60))
    assert len(found) > 10
    for case in found:
        check_by_user(*case)


@pytest.mark.full
def test_sequences_can_be_written_by_users_where_windows_merge() -> None:
    compared = 0
    for seed, script, options in of_composites(0, 900):
        parts = walk(options["trigger"])
        if is_merging(options["window"]) and any(isinstance(part, uc.SequenceOf) for part in parts):
            check_by_user(seed, script, options)
            compared += 1
    assert compared > 25


@pytest.mark.soak
@pytest.mark.parametrize("first", range(10_000, 20_000, 1_000))
def test_composites_of_the_library_can_be_written_by_users_in_many_scripts(first: int) -> None:
    for case in of_composites(first, first + 1_000):
        check_by_user(*case)


def rows(*times: int, **columns: Any) -> uc.Elements:
    return uc.Elements([{"ts": t * 1_000_000, "x": 1, **columns} for t in times])


def panes(trigger: uc.Trigger, script: list[Any], **options: Any) -> list[tuple[Any, ...]]:
    """Entry, count and cause of each pane; windows are a minute wide and stay for an hour."""
    settings = {"window": uc.Fixed("1 minute"), "allowed_lateness": "1 hour", "closing": "never", "n": uc.Count()}
    found = run_script(script, trigger=trigger, allow_finish=True, **{**settings, **options}).to_pylist()
    return [(row["step"], row["n"], row["pane"]["trigger"]) for row in found]


@dataclass(frozen=True, repr=False)
class Quorum(uc.UserTrigger):
    """Fires when some of its triggers want to, and tells how many."""

    children: tuple[uc.Trigger, ...]
    least: int

    def on_children(self, ctx: uc.TriggerContext) -> None:
        wanting = sum(child.wants for child in ctx.children)
        if wanting >= self.least:
            ctx.fire(tag=f"{wanting} of {len(ctx.children)}")

    def on_fire(self, ctx: uc.TriggerContext) -> None:
        for child in ctx.children:
            if child.finished:
                child.reset()


COUNTS = (uc.AfterCount(2), uc.AfterCount(3), uc.AfterWatermark())


def test_rule_28_a_composite_fires_the_children_that_want_to_and_no_other() -> None:
    script = [rows(0), rows(1), rows(2), rows(3), rows(4), rows(5)]
    # Both counts are reached by the third row, and by the sixth again.
    assert panes(Quorum(COUNTS, 2), script) == [(2, 3, "2 of 3"), (5, 6, "2 of 3")]
    assert panes(Quorum(COUNTS, 1), script) == [
        (1, 2, "1 of 3"),
        (2, 3, "1 of 3"),
        (3, 4, "1 of 3"),
        (5, 6, "2 of 3"),
    ]


def test_rule_28_a_child_that_wants_to_fire_wakes_its_window_once() -> None:
    calls: list[tuple[str, list[bool]]] = []

    class Hears(uc.UserTrigger):
        children = (uc.AfterDelay("5 seconds"), uc.AfterWatermark(), uc.AfterDelay("5 seconds", domain="event"))

        def on_children(self, ctx: uc.TriggerContext) -> None:
            calls.append((str(ctx.processing_time), [child.wants for child in ctx.children]))

    script = [uc.Clock(0), uc.Watermark(0), rows(0), uc.Clock(4_999_999), uc.Clock(5_000_000), uc.Clock(9_000_000)]
    assert panes(Hears(), [*script, uc.Watermark(6_000_000), uc.Watermark(MINUTE), uc.Watermark(2 * MINUTE)]) == []
    assert calls == [
        ("0", [False, False, False]),
        ("5000000", [True, False, False]),
        ("9000000", [True, False, True]),
        ("9000000", [True, True, True]),
    ]


def test_rule_28_a_child_that_starts_again_with_the_firing_wakes_its_window_again() -> None:
    calls: list[bool] = []

    class Renews(uc.UserTrigger):
        children = (uc.FirstOf(uc.Always(), uc.AfterWatermark()),)

        def on_children(self, ctx: uc.TriggerContext) -> None:
            calls.append(ctx.children[0].wants)
            ctx.fire()

        def on_fire(self, ctx: uc.TriggerContext) -> None:
            ctx.children[0].reset()

    assert panes(Renews(), [rows(0), uc.Watermark(MINUTE)], on_time="always") == [(0, 1, "rows"), (1, 1, "watermark")]
    assert calls == [True, True]


def test_rule_28_a_child_that_fired_for_its_rows_is_heard_when_the_watermark_passes() -> None:
    script = [uc.Elements([{"ts": 0, "x": 1}], watermarks=[uc.Watermark(MINUTE)])]
    trigger = uc.AfterWatermark(early=uc.Always(), late=uc.AfterCount(1))
    for one in (First((trigger,)), uc.FirstOf(trigger)):
        assert panes(one, script, on_time="always") == [(0, 1, "rows"), (0, 1, "watermark")]


def test_rule_28_a_child_that_is_not_active_sees_nothing() -> None:
    @dataclass(frozen=True, repr=False)
    class Second(uc.UserTrigger):
        """Lets its child see every second row."""

        children: tuple[uc.Trigger, ...]

        def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
            ctx.children[0].active = not ctx.children[0].active

        def on_children(self, ctx: uc.TriggerContext) -> None:
            if ctx.children[0].wants:
                ctx.fire()

    script = [rows(0), rows(1), rows(2), rows(3), rows(4)]
    assert panes(uc.Repeatedly(Second((uc.AfterCount(2),))), script) == [(3, 4, "rows")]
    # Its deadline passes while it is not active.
    waits = Second((uc.AfterDelay("5 seconds", domain="event"),))
    script = [uc.Watermark(0), rows(0), rows(1), rows(2), uc.Watermark(30_000_000), rows(3)]
    assert panes(waits, script) == [(5, 4, "rows")]


def test_rule_28_children_of_windows_that_merge_have_merged_when_on_merge_is_called() -> None:
    seen: list[tuple[int, bool, list[bool]]] = []

    @dataclass(frozen=True, repr=False)
    class Merges(First):
        """Starts its child again where one of the windows had let it finish."""

        def on_children(self, ctx: uc.TriggerContext) -> None:
            if ctx.children[0].wants:
                ctx.fire()

        def on_fire(self, ctx: uc.TriggerContext) -> None:
            pass

        def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
            seen.append((ctx.window[1], ctx.children[0].finished, [s.children[0].finished for s in sources]))
            ctx.children[0].reset()

    script = [rows(0), rows(0), rows(100), rows(50), rows(51), rows(52)]
    got = panes(Merges((uc.AfterCount(2),)), script, window=uc.Sessions("1 minute"))
    assert got == [(1, 2, "rows"), (4, 5, "rows")]
    assert seen == [(160_000_000, True, [True, False])]


@dataclass(frozen=True, repr=False)
class Longest(uc.UserTrigger):
    """Its child goes on from the window with the most rows alone."""

    children: tuple[uc.Trigger, ...]

    def on_children(self, ctx: uc.TriggerContext) -> None:
        if ctx.children[0].wants:
            ctx.fire()

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        ctx.children[0].merge([max(sources, key=lambda source: source.value("n"))])


def test_rule_28_a_composite_says_from_which_windows_its_children_go_on() -> None:
    script = [rows(0), rows(0), rows(100), rows(50), rows(51), rows(52), rows(53)]
    sessions = {"window": uc.Sessions("1 minute")}
    # Of the counts 2 and 1 the child keeps 2, so that the rows of 50, 51 and 52 make five.
    assert panes(Longest((uc.AfterCount(5),)), script, **sessions) == [(5, 6, "rows")]
    assert panes(First((uc.AfterCount(5),)), script, **sessions) == [(4, 5, "rows")]


@pytest.mark.parametrize(("ends", "panes_at"), [(None, [1]), (False, [1, 4]), (True, [1])])
def test_rule_28_a_trigger_says_if_it_is_finished_after_a_merge(ends: bool | None, panes_at: list[int]) -> None:
    seen: list[tuple[list[bool], bool]] = []

    @dataclass(frozen=True, repr=False)
    class Twice(First):
        """Is finished with its child."""

        def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
            seen.append(([source.finished for source in sources], ctx.finished))
            if ends is not None:
                ctx.finished = ends
            ctx.children[0].merge([])

    script = [rows(0), rows(0), rows(100), rows(50), rows(50)]
    got = panes(Twice((uc.AfterCount(2),)), script, window=uc.Sessions("1 minute"))
    assert [step for step, _, _ in got] == panes_at
    assert seen[0] == ([True, False], True)


def test_rule_28_user_triggers_are_children_of_composites_of_any_kind() -> None:
    @dataclass(frozen=True, repr=False)
    class Odd(uc.UserTrigger):
        """Fires for odd x, ends for x = 0."""

        name: str

        def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
            if row["x"] % 2:
                ctx.fire(tag=self.name)
            if row["x"] == 0:
                ctx.finish()

    script = [rows(0, x=2), rows(1, x=3), rows(2, x=0), rows(3, x=1)]
    assert panes(Quorum((Odd("a"), uc.FirstOf(Odd("b"), Odd("a"))), 2), script[:2]) == [(1, 2, "2 of 2, a, b")]
    # A child that ends without firing is finished from the next call on.
    assert panes(uc.Repeatedly(Quorum((Odd("a"), uc.Always()), 1)), script) == [
        (0, 1, "1 of 2"),
        (1, 2, "2 of 2, a"),
        (2, 3, "1 of 2"),
        (3, 4, "1 of 2"),
    ]


@dataclass(frozen=True, repr=False)
class Calls(uc.UserTrigger):
    """Does in one method what is for another."""

    children: tuple[uc.Trigger, ...]
    where: str
    what: str

    def on_element(self, row: dict[str, Any], window: tuple[int, int], ctx: uc.TriggerContext) -> None:
        self._do("on_element", ctx)

    def on_children(self, ctx: uc.TriggerContext) -> None:
        ctx.fire()

    def on_fire(self, ctx: uc.TriggerContext) -> None:
        self._do("on_fire", ctx)

    def on_merge(self, sources: list[uc.TriggerContext], ctx: uc.TriggerContext) -> None:
        self._do("on_merge", ctx)

    def _do(self, here: str, ctx: uc.TriggerContext) -> None:
        if here == self.where:
            match self.what:
                case "wants":
                    assert not ctx.children[0].wants
                case "child.fire":
                    ctx.children[0].fire()
                case "fire":
                    ctx.fire()
                case "merge":
                    ctx.children[0].merge([ctx])
                case _:
                    ctx.value(self.what)


@pytest.mark.parametrize(
    ("where", "what", "message"),
    [
        ("on_element", "wants", "whether AfterCount(9) wants to fire is known in on_children alone: ask there"),
        ("on_fire", "child.fire", "AfterCount(9) can be told to fire in on_children alone: call child.fire() there"),
        ("on_fire", "fire", "calls ctx.fire() in on_fire, which is called because it fires: call it in on_children"),
        ("on_element", "merge", "AfterCount(9) merges in on_merge alone: call child.merge() there"),
        ("on_merge", "merge", "child.merge() takes contexts that on_merge got as sources, each once: give some of"),
        ("on_merge", "sum", "ctx.value('sum') names no combiner of the grouping: known are 'n'"),
        ("on_element", "sum", "ctx.value('sum') names no combiner of the grouping: known are 'n'"),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(where: str, what: str, message: str) -> None:
    script = [rows(0), rows(100), rows(50)]
    with pytest.raises(InvalidArgument) as refused:
        panes(Calls((uc.AfterCount(9),), where, what), script, window=uc.Sessions("1 minute"))
    assert message in str(refused.value)


class Idle(uc.UserTrigger):
    """A composite that never asks its children."""

    def __init__(self, *children: Any) -> None:
        self.children = children


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        (Idle(uc.Always()), "Idle has children and never asks them: define on_children(self, ctx), which calls"),
        (Idle(3), "the children of Idle must be a tuple of triggers such as (AfterCount(1),), but are (3,)"),
        (First([uc.Always()]), "the children of First must be a tuple of triggers"),  # type: ignore[arg-type]
    ],
)
def test_children_that_cannot_be_asked_are_refused_when_built(trigger: uc.Trigger, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), uc.Repeatedly(uc.FirstOf(uc.Never(), trigger)))
    assert message in str(refused.value)


def test_a_composite_shows_and_explains_its_children() -> None:
    trigger = Quorum((uc.AfterCount(2), uc.AfterWatermark()), 1)
    assert repr(trigger) == "Quorum((AfterCount(2), AfterWatermark()), 1)"
    assert trigger == Quorum((uc.AfterCount(2), uc.AfterWatermark()), 1)
    assert trigger.explain().splitlines() == [
        f"when {trigger!r} calls ctx.fire(), over its children:",
        "  when 2 rows of a key have come to a window",
        "  once, when the watermark passes the end of the window",
    ]


def test_a_user_trigger_without_children_stores_the_columns_that_it_always_had() -> None:
    columns = compile_trigger(Idle()).columns()
    assert [name.removeprefix("t.") for name in columns] == ["done", "memo", "wants", "ended", "event", "processing"]

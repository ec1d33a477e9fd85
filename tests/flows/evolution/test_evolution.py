"""A flow that is changed in the middle leaves the rows that it would have left from the start."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_specs import Spec, changed, columns, draw_script, draw_spec, left, rows_before
from row_steps import SECOND
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.evolution import Evolution
from uncombine.flows.fingerprint.differences import number_of
from uncombine.flows.result import Result
from uncombine.panes.state.operator_state import Counts
from uncombine.panes.state.seed import Seed


@dataclass(frozen=True)
class Changed:
    """A flow that was changed in the middle of a script."""

    before: Result
    change: Evolution
    after: Result


def run_changed(before: uc.Flow, after: uc.Flow, script: list[Any], cut: int, folder: Path, **options: Any) -> Changed:
    first = before.run(script[:cut])
    seed = first.seed(f"{folder}/before")
    history = rows_before(script[:cut])
    change = uc.evolve(seed, after, history=history, to=f"{folder}/after", **options)
    check_counts(seed, change.seed)
    return Changed(first, change, after.run(script[cut:], start=change.seed))


def check_counts(before: Seed, after: Seed | None) -> None:
    """Each step has left out the rows that the former one had: what a history leaves out is no news."""
    assert after is not None
    counts = [
        {number_of(step.made_by): sum((piece.counts for piece in step.pieces), Counts()) for step in seed.steps}
        for seed in (before, after)
    ]
    assert counts[1] == {number: counts[0].get(number, Counts()) for number in counts[1]}


def check_changed(before: uc.Flow, after: uc.Flow, script: list[Any], cut: int, folder: Path) -> Changed:
    found = run_changed(before, after, script, cut, folder)
    names = [name for name in columns(after) if name != "event_time"]  # that of a window of all time depends on timers
    own = found.before.panes
    there = [name for name in names if name in own.column_names]
    assert left(own.select([*there, "diff"]), found.after.panes, names=names) == left(
        after.run(script).panes, names=names
    ), str(found.change)
    return found


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(60, 5_000))
def test_a_changed_flow_leaves_what_it_would_have_left(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    spec = draw_spec(r)
    other = spec
    for _ in range(r.choice([1, 1, 2, 3])):
        other = changed(r, other)
    script = draw_script(r)
    check_changed(spec.flow, other.flow, script, r.randrange(1, len(script)), tmp_path)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(30, 3_000))
def test_windows_that_have_not_expired_are_corrected(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    lateness = r.choice(["0 seconds", "1 minute"])
    window = r.choice(["1 minute", "5 minutes"])
    spec = replace(draw_spec(r), window=window, lateness=lateness, second=False, shown=False)
    other = spec
    for _ in range(r.choice([1, 1, 2])):
        other = replace(changed(r, other), second=False, shown=False)
    other = replace(other, window=spec.window, lateness=r.choice([lateness, "3 minutes"]))
    script = draw_script(r, 20)
    found = run_changed(spec.flow, other.flow, script, r.randrange(1, len(script)), tmp_path)
    mark = min(piece.watermark for step in found.change.seed.steps for piece in step.pieces)
    room = int(uc.span(lateness))

    def live(panes: pa.Table) -> pa.Table:
        ends = [row["window"]["end"].timestamp() * SECOND + room > mark for row in panes.to_pylist()]
        return panes.filter(pa.array(ends, pa.bool_()))

    names = columns(other.flow)
    own = live(found.before.panes)
    there = [name for name in names if name in own.column_names]
    whole = live(other.flow.run(script).panes)
    assert left(own.select([*there, "diff"]), live(found.after.panes), names=names) == left(whole, names=names)


def test_a_seed_that_nobody_has_seen_is_not_evolved(tmp_path: Path) -> None:
    spec = Spec(combiners={"n": "n"}, window="1 minute", trigger="each row", by=("k",))
    rows = rows_before(draw_script(random.Random(0)))
    seed = spec.flow.seed(rows, to=f"{tmp_path}/history")
    for other in (spec, replace(spec, combiners={"n": "n", "total": "total"})):
        with pytest.raises(InvalidArgument, match="takes panes for shown that nobody has seen yet"):
            uc.evolve(seed, other.flow, history=rows, to=f"{tmp_path}/changed")
    change = uc.evolve(spec.flow.run([], start=seed).seed(f"{tmp_path}/seen"), spec.flow, to=f"{tmp_path}/again")
    assert change.plan.steps[0].fate == "kept"


ROWS = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})


def hours(mode: str | None = "retracting", least: int = 0, window: str = "1 hour", **more: uc.Combiner) -> uc.Flow:
    rows = uc.flow(ROWS, watermark="1 second").where(uc.col("x") >= least)
    return rows.window(window, "early every 1 row", mode).combine(by="user", n=uc.Sum("x"), **more)


PAST = [{"ts": second * SECOND, "user": "a", "x": x} for second, x in ((60, 1), (1800, 8))]


def changes(before: uc.Flow, now: uc.Flow, folder: Path) -> list[tuple[int | None, int]]:
    """The corrections of a change after the rows of the past."""
    seed = before.run([uc.Elements(PAST)]).seed(f"{folder}/before")
    change = uc.evolve(seed, now, history=PAST, to=f"{folder}/now")
    return [(row["n"], row["diff"]) for row in now.run([], start=change.seed).panes.to_pylist()]


def test_another_filter_is_computed_from_a_history(tmp_path: Path) -> None:
    assert changes(hours(least=0), hours(least=5), tmp_path) == [(9, -1), (8, 1)]


def test_changes_whose_panes_say_not_what_they_replace(tmp_path: Path) -> None:
    with pytest.raises(StateMismatch, match="mode='discarding' can show a window several times"):
        changes(hours("discarding"), hours("discarding", most=uc.Max("x")), tmp_path)
    with pytest.raises(
        StateMismatch, match="windows of the changed flow have expired, such as that from 1970-01-01T00:01:00Z"
    ):
        changes(hours(), hours(window="1 minute"), tmp_path / "other")
    with pytest.raises(InvalidArgument, match="no combiner of before was called so"):
        uc.evolve(hours().run([]).seed(f"{tmp_path}/seed"), hours(), renames={"n": "zzz"}, dry_run=True)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_sources_go_on_by_their_names(order: str, tmp_path: Path) -> None:
    def flow(order: str, **more: uc.Combiner) -> uc.Flow:
        both = uc.union(*(uc.flow(ROWS, name=name, watermark="1 second") for name in order))
        return both.window("1 minute", "each row", mode="retracting").combine(by="user", n=uc.Sum("x"), **more)

    rows = {name: [{"ts": time * SECOND, "user": name, "x": 1}] for name, time in (("a", 60), ("b", 500))}
    first = flow("ab").run([uc.Elements(rows["a"], input="a"), uc.Elements(rows["b"], input="b")])
    now = flow(order, most=uc.Max("x"))
    change = uc.evolve(first.seed(f"{tmp_path}/before"), now, history=rows, to=f"{tmp_path}/now")
    then = now.run([uc.Elements([{"ts": 90 * SECOND, "user": "a", "x": 10}], input="a")], start=change.seed)
    assert then.dropped == 0
    assert [row["n"] for row in then.collect()][-2:] == [1, 11]


def test_an_idle_source_stays_idle(tmp_path: Path) -> None:
    def flow(**more: uc.Combiner) -> uc.Flow:
        marks = uc.PerSource("user", lag="1 second", idle_after="10 seconds")
        rows = uc.flow(ROWS, watermark=marks).window("1 minute", "each row", mode="retracting")
        return rows.combine(n=uc.Sum("x"), **more)

    past = [{"ts": 0, "user": "idle", "x": 2}, {"ts": 500 * SECOND, "user": "a", "x": 4}]
    script = [uc.Elements(past[:1], at=0), uc.Elements(past[1:], at=20 * SECOND), uc.Clock(30 * SECOND)]
    first = flow().run(script)
    change = uc.evolve(first.seed(f"{tmp_path}/before"), flow(m=uc.Max("x")), history=past, to=f"{tmp_path}/now")
    marks = [[piece.watermark for piece in step.pieces] for step in change.seed.steps]
    assert marks == [[499 * SECOND]]
    shown = [(row["n"], row["m"], row["diff"]) for row in flow(m=uc.Max("x")).run([], start=change.seed).collect()]
    assert shown == [(4, None, -1), (4, 4, 1)]


def test_the_plan_says_which_rows_a_history_does_not_bring_back(tmp_path: Path) -> None:
    def flow(lateness: str, **combiners: uc.Combiner) -> uc.Flow:
        minutes = uc.flow(ROWS, watermark="1 second")
        minutes = minutes.window("1 minute", "each row", mode="retracting", allowed_lateness=lateness)
        return minutes.combine(by="user", n=uc.Count(), **combiners)

    rows = [{"ts": time * SECOND, "user": "a", "x": 1} for time in (0, 500, 1)]
    before = flow("1 minute").run([uc.Elements([row]) for row in rows])
    assert before.dropped == 1
    seed = before.seed(f"{tmp_path}/before")
    unread, late = "history= is not read", "rows that were left out of them as late (1 so far) stay so"

    def notes(after: uc.Flow, **history: Any) -> str:
        return str(uc.evolve(seed, after, dry_run=True, **history))

    longer = notes(flow("1 day"), history=rows)
    assert unread in longer
    assert late in longer
    assert [word in notes(flow("1 day")) for word in (unread, late)] == [False, True]
    assert [word in notes(flow("1 minute")) for word in (unread, late)] == [False, False]
    added = flow("1 day", most=uc.Max("x"))
    assert [word in notes(added, history=rows) for word in (unread, late)] == [False, True]
    change = uc.evolve(seed, added, history=rows, to=f"{tmp_path}/after")
    assert change.remains[0] == f"the seeds {f'{tmp_path}/before'!r} and {f'{tmp_path}/after'!r}, until you delete them"
    after = added.run([], start=change.seed)
    times = [row["window"]["start"].timestamp() for row in after.collect()]
    assert max(times) == min(times) == 480, "the first minute had expired"

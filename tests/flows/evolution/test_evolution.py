"""A flow that is changed in the middle leaves the rows that it would have left from the start."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from row_steps import SCHEMA, SECOND, START
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.evolution import Evolution
from uncombine.flows.result import Result

COMBINERS: Mapping[str, uc.Combiner] = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "most": uc.Max("x"),
    "middle": uc.Median("x"),
    "ids": uc.CountDistinct("id"),
    "mean": uc.Mean("x"),
    "last": uc.ArgMax("x", by="ts"),
    "spread": uc.Variance("x").where(uc.col("id") > 1),
}
WINDOWS = ["1 minute", "5 minutes", "sessions 40 seconds", "global", uc.Sliding("2 minutes", "1 minute")]
TRIGGERS = ["each row", "early every 2 rows, late every 1 row", "early every 30 seconds, late each row", None]


@dataclass(frozen=True)
class Spec:
    """A flow as a value that can be changed."""

    combiners: Mapping[str, str]
    """The name in `COMBINERS` of each result."""
    window: Any
    trigger: Any
    by: tuple[str, ...]
    lateness: str = "1 day"
    least: int | None = None
    """Rows below are filtered out."""
    doubled: bool = False
    second: bool = False
    shown: bool = False
    """True if columns are selected at the end."""

    def __post_init__(self) -> None:
        if self.window == "global" and self.trigger is None:
            object.__setattr__(self, "trigger", "each row")

    @property
    def flow(self) -> uc.Flow:
        flow = uc.flow(SCHEMA, watermark="30 seconds", diff="w")
        if self.least is not None:
            flow = flow.where(uc.col("x") >= self.least)
        if self.doubled:
            flow = flow.with_columns(x=uc.col("x") * 2)
        combiners = {name: COMBINERS[of] for name, of in self.combiners.items()}
        options = {"mode": "retracting", "allowed_lateness": self.lateness}
        flow = flow.window(self.window, self.trigger, **options).combine(by=self.by, **combiners)
        if self.second:
            first = next(iter(combiners))
            later = flow.window("10 minutes", "each row", **options)
            flow = later.combine(
                by=self.by[:1], groups=uc.Count(), any=uc.Max("event_time"), values=uc.CountDistinct(first)
            )
        elif self.shown:
            flow = flow.select(*self.by, "window", *combiners, "event_time", "diff")
        return flow


def draw_spec(r: random.Random) -> Spec:
    names = r.sample(sorted(COMBINERS), r.randrange(1, 5))
    by = r.choice([("k",), ("k", "id"), ()])
    return Spec(
        combiners={name: name for name in names},
        window=r.choice(WINDOWS),
        trigger=r.choice(TRIGGERS),
        by=by,
        least=r.choice([None, 10]),
        second=r.random() < 0.3,
        shown=r.random() < 0.3,
    )


def changed(r: random.Random, spec: Spec) -> Spec:
    """The flow after one change."""
    own, others = list(spec.combiners.items()), [name for name in COMBINERS if name not in spec.combiners.values()]
    kinds: dict[str, Callable[[], Spec]] = {
        "add": lambda: replace(spec, combiners={**spec.combiners, f"new {others[0]}": r.choice(others)}),
        "remove": lambda: replace(spec, combiners=dict(r.sample(own, max(1, len(own) - 1)))),
        "rename": lambda: replace(spec, combiners={f"{own[0][0]}_": own[0][1], **dict(own[1:])}),
        "reorder": lambda: replace(spec, combiners=dict(r.sample(own, len(own)))),
        "trigger": lambda: replace(spec, trigger=r.choice(TRIGGERS)),
        "window": lambda: replace(spec, window=r.choice(WINDOWS)),
        "keys": lambda: replace(spec, by=r.choice([("k",), ("k", "id"), ()])),
        "filter": lambda: replace(spec, least=r.choice([None, 10, 25])),
        "function": lambda: replace(spec, doubled=not spec.doubled),
        "step": lambda: replace(spec, second=not spec.second),
        "select": lambda: replace(spec, shown=not spec.shown),
    }
    return kinds[r.choice(list(kinds))]()


def draw_script(r: random.Random, entries: int = 12) -> list[Any]:
    """Rows, some of them retracted later, and clocks; the watermark is that of the flows."""
    rows: list[dict[str, Any]] = []
    script: list[Any] = []
    now = START
    for _ in range(entries):
        now += r.choice([1, 20, 90]) * SECOND
        bundle = []
        for _ in range(r.randrange(4)):
            row = {"ts": now - r.randrange(100) * SECOND, "k": r.choice(["p", "q", None]), "id": r.randrange(3)}
            row |= {"x": r.choice([None, *range(50)]), "w": 1, "seen": now}
            if rows and r.random() < 0.3:
                row = {**rows.pop(r.randrange(len(rows))), "w": -1}
            else:
                rows.append(row)
            bundle.append(row)
        script.append(uc.Elements(pa.Table.from_pylist(bundle, SCHEMA), at=now) if bundle else uc.Clock(now))
    return [*script, uc.Watermark(None)]


def rows_before(script: list[Any]) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *(one.rows for one in script if isinstance(one, uc.Elements))])


def left(*parts: pa.Table, names: list[str]) -> Counter[str]:
    """The rows that are left of changelogs, in these columns, of which those that a part lacks are null."""
    rows: Counter[str] = Counter()
    for part in parts:
        for row in part.to_pylist():
            rows[repr([_plain(row.get(name)) for name in names])] += row["diff"]
    return Counter({row: count for row, count in rows.items() if count})


def _plain(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value


def columns(flow: uc.Flow) -> list[str]:
    return [name for name in flow.schema.names if name not in ("diff", "pane")]


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
    return Changed(first, change, after.run(script[cut:], start=change.seed))


def check_changed(before: uc.Flow, after: uc.Flow, script: list[Any], cut: int, folder: Path) -> Changed:
    found = run_changed(before, after, script, cut, folder)
    names = [name for name in columns(after) if name != "event_time"]  # that of a window of all time depends on timers
    own = found.before.panes
    there = [name for name in names if name in own.column_names]
    assert left(own.select([*there, "diff"]), found.after.panes, names=names) == left(
        after.run(script).panes, names=names
    ), str(found.change)
    return found


@pytest.mark.parametrize("seed", seeds(60, 5_000))
def test_a_changed_flow_leaves_what_it_would_have_left(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    spec = draw_spec(r)
    other = spec
    for _ in range(r.choice([1, 1, 2, 3])):
        other = changed(r, other)
    script = draw_script(r)
    check_changed(spec.flow, other.flow, script, r.randrange(1, len(script)), tmp_path)


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
    with pytest.raises(StateMismatch, match="1 windows of the changed flow have expired, with rows"):
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

"""Random scripts and options, a pair for each seed, and a way to make those that show a fault small."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.triggers import check_trigger, signals_of, walk
from uncombine.windows import Span

SECOND = 1_000_000
NOON = 1_453_291_200 * SECOND
SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "j": pa.int64(), "x": pa.int64(), "d": pa.int64()}
)
ROWS = uc.flow(SCHEMA)
"""The flow of signals until a transcript runs: then it is that of its rows."""


@dataclass(frozen=True)
class AtLeast:
    """A predicate for tables and for single rows."""

    name: str
    least: int

    def __call__(self, table: pa.Table) -> Any:
        return pc.fill_null(pc.greater_equal(table[self.name], self.least), False)

    def holds(self, row: dict[str, Any]) -> bool:
        return row[self.name] is not None and row[self.name] >= self.least


@dataclass(frozen=True, repr=False)
class Restless(uc.UserTrigger):
    """A user trigger with state, timers in both domains and demands on the contents."""

    every: int
    how: bool | None = None
    ends: int = 0

    def on_element(self, row: dict[str, Any], window: Any, ctx: Any) -> None:
        ctx.state["n"] = n = ctx.state.get("n", 0) + 1
        if n % self.every == 0:
            ctx.fire(clear=self.how)
            ctx.set_timer("e", min(ctx.watermark + 20 * SECOND, 2**62), "event")
        else:
            ctx.set_timer("p", ctx.processing_time + 10 * SECOND)
        if self.ends and n >= self.ends:
            ctx.finish()

    def on_merge(self, sources: list[Any], ctx: Any) -> None:
        ctx.state["n"] = sum(source.state.get("n", 0) for source in sources)
        for source in sources:
            for tag, (time, domain) in source.timers.items():
                ctx.set_timer(tag, time, domain)

    def on_timer(self, tag: str, time: int, ctx: Any) -> None:
        if tag == "p":
            ctx.fire(clear=False)
            ctx.delete_timer("e")
        else:
            ctx.fire()


@dataclass(frozen=True, repr=False)
class Watches(uc.UserTrigger):
    """A user trigger that looks at the result, and tells why it fires."""

    step: int

    def on_element(self, row: dict[str, Any], window: Any, ctx: Any) -> None:
        n = ctx.value("n")
        if n is None or n % self.step == 0:
            ctx.fire(tag="none" if n is None else "many")
        elif n % 2:
            ctx.set_timer("p", ctx.processing_time + 15 * SECOND)
        else:
            ctx.set_timer("e", min(ctx.watermark + 25 * SECOND, 2**62), "event")

    def on_merge(self, sources: list[Any], ctx: Any) -> None:
        n = ctx.value("n")
        if n is not None and n % 3 == 0 and any((source.value("n") or 0) > n / 2 for source in sources):
            ctx.fire(tag=f"of {'+'.join(str((s.window[1] - s.window[0]) // SECOND) for s in sources)}")
        for source in sources:
            for tag, (time, domain) in source.timers.items():
                ctx.set_timer(tag, time, domain)

    def on_timer(self, tag: str, time: int, ctx: Any) -> None:
        if (ctx.value("n") or 0) > 1:
            ctx.fire(clear=True if tag == "e" else None, tag=f"{tag} {ctx.value('n')}")


@dataclass(frozen=True, repr=False)
class Elects(uc.UserTrigger):
    """A composite that fires when enough children are ready, and shows when it was called."""

    children: tuple[uc.Trigger, ...]
    enough: int
    all_ready: bool = False
    starts_again: bool = True
    rests: bool = False
    impatient: bool = False
    ends: int = 0
    picks: str = "all"

    def on_start(self, ctx: Any) -> None:
        if self.ends:
            ctx.children[-1].active = False

    def on_element(self, row: dict[str, Any], window: Any, ctx: Any) -> None:
        ctx.state["n"] = n = ctx.state.get("n", 0) + 1
        if self.rests:
            ctx.children[-1].active = n % 3 != 0
        if self.impatient and n == 2:
            ctx.set_timer("p", ctx.processing_time + 20 * SECOND)

    def on_timer(self, tag: str, time: int, ctx: Any) -> None:
        ctx.children[0].reset()

    def on_children(self, ctx: Any) -> None:
        ctx.state["calls"] = calls = ctx.state.get("calls", 0) + 1
        wanting = {i for i, child in enumerate(ctx.children) if child.wants}
        ready = {*ctx.state.get("ready", []), *wanting}
        ctx.state["ready"] = sorted(ready)
        done = {i for i, child in enumerate(ctx.children) if child.finished}
        if ready and len(ready | done) >= min(self.enough, len(ctx.children)):
            ctx.fire(tag=f"{calls % 5}: {'+'.join(map(str, sorted(ready)))}")
            for i in ready if self.all_ready else ():
                ctx.children[i].fire()
        elif self.impatient and calls % 4 == 0:
            ctx.children[-1].reset()

    def on_fire(self, ctx: Any) -> None:
        ctx.state["ready"] = []
        ctx.state["fired"] = fired = ctx.state.get("fired", 0) + 1
        for child in ctx.children:
            if child.finished and self.starts_again:
                child.reset()
        if self.rests:
            ctx.children[0].active = fired % 2 == 0
        if self.ends and fired >= self.ends:
            ctx.finish()

    def on_merge(self, sources: list[Any], ctx: Any) -> None:
        ctx.state["n"] = sum(source.state.get("n", 0) for source in sources)
        ctx.state["ready"] = sorted({i for source in sources for i in source.state.get("ready", [])})
        if self.rests and len(sources) > 1:
            ctx.children[0].active = not ctx.children[0].finished
            ctx.children[-1].reset()
        if self.picks == "last":
            ctx.children[0].merge(sources[-1:])
            ctx.finished = sources[-1].finished and ctx.children[0].finished
        elif self.picks == "unfinished":
            for i, child in enumerate(ctx.children):
                child.merge([source for source in sources if not source.children[i].finished])
            ctx.finished = all(child.finished for child in ctx.children)
        elif self.picks == "started":
            ctx.children[-1].merge([source for source in sources if source.state.get("n")])
            ctx.children[-1].active = len(sources) > 1


def has_own(trigger: Any) -> bool:
    """True if a part of the trigger is a user's own."""
    return any(isinstance(part, uc.UserTrigger) for part in walk(trigger))


def halves(times: Any) -> Any:
    """Windows for Custom: half minutes."""
    start = times - times % (30 * SECOND)
    return None, start, start + 30 * SECOND


def pairs(code: Any, start: Any, end: Any) -> Any:
    """A merge for Custom: the half minutes of a minute become one."""
    return np.unique(np.stack([code, start // (60 * SECOND)]), axis=1, return_inverse=True)[1].ravel()


def transcripts(seed: int) -> tuple[list[Any], dict[str, Any]]:
    """The script and the options of a seed."""
    r = random.Random(seed)
    options = draw_options(r)
    return draw_script(r, options), options


def draw_window(r: random.Random, unit: int = 1) -> Any:
    """A window; lengths are multiples of so many microseconds."""
    return r.choice(
        [
            lambda: uc.Global(),
            lambda: uc.Fixed(r.choice(["1 minute", "2 minutes"]), r.choice(["0 seconds", "7 seconds"])),
            lambda: uc.Fixed("30 seconds"),
            lambda: uc.Sliding("2 minutes", r.choice(["1 minute", "45 seconds", "3 minutes"]), "5 seconds"),
            lambda: draw_uneven(r, unit),
            lambda: uc.Calendar(r.choice(["day", "week", "quarter"]), r.choice(["UTC", "Europe/Berlin"])),
            lambda: uc.Custom(halves, r.choice([None, pairs, "overlap"])),
            lambda: uc.Sessions(r.choice(["20 seconds", "1 minute"])),
            lambda: uc.Sessions(r.choice(["10 seconds", "30 seconds"])),
        ]
    )()


def draw_uneven(r: random.Random, unit: int) -> Any:
    """Sliding windows whose lengths have no divisor in common but the unit, as a rule; a row is in six at most."""
    size = r.randint(1, 180 * SECOND // unit)
    lengths = size, r.randint(-(-size // 5), 4 * size), r.randint(0, size)
    return uc.Sliding(*(uc.Span(unit * length) for length in lengths))


def signalled(seed: int) -> tuple[list[Any], dict[str, Any]]:
    """The script and the options of a seed, whose trigger waits for rows that are signals too (rule 102)."""
    r = random.Random(seed)
    options = draw_options(r, draw_signal)
    if not signals_of(options["trigger"] or uc.Always()):
        part, trigger = draw_signal(r), options["trigger"] or uc.AfterWatermark()
        options["trigger"] = uc.Repeatedly(r.choice([uc.FirstOf, uc.AllOf, uc.SequenceOf])(part, trigger))
    if options["watermark"] is not None and has_own(options["trigger"]):
        # In a batch with a watermark of its own, windows that got rows are asked about timers for which AllOf does not
        # wait any more, and the model asks only about those for which it does.
        options["watermark"] = None
    return draw_script(r, options), options


def draw_signal(r: random.Random) -> Any:
    return uc.OnSignal(ROWS, when=r.choice([AtLeast("x", 3), AtLeast("x", 7), AtLeast("j", 1), None]))


def draw_trigger(r: random.Random, depth: int, more: Callable[[random.Random], Any] | None = None) -> Any:
    """A trigger; `more` draws another leaf, which then comes as often as some others together."""

    def child() -> Any:
        return draw_trigger(r, depth - 1, more)

    def some() -> list[Any]:
        return [child() for _ in range(r.randint(1, 3))]

    leaves: list[Callable[[], Any]] = [
        lambda: uc.AfterWatermark(),
        lambda: uc.AfterWatermark(),
        lambda: uc.AfterCount(r.randint(1, 4)),
        lambda: uc.AfterCount(r.randint(1, 2)),
        lambda: uc.AfterBytes(r.choice([8, 16, 20]), of=["x"]),
        lambda: uc.AfterDelay(f"{r.choice([0, 5, 30])} seconds", r.choice(["processing", "event"])),
        lambda: uc.AtPeriod(
            f"{r.choice([10, 30, 60])} seconds",
            r.choice([None, NOON + 3 * SECOND]),
            r.choice(["processing", "event"]),
        ),
        lambda: uc.WatermarkPercentile(r.choice([50, 80, 100])),
        lambda: uc.OnPunctuation(AtLeast("x", 6)),
        lambda: uc.OnResult(AtLeast("n", r.choice([2, 3]))),
        lambda: r.choice([uc.Always(), uc.Never()]),
        lambda: Restless(r.randint(1, 3), r.choice([None, True, False]), r.choice([0, 0, 3])),
        lambda: Watches(r.randint(1, 3)),
    ]
    leaves += [] if more is None else 6 * [lambda: more(r)]
    composites: list[Callable[[], Any]] = [
        lambda: uc.AfterWatermark(
            early=child() if r.random() < 0.7 else None, late=child() if r.random() < 0.7 else None
        ),
        lambda: uc.FirstOf(*some()),
        lambda: uc.AllOf(*some()),
        lambda: uc.SequenceOf(*some()),
        lambda: uc.Repeatedly(child()),
        lambda: uc.RepeatUntil(child(), child()),
        lambda: uc.RepeatCount(child(), r.randint(1, 3)),
        lambda: Elects(
            tuple(some()),
            r.randint(1, 2),
            *(r.random() < 0.5 for _ in range(4)),
            ends=r.choice([0, 0, 1, 3]),
            picks=r.choice(["all", "last", "unfinished", "started"]),
        ),
    ]
    return r.choice(composites if depth and r.random() < 0.6 else leaves)()


def is_merging(window: Any) -> bool:
    return isinstance(window, uc.Sessions) or getattr(window, "merge_windows", None) is not None


def draw_options(r: random.Random, more: Callable[[random.Random], Any] | None = None) -> dict[str, Any]:
    splits = r.random() < 0.3  # several sessions of several keys, held for long, over a changelog
    window = uc.Sessions(r.choice(["10 seconds", "20 seconds", "30 seconds"])) if splits else draw_window(r)
    trigger = None if r.random() < 0.1 else draw_trigger(r, 3, more)
    if trigger is not None and r.random() < 0.5:
        trigger = uc.Repeatedly(trigger)
    merging = is_merging(window)
    changelog = splits or r.random() < 0.3
    modes = [
        "discarding",
        "accumulating",
        "retracting",
        "retracting",
        "discarding_by_default",
        "accumulating_by_default",
        "retracting_by_default",
    ]
    if changelog:  # rule 39
        modes = ["retracting"] if merging else ["retracting", "retracting", "discarding"]
    mode = r.choice(modes)
    if mode.endswith("_by_default") and r.random() < 0.5:
        trigger = uc.Repeatedly(uc.FirstOf(uc.Clearing(draw_trigger(r, 1, more)), trigger or uc.AfterWatermark()))
    lateness = r.choice([60, 300] if splits else [0, 0, 10, 60, 300])
    times = ["end_of_window", "end_of_window", "start_of_window", "watermark"]
    if not (changelog and isinstance(window, uc.Custom)):  # they keep no times of rows apart
        times += ["earliest", "latest"]
    options = {
        "window": window,
        "trigger": trigger,
        "mode": mode,
        "by": ["k"] if splits else r.choice([[], ["k"], ["k"], ["k", "j"]]),
        "diff": "d" if changelog else None,
        "allowed_lateness": f"{lateness} seconds",
        "on_time": r.choice(["always", "non_empty"]),
        "closing": r.choice(["non_empty", "non_empty", "always", "never"]),
        "only_updated": r.random() < 0.25,
        "eager_retractions": r.random() < 0.3,
        "late": r.choice(["drop", "drop", "duplicate"]),
        "granularity": r.choice(["bundle", "bundle", "record"]),
        "timestamp": r.choice(times),
        "idle_after": r.choice([None, None, None, "30 seconds"]),
        "watermark": "each_batch" if r.random() < 0.08 and not splits else None,
        "allow_finish": False,
    }
    if options["late"] == "duplicate" and (mode.startswith("retracting") or changelog):
        options["late"] = "drop"
    if options["mode"].startswith("discarding"):
        options["only_updated"] = False
    try:
        asked, each_batch = trigger or uc.Repeatedly(uc.AfterWatermark()), options["watermark"] is not None
        check_trigger(asked, window, Span(lateness * SECOND), True, False, each_batch)
    except InvalidArgument:
        options["allow_finish"] = True
    return options


def draw_script(r: random.Random, options: dict[str, Any]) -> list[Any]:
    """A few minutes around noon, with times that collide, gaps that just touch, and jumps of both clocks."""
    changelog, each_batch = options["diff"] is not None, options["watermark"] == "each_batch"
    sources = r.choice([[None], [None], ["a", "b"], ["a", "b", "c"]])
    clock, place = 0, r.choice([0, 30, 60])
    # Few keys and many times near each other, so that windows are bridged; bundles of one key each, so that a clock
    # moves past one of the windows of another.
    crowded = is_merging(options["window"]) and r.random() < 0.7
    keys, alone = r.choice(["a", "aab", "ab"]), r.random() < 0.7
    known: list[dict[str, Any]] = []
    script: list[Any] = []

    def row(key: str) -> dict[str, Any]:
        if changelog and known and r.random() < 0.4:
            return {**known.pop(r.randrange(len(known))), "d": -1}
        t = place + r.choice([0, 0, 1, 5, 10, 15, 20, 30, 59, 60, 61, -10, -30, -60, -120])
        if crowded:
            t = r.randrange(0, 150, 5)
        one = {
            "ts": NOON + t * SECOND + r.choice([0, 0, 0, -1]),
            "k": r.choice(["a", "a", "b", None]) if not crowded else key,
            "j": r.randrange(2) if not crowded else 0,
            "x": r.choice([None, *range(-2, 9)]),
            "d": 1,
        }
        if r.random() < 0.03:
            return {**one, "ts": r.choice([None, NOON + 2 * 86_400 * SECOND])}
        if changelog:
            known.append(one)
        return one

    def report() -> uc.Watermark:
        mark = place + r.choice([0, 0, 20, 60, 61, 180, -60])
        if crowded:
            mark = min(r.randrange(0, 170, 5), r.randrange(0, 170, 5))
        return uc.Watermark(NOON + mark * SECOND, r.choice(sources))

    for _ in range(r.randint(2, 20 if crowded else 12)):
        kind = r.random()
        if kind < 0.55 or (each_batch and kind < 0.8):
            place = max(0, place + r.choice([0, 10, 20, 45, 90, -20]))
            clock += r.choice([0, 1, 10, 30])
            at = NOON + clock * SECOND if r.random() < 0.6 else None
            only = r.choice(keys)
            rows = [row(only if alone else r.choice(keys)) for _ in range(r.choice([0, 1, 1, 1, 2, 3, 4, 7]))]
            reports = [] if each_batch else [report() for _ in range(r.choice([0, 0, 1, 2]))]
            script.append(uc.Elements(rows, at, reports))
        elif kind < 0.85:
            if not each_batch:
                at = NOON + clock * SECOND if r.random() < 0.2 else None
                script.append(replace(report(), at=at))
        else:
            clock += r.choice([1, 5, 10, 60, 600])
            script.append(uc.Clock(NOON + clock * SECOND))
    if not each_batch and r.random() < 0.5:
        script += [uc.Watermark(r.choice([NOON + 500 * SECOND, None]), source) for source in sources]
    return script


def sources_of(script: list[Any]) -> set[str | None]:
    """The sources that a script has watermark reports of."""
    marks = [entry for entry in script if isinstance(entry, uc.Watermark)]
    together = [report for entry in script if isinstance(entry, uc.Elements) for report in entry.watermarks]
    return {report.source for report in [*marks, *together]}


def shrink(script: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """The script with all entries, and rows of entries, left out without which it still fails."""
    smaller = True
    while smaller:
        smaller = False
        for at in reversed(range(len(script))):
            entry = script[at]
            tries = [[*script[:at], *script[at + 1 :]]]
            if isinstance(entry, uc.Elements):
                rows = list(entry.rows)
                fewer = [replace(entry, rows=[*rows[:i], *rows[i + 1 :]]) for i in range(len(rows))]
                if entry.watermarks:
                    fewer.append(replace(entry, watermarks=entry.watermarks[1:]))
                tries += [[*script[:at], one, *script[at + 1 :]] for one in fewer]
            found = next((one for one in tries if fails(one)), None)
            if found is not None:
                script, smaller = found, True
                break
    return script

"""Draws a random case for each seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import uncombine as uc
from reference.byrule.transcripts import draw_signal, draw_trigger, draw_window, has_own, is_merging
from uncombine.changelogs.flows import flow_of
from uncombine.errors import UncombineError
from uncombine.flows.settings import Settings
from uncombine.local.sources import LocalSource
from uncombine.panes.grouping.grouping import Grouping
from uncombine.triggers import signals_of
from uncombine.windows import Span

from .case import MARK, NOON, NOW, ORIGIN, SCHEMA, SECOND, Bundle, Case, Evens, Row, Stage, grouped

POLICIES = ("start_of_window", "earliest", "latest", "watermark")
LATENESS = (0, 0, 0, 10, 60, 300, 86_400)
MODES = (
    *("retracting", "retracting", "discarding", "accumulating"),
    *("accumulating_by_default", "discarding_by_default", "retracting_by_default"),
)
GAP = (uc.col("x") * 5).cast(pa.duration("s"))
NEAR = (0, 0, 1, 5, 10, 15, 20, 30, 59, 60, 61, -10, -30, -60, -120)


def of_x(times: np.ndarray, rows: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A window that begins with the row and lasts x times ten seconds; none if x is null or not above 0."""
    tens = np.asarray(rows["x"].fill_null(0))
    row = np.flatnonzero(tens > 0)
    return row, times[row], times[row] + tens[row] * 10 * SECOND


def draw(seed: int, signals: bool = False) -> Case:
    """The case of a seed; flows that the library refuses are drawn again.

    With `signals` the first trigger waits for rows of the source that are signals.
    """
    r = random.Random(seed)
    groupings = r.choice([1, 2, 2, 2, 3])
    while True:
        case = _flow(r, seed, groupings, signals)
        if signals and not signals_of(case.stages[0].options["trigger"] or uc.Always()):
            continue
        try:
            settled(case)
        except UncombineError:
            continue
        return _with_bundles(r, case)


def settled(case: Case) -> Any:
    """The flow over local rows; it may end, as a replay does."""
    settings = Settings("ts", case.strategy, replay=True, close_at_end=case.ends, **case.settings)
    return grouped(flow_of(LocalSource(SCHEMA, streaming=False), settings), case.stages)


def _flow(r: random.Random, seed: int, count: int, signals: bool) -> Case:
    idle = r.choice([None, "20 seconds", "20 seconds", "1 minute"])
    strategy = r.choice(
        [
            *[uc.Punctuated(MARK, ORIGIN, idle)] * 3,
            uc.Punctuated(MARK, ORIGIN, idle, for_all="*"),
            *[uc.Punctuated(MARK, ORIGIN, idle, sources=["a", r.choice("bd")], for_all=r.choice([None, "*"]))] * 2,
            uc.Punctuated(MARK),
            *[uc.PerSource(ORIGIN, f"{r.choice([0, 5, 20])} seconds", idle)] * 2,
            uc.BoundedLag(f"{r.choice([0, 10, 30])} seconds"),
            uc.Monotonic(),
            uc.IngressTime(),
            uc.PerSource(ORIGIN, "5 seconds", idle, sources=["a", "b"]),
            *[uc.ProcessingTime(f"{r.choice([0, 10, 60])} seconds")] * 2,
            Evens(idle),
            *[uc.EachBatch()] * 2,
        ]
    )
    changelog = r.random() < 0.35
    # Some of these options ask for one shard, so they are of some cases only.
    policies = POLICIES if r.random() < 0.4 else ("start_of_window", "watermark")
    by_row = r.random() < 0.3
    # The models look at a watermark that follows the clock at whole seconds, and a microsecond before them.
    unit = SECOND if isinstance(strategy, uc.ProcessingTime) else 1
    stages: list[Stage] = []
    carries = changelog
    for i in range(count):
        place = Place(i, i == count - 1, carries, policies, by_row, unit, signals and i == 0)
        stages.append(_stage(r, place, stages))
        carries = carries or stages[-1].options["mode"] in (None, "retracting")
    return Case(seed, tuple(stages), strategy, changelog, r.random() < 0.6, r.random() < 0.2)


@dataclass(frozen=True)
class Place:
    """The place of a grouping in its case, and the options that groupings of this case may have."""

    number: int
    last: bool
    carries: bool
    """True if its rows may be retractions."""
    policies: tuple[str, ...]
    by_row: bool
    """True if its trigger may see rows one by one."""
    unit: int
    """The lengths of windows are multiples of so many microseconds."""
    signals: bool
    """True if its trigger may wait for signals."""


def _stage(r: random.Random, place: Place, before: list[Stage]) -> Stage:
    last, carries = place.last, place.carries
    window = uc.Inherit() if before and r.random() < 0.2 else draw_window(r, place.unit)
    if r.random() < 0.25:
        window = uc.Sessions(r.choice(["10 seconds", "20 seconds", "45 seconds", GAP]))
    elif r.random() < 0.05:
        window = uc.Custom(of_x, r.choice([None, "overlap"]), columns=["x"])
    modes: tuple[Any, ...] = MODES if last else ("retracting", "discarding", None, None)
    if carries:
        modes = ("retracting", None) if is_merging(window) else ("retracting", None, "discarding")
    mode = r.choice(modes)
    known = ("k", "j") if place.number == 0 else (*before[-1].by, "g")
    trigger = None if r.random() < 0.15 else _trigger(r, place.by_row, place.signals)
    options: dict[str, Any] = {
        "trigger": trigger,
        "mode": mode,
        "on_time": r.choice(["always", "non_empty"]),
        "closing": r.choice(["non_empty", "non_empty", "non_empty", "always", "never"]),
        "only_updated": mode == "retracting" and r.random() < 0.3,
        "eager_retractions": r.random() < 0.3,
        "late": r.choice(["drop", "drop", "drop", "duplicate"] if last else ["drop"]),
        "granularity": r.choice(["bundle", "record"]) if place.by_row else "bundle",
        "timestamp": r.choice([None, None, None, *place.policies]),
    }
    if options["late"] == "duplicate" and (carries or mode in (None, "retracting", "retracting_by_default")):
        options["late"] = "drop"
    if place.number == 0 or r.random() < 0.3:
        options["allowed_lateness"] = f"{r.choice(LATENESS)} seconds"
    if place.number == 0 and r.random() < 0.2:
        options["max_future"] = "3 minutes"
    options["allow_finish"] = _finishes(trigger, window, options)
    splits = carries and is_merging(window)
    by = tuple(name for name in known if r.random() < (0.8 if splits else 0.5))
    most = mode not in ("discarding",) and r.random() < 0.8
    filtered, moved = r.random() < 0.15, r.random() < 0.15
    # Percentiles would be over the moved times of rows and over those of signals.
    return Stage(window, options, by, most, filtered, moved and not place.signals)


def _trigger(r: random.Random, by_row: bool, signals: bool) -> Any:
    """A tree of triggers; with those of users only where they may see rows one by one."""
    while True:
        trigger = draw_trigger(r, r.choice([0, 1, 2, 3]), draw_signal if signals else None)
        if by_row or not has_own(trigger):
            return uc.Repeatedly(trigger) if r.random() < 0.5 else trigger


def _finishes(trigger: Any, window: Any, options: dict[str, Any]) -> bool:
    """True if the grouping is refused unless it allows that its trigger finishes."""
    try:
        lateness = Span(int(uc.span(options.get("allowed_lateness", "0 seconds"))))
        Grouping({"n": uc.Count()}, window, trigger, allowed_lateness=lateness)
    except UncombineError:
        return True
    return False


def _with_bundles(r: random.Random, case: Case) -> Case:
    """Rows of few keys, near each other in time, in and out of order, some bad; marks of all sources; quiet time."""
    sources = r.choice([["a"], ["a", "b"], ["a", "b", "c"]])
    keys = r.choice(["a", "aab", "ab"])
    crowded = is_merging(case.stages[0].window) and r.random() < 0.7
    alone = r.random() < 0.5
    at, place = NOON, r.choice([0, 30, 60])
    heard = sources  # of a bundle: the others are silent
    known: list[Row] = []
    bundles: list[Bundle] = []

    def row() -> Row:
        if case.changelog and known and r.random() < 0.4:
            return {**known.pop(r.randrange(len(known))), "d": -1, MARK: None}
        t = r.randrange(0, 150, 5) if crowded else place + r.choice(NEAR)
        one: Row = {"ts": NOON + t * SECOND + r.choice([0, 0, 0, -1]), "k": r.choice([only, only, None])}
        if not alone:
            one["k"] = r.choice([*keys, None])
        one |= {"j": r.randrange(2), "x": r.choice([None, *range(-2, 9)]), "d": 1, MARK: None}
        one |= {NOW: None, ORIGIN: r.choice(heard)}
        if r.random() < 0.03:
            return {**one, "ts": r.choice([None, NOON + 2 * 86_400 * SECOND, NOON + 2_000 * SECOND])}
        if case.changelog:
            known.append(one)
        return one

    def mark() -> int:
        ahead = place + r.choice([0, 0, 20, 60, 61, 180, -60])
        if crowded:
            ahead = min(r.randrange(0, 170, 5), r.randrange(0, 170, 5))
        return NOON + ahead * SECOND

    punctuated = isinstance(case.strategy, uc.Punctuated)
    for_all = [] if case.strategy.for_all is None else [case.strategy.for_all]
    for _ in range(r.randint(3, 10 if len(case.stages) == 1 else 7)):
        at += r.choice([1, 1, 5, 10, 20, 20, 40, 60, 600]) * SECOND
        heard = r.sample(sources, r.randint(1, len(sources)))
        place = max(0, place + r.choice([0, 10, 20, 45, 90, -20]))
        only = r.choice(keys)
        rows = [row() for _ in range(r.choice([0, 1, 1, 1, 2, 3, 4, 7]))]
        if punctuated:
            rows += [_report(mark(), r.choice([*heard, *for_all])) for _ in range(r.choice([0, 0, 1, 2]))]
            if rows and r.random() < 0.2:
                rows[0][MARK] = mark()
            if not rows:
                rows = [_report(NOON - 10**9, heard[0])]
        bundles.append(Bundle(at, tuple(rows or [row()])))
    if r.random() < 0.5:  # most windows come to their end, and late rows may follow
        at += 60 * SECOND
        ends = [_report(NOON + 3_600 * SECOND, source) for source in sources]
        rows = ends if punctuated else [{**row(), "ts": NOON + 3_600 * SECOND, ORIGIN: name} for name in sources]
        bundles += [Bundle(at, tuple(rows)), Bundle(at + SECOND, (row(),))]
    return Case(**{**vars(case), "bundles": tuple(bundles)})


def _report(mark: int, source: str | None) -> Row:
    """A row that carries only a watermark report."""
    return {**dict.fromkeys(SCHEMA.names), "d": 1, MARK: mark, ORIGIN: source}


def table(bundles: Any) -> pa.Table:
    """The rows of some bundles."""
    return pa.concat_tables([SCHEMA.empty_table(), *(bundle.table for bundle in bundles)])

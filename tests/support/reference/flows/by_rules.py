"""Cases by the model of the rules: the chain of groupings, its sources and its timers, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uncombine as uc
from reference.byrule import model as byrule
from reference.byrule.agree import count, highest, total
from reference.byrule.emitting import expiry
from reference.byrule.options import Options
from reference.byrule.runner import Sources
from reference.byrule.times import FIRST_YEAR, LAST_YEAR, MAX_TIME, MIN_TIME, plus
from uncombine.panes import Grouping
from uncombine.panes.watermarks.watermark_strategies import WatermarkStrategy

from .case import BACK, MARK, NOW, ORIGIN, SECOND, Case, Evens, Row, prepared

AGGREGATES = {"n": count, "x": total, "hi": highest}
COUNTS = ("dropped", "finished", "unassigned", "bad")
OF_A_REPORT = (NOW, MARK)
"""The columns in which a row and its retraction differ: what they say of processing time and the watermark."""
_FAR = 2**62


class ByRule:
    """A grouping by the model that is read off the rules."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.inner = byrule.Operator(Options(**options))

    @property
    def output_watermark(self) -> int:
        return self.inner.output_watermark

    def step(
        self,
        rows: list[Row],
        now: int,
        watermark: int,
        percentile: Callable[[float], int],
        whole: bool = False,
        among: list[Row] | None = None,
    ) -> list[Row]:
        """The rows that a step gives; `whole` if the watermark runs to the end of time in this bundle (rule 12).

        `among` has the rows among which signals are, if they are not those of the step.
        """
        return [_plain(row) for row in self.inner.step(rows, now, watermark, percentile, whole, among)]

    def next_timer(self) -> int:
        """The next processing time at which something is due."""
        return self.inner.next_timer()

    def waits_for(self, watermark: int) -> bool:
        """True if a window fires, or expires, when the watermark gets there."""
        inner = self.inner
        before, inner.percentile = inner.percentile, lambda percent: watermark
        nows = [(live, inner.now(live, "watermark", watermark)) for live in inner.lives()]
        found = any(live.trigger.due("event", now) or expiry(inner.options, live) <= watermark for live, now in nows)
        inner.percentile = before
        return found

    def numbers(self) -> dict[str, int]:
        """The counts, and in `held` the number of windows."""
        return {name: getattr(self.inner, name) for name in COUNTS} | {
            "unreadable": 0,  # rows of files alone
            "held": len(self.inner.lives()),
        }

    def left_out(self) -> list[tuple[str, Row]]:
        """The rows without a result, each with the reason."""
        return self.inner.left_out


def options_of(grouping: Grouping, first: bool) -> dict[str, Any]:
    """The options of a grouping for a model, over rows that are renamed as those of the source."""
    names = ("window", "mode", "on_time", "closing", "only_updated", "eager_retractions", "late", "granularity")
    future = _FAR if grouping.max_future is None else int(grouping.max_future)
    return {name: getattr(grouping, name) for name in (*names, "by", "allow_finish")} | {
        "aggregates": {name: AGGREGATES[name] for name in grouping.combiners},
        "trigger": grouping.effective_trigger,
        "diff": "d" if grouping.changelog else None,
        "allowed_lateness": int(grouping.allowed_lateness),
        "timestamp": grouping.policy,
        "max_future": future if first else _FAR,
    }


@dataclass
class Played:
    """One step: its processing time, its rows and the output watermark after it."""

    at: int
    rows: list[Row]
    output_watermark: int


class Grouped:
    """One grouping of a chain, with the watermarks of its sources and the loop that waits for timers (rule 10, D3)."""

    def __init__(self, inner: ByRule, sources: Sources, back: int) -> None:
        self.inner, self.sources, self.back = inner, sources, back
        self.now = MIN_TIME

    def take(
        self,
        at: int,
        rows: list[Row],
        reports: Iterable[tuple[str | None, int | None]],
        whole: bool = False,
        among: list[Row] | None = None,
    ) -> list[Played]:
        out = list[Played]()
        while (timer := self._next(at)) <= at and timer < MAX_TIME:
            if self.sources.clock_lag is not None and timer > self.now:
                self.now = timer - 1  # rule 10: a timer knows the watermark of the microsecond before it
                out.append(self._step([]))
            self.now = max(self.now, timer)
            out.append(self._step([]))
        self.now = at
        if self.sources.clock_lag is not None:
            out.append(self._step([]))  # rule 10: the watermark of processing time moves before the rows come
        for source, time in reports:
            known = MIN_TIME if time is None else time if time == MAX_TIME else max(time - self.back, MIN_TIME)
            self.sources.move(source, known, at)
        return [*out, self._step(rows, whole and bool(rows or among), among)]

    def _next(self, at: int) -> int:
        timer = min(self.inner.next_timer(), self.sources.next_idle())
        lag = self.sources.clock_lag
        if lag is None or self.now == MIN_TIME:
            return timer
        # Every deadline is a whole second, or a microsecond before one, or was passed already as it came to be.
        until = min(timer, at)
        whole = range(self.now - self.now % SECOND, until + 1, SECOND)
        near = [self.now + 1, *(instant for second in whole for instant in (second - 1, second))]
        waits = (instant for instant in near if self.now < instant <= until and self.inner.waits_for(instant - lag))
        return next(waits, timer)

    def close(self, rows: list[Row]) -> list[Played]:
        given = self.inner.step(rows, self.now, MAX_TIME, lambda percent: MAX_TIME, among=[])
        return [Played(self.now, given, self.inner.output_watermark)]

    def _step(self, rows: list[Row], whole: bool = False, among: list[Row] | None = None) -> Played:
        self.sources.now = self.now
        given = self.inner.step(rows, self.now, self.sources.least(), self.sources.frozen(), whole, among)
        return Played(self.now, given, self.inner.output_watermark)


@dataclass
class Outcome:
    """The rows of each grouping by bundle, and the counts of each before the end and after it."""

    rows: list[list[list[Row]]]
    counts: list[dict[str, int]] = field(default_factory=list)
    counts_before_the_end: list[dict[str, int]] = field(default_factory=list)
    left_out: list[list[tuple[str, Row]]] = field(default_factory=list)
    """The rows that each grouping left out, with the reasons."""
    left_out_before_the_end: list[int] = field(default_factory=list)
    """The number of them for each grouping before the end."""
    output_watermarks: list[int] = field(default_factory=list)


def run(case: Case, groupings: Sequence[Grouping]) -> Outcome:
    """All groupings of a case, each over what the one before it gives."""
    backs = [BACK if stage.moved else 0 for stage in case.stages]
    sources = [sources_of(case.strategy, backs[0]), *(Sources(None) for _ in groupings[1:])]
    chain = [Grouped(ByRule(options_of(g, i == 0)), sources[i], backs[i]) for i, g in enumerate(groupings)]
    out = Outcome([[] for _ in chain])
    for bundle in case.bundles:
        rows = [dict(row) for row in bundle.rows]
        reports = list(reports_of(case, rows, bundle.at, groupings[0]))
        whole = isinstance(case.strategy, uc.EachBatch)
        given = data(case, rows, bundle.at)
        played = chain[0].take(bundle.at, prepared(case.stages[0], given, True), reports, whole, given)
        out.rows[0].append(_rows(played))
        for i, grouped in enumerate(chain[1:], 1):
            given, played = played, []
            for at in sorted({done.at for done in given}):
                some = [done for done in given if done.at == at]
                rows = prepared(case.stages[i], passed_on(_rows(some)), False)
                reports = [(None, done.output_watermark) for done in some]
                played += grouped.take(at, rows, reports, whole)  # also those of a timer are a bundle
            out.rows[i].append(_rows(played))
        out.output_watermarks.append(chain[-1].inner.output_watermark)
    out.counts_before_the_end = [grouped.inner.numbers() for grouped in chain]
    out.left_out_before_the_end = [len(grouped.inner.left_out()) for grouped in chain]
    if case.ends:
        played = []
        for i, grouped in enumerate(chain):
            played = grouped.close(prepared(case.stages[i], passed_on(_rows(played)), False) if i else [])
            out.rows[i].append(_rows(played))
        out.output_watermarks.append(chain[-1].inner.output_watermark)
    out.counts = [grouped.inner.numbers() for grouped in chain]
    out.left_out = [grouped.inner.left_out() for grouped in chain]
    return out


def sources_of(strategy: WatermarkStrategy, back: int) -> Sources:
    """The sources of a strategy before any report."""
    declared = getattr(strategy, "sources", None) or ()
    for_all = strategy.for_all if isinstance(strategy, uc.Punctuated) else None
    lag = int(uc.span(strategy.lag)) + back if isinstance(strategy, uc.ProcessingTime) else None
    return Sources(None if strategy.idle is None else int(strategy.idle), declared, for_all, lag)


def data(case: Case, rows: Sequence[Row], at: int) -> list[Row]:
    """The rows that reach the first grouping, which are not those that carry only a report; a row and its retraction
    are the same but for their weights."""
    ingress = isinstance(case.strategy, uc.IngressTime)
    only_reports = isinstance(case.strategy, uc.Punctuated)
    kept = [row for row in rows if not (only_reports and row["ts"] is None and row[MARK] is not None)]
    own = [{name: value for name, value in row.items() if name not in OF_A_REPORT} for row in kept]
    return [{**row, "ts": at if ingress else row["ts"]} for row in own]


def reports_of(case: Case, rows: Sequence[Row], at: int, grouping: Grouping) -> Iterable[tuple[str | None, int | None]]:
    """The watermark reports of rows of one processing time."""
    strategy = case.strategy
    for row in rows:
        t, source = row["ts"], None
        if t is not None and grouping.max_future is not None and t > plus(at, int(grouping.max_future)):
            t = None
        match strategy:
            case uc.Punctuated():
                t, source = row[MARK], None if strategy.source is None else row[strategy.source]
            case uc.PerSource():
                t, source = None if t is None else t - int(uc.span(strategy.lag)), row[ORIGIN]
            case uc.BoundedLag():
                t = None if t is None else t - int(uc.span(strategy.lag))
            case uc.IngressTime():
                t = at
            case uc.ProcessingTime() | uc.EachBatch():
                t = None
            case Evens():
                t = t if t is not None and row["j"] == 0 else None
                source = "even" if (row["x"] or 0) % 2 == 0 else "odd"
        if source is not None or t is not None:
            yield source, t


def passed_on(rows: Sequence[Row]) -> list[Row]:
    """Panes as rows of the next grouping, with the names of a source's rows."""
    out = []
    for row in rows:
        bare = {name: value for name, value in row.items() if name not in ("event_time", "diff", "pane", "window")}
        start, end = row["window"]
        window = None if (start, end) == (MIN_TIME, MAX_TIME) else {"start": start, "end": end}
        out.append({**bare, "window": window, "ts": row["event_time"], "d": row["diff"]})
    return out


def _rows(played: Sequence[Played]) -> list[Row]:
    return [row for done in played for row in done.rows]


def _plain(row: Row) -> Row:
    """A row with its window as a pair, and times as they can be shown."""
    pane = dict(row["pane"])
    for name in ("watermark", "processing_time"):
        pane[name] = pane[name] if pane[name] is not None and FIRST_YEAR <= pane[name] <= LAST_YEAR else None
    window = (MIN_TIME, MAX_TIME) if row["window"] is None else row["window"]
    clipped = min(max(row["event_time"], FIRST_YEAR), LAST_YEAR)
    return {**row, "window": window, "event_time": clipped, "pane": pane}

"""One step after the other (rules 5, 6, 9 and 11 to 16)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import uncombine as uc
from uncombine.triggers import walk

from . import changelog
from .emitting import expiry, fire, furthest, has_value, hold, results, retraction, shown
from .leaves import Now, Row, holds
from .options import Datum, Key, Live, Options, new_window, order
from .times import MAX_TIME, MIN_TIME, micros, plus
from .windows import Window, assign, components, hull, merges


@dataclass
class Arrival:
    """A good row with its windows, which may be none."""

    place: int
    key: Key
    datum: Datum
    windows: list[Window]


@dataclass
class Operator:
    options: Options
    windows: dict[Key, dict[Window, Live]] = field(default_factory=dict)
    changelog: dict[Key, list[Datum]] = field(default_factory=dict)  # rule 40
    clock: int = MIN_TIME
    watermark: int = MIN_TIME  # rule 7
    output_watermark: int = MIN_TIME
    percentile: Callable[[float], int] = lambda percent: MIN_TIME

    @cached_property
    def percents(self) -> list[float]:
        """The percents for which the trigger waits."""
        return [part.percent for part in walk(self.options.trigger) if isinstance(part, uc.WatermarkPercentile)]

    signals: list[Any] = field(default_factory=list)
    """rule 102: the parts of the trigger for which a signal has come, while windows are asked about them."""

    @property
    def lowest(self) -> float | None:
        """The least percent for which the trigger waits (rule 21)."""
        return min(self.percents, default=None)

    dropped: int = 0
    finished: int = 0
    unassigned: int = 0
    bad: int = 0
    dropped_places: list[int] = field(default_factory=list)
    left_out: list[tuple[str, Row]] = field(default_factory=list)
    late_at: list[int] = field(default_factory=list)
    """rule 66: the rows without a result, each once for each reason in a step."""
    _left: set[tuple[str, int]] = field(default_factory=set)

    def step(
        self,
        rows: list[Row],
        clock: int,
        watermark: int,
        percentile: Callable[[float], int],
        each_batch: bool = False,
        source: list[Row] | None = None,
    ) -> list[Row]:
        """rule 13: one step, with what it emits; signals are among the rows of the source, or among those rows."""
        self.dropped_places, self._left = [], set()
        out: list[Row] = []
        if each_batch or all(self.percentile(percent) == MIN_TIME for percent in self.percents):
            for live in self.lives():
                live.trigger.again()  # rule 12: in a bundle, and at the end, percentiles run from the beginning of time
        # 13 a.
        touched: set[int] = set()
        self.clock = max(self.clock, clock)
        for live in self.lives():
            if live.trigger.due("processing", self.now(live, "processing")):
                touched |= set() if each_batch else {id(live)}
                out += self.ask(live, "processing", self.watermark)
        # 13 b and c.
        known = {(live.key, live.window) for live in self.lives()}
        for round_ in self.rounds(self.good(rows)):
            retractions, got, duplicates = self.incorporate(round_)
            out += duplicates + retractions  # D2
            for live, come in got:
                out += self.ask(live, "rows", self.watermark, come)
            touched |= {id(live) for live, _ in got}
        # rule 102.
        self.signals = self.told(rows if source is None else source)
        if self.signals:
            for live in self.lives():
                touched |= set() if each_batch else {id(live)}
                out += [] if live.trigger.finished else self.ask(live, "signal", self.watermark)
        self.signals = []
        # 13 d.
        percentile_before = self.percentile
        reached = MAX_TIME if each_batch else max(self.watermark, watermark)  # rules 12, 7
        self.percentile = (lambda percent: MAX_TIME) if each_batch else percentile
        advances = reached > self.watermark or any(percentile(p) > percentile_before(p) for p in self.percents)
        for live in self.lives():
            if each_batch and id(live) not in touched:
                continue  # rule 12: windows fire in a bundle iff they got rows in it
            if not advances and id(live) not in touched and (live.key, live.window) in known:
                continue  # rule 13 d
            if live.trigger.due("event", self.now(live, "watermark", reached)):
                out += self.ask(live, "watermark", reached, expires=not each_batch)
        # 13 e.
        if each_batch:
            self.percentile = percentile_before  # rule 12: windows do not expire by it
        else:
            self.watermark = reached
            out += self.expire()
        # rule 37.
        least = min((hold(self.options, live, self.output_watermark) for live in self.lives()), default=MAX_TIME)
        limit = furthest(self.options, self.watermark)
        if not each_batch:
            self.output_watermark = max(self.output_watermark, min(limit, least))
        return out

    def lives(self) -> list[Live]:
        """All windows in the state, in the order of rule 16."""
        return sorted(
            (live for of_key in self.windows.values() for live in of_key.values()),
            key=lambda live: live.order,
        )

    def next_timer(self) -> int:
        """The next instant of processing time at which something is due; the end of time if nothing is."""
        return min((at for live in self.lives() if (at := live.trigger.deadline()) is not None), default=MAX_TIME)

    # -- asking one window

    def now(self, live: Live, phase: str, watermark: int | None = None) -> Now:
        seen = self.watermark if watermark is None else watermark

        def result() -> Row | None:
            return results(self.options, live.contents) if has_value(self.options, live) else None

        return Now(
            phase,
            live.start,
            live.end,
            self.clock,
            seen,
            self.percentile,
            result,
            self.lowest,
            self.signals,
        )

    def ask(
        self,
        live: Live,
        phase: str,
        watermark: int,
        rows: list[Datum] | None = None,
        expires: bool = True,
    ) -> list[Row]:
        """rule 15: once; the trigger takes note, and fires if it would."""
        now = self.now(live, phase, watermark)
        if rows:
            live.trigger.rows([datum.row for datum in rows], now)
        live.trigger.look(now)
        out: list[Row] = []
        if live.trigger.ready(now):
            asked = live.trigger.fire(now)
            live.trigger.close(now)
            out = self.fired(live, phase, watermark, asked, expires)
        live.trigger.close(now)
        return out

    def fired(
        self, live: Live, phase: str, watermark: int, asked: Sequence[str] = (), expires: bool = True
    ) -> list[Row]:
        """rule 21: panes also tell the greatest percentile of the trigger that has reached the end of the window."""
        reached = max((p for p in self.percents if max(self.percentile(p), watermark) >= live.end), default=None)
        floor = self.output_watermark
        return fire(self.options, live, phase, watermark, self.clock, list(asked), floor, reached, expires)

    # -- taking rows in

    def told(self, rows: list[Row]) -> list[Any]:
        """rule 102: the parts of the trigger that have a signal among the rows, which are rows of its flow too."""
        found: list[Any] = []
        for place, row in enumerate(rows):
            weight = 1 if self.options.diff is None else int(row[self.options.diff])
            parts = [part for part in walk(self.options.trigger) if isinstance(part, uc.OnSignal)]
            parts = [part for part in parts if weight > 0 and (part.when is None or holds(part.when, row))]
            if parts and self.is_bad(row):
                self.bad += 1  # rule 11: a bad row of its own
                self.leave("bad", len(rows) + place, row)
            elif parts:
                found += parts
        return found

    def is_bad(self, row: Row) -> bool:
        """rule 11."""
        if row[self.options.time] is None:
            return True
        t = micros(row[self.options.time])
        return self.clock != MIN_TIME and t > plus(self.clock, self.options.max_future)

    def good(self, rows: list[Row]) -> list[Arrival]:
        """The rows that are not bad."""
        found: list[Arrival] = []
        for place, row in enumerate(rows):
            if self.is_bad(row):
                self.bad += 1
                self.leave("bad", place, row)
                continue
            t = micros(row[self.options.time])
            windows = assign(self.options.window, t, row)
            self.unassigned += not windows  # rule 3
            if not windows:
                self.leave("unassigned", place, row)
            key = tuple(row[name] for name in self.options.by)
            weight = 1 if self.options.diff is None else int(row[self.options.diff])  # rule 38
            found.append(Arrival(place, key, Datum(row, t, weight, t >= self.output_watermark), windows))
        return found

    def rounds(self, arrivals: list[Arrival]) -> list[list[Arrival]]:
        """rule 14: the r-th row of every key, in event time, then input order, is of round r."""
        if self.options.granularity == "bundle":
            return [arrivals]
        rounds: list[list[Arrival]] = []
        seen: dict[Key, int] = {}
        for arrival in sorted(arrivals, key=lambda arrival: (arrival.datum.t, arrival.place)):
            r = seen[arrival.key] = seen.get(arrival.key, -1) + 1
            if r == len(rounds):
                rounds.append([])
            rounds[r].append(arrival)
        return rounds

    def incorporate(self, arrivals: list[Arrival]) -> tuple[list[Row], list[tuple[Live, list[Datum]]], list[Row]]:
        """13 b: panes to retract at once, the windows that got rows with them, and the panes of late="duplicate"."""
        retractions: list[Row] = []
        got: list[tuple[Live, list[Datum]]] = []
        duplicates: list[Row] = []
        for key in dict.fromkeys(arrival.key for arrival in arrivals):
            mine = [arrival for arrival in arrivals if arrival.key == key]
            opened = [window for arrival in mine for window in arrival.windows]
            lives = self.windows.setdefault(key, {})
            if not merges(self.options.window):
                groups = [[window] for window in sorted(set(opened))]
            else:
                groups = components(self.options.window, [*lives, *opened])
            kept: list[Arrival] = []
            if changelog.applies(self.options):
                groups, kept = [], self.in_time(key, [arrival for arrival in mine if arrival.windows])
            for group in groups:
                came = [arrival for arrival in mine if any(window in group for window in arrival.windows)]
                if not came:
                    continue
                merged = hull(group)
                if self.watermark >= plus(merged[1], self.options.allowed_lateness):
                    duplicates += self.too_late(key, merged, came)  # rule 9
                    continue
                sources = [lives[window] for window in group if window in lives]
                live = self.merge(key, merged, sources)
                for source in sources:
                    del lives[source.window]
                lives[merged] = live
                if live.trigger.finished:
                    self.finish(came)
                    continue
                if self.options.eager_retractions:
                    retractions += self.retract(live)
                live.contents += [arrival.datum for arrival in came]
                live.reach = max(live.reach, *(arrival.datum.t for arrival in came))
                live.fresh = True
                got.append((live, [arrival.datum for arrival in came]))
            if kept and (kept := self.not_finished(key, lives, kept)):
                got += self.reshuffle(key, [arrival.datum for arrival in kept], retractions)
            if not self.windows[key]:
                del self.windows[key]
        retractions.sort(key=self.order)
        return retractions, sorted(got, key=lambda pair: pair[0].order), sorted(duplicates, key=self.order)

    def not_finished(self, key: Key, lives: dict[Window, Live], arrivals: list[Arrival]) -> list[Arrival]:
        """rule 26 over a changelog: judged by the window that the rows make with all that they meet (D16)."""
        kept: list[Arrival] = []
        opened = [window for arrival in arrivals for window in arrival.windows]
        for group in components(self.options.window, [*lives, *opened]):
            came = [arrival for arrival in arrivals if any(window in group for window in arrival.windows)]
            if came and self.merge(key, hull(group), [lives[w] for w in group if w in lives]).trigger.finished:
                self.finish(came)
            else:
                kept += came
        return sorted(kept, key=lambda arrival: arrival.place)

    def order(self, row: Row) -> Any:
        """rule 16: where an output row stands among those of its phase."""
        return order(tuple(row[name] for name in self.options.by), row["window"] or (MIN_TIME, MAX_TIME))

    def finish(self, came: list[Arrival]) -> None:
        """rule 26: rows whose window's trigger has finished."""
        self.finished += len(came)
        for arrival in came:
            self.leave("finished", arrival.place, arrival.datum.row)

    def leave(self, why: str, place: int, row: Row) -> None:
        """rule 66: a row is left out once for each reason, of however many windows."""
        if (why, place) not in self._left:
            self._left.add((why, place))
            self.left_out.append((why, row))
            if why == "late":
                self.late_at.append(self.watermark)

    def in_time(self, key: Key, arrivals: list[Arrival]) -> list[Arrival]:
        """rule 9 over a changelog: judged by the windows that rows open, which are there or have not expired (D16)."""
        there = changelog.there(self.options, self.changelog.get(key, []))
        kept: list[Arrival] = []
        for arrival in arrivals:
            (opened,) = arrival.windows
            if opened in there or plus(opened[1], self.options.allowed_lateness) > self.watermark:
                kept.append(arrival)
            else:
                self.too_late(key, opened, [arrival])
        return kept

    def merge(self, key: Key, window: Window, sources: list[Live]) -> Live:
        """rule 6: the window that takes over from its sources; itself, if it is one that grew no further."""
        if len(sources) == 1 and sources[0].window == window:
            return sources[0]
        sources = sorted(sources, key=lambda source: source.window)
        live = new_window(key, window, self.watermark, self.options.trigger)
        live.trigger.start(self.now(live, "rows"))
        same = next((source for source in sources if source.window == window), None)
        if same is not None:
            live.born, live.index, live.not_early, live.last = (
                same.born,
                same.index,
                same.not_early,
                same.last,
            )  # D6
        if sources:
            live.contents = [datum for source in sources for datum in source.contents]
            live.reach = max(source.reach for source in sources)
            live.fresh = any(source.fresh for source in sources)
            live.outstanding = [row for source in sources for row in source.outstanding]
            live.trigger.merged([source.trigger for source in sources], self.now(live, "rows"))
        return live

    def reshuffle(self, key: Key, came: list[Datum], retractions: list[Row]) -> list[tuple[Live, list[Datum]]]:
        """rule 40: the sessions of a key over a changelog, computed again."""
        old = self.windows[key]
        data = self.changelog[key] = changelog.consolidated(self.options, [*self.changelog.get(key, []), *came])
        change = changelog.Reshuffle(self.options, key, old, data)
        lives: dict[Window, Live] = {}
        for window in [*change.new, *change.empty]:
            live = self.merge(key, window, change.sources(window))
            live.outstanding = change.outstanding(window) if window in change.new else live.outstanding
            lives[window] = live
        got: list[tuple[Live, list[Datum]]] = []
        for window, live in lives.items():
            heard = [datum for datum in came if window in change.told(changelog.opened(self.options, datum))]
            live.contents = [d for d in data if changelog.inside(changelog.opened(self.options, d), window)]
            live.reach = max((datum.t for datum in live.contents), default=MIN_TIME)
            live.fresh = live.fresh or bool(heard) or window not in old
            if heard:
                got.append((live, heard))
            if self.options.eager_retractions:
                retractions += self.retract(live)
        self.windows[key] = lives
        return got

    def retract(self, live: Live) -> list[Row]:
        """rule 33: eager retractions of windows that stop to exist."""
        gone = [row for row in live.outstanding if row["window"] != shown(live)]
        live.outstanding = [row for row in live.outstanding if row["window"] == shown(live)]
        return [retraction(row) for row in gone]

    def too_late(self, key: Key, window: Window, came: list[Arrival]) -> list[Row]:
        """rule 9."""
        self.dropped += len(came)
        if self.options.late != "duplicate":
            for arrival in came:
                self.leave("late", arrival.place, arrival.datum.row)
        self.dropped_places += [arrival.place for arrival in came]
        if self.options.late != "duplicate":
            return []
        live = new_window(key, window, self.watermark, self.options.trigger)
        live.contents, live.fresh = [arrival.datum for arrival in came], True
        live.reach = max(datum.t for datum in live.contents)
        return self.fired(live, "late", self.watermark)

    def expire(self) -> list[Row]:
        """13 e, rules 8 and 31."""
        out: list[Row] = []
        for live in self.lives():
            if self.watermark >= expiry(self.options, live):
                if self.options.closing != "never":
                    out += self.fired(live, "expiry", self.watermark)
                del self.windows[live.key][live.window]
                if not self.windows[live.key]:
                    del self.windows[live.key]
        for key, data in list(self.changelog.items()):
            opened = partial(changelog.opened, self.options)
            self.changelog[key] = [datum for datum in data if self.may_be_shown(key, opened(datum))]
            if not self.changelog[key]:
                del self.changelog[key]
        return out

    def may_be_shown(self, key: Key, opened: Window) -> bool:
        """True if a row that opened this window is in a window that is there, or could still be (rule 9)."""
        there = any(changelog.inside(opened, window) for window in self.windows.get(key, {}))
        return there or plus(opened[1], self.options.allowed_lateness) > self.watermark

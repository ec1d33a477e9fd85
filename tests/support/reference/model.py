"""A grouping operator that anyone can follow: one window at a time, one row at a time.

Numbers in the comments are those of the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import uncombine as uc
from uncombine.triggers.language import walk

from .composite_model import node
from .pane_model import Emission, greatest, least, place, sortable
from .split_model import Splitting
from .state_model import Key, Live, Options, Result, Row, Sources, Span
from .trigger_model import MAX_TIME, MIN_TIME
from .windows_model import first_start, united, windows_of


def run(script: Sequence[Any], **options: Any) -> Result:
    """The panes by the rules for a script of ("elements", rows, at), ("watermark", t, source), ("clock", t)."""
    model = _Model(Options(**options))
    for step, entry in enumerate(script):
        model.entry(step, entry)
    return Result(
        model.out,
        model.dropped,
        model.finished,
        model.unassigned,
        model.bad,
        model.output_watermarks,
        len(model.live),
    )


class _Model(Emission):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.trigger = options.trigger or uc.Repeatedly(uc.AfterWatermark())  # 17
        self.sources = Sources()
        asked = [part for part in walk(self.trigger) if isinstance(part, uc.WatermarkPercentile)]
        self.percents = {float(part.percent) for part in asked}
        self.output_watermarks: list[int] = []
        self.dropped = self.finished = self.unassigned = self.bad = 0
        splits = self.o.diff is not None and isinstance(self.o.window, uc.Sessions)
        self.splitting = Splitting(self.o) if splits else None

    # Entries of the script, and the deadlines on the way.

    def entry(self, number: int, entry: Any) -> None:
        self.step_number = number
        kind = entry[0]
        to = entry[2] if kind == "elements" else entry[1] if kind == "clock" else None
        if to is not None:
            self.wait_until(to)
        if kind != "clock":
            self.sources.move([entry[1:]] if kind == "watermark" else entry[3])
        self.step(entry[1] if kind == "elements" else [])
        self.output_watermarks.append(self.output_watermark)

    def wait_until(self, to: int) -> None:
        served = MIN_TIME - 1
        while True:
            due = [d for w in self.live.values() if not w.trigger.finished for d in w.trigger.deadlines("processing")]
            due = [d for d in due if served < max(d, self.clock) <= to]
            if not due:
                break
            self.clock = served = max(self.clock, min(due))
            self.step([])
        self.clock = max(self.clock, to)

    # One step: 13.

    def step(self, rows: list[Row]) -> None:
        self.touched: list[Live] = []
        self.phase_timers()
        good, known = self.good(rows), set(self.live)
        for part in self.rounds(good):
            self.phase_rows(part)
        before = [self.watermark, *self.percentiles.values()]
        self.watermark = max(self.watermark, self.sources.least)
        for percent in self.percents:
            reached = self.sources.percentile(percent)
            self.percentiles[percent] = max(reached, self.percentiles.get(percent, MIN_TIME))
        self.phase_watermark(known, before != [self.watermark, *self.percentiles.values()])
        self.phase_expiry()
        self.hold()

    def good(self, rows: list[Row]) -> list[Row]:
        """11."""
        good = []
        for row in rows:
            t = row[self.o.time]
            if t is None or (self.clock != MIN_TIME and t > self.clock + self.o.max_future):
                self.bad += 1
            else:
                good.append(row)
        return good

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.o.by)

    def rounds(self, rows: list[Row]) -> list[list[Row]]:
        """14."""
        if self.o.granularity == "bundle":
            return [rows] if rows else []
        queues: dict[Key, list[Row]] = {}
        for row in sorted(rows, key=lambda row: row[self.o.time]):
            queues.setdefault(self.key_of(row), []).append(row)
        longest = max((len(queue) for queue in queues.values()), default=0)
        return [[queue[r] for queue in queues.values() if r < len(queue)] for r in range(longest)]

    # a, d, e.

    def ordered(self) -> list[Live]:
        return sorted(self.live.values(), key=place)

    def phase_timers(self) -> None:
        for w in self.ordered():
            due = not w.trigger.finished and any(d <= self.clock for d in w.trigger.deadlines("processing"))
            if due:
                self.touched.append(w)
                self.ask(w, "processing")

    def phase_watermark(self, known: set[tuple[Key, int, int]], advances: bool) -> None:
        for w in self.ordered():
            if advances or (w.key, w.start, w.end) not in known or any(w is other for other in self.touched):
                self.ask(w, "watermark")

    def phase_expiry(self) -> None:
        for w in self.ordered():
            if not self.expired(w.end):
                continue
            if self.o.closing == "always" or (self.o.closing == "non_empty" and w.fresh):
                self.emit(w, "expiry", is_last=True)
            del self.live[w.key, w.start, w.end]
        if self.splitting is not None:
            self.splitting.forget(self.live.values())

    def hold(self) -> None:
        """37."""
        held = [self.watermark]
        if self.o.timestamp == "start_of_window" and MIN_TIME < self.watermark < MAX_TIME:
            lateness = self.o.allowed_lateness
            held += [first_start(self.o.window, self.watermark - wait) + wait for wait in (0, lateness)]
        for w in self.live.values():
            closes = self.o.closing == "always" or (self.o.closing == "non_empty" and w.fresh)
            shows = closes or not w.trigger.finished
            to_come = shows and not (w.on_time_given or w.born_late)
            time = self.time_to_come(w)
            late = [value.event_time for value in w.outstanding] + [value.window[1] - 1 for value in w.outstanding]
            if self.o.mode != "retracting":
                late = []
            if self.splitting is not None:
                late.append(w.start + int(self.o.window.gap) - 1)
            if time is not None and to_come:
                held.append(time)
            if time is not None and (shows or isinstance(self.o.window, uc.Sessions)):
                late.append(time)
            held += [min(t + self.o.allowed_lateness, MAX_TIME) for t in late]
        self.output_watermark = max(self.output_watermark, min(held))

    def time_to_come(self, w: Live) -> int | None:
        """The least time of a pane to come that may be before the output watermark."""
        if self.o.timestamp == "watermark":
            return None
        time = self.result_time(w)
        if self.o.timestamp == "latest" and self.splitting is not None and w.earliest is not None:
            return w.earliest
        if isinstance(self.o.window, uc.Global) and time == self.last_of(w):
            idle = self.o.mode.startswith("discarding") and not w.fresh
            if idle or w.reach < self.output_watermark:
                return None
        return time

    # b, c.

    def phase_rows(self, rows: list[Row]) -> None:
        shares: dict[Key, list[tuple[Span, Row]]] = {}
        for row in rows:
            spans = windows_of(self.o.window, row[self.o.time])
            self.unassigned += not spans
            for span in spans:
                shares.setdefault(self.key_of(row), []).append((span, row))
        late: list[tuple[Key, Span, list[Row]]] = []
        gone: list[Live] = []
        got: list[Live] = []
        for key, share in shares.items():
            held = [w for w in self.live.values() if w.key == key]
            if self.splitting is not None:
                got += self.rework(self.splitting, key, [row for _, row in share], held, late)
                continue
            spans = [span for span, _ in share]
            if isinstance(self.o.window, uc.Sessions):
                hulls = united(spans + [(w.start, w.end) for w in held])
            else:
                hulls = sorted(set(spans))
            for start, end in hulls:
                came = [row for (s, e), row in share if start <= s and e <= end and (s, e) in spans]
                if not isinstance(self.o.window, uc.Sessions):
                    came = [row for span, row in share if span == (start, end)]
                if not came:
                    continue
                if self.expired(end):  # 9
                    self.dropped += len(came)
                    late.append((key, (start, end), came))
                    continue
                if isinstance(self.o.window, uc.Sessions):
                    inside = [w for w in held if start <= w.start and w.end <= end]
                else:
                    inside = [w for w in held if (w.start, w.end) == (start, end)]
                w = self.joined(key, start, end, inside)
                for old in inside:
                    del self.live[old.key, old.start, old.end]
                self.live[key, start, end] = w
                if w.trigger.finished:  # 26
                    self.finished += len(came)
                    continue
                gone += [old for old in inside if old is not w]
                for row in came:
                    self.take_in(w, row)
                w.came = came
                got.append(w)
        if self.o.late == "duplicate":
            for key, span, came in sorted(late, key=lambda given: (sortable(given[0]), given[1])):
                self.duplicate(key, span, came)
        if self.o.eager_retractions and self.o.mode == "retracting":
            self.retract(gone)
            if self.splitting is not None:
                self.retract_of_others()
        self.touched += got
        for w in sorted(got, key=place):
            w.trigger.rows(self.now(w, "rows"))
        for w in sorted(got, key=place):
            self.ask(w, "rows")
            w.came = []

    def rework(
        self, splitting: Splitting, key: Key, rows: list[Row], held: list[Live], late: list[tuple[Key, Span, list[Row]]]
    ) -> list[Live]:
        """40: rows of one key taken in, and the windows that hear of them."""
        kept: list[Row] = []
        there = splitting.there(key)
        for row in rows:
            span = splitting.span(row)
            if self.expired(span[1]) and span not in there:  # 9
                self.dropped += 1
                late.append((key, span, [row]))
            else:
                kept.append(row)
        left: list[Row] = []
        for start, end in united([splitting.span(row) for row in kept] + [(w.start, w.end) for w in held]):
            came = [row for row in kept if start <= row[self.o.time] < end]
            inside = [w for w in held if start <= w.start and w.end <= end]
            if came and self.joined(key, start, end, inside).trigger.finished:  # 26
                self.finished += len(came)
            else:
                left += came
        if not left:
            return []
        splitting.add(key, left, self.output_watermark)
        change = splitting.changed(key, held, self)
        for w in held:
            del self.live[w.key, w.start, w.end]
        for w in [*change.windows, *change.emptied]:
            self.live[w.key, w.start, w.end] = w
            w.came = [row for row in left if change.told(w, splitting.span(row))]
            w.fresh = w.fresh or bool(w.came)
        return [w for w in [*change.windows, *change.emptied] if w.came]

    def joined(self, key: Key, start: int, end: int, inside: list[Live]) -> Live:
        """6: the window that would hold these from now on."""
        if len(inside) == 1 and (inside[0].start, inside[0].end) == (start, end):
            return inside[0]
        w = Live(key, start, end, node(self.trigger), born_late=self.watermark >= end)
        for old in inside:
            w.rows += old.rows
            w.fresh = w.fresh or old.fresh
            w.outstanding += old.outstanding
            w.earliest = least(w.earliest, old.earliest)
            w.latest = greatest(w.latest, old.latest)
            w.reach = max(w.reach, old.reach)
        if not inside:
            w.trigger.begin(self.now(w, "rows"))
        else:
            w.trigger = inside[0].trigger.merged([old.trigger for old in inside], self.now(w, "rows"))
        return w

    def take_in(self, w: Live, row: Row) -> None:
        w.rows.append((row, 1 if self.o.diff is None else row[self.o.diff]))
        w.fresh = True
        w.reach = max(w.reach, row[self.o.time])
        if row[self.o.time] >= self.output_watermark:  # 36
            w.earliest = least(w.earliest, row[self.o.time])
            w.latest = greatest(w.latest, row[self.o.time])

    def duplicate(self, key: Key, span: Span, came: list[Row]) -> None:
        w = Live(key, *span, trigger=None, born_late=True)
        for row in came:
            self.take_in(w, row)
        if not self.emptied(w):
            self.put(w, "late", True, "LATE")

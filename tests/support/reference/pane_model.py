"""The panes of the model: when a window is asked, what it emits, and what it retracts.

Numbers in the comments are those of the rules.
"""

from __future__ import annotations

from typing import Any

import uncombine as uc

from .state_model import FIRST_YEAR, LAST_YEAR, Key, Live, Options, Row, Value
from .trigger_model import MAX_TIME, MIN_TIME, Now


class Emission:
    """The windows that are held, the clocks at which they are asked, and the panes so far."""

    def __init__(self, options: Options) -> None:
        self.o = options
        self.live: dict[tuple[Key, int, int], Live] = {}
        self.percents: set[float] = set()
        self.percentiles: dict[float, int] = {}
        self.watermark = self.output_watermark = self.clock = MIN_TIME
        self.out: list[Row] = []
        self.step_number = 0

    def now(self, w: Live, phase: str) -> Now:
        def percentile(percent: float) -> int:
            return max(self.percentiles.get(percent, MIN_TIME), self.watermark)

        def result() -> Row:
            return self.values(w)

        return Now(phase, w.start, w.end, self.watermark, self.clock, percentile, w.came, result)

    def ask(self, w: Live, phase: str) -> None:
        if w.trigger.finished:
            return
        now = self.now(w, phase)
        w.trigger.note(now)
        if not w.trigger.wants(now):
            return
        w.trigger.fire(now)
        leaving = phase == "watermark" and self.expired(w.end) and self.o.closing != "always"
        timing = self.timing(w)
        if w.fresh or (timing == "ON_TIME" and self.o.on_time == "always"):  # 30
            ended = w.trigger.finished and self.o.closing != "always"  # 31
            self.emit(w, phase, ended or leaving)

    def timing(self, w: Live) -> str:
        """29."""
        if self.watermark < w.end:
            return "EARLY"
        return "LATE" if w.born_late or w.on_time_given else "ON_TIME"

    def values(self, w: Live) -> Row:
        return {name: aggregate(w.rows) for name, aggregate in self.o.aggregates.items()}

    def result_time(self, w: Live) -> int:
        """36."""
        match self.o.timestamp:
            case "start_of_window" if w.start != MIN_TIME:
                return w.start
            case "earliest" if w.earliest is not None:
                return w.earliest
            case "latest" if w.latest is not None and not isinstance(self.o.window, uc.Global):
                return w.latest
            case "watermark" if MIN_TIME < self.watermark < MAX_TIME:
                return self.watermark
        return self.last_of(w)

    def last_of(self, w: Live) -> int:
        """36: the end of the window, or what stands for it."""
        return max(w.reach, self.output_watermark) if isinstance(self.o.window, uc.Global) else w.end - 1

    def expired(self, end: int) -> bool:
        return self.watermark >= min(end + self.o.allowed_lateness, MAX_TIME)

    def emit(self, w: Live, phase: str, is_last: bool) -> None:
        values = self.values(w)
        shown = [(value.window, value.values) for value in w.outstanding]
        if self.o.only_updated and shown == [((w.start, w.end), values)]:  # 34
            w.fresh = False
            self.clear(w)
            return
        if self.o.mode == "retracting":  # 33
            for value in sorted(w.outstanding, key=lambda value: value.window):
                self.write(w, value, -1)
            w.outstanding = []
        if not self.emptied(w):
            self.put(w, phase, is_last, self.timing(w))
        w.fresh = False
        self.clear(w)

    def clear(self, w: Live) -> None:
        if self.o.mode in ("discarding", "discarding_by_default"):
            w.rows, w.outstanding, w.earliest, w.latest = [], [], None, None

    def emptied(self, w: Live) -> bool:
        """38."""
        whole = self.o.diff is not None and self.o.mode == "retracting"
        return whole and sum(weight for _, weight in w.rows) == 0

    def retract(self, gone: list[Live]) -> None:
        pairs = [(w, value) for w in gone for value in w.outstanding]
        for w in gone:
            heir = next(h for h in self.live.values() if h.key == w.key and h.start <= w.start and w.end <= h.end)
            ended = w.outstanding
            heir.outstanding = [value for value in heir.outstanding if not any(value is other for other in ended)]
        for w, value in sorted(pairs, key=lambda pair: (sortable(pair[0].key), pair[1].window)):
            self.write(w, value, -1)

    def retract_of_others(self) -> None:
        """33: at once the outstanding panes of windows that are not there any more."""
        pairs = [
            (w, value)
            for w in self.live.values()
            for value in w.outstanding
            if value.window != (w.start, w.end) and not w.trigger.finished
        ]
        for w, value in sorted(pairs, key=lambda pair: (sortable(pair[0].key), pair[1].window)):
            w.outstanding.remove(value)
            self.write(w, value, -1)

    def put(self, w: Live, phase: str, is_last: bool, timing: str) -> None:
        reached = [p for p in self.percents if max(self.percentiles.get(p, MIN_TIME), self.watermark) >= w.end]  # 21
        early = timing == "EARLY"
        pane = {
            "index": w.index,
            "nonspeculative_index": -1 if early else w.nonspeculative,
            "timing": timing,
            "is_first": w.index == 0,
            "is_last": is_last,
            "watermark": _reading(self.watermark),
            "watermark_percentile": max(reached, default=None),
            "processing_time": _reading(self.clock),
            "trigger": phase,
        }
        value = Value((w.start, w.end), self.values(w), self.result_time(w), pane)
        self.write(w, value, 1)
        w.outstanding = [value]
        w.index += 1
        w.nonspeculative += not early
        w.on_time_given = w.on_time_given or not early

    def write(self, w: Live, value: Value, diff: int) -> None:
        self.out.append(
            {
                **dict(zip(self.o.by, w.key, strict=True)),
                "window": value.window,
                **value.values,
                "event_time": _clip(value.event_time),
                "diff": diff,
                "pane": value.pane,
                "step": self.step_number,
            }
        )


def sortable(key: Key) -> tuple[Any, ...]:
    return tuple((part is not None, 0 if part is None else part) for part in key)


def place(w: Live) -> tuple[Any, ...]:
    return (sortable(w.key), w.start, w.end)


def _reading(clock: int) -> int | None:
    """A clock that has not started, or has come to the end of the years that can be shown, shows nothing."""
    return clock if FIRST_YEAR <= clock <= LAST_YEAR else None


def _clip(t: int) -> int:
    return min(max(t, FIRST_YEAR), LAST_YEAR)


def least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def greatest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)

"""From a script to output rows: clocks, watermarks of several sources, and timers on the way (rules 7, 10, 12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .leaves import Row
from .model import Operator
from .options import Options
from .times import MAX_TIME, MIN_TIME, micros

UNITS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 10**6,
    "minute": 6 * 10**7,
    "hour": 36 * 10**8,
    "day": 864 * 10**8,
}


@dataclass
class Result:
    rows: list[Row] = field(default_factory=list)
    dropped: int = 0
    finished: int = 0
    unassigned: int = 0
    bad: int = 0
    dropped_rows: list[tuple[int, int]] = field(default_factory=list)
    left_out: list[tuple[str, Row]] = field(default_factory=list)
    late_at: list[int] = field(default_factory=list)
    output_watermarks: list[int] = field(default_factory=list)
    live: list[Any] = field(default_factory=list)


def run(
    script: Sequence[Any],
    *,
    window: Any,
    aggregates: dict[str, Callable[[list[tuple[Row, int]]], Any]],
    trigger: Any = None,
    by: Sequence[str] | str = (),
    allowed_lateness: Any = 0,
    max_future: Any = "1 day",
    watermark: str | None = None,
    idle_after: Any = None,
    default_trigger: Any = None,
    waits: bool = True,
    **options: Any,
) -> Result:
    """The output of a script; an aggregate is a function of a list of rows with their weights.

    `default_trigger` is what stands for no trigger, Repeatedly(AfterWatermark()) (rule 17). Without `waits` the clock
    jumps from entry to entry, with no stop at timers on the way.
    """
    operator = Operator(
        Options(
            window,
            aggregates,
            default_trigger if trigger is None else trigger,
            by=(by,) if isinstance(by, str) else tuple(by),
            allowed_lateness=length(allowed_lateness),
            max_future=length(max_future),
            **options,
        )
    )
    sources = Sources(None if idle_after is None else length(idle_after))
    result = Result()

    def step(place: int, rows: list[Row], now: int, each_batch: bool) -> None:
        sources.now = now
        out = operator.step(rows, now, sources.least(), sources.frozen(), each_batch)
        result.rows += [{**row, "step": place} for row in out]
        result.dropped_rows += [(place, dropped) for dropped in sorted(set(operator.dropped_places))]

    def stop_at_timers(place: int, now: int, until: int) -> None:
        """D3: on the way every timer is stopped at."""
        while waits and (timer := min(operator.next_timer(), sources.next_idle())) <= until and timer < MAX_TIME:
            now = max(now, timer)
            step(place, [], now, False)

    now = MIN_TIME
    for place, entry in enumerate(script):
        kind = type(entry).__name__
        at = entry.t if kind == "Clock" else getattr(entry, "at", None)
        then = now if at is None else max(now, micros(at))
        stop_at_timers(place, now, then)
        now = then
        for report in [entry] if kind == "Watermark" else getattr(entry, "watermarks", ()):
            sources.move(report.source, micros(report.t), now)
        rows = rows_of(entry.rows) if kind == "Elements" else []
        step(place, rows, now, watermark == "each_batch" and kind == "Elements")
        stop_at_timers(place, now, now)  # a timer that was set for an instant that had come
        result.output_watermarks.append(operator.output_watermark)
    for name in ("dropped", "finished", "unassigned", "bad", "left_out", "late_at"):
        setattr(result, name, getattr(operator, name))
    result.live = operator.lives()
    return result


def rows_of(rows: Any) -> list[Row]:
    return rows.to_pylist() if hasattr(rows, "to_pylist") else [dict(row) for row in rows]


class Sources:
    """rule 10."""

    def __init__(
        self,
        idle_after: int | None,
        declared: Sequence[str] = (),
        for_all: str | None = None,
        clock_lag: int | None = None,
    ) -> None:
        self.idle_after, self.all_name, self.clock_lag = idle_after, for_all, clock_lag
        self.times: dict[Any, int] = dict.fromkeys(declared, MIN_TIME)
        self.heard: dict[Any, int] = {}
        self.silent = list(declared)  # they wait for their first report from the first processing time on
        self.for_all = MIN_TIME  # what a report for all sources gave
        self.now = MIN_TIME
        self.reached = MIN_TIME
        self.seen: list[list[int]] = []

    def move(self, source: Any, time: int, now: int) -> None:
        self.began(now)
        if source is not None and source == self.all_name:
            self.for_all = max(self.for_all, time)
            self.times = {name: max(known, time) for name, known in self.times.items()}
            self.heard = dict.fromkeys(self.times, now)
            return
        self.times[source] = max(self.times.get(source, self.for_all), time)  # rule 7
        self.heard[source] = now

    def began(self, now: int) -> None:
        """The first processing time is there."""
        if now > MIN_TIME:
            self.heard = {**dict.fromkeys(self.silent, now), **self.heard}
            self.silent = []

    def next_idle(self) -> int:
        """The next instant at which a source becomes idle while there are others."""
        if self.idle_after is None or len(self.heard) < 2:
            return MAX_TIME
        return min(
            (t + self.idle_after for t in self.heard.values() if t + self.idle_after > self.now), default=MAX_TIME
        )

    def awake(self) -> list[int]:
        """The watermarks of sources that are not idle."""
        self.began(self.now)
        if self.all_name is not None and not self.times and self.for_all > MIN_TIME:
            return [self.for_all]
        return [
            time
            for source, time in self.times.items()
            if self.idle_after is None or self.now - self.heard.get(source, self.now) < self.idle_after
        ]

    def least(self) -> int:
        """When all are idle the watermark stays; it never goes back."""
        self.reached = max(self.reached, min(self.awake(), default=MIN_TIME))
        if self.clock_lag is not None and self.now > MIN_TIME:
            self.reached = max(self.reached, self.now - self.clock_lag)
        return self.reached

    def frozen(self) -> Callable[[float], int]:
        """Percentile p now: the largest T such that at least p % of the sources have a watermark >= T, or have had."""
        self.seen.append(self.awake())
        seen, reached = list(self.seen), self.reached

        def percentile(percent: float) -> int:
            enough = [t for awake in seen for t in awake if 100 * sum(u >= t for u in awake) >= percent * len(awake)]
            return max([*enough, reached])

        return percentile


def length(value: Any) -> int:
    """A length of time in microseconds."""
    if isinstance(value, str):
        return sum(int(n) * UNITS[unit.removesuffix("s")] for n, unit in re.findall(r"(\d+) (\w+)", value))
    return int(value)

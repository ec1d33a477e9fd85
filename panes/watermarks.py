"""The watermark of several sources: the least time of those that are not idle, and percentiles of these times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..windows.times import MAX_TIME, MIN_TIME


@dataclass(frozen=True)
class Watermarks:
    """The event time that each source has reached, and the processing time of its last report; a value.

    A source that reports nothing for `idle_after` of processing time is idle. It counts again from its next report on.
    When all sources are idle the watermark stays. It never goes back.

    >>> w = Watermarks().advanced("a", 10, now=0).advanced("b", 30, now=0)
    >>> w.least, w.percentile(50), w.percentile(100)
    (10, 30, 10)
    """

    sources: Mapping[str | None, tuple[int, int]] = field(default_factory=dict)
    idle_after: int | None = None
    least: int = MIN_TIME
    now: int = MIN_TIME

    def advanced(self, source: str | None, time: int, now: int) -> Watermarks:
        """A source reports `time`; a lower time than before is ignored."""
        now = max(now, self.now)
        known = self.sources.get(source, (MIN_TIME, now))[0]
        sources = {**self.sources, source: (max(known, time), now)}
        return replace(self, sources=sources, now=now)._settled()

    def told(self, reports: Iterable[tuple[str | None, int | None]], now: int) -> Watermarks:
        """Take all watermark reports of one processing time at once: (source, time), or (source, None) for no time."""
        now = max(now, self.now)
        sources = dict(self.sources)
        for source, time in reports:
            known = sources.get(source, (MIN_TIME, now))[0]
            sources[source] = (known if time is None else max(known, time), now)
        return replace(self, sources=sources, now=now)._settled()

    def at(self, now: int) -> Watermarks:
        """Processing time advances to `now`, by which sources can become idle."""
        return replace(self, now=max(now, self.now))._settled()

    @property
    def next_idle(self) -> int:
        """The next processing time at which one of several sources becomes idle; the end of time if none does."""
        if self.idle_after is None or len(self.sources) < 2:
            return MAX_TIME
        idle = (last + self.idle_after for _, last in self.sources.values())
        return min((t for t in idle if t > self.now), default=MAX_TIME)

    def percentile(self, percent: float) -> int:
        """The greatest T that at least `percent` of the sources that are not idle have reached."""
        times = sorted(self._active(), reverse=True)
        if not times:
            return self.least
        needed = -(-percent * len(times) // 100)
        return max(times[max(int(needed), 1) - 1], self.least)

    def percentiles(self, percents: Iterable[float]) -> dict[float, int]:
        """Several percentiles at once."""
        return {percent: self.percentile(percent) for percent in percents}

    def _active(self) -> list[int]:
        if self.idle_after is None:
            return [time for time, _ in self.sources.values()]
        return [time for time, last in self.sources.values() if self.now - last < self.idle_after]

    def _settled(self) -> Watermarks:
        active = self._active()
        return replace(self, least=max(self.least, min(active))) if active else self

"""The watermark of several sources: the least time of those that are not idle, and percentiles of these times.

A shard has one or several inputs, and each input has its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from ...windows.times import MAX_TIME, MIN_TIME

Report: TypeAlias = tuple[str | None, int | None]
"""A watermark report: the source and its event time; the time is None if the source only shows that it is active."""


class Read(NamedTuple):
    """The place to which a source has been read: the next offset, the end of the source, and whether it is idle."""

    offset: int
    end: int
    idle: bool


_REACHED = ("sources", "least", "hold", "reads", "since")
"""The fields of watermarks that rows and time move, beside the options that they have from a flow."""


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
    shards: bool = False
    """True if the sources are the shards of one step, which is one source, however many shards it has."""
    back: int = 0
    """The length of time by which rows go back on their way here, so that every report counts for less."""
    lag: int | None = None
    """The length of time by which the watermark follows processing time; None if only reports move it."""
    for_all: str | None = None
    """The name under which reports count for all sources, also for those still to come."""
    hold: int = MAX_TIME
    """The least time of rows that are there and not read yet: a report of a later time counts for this time."""
    reads: Mapping[str, Read] = field(default_factory=dict)
    """The place to which each source has been read, where the one who reads them says so, and says which are idle."""
    since: int = MIN_TIME
    """The first processing time, from which an input waits for its first report; noted where it can become idle."""

    @classmethod
    def of_step(cls, shards: Iterable[str], back: int = 0) -> Watermarks:
        """The watermarks of a step, of which all shards must report before the watermark moves."""
        return cls(dict.fromkeys(shards, (MIN_TIME, MIN_TIME)), shards=True, back=back)

    @classmethod
    def declared(
        cls,
        sources: Iterable[str],
        idle_after: int | None = None,
        back: int = 0,
        lag: int | None = None,
        for_all: str | None = None,
    ) -> Watermarks:
        """The watermarks of sources that hold the watermark before they report.

        >>> w = Watermarks.declared(["a", "b"], for_all="*").advanced("a", 10, now=0)
        >>> w.least == MIN_TIME, w.advanced("b", 30, now=1).least, w.advanced("*", 20, now=1).least
        (True, 10, 20)
        """
        marks: dict[str | None, tuple[int, int]] = dict.fromkeys(sources, (MIN_TIME, MIN_TIME))
        return cls(marks, idle_after, back=back, lag=lag, for_all=for_all)

    def advanced(self, source: str | None, time: int, now: int) -> Watermarks:
        """A source reports `time`; a lower time than before is ignored."""
        return self.told([(source, time)], now)

    def told(
        self,
        reports: Iterable[Report],
        now: int,
        hold: int | None = None,
        reads: Mapping[str, Read] | None = None,
    ) -> Watermarks:
        """Take all watermark reports of one processing time at once: (source, time), or (source, None) for no time.

        A `hold` takes the place of the one before it. When it rises, what was reported before counts as far as it lets.
        So do `reads`, which name all sources that there are. A new one holds the watermark before it reports. When all
        are idle, the watermark goes to the latest time that one of them has reached.

        >>> w = Watermarks().told([("a", 30)], now=0, hold=20)
        >>> w.least, w.told([], now=1, hold=25).least, w.told([], now=1, hold=99).least
        (20, 25, 30)
        >>> both = {"a": Read(5, 5, False), "b": Read(0, 9, False)}
        >>> w = Watermarks().told([("a", 30)], now=0, reads=both)
        >>> w.least == MIN_TIME, w.told([], now=1, reads=both | {"b": Read(9, 9, True)}).least
        (True, 30)
        """
        marks = self._at(now)
        if reads is not None:
            there: dict[str | None, tuple[int, int]] = {}
            there.update((name, marks.sources.get(name, (MIN_TIME, marks.now))) for name in reads)
            marks = replace(marks, sources=there, reads=reads)
        if hold is not None:
            marks = replace(marks, hold=self._less_back(hold))
        sources, now = dict(marks.sources), marks.now
        for source, time in reports:
            if source is not None and source == self.for_all and time is not None:
                reached = self._less_back(time)
                known_now = {source: (reached, now), **sources}
                sources = {name: (max(mark, reached), now) for name, (mark, _) in known_now.items()}
                continue
            first = sources.get(self.for_all, (MIN_TIME, now))[0] if self.for_all is not None else MIN_TIME
            mark = sources.get(source, (first, now))[0]
            sources[source] = (mark if time is None else max(mark, self._less_back(time)), now)
        return replace(marks, sources=sources)._settled()

    def at(self, now: int) -> Watermarks:
        """Processing time advances to `now`, by which sources can become idle."""
        return self._at(now)._settled()

    def _at(self, now: int) -> Watermarks:
        now, sources = max(now, self.now), self.sources
        if self.idle_after is not None and now > MIN_TIME and (MIN_TIME, MIN_TIME) in sources.values():
            # A declared source waits for its first report from the first processing time on.
            sources = {
                name: (t, now if (t, last) == (MIN_TIME, MIN_TIME) else last) for name, (t, last) in sources.items()
            }
        since = now if self.since == MIN_TIME and self.idle_after is not None and not sources else self.since
        return replace(self, sources=sources, now=now, since=since)

    @property
    def counted(self) -> list[tuple[int, int]]:
        """The time and the last report of each source; those of all sources together count if no other is known."""
        marks = [mark for name, mark in self.sources.items() if not self._told_idle(name)]
        if self.for_all is not None and len(self.sources) > 1:
            marks = [mark for name, mark in self.sources.items() if name != self.for_all]
        return marks if self.hold == MAX_TIME else [(min(time, self.hold), last) for time, last in marks]

    @property
    def idle(self) -> bool:
        """True if all sources are idle, or there is none yet, and none has reported for too long."""
        return not self.active if self.sources else self.since > MIN_TIME and self.is_idle(self.since)

    @property
    def next_idle(self) -> int:
        """The next processing time at which a source becomes idle; the end of time if none does."""
        if self.idle_after is None:
            return MAX_TIME
        lasts = [last for time, last in self.counted if (time, last) != (MIN_TIME, MIN_TIME)]
        if not self.sources and self.since > MIN_TIME:
            lasts = [self.since]
        idle = (last + self.idle_after for last in lasts)
        return min((t for t in idle if t > self.now), default=MAX_TIME)

    def percentile(self, percent: float) -> int:
        """The greatest T that at least `percent` of the sources that are not idle have reached."""
        return percentile(self.active, percent, self.least)

    @property
    def reached(self) -> list[int]:
        """The times that count for percentiles: of all sources that are not idle, or of the one step."""
        if self.shards or not self.sources:
            return [] if self.idle else [self.least]
        return self.active

    @property
    def active(self) -> list[int]:
        """The times of the sources that are not idle."""
        if self.idle_after is None:
            return [time for time, _ in self.counted]
        return [time for time, last in self.counted if not self.is_idle(last)]

    def is_idle(self, last: int) -> bool:
        """True for a source whose last report is from then, if it has been silent for too long."""
        return self.idle_after is not None and self.now - last >= self.idle_after

    def idles(self, source: str | None) -> bool:
        """True if a source does not hold the watermark now."""
        return self._told_idle(source) or self.is_idle(self.sources[source][1])

    def _told_idle(self, source: str | None) -> bool:
        read = None if source is None else self.reads.get(source)
        return read is not None and read.idle

    def _less_back(self, time: int) -> int:
        return time if time == MAX_TIME else max(time - self.back, MIN_TIME)

    def reaches(self, time: int) -> int:
        """The processing time at which the watermark reaches a time without reports; the end of time if it does not."""
        if self.least >= time:
            return self.now
        return MAX_TIME if self.lag is None else min(time + self.lag + self.back, MAX_TIME)

    def _settled(self) -> Watermarks:
        active, least = self.active, self.least
        if self.lag is not None and self.now > MIN_TIME:
            least = max(least, self.now - self.lag - self.back)
        if self.reads and not active:
            least = max([least, *(time for time, _ in self.sources.values())])
        return replace(self, least=max(least, min(active))) if active else replace(self, least=least)


@dataclass(frozen=True)
class InputWatermarks:
    """The watermark of a shard: the least of its inputs that are not idle.

    An input that has never reported holds the watermark, until it has been silent for too long. When all inputs are
    idle the watermark stays. It never goes back.

    >>> w = InputWatermarks((Watermarks(), Watermarks())).told([[(None, 10)], []], now=0)
    >>> w.least == MIN_TIME, w.told([[], [(None, 30)]], now=1).least
    (True, 10)
    """

    inputs: tuple[Watermarks, ...] = (Watermarks(),)
    least: int = MIN_TIME
    now: int = MIN_TIME

    def told(
        self,
        reports: Sequence[Iterable[Report]],
        now: int,
        holds: Sequence[int | None] | None = None,
        reads: Sequence[Mapping[str, Read] | None] | None = None,
    ) -> InputWatermarks:
        """Take all watermark reports of one processing time at once, holds and reads, each input those in its place."""
        now, none = max(now, self.now), [None] * len(self.inputs)
        each = zip(self.inputs, reports, holds or none, reads or none, strict=True)
        return self._settled(tuple(marks.told(own, now, hold, read) for marks, own, hold, read in each), now)

    def at(self, now: int) -> InputWatermarks:
        """Processing time advances to `now`, by which sources can become idle."""
        now = max(now, self.now)
        return self._settled(tuple(marks.at(now) for marks in self.inputs), now)

    def placed(self, former: Sequence[Watermarks | None]) -> InputWatermarks:
        """The same with the watermarks that some inputs had in a former flow, in which idle sources stay idle."""
        pairs = zip(self.inputs, former, strict=True)
        inputs = tuple(
            own
            if one is None
            else replace(
                own, sources=one.sources, least=one.least, hold=one.hold, reads=one.reads, since=one.since, now=self.now
            )
            for own, one in pairs
        )
        # All can be idle, and then none moves the watermark.
        least = min((one.least for one in inputs), default=self.least)
        return replace(self, least=least)._settled(inputs, self.now)

    @property
    def next_idle(self) -> int:
        """The next processing time at which one of several sources becomes idle; the end of time if none does."""
        if sum(max(len(marks.counted), 1) for marks in self.inputs) < 2:
            return MAX_TIME
        return min(marks.next_idle for marks in self.inputs)

    @property
    def follows_clock(self) -> bool:
        """True if processing time alone can move the watermark."""
        return any(marks.lag is not None for marks in self.inputs)

    def reaches(self, time: int) -> int:
        """The processing time at which the watermark reaches a time without reports; the end of time if it does not."""
        return max((marks.reaches(time) for marks in self.inputs if not marks.idle), default=MAX_TIME)

    def percentiles(self, percents: Iterable[float]) -> dict[float, int]:
        """Several percentiles of the times of all sources at once. An input that has never reported is a source."""
        every = [time for marks in self.inputs for time in marks.reached]
        return {percent: percentile(every, percent, self.least) for percent in percents}

    def _settled(self, inputs: tuple[Watermarks, ...], now: int) -> InputWatermarks:
        awake = [marks for marks in inputs if not marks.idle]
        # An input whose sources are all idle may have moved as the last of them became it.
        least = max(self.least, min((marks.least for marks in awake or inputs), default=MIN_TIME))
        return InputWatermarks(inputs=inputs, least=least, now=now)


def percentile(times: Sequence[int], percent: float, least: int) -> int:
    """The greatest time that at least `percent` of the times have reached; at least `least`."""
    if not times:
        return least
    ordered = sorted(times, reverse=True)
    needed = -(-percent * len(ordered) // 100)
    return max(ordered[max(int(needed), 1) - 1], least)

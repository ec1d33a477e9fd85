"""Triggers as plain objects, one tree of them per window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uncombine as uc
from uncombine.windows import timestamp

MIN_TIME = -(2**63) + 1
MAX_TIME = 2**63 - 1


@dataclass
class Now:
    """What a trigger can see when it is asked."""

    phase: str
    start: int
    end: int
    watermark: int
    clock: int
    percentile: Callable[[float], int]
    rows: list[dict[str, Any]] = field(default_factory=list)
    result: Callable[[], dict[str, Any]] = dict

    def time(self, domain: str) -> int:
        return self.clock if domain == "processing" else self.watermark

    @property
    def passed(self) -> bool:
        return self.watermark >= self.end


class Node:
    """A trigger at work on one window."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.finished = False

    def fresh(self) -> Node:
        """The same trigger as if nothing had happened."""
        return node(self.spec)

    def begin(self, now: Now) -> None:
        """It came to be."""

    def rows(self, now: Now) -> None:
        """Rows came."""

    def note(self, now: Now) -> None:
        """Remember what must not be forgotten, before anyone is asked."""

    def wants(self, now: Now) -> bool:
        """Whether it would fire."""
        return False

    def fire(self, now: Now) -> None:
        """It has fired."""
        self.finished = True

    def deadlines(self, domain: str) -> list[int]:
        """The instants of one clock that it waits for."""
        return []

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        """What takes over from all of these (self is one of them)."""
        new: Any = self.fresh()
        new.finished = any(other.finished for other in others)
        return new


class Tally(Node):
    """AfterCount and AfterBytes."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.count = 0

    def rows(self, now: Now) -> None:
        if isinstance(self.spec, uc.AfterCount):
            self.count += len(now.rows)
        else:
            self.count += sum(8 for row in now.rows for name in self.spec.of if row[name] is not None)

    def wants(self, now: Now) -> bool:
        return self.count >= self.spec.n

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.count = sum(other.count for other in others)
        return new


class Timer(Node):
    """AfterDelay and AtPeriod."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.due: int | None = None

    def rows(self, now: Now) -> None:
        if self.due is not None:
            return
        clock = now.time(self.spec.domain)
        if isinstance(self.spec, uc.AfterDelay):
            self.due = clock + int(self.spec.delay)
        else:
            origin = 0 if self.spec.origin is None else timestamp(self.spec.origin)
            period = int(self.spec.period)
            self.due = origin + ((clock - origin) // period + 1) * period

    def wants(self, now: Now) -> bool:
        return self.due is not None and self.due <= now.time(self.spec.domain)

    def deadlines(self, domain: str) -> list[int]:
        return [self.due] if self.due is not None and domain == self.spec.domain else []

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.due = min((other.due for other in others if other.due is not None), default=None)
        return new


class Percentile(Node):
    """WatermarkPercentile."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.armed = True

    def reached(self, now: Now) -> bool:
        return now.percentile(float(self.spec.percent)) >= now.end

    def begin(self, now: Now) -> None:
        self.armed = not self.reached(now)

    def wants(self, now: Now) -> bool:
        return self.armed and not self.finished and self.reached(now)

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.finished = new.finished and self.reached(now)
        new.armed = any(other.armed for other in others) or not self.reached(now)
        return new


class Instant(Node):
    """OnPunctuation, OnResult, Always, Never: they look at the rows that have just come, or at nothing."""

    def wants(self, now: Now) -> bool:
        if now.phase != "rows" or not now.rows or isinstance(self.spec, uc.Never):
            return False
        if isinstance(self.spec, uc.OnPunctuation):
            return any(self.spec.predicate.holds(row) for row in now.rows)
        if isinstance(self.spec, uc.OnResult):
            return self.spec.predicate.holds(now.result())
        return True

    def fire(self, now: Now) -> None:
        self.finished = not isinstance(self.spec, uc.Always | uc.Never)


class Repeat(Node):
    """Repeatedly, RepeatUntil, RepeatCount, and the two halves of AfterWatermark."""

    def __init__(self, spec: Any, child: Any = None) -> None:
        super().__init__(spec)
        self.child = node(spec.child if child is None else child)
        self.until = node(spec.until) if isinstance(spec, uc.RepeatUntil) else None
        self.times = 0

    def fresh(self) -> Node:
        return Repeat(self.spec, self.child.spec)

    def parts(self) -> list[Node]:
        return [self.child] if self.until is None else [self.child, self.until]

    def begin(self, now: Now) -> None:
        for part in self.parts():
            part.begin(now)

    def rows(self, now: Now) -> None:
        for part in self.parts():
            part.rows(now)

    def note(self, now: Now) -> None:
        for part in self.parts():
            part.note(now)

    def wants(self, now: Now) -> bool:
        return any(part.wants(now) for part in self.parts())

    def fire(self, now: Now) -> None:
        last = self.until is not None and self.until.wants(now)
        if self.child.wants(now):
            self.child.fire(now)
            if self.child.finished:
                self.child = self.child.fresh()
                self.child.begin(now)
        self.times += 1
        if last and self.until is not None:
            self.until.fire(now)
            self.finished = True
        if isinstance(self.spec, uc.RepeatCount):
            self.finished = self.times >= self.spec.n

    def deadlines(self, domain: str) -> list[int]:
        return [due for part in self.parts() for due in part.deadlines(domain)]

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.child = self.child.merged([other.child for other in others], now)
        if self.until is not None:
            new.until = self.until.merged([other.until for other in others], now)
        new.times = max(other.times for other in others)
        return new


class PastEnd(Node):
    """AfterWatermark."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.early = None if spec.early is None else Repeat(spec, spec.early)
        self.late = None if spec.late is None else Repeat(spec, spec.late)
        self.on_time = False

    def begin(self, now: Now) -> None:
        for half in (self.early, self.late):
            if half is not None:
                half.begin(now)

    def half(self) -> Node | None:
        return self.late if self.on_time else self.early

    def rows(self, now: Now) -> None:
        half = self.half()
        if half is not None:
            half.rows(now)

    def note(self, now: Now) -> None:
        half = self.half()
        if half is not None and (self.on_time or not now.passed):
            half.note(now)

    def wants(self, now: Now) -> bool:
        if not self.on_time and now.passed:
            return True
        half = self.half()
        return half is not None and half.wants(now)

    def fire(self, now: Now) -> None:
        half = self.half()
        if not self.on_time and now.passed:
            self.on_time = True
            self.finished = self.late is None
        elif half is not None:
            half.fire(now)

    def deadlines(self, domain: str) -> list[int]:
        half = self.half()
        return [] if half is None else half.deadlines(domain)

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.on_time = now.passed and any(other.on_time for other in others)
        new.finished = now.passed and new.finished
        if self.early is not None:
            new.early = self.early.merged([other.early for other in others], now)
        if self.late is not None:
            new.late = self.late.merged([other.late for other in others], now)
        return new


class Group(Node):
    """What FirstOf, AllOf and SequenceOf share."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.children = [node(child) for child in spec.children]

    def active(self) -> list[Node]:
        return [child for child in self.children if not child.finished]

    def begin(self, now: Now) -> None:
        for child in self.children:
            child.begin(now)

    def rows(self, now: Now) -> None:
        for child in self.active():
            child.rows(now)

    def note(self, now: Now) -> None:
        for child in self.active():
            child.note(now)

    def wants(self, now: Now) -> bool:
        return any(child.wants(now) for child in self.active())

    def deadlines(self, domain: str) -> list[int]:
        return [due for child in self.active() for due in child.deadlines(domain)]

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.children = [
            child.merged([other.children[i] for other in others], now) for i, child in enumerate(self.children)
        ]
        return new


class First(Group):
    """FirstOf."""

    def fire(self, now: Now) -> None:
        firing = [child for child in self.active() if child.wants(now)]
        for child in firing:
            child.fire(now)
            self.finished = self.finished or child.finished


class All(Group):
    """AllOf."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.ready = [False] * len(self.children)

    def note(self, now: Now) -> None:
        super().note(now)
        for i, child in enumerate(self.children):
            if not child.finished and child.wants(now):
                self.ready[i] = True

    def wants(self, now: Now) -> bool:
        settled = [ready or child.finished for ready, child in zip(self.ready, self.children, strict=True)]
        return all(settled) and any(self.ready)

    def fire(self, now: Now) -> None:
        for i, child in enumerate(self.children):
            if self.ready[i]:
                child.fire(now)
        self.ready = [False] * len(self.children)
        self.finished = all(child.finished for child in self.children)

    def deadlines(self, domain: str) -> list[int]:
        waiting = [child for child, ready in zip(self.children, self.ready, strict=True) if not ready]
        return [due for child in waiting if not child.finished for due in child.deadlines(domain)]

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new = super().merged(others, now)
        new.ready = [any(other.ready[i] for other in others) for i in range(len(self.children))]
        return new


class Sequence_(Group):
    """SequenceOf."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.place = 0

    def active(self) -> list[Node]:
        return self.children[self.place : self.place + 1]

    def fire(self, now: Now) -> None:
        child = self.children[self.place]
        child.fire(now)
        if child.finished:
            self.place += 1
        self.finished = self.place == len(self.children)

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        new: Any = self.fresh()
        new.begin(now)
        new.place = min(other.place for other in others)
        there = [other for other in others if other.place == new.place]
        new.finished = new.place == len(self.children)
        if not new.finished:
            at = [other.children[new.place] for other in there]
            new.children[new.place] = at[0].merged(at, now)
        return new


_KINDS: dict[type, Callable[[Any], Node]] = {
    uc.AfterCount: Tally,
    uc.AfterBytes: Tally,
    uc.AfterDelay: Timer,
    uc.AtPeriod: Timer,
    uc.WatermarkPercentile: Percentile,
    uc.OnPunctuation: Instant,
    uc.OnResult: Instant,
    uc.Always: Instant,
    uc.Never: Instant,
    uc.AfterWatermark: PastEnd,
    uc.Repeatedly: Repeat,
    uc.RepeatUntil: Repeat,
    uc.RepeatCount: Repeat,
    uc.FirstOf: First,
    uc.AllOf: All,
    uc.SequenceOf: Sequence_,
}


def node(spec: Any) -> Any:
    """A trigger at work, from the trigger as a value."""
    return _KINDS[type(spec)](spec)

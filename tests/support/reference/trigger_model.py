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
    """The facts that a trigger can read when it is asked."""

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
        """True if it would fire."""
        return False

    def fire(self, now: Now) -> None:
        """It has fired."""
        self.finished = True

    def deadlines(self, domain: str) -> list[int]:
        """The instants of one clock that it waits for."""
        return []

    def merged(self, others: Sequence[Any], now: Now) -> Any:
        """The trigger state that replaces all of these (self is one of them)."""
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


KINDS: dict[type, Callable[[Any], Node]] = {
    uc.AfterCount: Tally,
    uc.AfterBytes: Tally,
    uc.AfterDelay: Timer,
    uc.AtPeriod: Timer,
    uc.WatermarkPercentile: Percentile,
    uc.OnPunctuation: Instant,
    uc.OnResult: Instant,
    uc.Always: Instant,
    uc.Never: Instant,
}


def node(spec: Any) -> Any:
    """A trigger at work, from the trigger as a value."""
    return KINDS[type(spec)](spec)

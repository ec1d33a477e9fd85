"""The leaf triggers, one object for each leaf of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from .times import aligned_after, micros, plus

Row = dict[str, Any]


@dataclass
class Now:
    """The facts that a trigger can read while one window is asked in one phase."""

    phase: str  # "processing" (13 a), "rows" (13 c), "signal" (102) or "watermark" (13 d)
    start: int
    end: int
    clock: int
    watermark: int
    percentile: Callable[[float], int]
    result: Callable[[], Row | None]
    lowest: float | None = None
    """The least percent for which a part of the trigger waits: that percentile is the first to come to an end."""
    signals: Sequence[Any] = ()
    """rule 102: the parts of the trigger for which a signal has come."""

    @property
    def passed(self) -> bool:
        return self.watermark >= self.end  # rule 8

    def time(self, domain: str) -> int:
        """rule 20: the event-time clock is the input watermark."""
        return self.clock if domain == "processing" else self.watermark


class Node:
    """A trigger in one window.

    A window is asked like this: `rows` (only in phase c), `look`, then `ready`, and if so `fire`, then `close`.
    """

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.finished = False

    def start(self, now: Now) -> None:
        """The window came to be, or this trigger is reset."""

    def again(self) -> None:
        """rule 12: the watermark of this bundle runs from the beginning of time."""

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        """Rows came to the window."""

    def due(self, domain: str, now: Now) -> bool:
        """True if a clock has reached a time that this trigger waits for and has not yet noted."""
        return False

    def deadline(self) -> int | None:
        """The next instant of processing time that this trigger waits for."""
        return None

    def look(self, now: Now) -> None:
        """Take note of what has come about."""

    def ready(self, now: Now) -> bool:
        """True if it would fire."""
        return False

    def fire(self, now: Now) -> list[str]:
        """It fires; returns what user triggers asked of the contents."""
        self.finished = True  # rule 24
        return []

    def close(self, now: Now) -> None:
        """The asking is over."""

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        """This new trigger takes over from those of the windows that became its window."""
        self.finished = any(source.finished for source in sources)  # D9


class AfterCount(Node):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.count = 0

    def size(self, row: Row) -> int:
        return 1

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        self.count += sum(map(self.size, rows))  # rule 19: whatever their diff

    def ready(self, now: Now) -> bool:
        return not self.finished and self.count >= self.spec.n

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.count = sum(source.count for source in sources)  # rule 19


class AfterBytes(AfterCount):
    def size(self, row: Row) -> int:
        names = row if self.spec.of is None else self.spec.of
        known = [row[name] for name in names if row[name] is not None]
        return sum(len(value.encode()) if isinstance(value, str) else 8 for value in known)  # D13


class AfterDelay(Node):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.at: int | None = None

    def after(self, clock: int) -> int:
        return plus(clock, self.spec.delay)  # rule 20

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        if self.at is None and not self.finished:
            self.at = self.after(now.time(self.spec.domain))

    def due(self, domain: str, now: Now) -> bool:
        return domain == self.spec.domain and self.ready(now)

    def deadline(self) -> int | None:
        return None if self.finished or self.spec.domain != "processing" else self.at

    def ready(self, now: Now) -> bool:
        return not self.finished and self.at is not None and now.time(self.spec.domain) >= self.at

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.at = min((source.at for source in sources if source.at is not None), default=None)  # rule 20


class AtPeriod(AfterDelay):
    def after(self, clock: int) -> int:
        origin = 0 if self.spec.origin is None else micros(self.spec.origin)
        return aligned_after(clock, int(self.spec.period), origin)  # rule 20


class WatermarkPercentile(Node):
    """rule 21: fires when the percentile comes to the end, not where it already was there (D8)."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.ahead = False

    def _reached(self, now: Now) -> bool:
        return now.percentile(self.spec.percent) >= now.end

    def start(self, now: Now) -> None:
        self.ahead = not self._reached(now)

    def again(self) -> None:
        self.ahead = True

    def due(self, domain: str, now: Now) -> bool:
        # rule 21: asked when any percentile of the trigger comes to the end
        waits = self.ahead and not self.finished
        return domain == "event" and waits and now.percentile(now.lowest or self.spec.percent) >= now.end

    def ready(self, now: Now) -> bool:
        return self.ahead and not self.finished and self._reached(now)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        self.ahead = self.ahead or any(source.ahead for source in sources)
        self.finished = any(source.finished for source in sources) and self._reached(now)  # D9


class _OfRows(Node):
    """A trigger that can fire only while its window is asked about rows (rule 22)."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.hit = False

    def holds(self, rows: Sequence[Row], now: Now) -> bool:
        return True

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        self.hit = self.holds(rows, now)

    def ready(self, now: Now) -> bool:
        return now.phase == "rows" and self.hit and not self.finished


class OnPunctuation(_OfRows):
    def holds(self, rows: Sequence[Row], now: Now) -> bool:
        return any(holds(self.spec.predicate, row) for row in rows)


class OnResult(_OfRows):
    def holds(self, rows: Sequence[Row], now: Now) -> bool:
        result = now.result()
        return result is not None and holds(self.spec.predicate, result)


class Always(_OfRows):
    def fire(self, now: Now) -> list[str]:
        return []  # rule 24


class Never(Node):
    pass


class OnSignal(Node):
    def ready(self, now: Now) -> bool:
        return not self.finished and any(self.spec is part for part in now.signals)  # rule 102


def holds(predicate: Any, row: Row) -> bool:
    """True if a row satisfies a predicate over Arrow tables; null counts as no."""
    if hasattr(predicate, "holds"):
        return bool(predicate.holds(row))
    table = pa.Table.from_pylist([row])
    answer = predicate.evaluate(table) if hasattr(predicate, "evaluate") else predicate(table)
    return bool(answer[0].as_py())

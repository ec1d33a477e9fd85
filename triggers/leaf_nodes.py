"""The columnar evaluation of the leaf triggers.

`tests/panes/grouping/test_rules.py` and `tests/panes/grouping/test_reference.py` guard these nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..windows.times import NEVER
from .program import (
    Deadlines,
    Fact,
    Leaf,
    Mask,
    Moment,
    Node,
    State,
    any_into,
    least_into,
    set_where,
    sooner,
    sum_into,
    where,
)

_INT = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)


class TallyNode(Leaf):
    """`AfterCount` and `AfterBytes`: fires when the sum of a fact of the rows since the last reset reaches n."""

    def __init__(self, path: str, n: int, fact: str, row_fact: Fact | None = None) -> None:
        super().__init__(path)
        self.n, self.fact, self.row_fact = n, fact, row_fact

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {"tally": (_INT, 0)}

    def facts(self) -> Iterator[Fact]:
        if self.row_fact is not None:
            yield self.row_fact

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        tally = self.col(s, "tally")
        np.add(tally, m.facts[self.fact], out=tally, where=active)

    def would_fire(self, s: State, m: Moment) -> Mask:
        return ~self.done(s) & (self.col(s, "tally") >= self.n)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        sum_into(s, out, f"{self.path}.tally", into, take)


class TimerNode(Leaf):
    """`AfterDelay` and `AtPeriod`: fires at a deadline, which the first row since the last reset sets."""

    def __init__(self, path: str, domain: str, delay: int = 0, period: int = 0, origin: int = 0) -> None:
        super().__init__(path)
        self.domain, self.delay, self.period, self.origin = domain, delay, period, origin

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {"deadline": (_INT, NEVER)}

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        deadline = self.col(s, "deadline")
        set_where(deadline, active & m.got & (deadline == NEVER), self._instant(m.clock(self.domain)))

    def _instant(self, clock: int) -> int:
        if self.period:
            return min(clock + self.period - (clock - self.origin) % self.period, NEVER - 1)
        return min(clock + self.delay, NEVER - 1)

    def would_fire(self, s: State, m: Moment) -> Mask:
        deadline = self.col(s, "deadline")
        return ~self.done(s) & (deadline != NEVER) & (deadline <= m.clock(self.domain))

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        least_into(s, out, f"{self.path}.deadline", into, take)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        return self.col(s, "deadline") if domain == self.domain else NEVER


class AlwaysNode(Node):
    """`Always`: fires in every bundle with rows; never finished."""

    def would_fire(self, s: State, m: Moment) -> Mask:
        return m.got & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        pass


class NeverNode(Node):
    """`Never`: does not fire."""

    def would_fire(self, s: State, m: Moment) -> Mask:
        return np.zeros(len(m.end), np.bool_)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        pass


class PunctuationNode(Leaf):
    """`OnPunctuation`: fires when a row of this bundle satisfies the predicate."""

    def __init__(self, path: str, row_fact: Fact) -> None:
        super().__init__(path)
        self.row_fact = row_fact

    def facts(self) -> Iterator[Fact]:
        yield self.row_fact

    def would_fire(self, s: State, m: Moment) -> Mask:
        if m.phase != "rows":
            return np.zeros(len(m.end), np.bool_)
        return ~self.done(s) & (m.facts[self.row_fact.name] > 0)


class SignalNode(Leaf):
    """`OnSignal`: fires when a signal of its flow is in this bundle.

    Its bit says which signals are its own; the compiled grouping numbers the nodes of a trigger in their order.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.bit = 1

    def would_fire(self, s: State, m: Moment) -> Mask:
        return ~self.done(s) if m.signals & self.bit else np.zeros(len(m.end), np.bool_)


class ResultNode(Leaf):
    """`OnResult`: fires when the aggregate of a window that got rows satisfies the predicate."""

    def __init__(self, path: str, predicate: Any) -> None:
        super().__init__(path)
        self.predicate = predicate

    def would_fire(self, s: State, m: Moment) -> Mask:
        mask = m.got & ~self.done(s)
        return m.result(self.predicate, mask) & mask if mask.any() else mask


class PercentileNode(Leaf):
    """`WatermarkPercentile`: fires once, when the percentile of the watermark reaches the end of the window."""

    def __init__(self, path: str, percent: float) -> None:
        super().__init__(path)
        self.percent = percent

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {"armed": (_BOOL, False)}

    def begin(self, s: State, mask: Mask, m: Moment) -> None:
        # Also where the node is not active: a sequence may reach it after the percentile has passed the end.
        set_where(self.col(s, "armed"), mask, m.percentile(self.percent) < m.end)

    def would_fire(self, s: State, m: Moment) -> Mask:
        return ~self.done(s) & self.col(s, "armed") & (m.percentile(self.percent) >= m.end)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        any_into(s, out, f"{self.path}.armed", into, take)
        open_still = m.percentile(self.percent) < m.end
        merged = np.zeros(len(open_still), np.bool_)
        merged[into[take]] = True
        set_where(self.done(out), merged & open_still, False)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        return where(self.col(s, "armed"), m.end) if domain == "percentile" else NEVER


class WatermarkNode(Node):
    """`AfterWatermark`: repeats `early` until the window has passed, fires once then, and repeats `late` after that."""

    def __init__(self, path: str, early: Node | None, late: Node | None) -> None:
        super().__init__(path, tuple(child for child in (early, late) if child is not None))
        self.early, self.late = early, late

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {"on_time": (_BOOL, False), "armed": (_BOOL, False)}

    def begin(self, s: State, mask: Mask, m: Moment) -> None:
        super().begin(s, mask, m)
        # A trigger that starts again after the end waits for rows. Otherwise it would fire in every step.
        set_where(self.col(s, "armed"), mask, ~m.passed)

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        on_time = self.col(s, "on_time")
        set_where(self.col(s, "armed"), active & ~on_time)
        if self.early is not None:
            self.early.on_rows(s, active & ~on_time, m)
        if self.late is not None:
            self.late.on_rows(s, active & on_time, m)

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        on_time = self.col(s, "on_time")
        if self.early is not None:
            self.early.observe(s, active & ~on_time & ~m.passed, m)
        if self.late is not None:
            self.late.observe(s, active & on_time, m)

    def would_fire(self, s: State, m: Moment) -> Mask:
        on_time, passed = self.col(s, "on_time"), m.passed
        would = ~on_time & passed & self.col(s, "armed")
        if self.early is not None:
            would |= ~on_time & ~passed & self.early.would_fire(s, m)
        if self.late is not None:
            would |= on_time & self.late.would_fire(s, m)
        return would & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        on_time = self.col(s, "on_time").copy()
        passing = mask & ~on_time & m.passed
        if self.early is not None:
            fire_repeated(self.early, s, mask & ~on_time & ~m.passed, m)
        if self.late is not None:
            fire_repeated(self.late, s, mask & on_time, m)
        set_where(self.col(s, "on_time"), passing)
        if self.late is None:
            set_where(self.done(s), passing)

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        for child in self.children:
            settle_repeated(child, s, mask, m)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        any_into(s, out, f"{self.path}.on_time", into, take)
        any_into(s, out, f"{self.path}.armed", into, take)
        merged = np.zeros(len(m.end), np.bool_)
        merged[into[take]] = True
        again = merged & ~m.passed
        set_where(self.col(out, "on_time"), again, False)
        set_where(self.done(out), again, False)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        on_time = self.col(s, "on_time")
        least: Deadlines = NEVER
        if domain == "event":
            least = where(self.col(s, "armed") & ~on_time, m.end)
        if self.early is not None:
            least = sooner(least, where(~(on_time | self.early.done(s)), self.early.deadline(s, domain, m)))
        if self.late is not None:
            least = sooner(least, where(on_time & ~self.late.done(s), self.late.deadline(s, domain, m)))
        return least


def fire_repeated(node: Node, s: State, mask: Mask, m: Moment) -> None:
    """Fire the node in `mask`, and reset it in the windows in which it finishes."""
    # `would_fire` is not called again: under AllOf the node may be ready since an earlier evaluation.
    node.fire(s, mask, m)
    node.reset(s, mask & node.done(s), m)


def settle_repeated(node: Node, s: State, mask: Mask, m: Moment) -> None:
    """Settle the node, and reset it in the windows in which it has finished without firing."""
    if node.ends_unseen:
        node.settle(s, mask, m)
        node.reset(s, mask & node.done(s), m)

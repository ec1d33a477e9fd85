"""Triggers made of triggers, and AfterWatermark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import uncombine as uc

from .trigger_model import KINDS, Node, Now, node


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
        self.armed = True

    def begin(self, now: Now) -> None:
        self.armed = not now.passed
        for half in (self.early, self.late):
            if half is not None:
                half.begin(now)

    def half(self) -> Node | None:
        return self.late if self.on_time else self.early

    def rows(self, now: Now) -> None:
        self.armed = self.armed or not self.on_time
        half = self.half()
        if half is not None:
            half.rows(now)

    def note(self, now: Now) -> None:
        half = self.half()
        if half is not None and (self.on_time or not now.passed):
            half.note(now)

    def wants(self, now: Now) -> bool:
        if not self.on_time and now.passed:
            return self.armed
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
        new.armed = not now.passed or any(other.armed for other in others)
        new.on_time = now.passed and any(other.on_time for other in others)
        new.finished = now.passed and new.finished
        if self.early is not None:
            new.early = self.early.merged([other.early for other in others], now)
        if self.late is not None:
            new.late = self.late.merged([other.late for other in others], now)
        return new


class Group(Node):
    """The common part of FirstOf, AllOf and SequenceOf."""

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


class InTurn(Group):
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


KINDS.update(
    {
        uc.AfterWatermark: PastEnd,
        uc.Repeatedly: Repeat,
        uc.RepeatUntil: Repeat,
        uc.RepeatCount: Repeat,
        uc.FirstOf: First,
        uc.AllOf: All,
        uc.SequenceOf: InTurn,
    }
)

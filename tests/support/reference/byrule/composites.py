"""Triggers made of triggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from . import leaves, user
from .leaves import Node, Now, Row


def node(spec: Any) -> Node:
    """A trigger for one window, as it is at the start."""
    for kind in type(spec).__mro__:
        if kind.__name__ in KINDS:
            return KINDS[kind.__name__](spec)
    raise TypeError(spec)


class Composite(Node):
    """Passes everything on to the children that are active."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.children = [node(child) for child in self.specs()]

    def specs(self) -> Sequence[Any]:
        return self.spec.children

    def active(self, now: Now | None) -> list[Node]:
        """The children that see events: those that are not finished."""
        return [] if self.finished else [child for child in self.children if not child.finished]

    def start(self, now: Now) -> None:
        for child in self.children:
            child.start(now)

    def again(self) -> None:
        for child in self.children:
            child.again()

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        for child in self.active(now):
            child.rows(rows, now)

    def due(self, domain: str, now: Now) -> bool:
        return any(child.due(domain, now) for child in self.active(now))

    def deadline(self) -> int | None:
        return min((at for child in self.active(None) if (at := child.deadline()) is not None), default=None)

    def look(self, now: Now) -> None:
        for child in self.active(now):
            child.look(now)

    def ready(self, now: Now) -> bool:
        return any(child.ready(now) for child in self.active(now))

    def fire(self, now: Now) -> list[str]:
        """rule 25: children that would fire are fired, others keep their state."""
        firing = [child for child in self.active(now) if child.ready(now)]
        asked = [mode for child in firing for mode in child.fire(now)]
        self.fired(firing, now)
        return asked

    def fired(self, firing: list[Node], now: Now) -> None:
        """These children have fired."""

    def close(self, now: Now) -> None:
        for child in self.children:
            child.close(now)

    def renew(self, at: int, now: Now) -> None:
        """Reset a child that is finished."""
        if self.children[at].finished:
            self.children[at] = node(self.children[at].spec)
            self.children[at].start(now)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        for at, child in enumerate(self.children):
            child.merged([source.children[at] for source in sources], now)


class FirstOf(Composite):
    def fired(self, firing: list[Node], now: Now) -> None:
        self.finished = any(child.finished for child in firing)  # rule 23

    def close(self, now: Now) -> None:
        super().close(now)
        self.finished = self.finished or all(child.finished for child in self.children)  # D25


class AllOf(Composite):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.stays = [False for _ in self.children]

    def look(self, now: Now) -> None:
        for at, child in enumerate(self.children):
            if not child.finished:
                child.look(now)
                self.stays[at] = self.stays[at] or child.ready(now)  # rule 23: stays ready

    def due(self, domain: str, now: Now) -> bool:
        return any(self._waits(at) and child.due(domain, now) for at, child in enumerate(self.children))

    def deadline(self) -> int | None:
        found = [child.deadline() for at, child in enumerate(self.children) if self._waits(at)]
        return min((at for at in found if at is not None), default=None)

    def _waits(self, at: int) -> bool:
        return not (self.finished or self.stays[at] or self.children[at].finished)

    def ready(self, now: Now) -> bool:
        return not self.finished and all(
            stays or child.finished for stays, child in zip(self.stays, self.children, strict=True)
        )

    def fire(self, now: Now) -> list[str]:
        asked = [mode for child in self.children if not child.finished for mode in child.fire(now)]
        self.stays = [False for _ in self.children]
        self.finished = all(child.finished for child in self.children)  # rule 23
        return asked

    def close(self, now: Now) -> None:
        super().close(now)
        self.finished = self.finished or all(child.finished for child in self.children)  # D25

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.stays = [any(ready) for ready in zip(*(source.stays for source in sources), strict=True)]  # D9


class SequenceOf(Composite):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.phase = 0

    def active(self, now: Now | None) -> list[Node]:
        return [] if self.finished else [self.children[self.phase]]  # rule 23: only the active child sees events

    def fire(self, now: Now) -> list[str]:
        asked = self.children[self.phase].fire(now)
        self._move_on()
        return asked

    def close(self, now: Now) -> None:
        super().close(now)
        self._move_on()

    def _move_on(self) -> None:
        if not self.finished and self.children[self.phase].finished:
            self.phase += 1
            self.finished = self.phase == len(self.children)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        self.phase = min(source.phase for source in sources)  # rule 23: the earliest phase
        self.finished = self.phase == len(self.children)
        if not self.finished:
            there = [source.children[self.phase] for source in sources if source.phase == self.phase]
            self.children[self.phase].merged(there, now)
            self._move_on()


class Repeatedly(Composite):
    def fire(self, now: Now) -> list[str]:
        asked = self.children[0].fire(now)
        self.renew(0, now)  # rule 23
        return asked

    def close(self, now: Now) -> None:
        super().close(now)
        self.renew(0, now)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.renew(0, now)


class Clearing(Composite):
    def fire(self, now: Now) -> list[str]:
        asked = self.children[0].fire(now)
        self.finished = self.children[0].finished
        return [*asked, "clear"]  # rule 35

    def close(self, now: Now) -> None:
        super().close(now)
        self.finished = self.children[0].finished

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.finished = self.children[0].finished


class RepeatCount(Repeatedly):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.times = 0

    def fire(self, now: Now) -> list[str]:
        asked = super().fire(now)
        self.times += 1
        self.finished = self.times >= self.spec.n  # rule 23
        return asked

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.times = max(source.times for source in sources)  # D9


class RepeatUntil(Composite):
    def specs(self) -> Sequence[Any]:
        return [self.spec.child, self.spec.until]

    def fired(self, firing: list[Node], now: Now) -> None:
        self.finished = self.children[1] in firing  # rule 23: finished when u fires
        self.renew(0, now)

    def close(self, now: Now) -> None:
        super().close(now)
        self.renew(0, now)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        super().merged(sources, now)
        self.renew(0, now)


class AfterWatermark(Composite):
    """rule 18; its children are the repeated early and late triggers, or Never."""

    def __init__(self, spec: Any) -> None:
        Node.__init__(self, spec)
        self.early = self._repeated(spec.early)
        self.late = self._repeated(spec.late)
        self.on_time_done = False
        self.armed = False

    def _repeated(self, spec: Any) -> Node | None:
        return None if spec is None else node(_Repeated(spec))

    @property
    def children(self) -> list[Node]:  # type: ignore[override]
        return [child for child in (self.early, self.late) if child is not None]

    def active(self, now: Now | None) -> list[Node]:
        deciding = self.late if self.on_time_done else self.early if now is None or not now.passed else None
        return [] if self.finished or deciding is None else [deciding]

    def due(self, domain: str, now: Now) -> bool:
        if self.finished:
            return False
        return (domain == "event" and self._passes(now)) or super().due(domain, now)

    def ready(self, now: Now) -> bool:
        if self.finished:
            return False
        return self._passes(now) or super().ready(now)

    def fire(self, now: Now) -> list[str]:
        if self.on_time_done or not now.passed:
            return [mode for child in self.active(now) for mode in child.fire(now)]
        self.on_time_done = True
        self.finished = self.late is None
        return []

    def _passes(self, now: Now) -> bool:
        return now.passed and self.armed and not self.on_time_done

    def start(self, now: Now) -> None:
        super().start(now)
        self.armed = not now.passed  # D4

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        self.armed = True
        deciding = self.late if self.on_time_done else self.early
        if deciding is not None and not self.finished:
            deciding.rows(rows, now)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        # rule 18: with the end after the watermark (again) it is in its early phase.
        self.on_time_done = now.passed and any(source.on_time_done for source in sources)  # D9
        self.finished = now.passed and any(source.finished for source in sources)
        self.armed = self.armed or any(source.armed for source in sources)
        # rule 25: both have kept their state over the on-time firing.
        if self.early is not None:
            self.early.merged([source.early for source in sources], now)
        if self.late is not None:
            self.late.merged([source.late for source in sources], now)


class _Repeated:
    """Stands for Repeatedly(child), without needing the class of that name."""

    def __init__(self, child: Any) -> None:
        self.children = (child,)


_LEAVES = (
    leaves.AfterCount,
    leaves.AfterBytes,
    leaves.AfterDelay,
    leaves.AtPeriod,
    leaves.WatermarkPercentile,
    leaves.OnPunctuation,
    leaves.OnResult,
    leaves.Always,
    leaves.Never,
    leaves.OnSignal,
)
_COMPOSITES = (FirstOf, AllOf, SequenceOf, Repeatedly, Clearing, RepeatCount, RepeatUntil, AfterWatermark)
KINDS: dict[str, type[Node]] = {kind.__name__: kind for kind in (*_LEAVES, *_COMPOSITES)}
KINDS |= {"_Repeated": Repeatedly, "UserTrigger": user.UserNode}

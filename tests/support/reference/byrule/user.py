"""Triggers of the user's own (rule 28).

The protocol, as `uc.UserTrigger` and `uc.TriggerContext` have it: a class with `on_element(row, window, ctx)`,
`on_merge(sources, ctx)` and `on_timer(tag, time, ctx)`. `ctx` has `window`, `watermark`, `processing_time`, `state`
(a dict by tag), `timers`, `set_timer(tag, time, domain)`, `delete_timer(tag)`, `value(name)`, `fire(clear, tag)` with
clear None, False or True, and `finish()`. Every place of a user trigger in a tree has a context of its own in every
window. `on_start(ctx)` comes first and `on_fire(ctx)` with a firing. A class with `children` also has
`on_children(ctx)`, and `ctx.children` has for each `wants`, `finished`, `active`, `fire()` and `reset()`. In
`on_merge` each child also has `merge(sources)`, and `ctx.finished` can be set.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from .leaves import Node, Now, Row
from .times import micros


class Child:
    """A child as the user's code sees it."""

    def __init__(self, inner: Node) -> None:
        self.inner = inner
        self.active = True
        self.wants = False
        self.wanted = False  # on_children has seen that it wants to fire
        self.chosen = False
        self.place = 0
        self.now: Now | None = None

    @property
    def finished(self) -> bool:
        return self.inner.finished

    def fire(self) -> None:
        self.chosen = True

    def reset(self) -> None:
        assert self.now is not None
        self.inner = new(self.inner.spec)
        self.inner.start(self.now)
        self.wants = self.wanted = self.chosen = False

    def merge(self, sources: Sequence[Context]) -> None:
        """rule 28: it goes on from these windows alone."""
        self.reset()
        if sources:
            assert self.now is not None
            self.inner.merged([source.children[self.place].inner for source in sources], self.now)
        self.wanted = any(source.children[self.place].wanted for source in sources)

    @property
    def awake(self) -> bool:
        return self.active and not self.inner.finished


def new(spec: Any) -> Node:
    from . import composites

    return composites.node(spec)


class Context:
    """A user trigger's own corner of one window."""

    def __init__(self, spec: Any) -> None:
        self.state: dict[str, Any] = {}
        self.timers: dict[str, tuple[int, str]] = {}
        self.window, self.watermark, self.processing_time = (0, 0), 0, 0
        self.asked: list[str] = []
        self.finishing = False
        self.children = [Child(new(child)) for child in spec.children]
        for place, child in enumerate(self.children):
            child.place = place
        self.finished = False
        self.now: Now | None = None

    def set_timer(self, tag: str, time: Any, domain: str = "processing") -> None:
        self.timers[tag] = (micros(time), domain)

    def delete_timer(self, tag: str) -> None:
        self.timers.pop(tag, None)

    def value(self, name: str) -> Any:
        assert self.now is not None
        result = self.now.result()
        return None if result is None else result[name]

    def fire(self, *, clear: bool | None = None, tag: str | None = None) -> None:
        mode = {None: "default", True: "clear", False: "accumulate"}[clear]
        self.asked = [mode] if tag is None else [mode, f"={tag}"]

    def finish(self) -> None:
        self.finishing = True


class UserNode(Node):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.ctx = Context(spec)
        self.children = self.ctx.children
        self.started = False

    def _see(self, now: Now) -> Context:
        self.ctx.now = now
        for child in self.children:
            child.now = now
        self.ctx.window, self.ctx.watermark, self.ctx.processing_time = (
            (now.start, now.end),
            now.watermark,
            now.clock,
        )
        return self.ctx

    def start(self, now: Now) -> None:
        self._see(now)
        for child in self.children:
            child.inner.start(now)

    def again(self) -> None:
        for child in self.children:
            child.inner.again()

    def _start(self, now: Now) -> None:
        if not self.started:
            self.spec.on_start(self._see(now))
        self.started = True

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        self._start(now)
        for row in rows:
            self.spec.on_element(row, (now.start, now.end), self._see(now))
        for child in self.children:
            if child.awake:
                child.inner.rows(rows, now)

    def _due(self, domain: str, now: Now) -> list[tuple[int, str]]:
        return sorted((t, tag) for tag, (t, d) in self.ctx.timers.items() if d == domain and t <= now.time(domain))

    def _waiting(self) -> list[Node]:
        return [child.inner for child in self.children if child.awake and not child.wanted]

    def due(self, domain: str, now: Now) -> bool:
        own = bool(self._due(domain, now))
        return not self.finished and (own or any(child.due(domain, now) for child in self._waiting()))

    def deadline(self) -> int | None:
        if self.finished:
            return None
        times = [t for t, domain in self.ctx.timers.values() if domain == "processing"]
        times += [at for child in self._waiting() if (at := child.deadline()) is not None]
        return min(times, default=None)

    def look(self, now: Now) -> None:
        self._start(now)
        called = now.phase == "rows"
        # In increasing time; timers that a callback sets are of a later asking (D11).
        for t, tag in (
            []
            if now.phase in ("rows", "signal")
            else self._due("processing" if now.phase == "processing" else "event", now)
        ):
            called = True
            if self.ctx.timers.get(tag, (None, ""))[0] == t:
                del self.ctx.timers[tag]
                self.spec.on_timer(tag, t, self._see(now))
        for child in self.children:
            if child.awake:
                child.inner.look(now)
            child.wants = child.awake and child.inner.ready(now)
            called = called or (child.wants and not child.wanted)
            child.wanted = child.wants
        if called and self.children:
            self.spec.on_children(self._see(now))

    def ready(self, now: Now) -> bool:
        return not self.finished and bool(self.ctx.asked)

    def fire(self, now: Now) -> list[str]:
        asked, self.ctx.asked = list(self.ctx.asked), []
        for child in self.children:
            if child.awake and (child.chosen or child.inner.ready(now)):
                asked += child.inner.fire(now)
                child.wanted = False
        self.spec.on_fire(self._see(now))
        self.finished = self.ctx.finishing
        return asked

    def close(self, now: Now) -> None:
        self.ctx.asked = []
        self.finished = self.finished or self.ctx.finishing
        later = replace(now, signals=())  # rule 102: the next signal is another one
        for child in self.children:
            child.inner.close(now)
            child.chosen = False
            child.wanted = child.wanted and child.awake and child.inner.ready(later)

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        # rule 28: state and timers of the sources are there at the merge and gone after it.
        super().merged(sources, now)
        self.started = any(source.started for source in sources)
        for i, child in enumerate(self.children):
            were = [source.children[i] for source in sources]
            child.inner.merged([was.inner for was in were], now)
            child.active = any(was.active for was in were)
            child.wanted = any(was.wanted for was in were)
        contexts = [source._told(now) for source in sources]
        self.ctx.finished = self.finished
        self.spec.on_merge(contexts, self._see(now))
        self.finished = self.ctx.finished

    def _told(self, now: Now) -> Context:
        """A copy of the context of a window that merges: its own window and result, and the clocks of the merge."""
        ctx = copy.copy(self.ctx)
        ctx.state, ctx.timers = copy.deepcopy(ctx.state), dict(ctx.timers)
        ctx.watermark, ctx.processing_time, ctx.finished = now.watermark, now.clock, self.finished
        return ctx

"""Triggers of the user's own (rule 28).

The protocol, as `uc.UserTrigger` and `uc.TriggerContext` have it: a class with `on_element(row, window, ctx)`,
`on_merge(sources, ctx)` and `on_timer(tag, time, ctx)`. `ctx` has `window`, `watermark`, `processing_time`,
`state` (a dict by tag), `timers`, `set_timer(tag, time, domain)`, `delete_timer(tag)`, `fire(mode)` with mode
"default", "accumulate" or "clear", and `finish()`. Every place of a user trigger in a tree has a context of its
own in every window.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

from .leaves import Node, Now, Row
from .times import micros


class Context:
    """A user trigger's own corner of one window."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.timers: dict[str, tuple[int, str]] = {}
        self.window, self.watermark, self.processing_time = (0, 0), 0, 0
        self.asked: list[str] = []
        self.finishing = False

    def set_timer(self, tag: str, time: Any, domain: str = "processing") -> None:
        self.timers[tag] = (micros(time), domain)

    def delete_timer(self, tag: str) -> None:
        self.timers.pop(tag, None)

    def fire(self, mode: str = "default") -> None:
        self.asked = [mode]

    def finish(self) -> None:
        self.finishing = True


class UserNode(Node):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.ctx = Context()

    def _see(self, now: Now) -> Context:
        self.ctx.window, self.ctx.watermark, self.ctx.processing_time = (
            (now.start, now.end),
            now.watermark,
            now.clock,
        )
        return self.ctx

    def rows(self, rows: Sequence[Row], now: Now) -> None:
        for row in rows:
            self.spec.on_element(row, (now.start, now.end), self._see(now))

    def _due(self, domain: str, now: Now) -> list[tuple[int, str]]:
        return sorted((t, tag) for tag, (t, d) in self.ctx.timers.items() if d == domain and t <= now.time(domain))

    def due(self, domain: str, now: Now) -> bool:
        return not self.finished and bool(self._due(domain, now))

    def deadline(self) -> int | None:
        times = [t for t, domain in self.ctx.timers.values() if domain == "processing" and not self.finished]
        return min(times, default=None)

    def look(self, now: Now) -> None:
        if now.phase == "rows":
            return
        # In increasing time; timers that a callback sets are of a later asking (D11).
        for t, tag in self._due("processing" if now.phase == "processing" else "event", now):
            if self.ctx.timers.get(tag, (None, ""))[0] == t:
                del self.ctx.timers[tag]
                self.spec.on_timer(tag, t, self._see(now))

    def ready(self, now: Now) -> bool:
        return not self.finished and bool(self.ctx.asked)

    def fire(self, now: Now) -> list[str]:
        asked, self.ctx.asked = self.ctx.asked, []
        self.finished = self.ctx.finishing
        return asked

    def close(self, now: Now) -> None:
        self.ctx.asked = []
        self.finished = self.finished or self.ctx.finishing

    def merged(self, sources: Sequence[Self], now: Now) -> None:
        # rule 28: state and timers of the sources are there at the merge and gone after it.
        super().merged(sources, now)
        self.spec.on_merge([copy.deepcopy(source.ctx) for source in sources], self._see(now))

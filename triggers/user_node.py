"""The evaluation of user triggers, with a Python loop over windows and rows, because user code sees one row at a time.

`tests/panes/test_user_triggers.py` guards this module.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..windows.times import NEVER
from .program import Deadlines, Mask, Moment, Node, State
from .user import TriggerContext, UserTrigger

_OBJECT = np.dtype(object)
_INT = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)


class UserNode(Node):
    """A `UserTrigger`: state and timers are JSON text in a column; the least time of its timers is in two more."""

    def __init__(self, path: str, trigger: UserTrigger) -> None:
        super().__init__(path)
        self.trigger = trigger
        self.ends_unseen = True

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        columns = {"memo": (_OBJECT, ""), "wants": (_OBJECT, ""), "ended": (_BOOL, False)}
        return {**columns, "event": (_INT, NEVER), "processing": (_INT, NEVER)}

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        if not (active & m.got).any():
            return
        for window, rows in m.arrivals().items():
            if not active[window]:
                continue
            ctx = self._context(s, window, m)
            for row in rows:
                self.trigger.on_element(row, ctx.window, ctx)
            self._keep(s, window, ctx)

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        if m.phase == "rows":
            return
        domain = "processing" if m.phase == "processing" else "event"
        due = active & (self.col(s, domain) <= m.clock(domain)) & (self.col(s, domain) != NEVER)
        for window in np.flatnonzero(due).tolist():
            ctx = self._context(s, window, m)
            due_now = [(t, tag) for tag, (t, d) in ctx.timers.items() if d == domain and t <= m.clock(domain)]
            for time, tag in sorted(due_now):
                if ctx.timers.get(tag) == (time, domain):
                    ctx.delete_timer(tag)
                    self.trigger.on_timer(tag, time, ctx)
            self._keep(s, window, ctx)

    def would_fire(self, s: State, m: Moment) -> Mask:
        return (self.col(s, "wants") != "") & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        wants = self.col(s, "wants")
        for name in ("clear", "accumulate"):
            if name in m.requests:
                m.requests[name] |= mask & (wants == name)
        self.done(s)[mask & self.col(s, "ended")] = True
        wants[mask] = ""

    def settle(self, s: State, asked: Mask, m: Moment) -> None:
        # A request to fire counts in this evaluation only. A request to finish counts after it.
        self.col(s, "wants")[asked] = ""
        self.done(s)[asked & self.col(s, "ended")] = True

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        sources: dict[int, list[TriggerContext]] = {}
        for window in np.flatnonzero(take).tolist():
            sources.setdefault(int(into[window]), []).append(self._context(s, window, m, start=False))
        for window, contexts in sources.items():
            ctx = self._context(out, window, m)
            self.trigger.on_merge(contexts, ctx)
            self._keep(out, window, ctx)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        return self.col(s, domain) if domain in ("event", "processing") else NEVER

    def _context(self, s: State, window: int, m: Moment, start: bool = True) -> TriggerContext:
        text = self.col(s, "memo")[window]
        bounds = (int(m.start[window]), int(m.end[window])) if start else (0, 0)
        return TriggerContext(bounds, m.watermark, m.processing_time, json.loads(text) if text else {})

    def _keep(self, s: State, window: int, ctx: TriggerContext) -> None:
        memo = ctx.memo()
        self.col(s, "memo")[window] = json.dumps(memo, sort_keys=True) if ctx.state or ctx.timers else ""
        for domain in ("event", "processing"):
            times = [time for time, d in ctx.timers.values() if d == domain]
            self.col(s, domain)[window] = min(times, default=NEVER)
        if ctx.fired is not None:
            self.col(s, "wants")[window] = ctx.fired
        if ctx.finished:
            self.col(s, "ended")[window] = True

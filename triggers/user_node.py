"""The evaluation of user triggers, with a Python loop over windows and rows, because user code sees one row at a time.

Only the calls of user code go window by window: the children of a user trigger are asked for all windows at once.
`tests/panes/grouping/test_user_triggers.py` and `tests/panes/grouping/test_user_composites.py` guard this module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..windows.times import NEVER
from .program import Deadlines, Mask, Moment, Node, State, any_into, sooner, where
from .user import UserTrigger
from .user_calls import Calls
from .user_merge import Merge

_OBJECT = np.dtype(object)
_INT = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)


class UserNode(Node):
    """A `UserTrigger`: state and timers are JSON text in a column; the least time of its timers is in two more.

    For each child there are three columns: `paused` where it sees no rows and no clocks, `wanted` where `on_children`
    has seen that it wants to fire, so that its deadlines no longer wake the window, and `chosen` where `child.fire()`
    was called in this evaluation.
    """

    def __init__(self, path: str, trigger: UserTrigger, children: tuple[Node, ...] = ()) -> None:
        super().__init__(path, children)
        self.trigger = trigger
        self.ends_unseen = True
        self.sees_start = type(trigger).on_start is not UserTrigger.on_start
        self.sees_firing = type(trigger).on_fire is not UserTrigger.on_fire

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        columns: dict[str, tuple[np.dtype[Any], Any]] = {"memo": (_OBJECT, ""), "wants": (_OBJECT, "")}
        columns |= {"ended": (_BOOL, False), "event": (_INT, NEVER), "processing": (_INT, NEVER)}
        if self.sees_start:
            columns["started"] = (_BOOL, False)
        for i in range(len(self.children)):
            columns |= {f"paused{i}": (_BOOL, False), f"wanted{i}": (_BOOL, False), f"chosen{i}": (_BOOL, False)}
        return columns

    def awake(self, s: State, i: int) -> Mask:
        """True for windows in which a child sees rows and clocks."""
        return ~(self.col(s, f"paused{i}") | self.children[i].done(s))

    def _calls(self, s: State, m: Moment, windows: list[int]) -> Calls:
        return Calls(self, self.trigger, s, m, windows)

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        if not (active & m.got).any():
            return
        self._start(s, active, m)
        arrivals = {window: rows for window, rows in m.arrivals().items() if active[window]}
        calls = self._calls(s, m, list(arrivals))
        for window, rows in arrivals.items():
            ctx = calls.context(window)
            for row in rows:
                self.trigger.on_element(row, ctx.window, ctx)
            calls.keep(window, ctx)
        calls.end()
        for i, child in enumerate(self.children):
            child.on_rows(s, active & self.awake(s, i), m)

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        self._start(s, active, m)
        called = active if m.phase == "rows" else self._timers(s, active, m)
        if self.children:
            self._ask_children(s, active, called, m)

    def _start(self, s: State, active: Mask, m: Moment) -> None:
        """Call `on_start` before the first of all other calls."""
        if self.sees_start:
            calls = self._calls(s, m, np.flatnonzero(active & ~self.col(s, "started")).tolist())
            for window in calls.windows:
                ctx = calls.context(window)
                self.trigger.on_start(ctx)
                calls.keep(window, ctx)
            calls.end()
            self.col(s, "started")[calls.windows] = True

    def _timers(self, s: State, active: Mask, m: Moment) -> Mask:
        """Call the trigger for timers that are due; true for windows that have some. A signal is no time of a clock."""
        if m.phase == "signal":
            return np.zeros(len(active), np.bool_)
        domain = "processing" if m.phase == "processing" else "event"
        due = active & (self.col(s, domain) <= m.clock(domain)) & (self.col(s, domain) != NEVER)
        calls = self._calls(s, m, np.flatnonzero(due).tolist())
        for window in calls.windows:
            ctx = calls.context(window)
            due_now = [(t, tag) for tag, (t, d) in ctx.timers.items() if d == domain and t <= m.clock(domain)]
            for time, tag in sorted(due_now):
                if ctx.timers.get(tag) == (time, domain):
                    ctx.delete_timer(tag)
                    self.trigger.on_timer(tag, time, ctx)
            calls.keep(window, ctx)
        calls.end()
        return due

    def _ask_children(self, s: State, active: Mask, called: Mask, m: Moment) -> None:
        """Let the children look at this moment, and call `on_children` where it is due."""
        wants = []
        for i, child in enumerate(self.children):
            child.observe(s, active & self.awake(s, i), m)
            want, wanted = active & self.awake(s, i) & child.would_fire(s, m), self.col(s, f"wanted{i}")
            called = called | (want & ~wanted)
            np.copyto(wanted, want, where=active)
            wants.append(want)
        calls = self._calls(s, m, np.flatnonzero(called).tolist())
        for window in calls.windows:
            ctx = calls.context(window, wants)
            self.trigger.on_children(ctx)
            calls.keep(window, ctx)
        calls.end()

    def would_fire(self, s: State, m: Moment) -> Mask:
        return (self.col(s, "wants") != "") & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        self._requests(s, mask, m)
        for i, child in enumerate(self.children):
            fires = mask & self.awake(s, i) & (self.col(s, f"chosen{i}") | child.would_fire(s, m))
            child.fire(s, fires, m)
            self.col(s, f"wanted{i}")[fires] = False  # it has what it wanted: it is heard when it wants to fire again
        if self.sees_firing:
            calls = self._calls(s, m, np.flatnonzero(mask).tolist())
            for window in calls.windows:
                ctx = calls.context(window)
                self.trigger.on_fire(ctx)
                if ctx.fired is not None:
                    raise InvalidArgument(
                        f"{self.trigger!r} calls ctx.fire() in on_fire, which is called because it fires: call it in "
                        "on_children"
                    )
                calls.keep(window, ctx)
            calls.end()
        self.done(s)[mask & self.col(s, "ended")] = True
        self.col(s, "wants")[mask] = ""

    def _requests(self, s: State, mask: Mask, m: Moment) -> None:
        """Pass on what `ctx.fire()` asked for: a mode and a tag, of which a window may get several."""
        wants = self.col(s, "wants")
        for window in np.flatnonzero(mask & (wants != "")).tolist():
            mode, _, tag = wants[window].partition(",")
            if mode in m.requests:
                m.requests[mode][window] = True
            if tag:
                tags = m.requests.setdefault("tags", np.full(len(mask), "", _OBJECT))
                earlier = tags[window].split(", ") if tags[window] else []
                tags[window] = ", ".join(dict.fromkeys([*earlier, tag]))

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        # A request to fire counts in this evaluation only. A request to finish counts after it.
        super().settle(s, mask, m)
        self.col(s, "wants")[mask] = ""
        self.done(s)[mask & self.col(s, "ended")] = True
        m = replace(m, signals=0)  # the next signal is another one
        for i, child in enumerate(self.children):
            self.col(s, f"chosen{i}")[mask] = False
            self.col(s, f"wanted{i}")[mask & ~(self.awake(s, i) & child.would_fire(s, m))] = False

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        if self.sees_start:
            any_into(s, out, f"{self.path}.started", into, take)
        touched = np.unique(into[take])
        for i in range(len(self.children)):
            any_into(s, out, f"{self.path}.wanted{i}", into, take)
            paused = np.ones(len(self.done(out)), np.bool_)
            np.logical_and.at(paused, into[take], self.col(s, f"paused{i}")[take])
            self.col(out, f"paused{i}")[touched] = paused[touched]
        Merge(node=self, trigger=self.trigger, s=s, out=out, m=m).run(into, take)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        least: Deadlines = self.col(s, domain) if domain in ("event", "processing") else NEVER
        for i, child in enumerate(self.children):
            waits = self.awake(s, i) & ~self.col(s, f"wanted{i}")
            least = sooner(least, where(waits, child.deadline(s, domain, m)))
        return least

"""The calls of one method of a user trigger: a context for each window, and what the method changed in it.

`tests/panes/grouping/test_user_triggers.py` and `tests/panes/grouping/test_user_composites.py` guard this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..windows.times import NEVER
from .context import ChildTrigger, TriggerContext
from .program import Mask, Moment, Node, State
from .user import UserTrigger


class Calls:
    """The calls of one method for some windows of a step, one after the other.

    Results are computed for all these windows at once, when the first of them asks for one.
    """

    def __init__(self, node: Node, trigger: UserTrigger, s: State, m: Moment, windows: list[int]) -> None:
        self.node, self.trigger, self.s, self.m, self.windows = node, trigger, s, m, windows
        self._results: dict[str, dict[int, Any]] = {}
        self._resets: dict[int, list[int]] = {}
        """For each child, the windows in which it starts again."""

    def context(self, window: int, wants: Sequence[Mask] | None = None) -> TriggerContext:
        """The context of a window; `wants` has the windows in which each child wants to fire, where that is known."""
        node, s, m = self.node, self.s, self.m
        text = node.col(s, "memo")[window]
        bounds = (int(m.start[window]), int(m.end[window]))
        children: tuple[ChildTrigger, ...] = ()
        if node.children:
            children = tuple(self._child(i, window, wants) for i in range(len(node.children)))
        memo = json.loads(text) if text else {}
        done = bool(node.done(s)[window])
        return TriggerContext(bounds, m.watermark, m.processing_time, memo, children, self._values(window), done)

    def keep(self, window: int, ctx: TriggerContext) -> None:
        """Store what the trigger has changed in the context."""
        node, s = self.node, self.s
        memo = ctx.memo()
        node.col(s, "memo")[window] = json.dumps(memo, sort_keys=True) if ctx.state or ctx.timers else ""
        for domain in ("event", "processing"):
            times = [time for time, d in ctx.timers.values() if d == domain]
            node.col(s, domain)[window] = min(times, default=NEVER)
        if ctx.fired is not None:
            node.col(s, "wants")[window] = ctx.fired if ctx.tag is None else f"{ctx.fired},{ctx.tag}"
        if ctx.finishes:
            node.col(s, "ended")[window] = True
        for i, child in enumerate(ctx.children):
            node.col(s, f"paused{i}")[window] = not child.active
            if child.fires:
                node.col(s, f"chosen{i}")[window] = True
            if child.starts_again:
                self._resets.setdefault(i, []).append(window)

    def end(self) -> None:
        """Put children back to their start, where the trigger asked for it."""
        for i, windows in self._resets.items():
            mask = np.zeros(len(self.node.done(self.s)), np.bool_)
            mask[windows] = True
            self.node.children[i].reset(self.s, mask, self.m)
            self.node.col(self.s, f"wanted{i}")[windows] = False  # a new child has not asked to fire

    def _child(self, i: int, window: int, wants: Sequence[Mask] | None) -> ChildTrigger:
        finished = bool(self.node.children[i].done(self.s)[window])
        paused = bool(self.node.col(self.s, f"paused{i}")[window])
        want = None if wants is None else bool(wants[i][window])
        return ChildTrigger(self.trigger.children[i], finished, not paused, want)

    def _values(self, window: int) -> Callable[[str], Any] | None:
        compute = self.m.values
        if compute is None:
            return None

        def value(name: str) -> Any:
            if name not in self._results:
                results = compute(name, np.array(self.windows, np.int64))
                self._results[name] = dict(zip(self.windows, results, strict=True))
            return self._results[name][window]

        return value

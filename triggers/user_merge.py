"""Windows become one under a user trigger: `on_merge` is called, and says from which of them each child goes on.

The windows are visited one after the other, because user code sees one at a time.
`tests/panes/grouping/test_user_triggers.py` and `tests/panes/grouping/test_user_composites.py` guard this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidArgument
from .context import TriggerContext
from .program import Mask, Moment, Node, State
from .user import UserTrigger
from .user_calls import Calls


@dataclass(frozen=True)
class Merge:
    """The merge of some windows of `s` into windows of `out`, in which the children have merged by their own rules."""

    node: Node
    trigger: UserTrigger
    s: State
    out: State
    m: Moment

    def run(self, into: np.ndarray, take: Mask) -> None:
        """Call `on_merge` for each window that others became."""
        sources = self.m.sources
        assert sources is not None, "a merge knows the windows that merge"
        places = np.flatnonzero(take)
        places = places[np.lexsort((sources.end[places], sources.start[places]))]
        by_window: dict[int, list[int]] = {}
        for place in places.tolist():
            by_window.setdefault(int(into[place]), []).append(place)
        old = Calls(self.node, self.trigger, self.s, sources, places.tolist())
        new = Calls(self.node, self.trigger, self.out, self.m, sorted(by_window))
        for window in new.windows:
            contexts = [old.context(place) for place in by_window[window]]
            ctx = new.context(window)
            finished = ctx.finished
            for i, child in enumerate(ctx.children):
                child._merge = self._of_child(i, window, contexts, by_window[window])
            self.trigger.on_merge(contexts, ctx)
            new.keep(window, ctx)
            self.node.done(self.out)[window] = ctx.finished and (finished or not ctx.finishes)
        new.end()

    def _of_child(
        self, i: int, window: int, contexts: Sequence[TriggerContext], places: Sequence[int]
    ) -> Callable[[Sequence[TriggerContext]], bool]:
        """A function that merges a child of a window from some of the windows, and says if it is finished then."""
        child, names = self.node.children[i], self.node.children[i].columns()

        def merge(chosen: Sequence[TriggerContext]) -> bool:
            numbers = [next((n for n, context in enumerate(contexts) if context is one), None) for one in chosen]
            if None in numbers or len(set(numbers)) < len(numbers):
                raise InvalidArgument(
                    "child.merge() takes contexts that on_merge got as sources, each once: give some of these, such as "
                    "[source for source in sources if source.state]"
                )
            m = self.m
            assert m.sources is not None
            at = np.array([places[number] for number in numbers if number is not None], np.int64)
            # Slices are views, so that what the child stores goes into the columns of the new windows.
            out = {name: self.out[name][window : window + 1] for name in names}
            s = {name: self.s[name][at] for name in names}
            alone = m.at(np.array([window]), m.sources.at(at))
            child.reset(out, np.ones(1, np.bool_), alone)
            if len(at):
                child.merge(s, out, np.zeros(len(at), np.int64), np.ones(len(at), np.bool_), alone)
            wanted = self.node.col(self.s, f"wanted{i}")[at]
            self.node.col(self.out, f"wanted{i}")[window] = bool(wanted.any())
            return bool(child.done(out)[0])

        return merge

"""The columnar evaluation of the composite triggers.

`tests/panes/grouping/test_rules.py` and `tests/panes/grouping/test_reference.py` guard these nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..windows.times import NEVER
from .leaf_nodes import fire_repeated, settle_repeated
from .program import Deadlines, Mask, Moment, Node, State, any_into, least_into, set_where, sooner, where

_INT = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)


def _fire_where_ready(node: Node, s: State, mask: Mask, m: Moment) -> Mask:
    """Fire the node in the windows of `mask` in which it would fire; these windows."""
    firing = mask & node.would_fire(s, m)
    node.fire(s, firing, m)
    return firing


class _Together(Node):
    """A node whose children all see events; it is finished when all its children are."""

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        super().settle(s, mask, m)
        ended = mask.copy()
        for child in self.children:
            ended &= child.done(s)
        set_where(self.done(s), ended)


class FirstOfNode(_Together):
    """`FirstOf`: fires when a child would fire; finished when a child that fired is finished."""

    def would_fire(self, s: State, m: Moment) -> Mask:
        would = np.zeros(len(m.end), np.bool_)
        for child in self.children:
            would |= child.would_fire(s, m)
        return would & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        for child in self.children:
            fired = _fire_where_ready(child, s, mask, m)
            set_where(self.done(s), fired & child.done(s))


class AllOfNode(_Together):
    """`AllOf`: fires when all children are ready; a child that would fire stays ready until the firing."""

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {f"ready{i}": (_BOOL, False) for i in range(len(self.children))}

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        super().observe(s, active, m)
        for i, child in enumerate(self.children):
            set_where(self.col(s, f"ready{i}"), active & child.would_fire(s, m))

    def would_fire(self, s: State, m: Moment) -> Mask:
        would = ~self.done(s)
        any_ready = np.zeros(len(would), np.bool_)
        for i, child in enumerate(self.children):
            ready = self.col(s, f"ready{i}")
            would &= ready | child.done(s)
            any_ready |= ready
        return would & any_ready

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        finished = mask.copy()
        for i, child in enumerate(self.children):
            child.fire(s, mask & self.col(s, f"ready{i}") & ~child.done(s), m)
            set_where(self.col(s, f"ready{i}"), mask, False)
            finished &= child.done(s)
        set_where(self.done(s), finished)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        for i in range(len(self.children)):
            any_into(s, out, f"{self.path}.ready{i}", into, take)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        # A child that is ready waits for the other children and needs no timer.
        least: Deadlines = NEVER
        for i, child in enumerate(self.children):
            waits = ~(child.done(s) | self.col(s, f"ready{i}"))
            least = sooner(least, where(waits, child.deadline(s, domain, m)))
        return least


class SequenceOfNode(Node):
    """`SequenceOf`: only the active child sees events; the next child becomes active when it finishes."""

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {"phase": (_INT, 0)}

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        phase = self.col(s, "phase")
        for i, child in enumerate(self.children):
            child.on_rows(s, active & (phase == i), m)

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        phase = self.col(s, "phase")
        for i, child in enumerate(self.children):
            child.observe(s, active & (phase == i), m)

    def would_fire(self, s: State, m: Moment) -> Mask:
        phase = self.col(s, "phase")
        would = np.zeros(len(phase), np.bool_)
        for i, child in enumerate(self.children):
            would |= (phase == i) & child.would_fire(s, m)
        return would & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        phase = self.col(s, "phase").copy()
        for i, child in enumerate(self.children):
            here = mask & (phase == i)
            child.fire(s, here, m)
            self.col(s, "phase")[here & child.done(s)] += 1
        set_where(self.done(s), self.col(s, "phase") == len(self.children))

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        super().settle(s, mask, m)
        phase = self.col(s, "phase").copy()
        for i, child in enumerate(self.children):
            self.col(s, "phase")[mask & (phase == i) & child.done(s)] += 1
        set_where(self.done(s), self.col(s, "phase") == len(self.children))

    def merge(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        name = f"{self.path}.phase"
        touched = np.zeros(len(out[name]), np.bool_)
        touched[into[take]] = True
        out[name][touched] = len(self.children)
        least_into(s, out, name, into, take)
        set_where(self.done(out), touched & (out[name] == len(self.children)))
        for i, child in enumerate(self.children):
            here = take & (s[name] == i) & (out[name][into] == i)
            child.merge(s, out, into, here, m)

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        phase = self.col(s, "phase")
        least: Deadlines = NEVER
        for i, child in enumerate(self.children):
            least = sooner(least, where((phase == i) & ~child.done(s), child.deadline(s, domain, m)))
        return least


class RepeatedlyNode(Node):
    """`Repeatedly`: fires with its child and resets the child when it finishes."""

    def would_fire(self, s: State, m: Moment) -> Mask:
        return self.children[0].would_fire(s, m)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        fire_repeated(self.children[0], s, mask, m)

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        settle_repeated(self.children[0], s, mask, m)


class ClearingNode(Node):
    """`Clearing`: fires and finishes with its child, and asks to empty the windows in which it fires."""

    def columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return self.children[0].columns()

    def done(self, s: State) -> np.ndarray:
        return self.children[0].done(s)

    def would_fire(self, s: State, m: Moment) -> Mask:
        return self.children[0].would_fire(s, m)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        self.children[0].fire(s, mask, m)
        if "clear" in m.requests:
            set_where(m.requests["clear"], mask)


class RepeatUntilNode(Node):
    """`RepeatUntil`: fires with its child, which is reset when it finishes, and with `until`, which ends it."""

    def would_fire(self, s: State, m: Moment) -> Mask:
        child, until = self.children
        return (child.would_fire(s, m) | until.would_fire(s, m)) & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        child, until = self.children
        fire_repeated(child, s, mask & child.would_fire(s, m), m)
        set_where(self.done(s), _fire_where_ready(until, s, mask, m))

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        child, until = self.children
        settle_repeated(child, s, mask, m)
        if until.ends_unseen:
            until.settle(s, mask, m)


class RepeatCountNode(Node):
    """`RepeatCount`: fires with its child, which is reset when it finishes; finished after n firings."""

    def __init__(self, path: str, children: tuple[Node, ...], n: int) -> None:
        super().__init__(path, children)
        self.n = n

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        return {"fired": (_INT, 0)}

    def would_fire(self, s: State, m: Moment) -> Mask:
        return self.children[0].would_fire(s, m) & ~self.done(s)

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        fire_repeated(self.children[0], s, mask, m)
        fired = self.col(s, "fired")
        fired[mask] += 1
        set_where(self.done(s), mask & (fired >= self.n))

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        settle_repeated(self.children[0], s, mask, m)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        np.maximum.at(self.col(out, "fired"), into[take], self.col(s, "fired")[take])

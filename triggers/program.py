"""A trigger compiled to columns: its state is a few arrays with an entry for each window, evaluated all at once.

Every node of the trigger becomes a `Node` with columns of its own. One evaluation is

    observe     latch what holds only at this moment (AllOf remembers which children were ready)
    would_fire  for each window, whether the node fires now
    fire        for the windows that fire, what that does to the node's state
    settle      where parts may end without firing: reset them, or move on from them

and between evaluations `on_rows` tells nodes of rows, `merge` joins the state of windows that become one, `reset`
puts a node back to its start. Columns live in a `State` dict that the caller owns and passes in; nodes keep nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..windows.times import NEVER

if TYPE_CHECKING:
    import pyarrow as pa

State: TypeAlias = dict[str, np.ndarray]
Mask: TypeAlias = np.ndarray

Deadlines: TypeAlias = np.ndarray | int
"""An instant for each window, or NEVER for all of them."""


def where(mask: Mask, deadlines: Deadlines) -> Deadlines:
    """These deadlines in `mask`, and none elsewhere."""
    return deadlines if isinstance(deadlines, int) or mask.all() else np.where(mask, deadlines, NEVER)


def sooner(a: Deadlines, b: Deadlines) -> Deadlines:
    """The earlier of two deadlines of each window."""
    if isinstance(a, int) or a is b:
        return b
    if isinstance(b, int):
        return a
    return np.minimum(a, b)


@dataclass(frozen=True)
class Fact:
    """Something about rows that a trigger wants to know for each window: computed by row, then summed."""

    name: str
    of: Callable[[pa.Table], np.ndarray]


@dataclass
class Moment:
    """When and over what an evaluation takes place; arrays have an entry for each window at hand."""

    phase: str
    """"processing", "rows" or "watermark": which of the three made this evaluation necessary."""
    start: np.ndarray
    end: np.ndarray
    watermark: int
    processing_time: int
    got: Mask
    """Windows that got rows in this bundle or round; all false outside phase "rows"."""
    born: Mask
    """Windows that came to be in this bundle or round."""
    facts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Sums of the program's facts over the rows that came, 0 where none did; "rows" is how many came."""
    percentile: Callable[[float], int] = lambda percent: 0
    """The percentile of the watermark over the sources."""
    result: Callable[[Any, Mask], Mask] = lambda predicate, mask: mask
    """Evaluates a predicate over the aggregates of the windows in the mask."""
    arrivals: Any = None
    """The raw rows by window, for triggers written by users."""
    requests: dict[str, np.ndarray] = field(default_factory=dict)
    """What user triggers asked for when they fired: "clear" and "accumulate" masks."""

    @property
    def passed(self) -> Mask:
        return self.watermark >= self.end

    def clock(self, domain: str) -> int:
        return self.processing_time if domain == "processing" else self.watermark


class Node(ABC):
    """One node of a compiled trigger."""

    def __init__(self, path: str, children: tuple[Node, ...] = ()) -> None:
        self.path = path
        self.children = children
        self.ends_unseen: bool = any(child.ends_unseen for child in children)
        """Whether a part of it may end without firing, so that it must be settled."""

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        """Names, types and initial values of this node's columns besides `done`."""
        return {}

    def columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        """All columns of the node and below."""
        own = {"done": (np.dtype(np.bool_), False), **self.own_columns()}
        mine = {f"{self.path}.{name}": spec for name, spec in own.items()}
        for child in self.children:
            mine.update(child.columns())
        return mine

    def nodes(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.nodes()

    def col(self, s: State, name: str) -> np.ndarray:
        return s[f"{self.path}.{name}"]

    def done(self, s: State) -> np.ndarray:
        return s[f"{self.path}.done"]

    def begin(self, s: State, mask: Mask, m: Moment) -> None:
        """The windows in `mask`, whose columns are initial, come to be or start anew at this moment."""
        for child in self.children:
            child.begin(s, mask, m)

    def reset(self, s: State, mask: Mask, m: Moment) -> None:
        """Back to the start, below too."""
        for name, (_, initial) in self.columns().items():
            s[name][mask] = initial
        self.begin(s, mask, m)

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        """Rows came to the windows in `active`."""
        for child in self.children:
            child.on_rows(s, active & ~child.done(s), m)

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        for child in self.children:
            child.observe(s, active & ~child.done(s), m)

    @abstractmethod
    def would_fire(self, s: State, m: Moment) -> Mask:
        """Where the node, were it asked now, fires; false where it is finished."""

    @abstractmethod
    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        """The node fires in `mask`, a part of `would_fire`."""

    def settle(self, s: State, asked: Mask, m: Moment) -> None:
        """The evaluation of the windows in `asked` is over."""
        for child in self.children:
            if child.ends_unseen:
                child.settle(s, asked, m)

    def merge(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        """Join the state of windows `take` of `s` into windows `into` of `out` (which start out fresh)."""
        count = len(self.done(out))
        finished = np.zeros(count, np.bool_)
        np.logical_or.at(finished, into[take], self.done(s)[take])
        self.done(out)[:] |= finished
        self.merge_own(s, out, into, take, m)
        for child in self.children:
            child.merge(s, out, into, take, m)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        """Join this node's own columns; most nodes have none."""
        return

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        """The next instant of the domain's clock at which the node must be asked, where it is not done."""
        least: Deadlines = NEVER
        for child in self.children:
            least = sooner(least, where(~child.done(s), child.deadline(s, domain, m)))
        return least

    def facts(self) -> Iterator[Fact]:
        for child in self.children:
            yield from child.facts()


class Leaf(Node):
    """A node without children that finishes when it fires."""

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        mark(self.done(s), mask)


def mark(column: np.ndarray, mask: Mask, value: np.ndarray | int = True) -> None:
    """Set a column to a value, one for all or one for each window, where the mask is true."""
    np.copyto(column, value, where=mask)


def initial_state(node: Node, count: int) -> State:
    """Fresh columns for `count` windows."""
    return {name: np.full(count, initial, kind) for name, (kind, initial) in node.columns().items()}


def sum_into(s: State, out: State, name: str, into: np.ndarray, take: Mask) -> None:
    """Add up a column of the windows that merge."""
    np.add.at(out[name], into[take], s[name][take])


def least_into(s: State, out: State, name: str, into: np.ndarray, take: Mask) -> None:
    """Keep the least of a column of the windows that merge."""
    np.minimum.at(out[name], into[take], s[name][take])


def any_into(s: State, out: State, name: str, into: np.ndarray, take: Mask) -> None:
    """Keep whether a column of any of the windows that merge is true."""
    np.logical_or.at(out[name], into[take], s[name][take])

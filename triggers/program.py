"""A compiled trigger: its state is a few arrays with an element for each window, all evaluated at once.

Every part of the trigger becomes a `Node` with columns of its own. One evaluation has four steps:

    observe     store what is true only at this moment (AllOf stores the children that were ready)
    would_fire  the windows in which the node fires now
    fire        change the state of the windows that fire
    settle      reset the parts that may end without firing, or move on from them

Between evaluations `on_rows` counts rows, `merge` joins the state of windows that become one, and `reset` puts a node
back to its start. The columns are in a `State` dict that the caller owns and passes in; nodes store nothing.
`tests/panes/grouping/test_rules.py` and `tests/panes/grouping/test_reference.py` guard the nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..windows.times import NEVER

if TYPE_CHECKING:
    import pyarrow as pa

State: TypeAlias = dict[str, np.ndarray]
Mask: TypeAlias = np.ndarray

Deadlines: TypeAlias = np.ndarray | int
"""An instant for each window, or NEVER for all windows."""


def where(mask: Mask, deadlines: Deadlines) -> Deadlines:
    """The deadlines in `mask`, and NEVER elsewhere."""
    return deadlines if isinstance(deadlines, int) or mask.all() else np.where(mask, deadlines, NEVER)


def sooner(a: Deadlines, b: Deadlines) -> Deadlines:
    """The earlier of two deadlines for each window."""
    if isinstance(a, int) or a is b:
        return b
    if isinstance(b, int):
        return a
    return np.minimum(a, b)


@dataclass(frozen=True)
class Fact:
    """A number that a trigger needs of the rows of each window: computed for each row, then summed by window."""

    name: str
    of: Callable[[pa.Table], np.ndarray]


@dataclass(frozen=True)
class Moment:
    """The clocks, windows and rows of one evaluation; arrays have an element for each window of the step."""

    phase: str
    """The cause of this evaluation: "processing", "rows", "signal" or "watermark"."""
    start: np.ndarray
    end: np.ndarray
    watermark: int
    processing_time: int
    got: Mask
    """True for windows that got rows in this bundle or round; all false outside phase "rows"."""
    born: Mask
    """True for windows that are new in this bundle or round."""
    facts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Sums of the facts over the new rows of each window, 0 where there are none; "rows" is the number of rows."""
    signals: int = 0
    """The bits of the signals of this bundle; none outside phase "signal"."""
    percentile: Callable[[float], int] = lambda percent: 0
    """The watermark's percentile over the sources, for a percentage."""
    result: Callable[[Any, Mask], Mask] = lambda predicate, mask: mask
    """A function that evaluates a predicate over the aggregates of the windows in a mask."""
    values: Callable[[str, np.ndarray], list[Any]] | None = None
    """A function that gives the results of a combiner for windows at some places; None where there are none yet."""
    arrivals: Any = None
    """A function that gives the rows of each window, for user triggers."""
    requests: dict[str, np.ndarray] = field(default_factory=dict)
    """The requests of user triggers when they fire: the masks "clear" and "accumulate", and the texts "tags"."""
    sources: Moment | None = None
    """In a merge, the windows that become others, with an element for each place of the state that is merged."""

    @property
    def passed(self) -> Mask:
        """True for windows whose end the watermark has reached."""
        return self.watermark >= self.end

    def clock(self, domain: str) -> int:
        """The time of a domain's clock."""
        return self.processing_time if domain == "processing" else self.watermark

    def at(self, places: np.ndarray, sources: Moment | None = None) -> Moment:
        """The same moment for the windows at these places alone."""
        values = self.values
        return replace(
            self,
            start=self.start[places],
            end=self.end[places],
            got=self.got[places],
            born=self.born[places],
            facts={name: sums[places] for name, sums in self.facts.items()},
            values=None if values is None else lambda name, chosen: values(name, places[chosen]),
            sources=sources,
        )


class Node(ABC):
    """One node of a compiled trigger."""

    def __init__(self, path: str, children: tuple[Node, ...] = ()) -> None:
        self.path = path
        self.children = children
        self.ends_unseen: bool = any(child.ends_unseen for child in children)
        """True if a part of the node may end without firing, so that `settle` must be called."""

    def own_columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        """The names, types and initial values of this node's columns besides `done`."""
        return {}

    def columns(self) -> dict[str, tuple[np.dtype[Any], Any]]:
        """All columns of the node and of the nodes below it."""
        own = {"done": (np.dtype(np.bool_), False), **self.own_columns()}
        mine = {f"{self.path}.{name}": spec for name, spec in own.items()}
        for child in self.children:
            mine.update(child.columns())
        return mine

    def nodes(self) -> Iterator[Node]:
        """The node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def col(self, s: State, name: str) -> np.ndarray:
        """A column of this node."""
        return s[f"{self.path}.{name}"]

    def done(self, s: State) -> np.ndarray:
        """True for windows in which the node is finished."""
        return s[f"{self.path}.done"]

    def begin(self, s: State, mask: Mask, m: Moment) -> None:
        """Start the windows in `mask`, whose columns have their initial values, at this moment."""
        for child in self.children:
            child.begin(s, mask, m)

    def reset(self, s: State, mask: Mask, m: Moment) -> None:
        """Put the windows in `mask` back to the start, in the nodes below too."""
        for name, (_, initial) in self.columns().items():
            s[name][mask] = initial
        self.begin(s, mask, m)

    def on_rows(self, s: State, active: Mask, m: Moment) -> None:
        """Count the new rows of the windows in `active`."""
        for child in self.children:
            child.on_rows(s, active & ~child.done(s), m)

    def observe(self, s: State, active: Mask, m: Moment) -> None:
        """Store what is true only at this moment, in the windows in `active`."""
        for child in self.children:
            child.observe(s, active & ~child.done(s), m)

    @abstractmethod
    def would_fire(self, s: State, m: Moment) -> Mask:
        """True for windows in which the node fires at this moment; false where it is finished."""

    @abstractmethod
    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        """Fire in the windows of `mask`, which are some of those of `would_fire`."""

    def settle(self, s: State, mask: Mask, m: Moment) -> None:
        """End the evaluation of the windows in `mask`."""
        for child in self.children:
            if child.ends_unseen:
                child.settle(s, mask, m)

    def merge(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        """Join the state of windows `take` of `s` into windows `into` of `out`, which have initial values."""
        count = len(self.done(out))
        finished = np.zeros(count, np.bool_)
        np.logical_or.at(finished, into[take], self.done(s)[take])
        self.done(out)[:] |= finished
        for child in self.children:
            child.merge(s, out, into, take, m)
        self.merge_own(s, out, into, take, m)

    def merge_own(self, s: State, out: State, into: np.ndarray, take: Mask, m: Moment) -> None:
        """Join the columns of this node alone; most nodes have none."""
        return

    def deadline(self, s: State, domain: str, m: Moment) -> Deadlines:
        """The next instant of the domain's clock at which the node must be evaluated, where it is not done."""
        least: Deadlines = NEVER
        for child in self.children:
            least = sooner(least, where(~child.done(s), child.deadline(s, domain, m)))
        return least

    def facts(self) -> Iterator[Fact]:
        """The facts that the node and the nodes below it need."""
        for child in self.children:
            yield from child.facts()


class Leaf(Node):
    """A node without children that finishes when it fires."""

    def fire(self, s: State, mask: Mask, m: Moment) -> None:
        set_where(self.done(s), mask)


def set_where(column: np.ndarray, mask: Mask, value: np.ndarray | int = True) -> None:
    """Set a column where the mask is true, to one value for all windows or one for each."""
    np.copyto(column, value, where=mask)


def initial_state(node: Node, count: int) -> State:
    """The columns of `count` new windows."""
    return {name: np.full(count, initial, kind) for name, (kind, initial) in node.columns().items()}


def sum_into(s: State, out: State, name: str, into: np.ndarray, take: Mask) -> None:
    """Add up a column of the windows that merge."""
    np.add.at(out[name], into[take], s[name][take])


def least_into(s: State, out: State, name: str, into: np.ndarray, take: Mask) -> None:
    """Keep the least value of a column of the windows that merge."""
    np.minimum.at(out[name], into[take], s[name][take])


def any_into(s: State, out: State, name: str, into: np.ndarray, take: Mask) -> None:
    """Set a column to true where it is true for any of the windows that merge."""
    np.logical_or.at(out[name], into[take], s[name][take])

"""The graph of a flow: which rows feed which step, as a plan that every engine follows.

A flow is a chain of steps over a source. The source may be a union or a join of other flows, so that the chains form a
tree. Several flows that run together have one graph, in which an equal step of two flows is one step with two readers.

Guarded by tests/flows/test_union.py, tests/flows/together/test_together.py and tests/panes/join/test_join_flows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import pyarrow as pa

from ..errors import InvalidArgument
from ..panes.grouping.grouping import Grouping
from ..panes.grouping.stage import GroupingStage
from ..panes.signals import plain
from ..panes.stage import Stage
from ..panes.state.operator import StatefulOperator
from ..panes.transforms import Transform, applied
from ..panes.watermarks.stored_watermarks import OF_A_STEP
from ..panes.watermarks.watermark_strategies import BoundedLag, IngressTime, PerSource
from ..panes.watermarks.watermarks import Watermarks
from ..windows import span
from .engine import Source
from .flow import Flow
from .left_out import REASONS, LeftOut, fields_of
from .settings import Settings
from .together.shared_steps import Key, SharedSteps


@dataclass(frozen=True, eq=False)
class Leaf:
    """A source of rows, and the options with which a flow reads it."""

    source: Source[Flow]
    settings: Settings
    schema: pa.Schema

    @property
    def idle(self) -> int | None:
        """The processing time without a report after which a part of the source is idle; None if it never is."""
        strategy = self.settings.strategy
        return None if strategy is None or strategy.idle is None else int(strategy.idle)

    @property
    def lag(self) -> int:
        """The length of time from its watermark reports to the latest event time that it has seen."""
        strategy = self.settings.strategy
        return int(span(strategy.lag)) if isinstance(strategy, BoundedLag | PerSource) else 0

    def watermarks(self, back: int, idle_after: int | None = None) -> Watermarks:
        """The watermarks of its sources before any report; `idle_after` takes the place of the strategy's."""
        strategy, idle = self.settings.strategy, idle_after or self.idle
        if strategy is None:
            return Watermarks(idle_after=idle, back=back)
        lag = None if strategy.clock_lag is None else int(strategy.clock_lag)
        return Watermarks.declared(strategy.sources or (), idle, back, lag, strategy.for_all)


@dataclass(frozen=True, eq=False)
class Feed:
    """Rows on their way from a source or a step, through transforms."""

    origin: Leaf | Step
    transforms: tuple[Transform, ...]
    schema: pa.Schema
    """The columns before the transforms."""

    @property
    def leaf(self) -> Leaf | None:
        """The source, if the rows come from one."""
        return self.origin if isinstance(self.origin, Leaf) else None

    @property
    def back(self) -> int:
        """The length of time by which the transforms may move event times back, so that the watermark waits for it."""
        return sum(transform.back for transform in self.transforms)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns after the transforms."""
        return applied(self.transforms, self.schema.empty_table()).schema


@dataclass(frozen=True, eq=False)
class Step:
    """A step that keeps state, and the rows that feed it."""

    stage: Stage
    feeds: tuple[Feed, ...]
    number: int
    """The place of the step in the graph, from 1 on. A step comes after all that feed it."""
    ports: tuple[int, ...] = ()
    """For each feed, the port of the operator to which its rows go; all go to one if none is named."""

    @property
    def firsts(self) -> list[int]:
        """The places of feeds, one for each port. All feeds of a port have the same columns."""
        ports = self.ports or (0,)
        return [ports.index(port) for port in range(max(ports) + 1)]

    @property
    def schemas(self) -> list[pa.Schema]:
        """The columns of the rows of each port."""
        return [self.feeds[place].output_schema for place in self.firsts]

    @property
    def inputs(self) -> list[str]:
        """The inputs in their order: the name and the columns of a source, or the number of a stage."""
        sides = [self.stage.sides[port] + " " for port in self.ports] or [""] * len(self.feeds)
        return [
            f"{side}stage {feed.origin.number}"
            if isinstance(feed.origin, Step)
            else f"{side}{feed.origin.settings.name or 'source'}({', '.join(feed.origin.schema.names)})"
            for side, feed in zip(sides, self.feeds, strict=True)
        ]

    @property
    def strategies(self) -> tuple[str, ...]:
        """The watermark strategy of each input, as text. Under another one the sources have other names."""
        leaves = (feed.leaf for feed in self.feeds)
        return tuple(OF_A_STEP if leaf is None else repr(leaf.settings.strategy) for leaf in leaves)

    @property
    def lags(self) -> tuple[int, ...]:
        """The length of time from the reports of each input to the latest event time that it has seen."""
        return tuple(0 if feed.leaf is None else feed.leaf.lag for feed in self.feeds)

    @property
    def guards(self) -> bool:
        """True if far rows of a source are bad rows, although the step takes rows as far from other feeds."""
        own = self.stage.max_future
        return any(feed.leaf is not None and feed.leaf.settings.max_future != own for feed in self.feeds)

    @property
    def timed(self) -> bool:
        """True if rows of a source have processing times of their own, so that they travel with their keys."""
        return any(feed.leaf is not None and feed.leaf.settings.processing_time is not None for feed in self.feeds)

    def operator(self) -> StatefulOperator:
        """The operator of the step."""
        return self.stage.operator(*self.schemas)


@dataclass(frozen=True, eq=False)
class Graph:
    """The steps of a flow, or of several, in their order, and the rows of the results."""

    steps: tuple[Step, ...]
    results: tuple[tuple[Feed, ...], ...]
    """The rows of the result of each flow. A union without a later grouping has several."""

    @property
    def ends(self) -> tuple[Feed, ...]:
        """The rows of all results."""
        return tuple(chain.from_iterable(self.results))

    @property
    def leaves(self) -> list[Leaf]:
        """The sources, in the order in which the flow names them; each once where several flows share it."""
        feeds = [feed for step in self.steps for feed in step.feeds]
        return list(dict.fromkeys(feed.origin for feed in (*feeds, *self.ends) if isinstance(feed.origin, Leaf)))

    def leaves_of(self, step: Step) -> set[Leaf]:
        """The sources whose rows come to a step, through other steps too."""
        out: set[Leaf] = set()
        for feed in step.feeds:
            out |= {feed.origin} if isinstance(feed.origin, Leaf) else self.leaves_of(feed.origin)
        return out

    @cached_property
    def left_out(self) -> dict[Step, LeftOut]:
        """The form in which each step shows the rows that it leaves out."""
        row, names = self._fields
        return {
            step: LeftOut(
                stage=step.number,
                sides=(None,) if len(own) == 1 else step.stage.sides,
                fields=tuple(own),
                row=row,
                reasons=tuple(why for why in REASONS if why != "late" or step.stage.drops_late),
            )
            for step, own in zip(self.steps, names, strict=False)
        }

    @cached_property
    def left_out_of_ends(self) -> dict[Feed, LeftOut]:
        """The form in which a source whose rows come to no step shows those that it leaves out."""
        row, names = self._fields
        own = names[len(self.steps)] if self._direct else []
        return {
            feed: LeftOut(stage=None, sides=(None,), fields=(fields,), row=row)
            for feed, fields in zip(self._direct, own, strict=True)
        }

    @property
    def left_out_row(self) -> pa.StructType:
        """The columns of rows that are left out: those of the inputs of all steps, and of sources without a step."""
        return self._fields[0]

    @property
    def _direct(self) -> list[Feed]:
        """The rows of the result that come from a source and not from a step."""
        return [feed for feed in self.ends if feed.leaf is not None]

    @cached_property
    def _fields(self) -> tuple[pa.StructType, list[list[dict[str, str]]]]:
        direct = [(0, [feed.schema for feed in self._direct])] if self._direct else []
        return fields_of([*((step.number, list(map(plain, step.schemas))) for step in self.steps), *direct])

    def steps_of(self, result: int) -> list[Step]:
        """The steps of one of the flows, in their order."""
        own = set[Step]()
        new = [feed.origin for feed in self.results[result]]
        while new:
            if isinstance(step := new.pop(), Step):
                own.add(step)
                new += [feed.origin for feed in step.feeds]
        return [step for step in self.steps if step in own]

    def reader(self, step: Step) -> tuple[Step, int] | None:
        """The step that reads the rows of this one, and the place of these rows among its feeds; None at the end."""
        return next(iter(self.readers(step)), None)

    def readers(self, origin: Step | Leaf) -> list[tuple[Step, int]]:
        """The steps that read rows of this step or source, each with the place of these rows among its feeds."""
        places = ((reader, place) for reader in self.steps for place in range(len(reader.feeds)))
        return [(reader, place) for reader, place in places if reader.feeds[place].origin is origin]


def check_ends(graph: Graph) -> None:
    """Raise if rows of a result have no event times, because no step has given them their processing times."""
    for feed in graph.ends:
        if feed.leaf is not None and isinstance(feed.leaf.settings.strategy, IngressTime):
            raise InvalidArgument(
                "watermark=IngressTime() gives rows their event times on the way to a grouping or another step: add "
                "one, such as window(...).combine(...)"
            )


def graph_of(flow: Flow) -> Graph:
    """The graph of a flow, in which each of its branches has steps of its own."""
    made = _Made()
    ends = tuple(made.feeds(flow))
    return Graph(tuple(made.steps), (ends,))


def graph_together(flows: Sequence[Flow]) -> Graph:
    """The graph of several flows that run together, in which equal steps are one."""
    made = _Made(SharedSteps())
    results = tuple(tuple(made.feeds(flow)) for flow in flows)
    return Graph(tuple(made.steps), results)


class _Made:
    """The steps of a graph while it is made."""

    def __init__(self, shared: SharedSteps | None = None) -> None:
        self.shared = shared
        self.steps: list[Step] = []
        self.by_key: dict[Key, Leaf | Step] = {}

    def feeds(self, flow: Flow) -> Iterator[Feed]:
        """The rows of a flow; its steps are added to those of the graph."""
        feeds, ports = self._read(flow)
        for stage in flow.stages:
            inputs = tuple(_through(feed, stage.transforms) for feed in feeds)
            feeds, ports = [self._step(stage, inputs, ports)], ()
        for feed in feeds:
            yield _through(feed, flow.transforms)

    def _read(self, flow: Flow) -> tuple[list[Feed], tuple[int, ...]]:
        """The rows of the source of a flow, and the ports of its first stage to which they go if it has several."""
        source = flow.source
        if not source.inputs:
            return [Feed(origin=self._leaf(flow), transforms=(), schema=flow.source_schema)], ()
        by_branch = [list(self.feeds(one)) for one in source.inputs]
        feeds = [feed for some in by_branch for feed in some]
        if source.stage is None:
            return feeds, tuple(port for port, some in zip(source.ports, by_branch, strict=False) for _ in some)
        ports = tuple(port for port, some in enumerate(by_branch) for _ in some)
        return [self._step(source.stage, tuple(feeds), ports)], ()

    def _leaf(self, flow: Flow) -> Leaf:
        leaf = Leaf(source=flow.source, settings=flow.settings, schema=flow.source_schema)
        if self.shared is None:
            return leaf
        known = self.by_key.setdefault(self.shared.of_source(leaf.source, leaf.settings), leaf)
        assert isinstance(known, Leaf)
        return known

    def _step(self, stage: Stage, feeds: tuple[Feed, ...], ports: tuple[int, ...] = ()) -> Feed:
        """The rows that a step gives."""
        ways = [(feed.origin, feed.transforms) for feed in feeds]
        key = None if self.shared is None else self.shared.of_step(stage, ways, ports)
        step = None if key is None else self.by_key.get(key)
        if step is None:
            step = Step(stage=stage, feeds=feeds, number=len(self.steps) + 1, ports=ports)
            self.steps.append(step)
        if key is not None:
            self.by_key[key] = step
        assert isinstance(step, Step)
        return Feed(origin=step, transforms=(), schema=step.operator().output_schema)


def _through(feed: Feed, transforms: tuple[Transform, ...]) -> Feed:
    return Feed(origin=feed.origin, transforms=(*feed.transforms, *transforms), schema=feed.schema)


def groupings_of(flow: Flow) -> list[Grouping]:
    """The groupings of a flow, without its other stages."""
    return [stage.grouping for stage in flow.stages if isinstance(stage, GroupingStage)]


def leaf_columns(step: Step, feed: Feed, leaf: Leaf) -> frozenset[str]:
    """The columns of a source that a step needs."""
    every = frozenset(leaf.schema.names)
    wanted = step.stage.columns(feed.output_schema)
    for transform in reversed(feed.transforms):
        wanted = transform.before(wanted)
    if wanted is None:
        return every
    strategy = leaf.settings.strategy
    reporting = strategy.columns if strategy is not None else ()
    return frozenset({*wanted, leaf.settings.time, *reporting}) & every


__all__ = ["Feed", "Graph", "Leaf", "Step", "graph_of", "graph_together", "groupings_of", "leaf_columns"]

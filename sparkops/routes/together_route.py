"""The route of several flows that run together: the steps of one depth share a stateful operator of Spark.

A plan of Spark is a tree, in which a step with two readers would run twice. So all rows go one way: each operator has
the shards of the steps of its depth, by numbers that are of one step alone, and rows of other numbers pass it, on their
way to a later step or to a result.

Guarded by tests/sparkops/together/test_together_streams.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import InvalidArgument
from ...flows.fingerprint.flow import Fingerprints
from ...flows.flow import Flow
from ...flows.graph import Graph, Leaf, Step, check_ends, graph_together
from ..inputs import column, wire_map
from ..late_rows import LATE
from ..measuring.stage_triggers import TRIGGERS
from ..sql_types import spark_schema
from ..time_modes import wakes
from ..wire import WIRE, WIRE_DDL, shard_ids
from .lifts import LiftSeveral
from .live import united
from .shard_processor import ShardTask
from .shard_rows import PACKED, counts, without_counts
from .shards_of_steps import ShardsOfSteps
from .streaming import ShowPanes, StreamRoute, by_shard, names_of_inputs, require_rocksdb
from .tasks import LiftLive
from .thin_processor import thin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class TogetherRoute(StreamRoute):
    """Runs flows over unbounded input in one query."""

    flows: tuple[Flow, ...] = ()

    def df(self) -> DataFrame:
        """The packed panes of the steps whose rows are results, each with the number of its shard."""
        require_rocksdb(self.input.spark)
        check_ends(self.graph)
        packed = united([self._entered(leaf) for leaf in self.graph.leaves])
        for steps in self.levels:
            packed = self._level(steps, packed)
        return packed

    def shown_of(self, place: int, packed: DataFrame) -> DataFrame:
        """The rows of the flow in this place, of packed panes."""
        flow = self.flows[place]
        return united(
            [
                wire_map(
                    self.panes_of(step, packed), ShowPanes(feed.transforms, flow.schema), spark_schema(flow.schema)
                )
                for feed in self.graph.results[place]
                if isinstance(step := feed.origin, Step)
            ]
        )

    def panes_of(self, step: Step, packed: DataFrame) -> DataFrame:
        """The packed panes of a step."""
        return packed.where(column("shard").isin(list(self.ids_of(step)))).select(*WIRE.names)

    @cached_property
    def graph(self) -> Graph:
        """The steps of all flows, those that they share once."""
        graph = graph_together(self.flows)
        if any(isinstance(feed.origin, Leaf) for feed in graph.ends):
            raise InvalidArgument(
                "flows that run together on Spark end with steps, and one of them gives the rows of its source: add a "
                "step such as window(...).combine(...), or write it by a query of its own"
            )
        return graph

    @cached_property
    def levels(self) -> list[list[Step]]:
        """The steps by their depth: those that read no step come first."""
        depths = dict[Step, int]()
        for step in self.graph.steps:
            depths[step] = 1 + max(
                (depths[one.origin] for one in step.feeds if isinstance(one.origin, Step)), default=0
            )
        return [[step for step in depths if depths[step] == depth] for depth in sorted({*depths.values()})]

    def ids_of(self, step: Step) -> tuple[int, ...]:
        return shard_ids(len(self.ids), _place(step))

    def entering(self, leaf: Leaf) -> LiftSeveral:
        """The task that sends the rows of a source to all steps that read it, and its clock to all others."""
        lifts = tuple(self.lift(step, place) for step, place in self.graph.readers(leaf))
        others = [step for step in self.graph.steps if leaf not in self.graph.leaves_of(step)]
        clocks = tuple(number for step in others for number in self.ids_of(step))
        return LiftSeveral(lifts, clocks if self.clock(leaf) else ())

    def _entered(self, leaf: Leaf) -> DataFrame:
        lift = self.entering(leaf)
        return self.read(leaf).mapped(lift, lift.columns, self.clock(leaf), WIRE_DDL, self.metric)

    def _level(self, steps: Sequence[Step], packed: DataFrame) -> DataFrame:
        """The packed rows after the steps of one depth."""
        processor = ShardsOfSteps(tuple(map(self.task, steps)))
        rows = by_shard(packed).transformWithStateInPandas(thin(processor), PACKED, "append", self._time_mode)
        for step in steps:
            metric = self.metric(str(step.number))
            if step.stage.drops_late:
                LATE.watch(metric, step.number)
            TRIGGERS.name(metric, step.stage)
            rows = rows.observe(metric, counts(names_of_inputs(step), _place(step)))
        return rows.where(without_counts()).select(*WIRE.names)

    def task(self, step: Step, then: LiftLive | None = None) -> ShardTask:
        readers = tuple(self.lift(*reader) for reader in self.graph.readers(step))
        shows = any(feed.origin is step for feed in self.graph.ends)
        return replace(super().task(step, then), readers=readers, shows=shows, columns=None, place=_place(step))

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        return Fingerprints(self.graph, *self.flows)

    @property
    def wakes(self) -> bool:
        return any(wakes(flow.settings, self.graph) for flow in self.flows)


def _place(step: Step) -> int:
    return step.number - 1


__all__ = ["TogetherRoute"]

"""The route of replays: bounded input in order of processing time.

Guarded by tests/sparkops/test_replay.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from ...flows.flow import Flow, FlowSource
from ...flows.flow_steps import without_signals
from ...flows.graph import Feed, Graph, Leaf, Step, graph_of
from ...panes.grouping.final_panes import Final, final_grouping, nothing
from ...panes.grouping.stage import GroupingStage
from ...panes.stage import Stage
from ..inputs import wire_map
from ..sql_types import spark_schema
from ..wire import WIRE_DDL
from .live import Live
from .tasks import LiftLive, Play

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Replay(Live):
    """Runs a flow over bounded input in order of processing time, as a stream would."""

    is_at_once: ClassVar[bool] = False
    """True if processing time does not count."""

    @property
    def ends(self) -> bool:
        """True if the watermark goes to the end of time after the last row."""
        return self.flow.settings.close_at_end

    def run_step(self, step: Step, packed: DataFrame, then: LiftLive | None) -> DataFrame:
        last = then is None
        play = Play(
            operator=self.operator(step),
            inputs=self.inputs(step),
            ends=self.ends,
            ports=step.ports,
            then=then,
            after=self.after(step) if last else (),
            whole=self.whole,
            left_out=self.forms.get(step),
            schema=self.flow.schema,
            without_rows=self.without_rows(step),
            at_once=self.is_at_once and step.stage.all_at_once,
        )
        # A task that runs again must give the same rows, so it gets its parcels in the same order.
        ordered = packed.repartition(len(self.ids), "shard").sortWithinPartitions("shard", "payload")
        return wire_map(ordered, play, spark_schema(self.schema) if last else WIRE_DDL)

    def shown(self, feed: Feed, packed: DataFrame) -> DataFrame:
        return packed

    def without_rows(self, step: Step) -> pa.Table | None:
        """The panes of the last step if it gets no rows; None for no panes."""
        return None

    def explain(self) -> str:
        return self.explanation(
            "A replay: all rows in order of their processing time, with the panes that a stream would have given.",
            f"shards: {len(self.ids)}, each with its whole history in one task",
        )


@dataclass(frozen=True, eq=False)
class AtOnce(Replay):
    """Runs a flow over bounded input, all rows as one bundle at the end of time: for steps that are no groupings."""

    is_at_once = True

    @property
    def ends(self) -> bool:
        return True

    @property
    def whole(self) -> bool:
        return False

    @cached_property
    def graph(self) -> Graph:
        """The steps of the flow, in which groupings give final panes alone: all rows have come."""
        return graph_of(finally_only(self.flow))

    def clock(self, leaf: Leaf) -> str | None:
        return None

    def packed(self, step: Step) -> DataFrame:
        packed, final = super().packed(step), self._always_one(step)
        if final is None:
            return packed
        return self.input.with_row(packed, self.ids[final.lift(len(self.ids)).only_shard], nothing())

    def without_rows(self, step: Step) -> pa.Table | None:
        final = self._always_one(step)
        return None if final is None else final.whole(final.nothing())

    def _always_one(self, step: Step) -> Final | None:
        """The last grouping, if it gives a result even without rows."""
        stage = step.stage
        if self.beside or self.then(step) is not None or not isinstance(stage, GroupingStage):
            return None
        final = Final(stage.grouping, self.lifted(step)[0])
        return final if final.always_one else None

    def explain(self) -> str:
        return self.explanation(
            "Final results, in Python: the shards of each step take all rows as one bundle.",
            f"shards: {len(self.ids)}, each with all its rows in one task",
        )


def finally_only(flow: Flow) -> Flow:
    """The flow with groupings that give one final pane for each window, in the flows that its source is made of too."""
    flow = without_signals(flow)
    source = flow.source
    if isinstance(source, FlowSource):
        source = replace(source, inputs=tuple(map(finally_only, source.inputs)))
    return replace(flow, source=source, stages=tuple(map(_final, flow.stages)))


def _final(stage: Stage) -> Stage:
    if not isinstance(stage, GroupingStage):
        return stage
    return replace(stage, grouping=final_grouping(stage.grouping))


__all__ = ["AtOnce", "Replay", "finally_only"]

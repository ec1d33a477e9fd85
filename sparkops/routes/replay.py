"""The route of replays: bounded input in order of processing time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...panes.graph import Feed, Leaf, Step
from ...panes.transforms import Transform
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

    @property
    def ends(self) -> bool:
        """True if the watermark goes to the end of time after the last row."""
        return self.flow.settings.close_at_end

    def stepped(self, step: Step, packed: DataFrame, then: LiftLive | None) -> DataFrame:
        last = then is None
        play = Play(
            self.operator(step),
            self.inputs(step),
            self.ends,
            step.ports,
            then=then,
            after=self._after(step) if last else (),
            late=self.lifted(step)[0] if step.stage.shows_late else None,
            whole=self.whole,
            left_out=self.forms.get(step),
            schema=self.flow.schema,
        )
        shuffled = packed.repartition(len(self.ids), "shard")
        return wire_map(shuffled, play, spark_schema(self.schema) if last else WIRE_DDL)

    def shown(self, feed: Feed, packed: DataFrame) -> DataFrame:
        return packed

    def _after(self, step: Step) -> tuple[Transform, ...]:
        return next(feed.transforms for feed in self.graph.ends if feed.origin is step)

    def explain(self) -> str:
        return self.explanation(
            "A replay: all rows in order of their processing time, with the panes that a stream would have given.",
            f"shards: {len(self.ids)}, each with its whole history in one task",
        )


@dataclass(frozen=True, eq=False)
class AtOnce(Replay):
    """Runs a flow over bounded input, all rows as one bundle at the end of time: for steps that are no groupings."""

    @property
    def ends(self) -> bool:
        return True

    @property
    def whole(self) -> bool:
        return False

    def clock(self, leaf: Leaf) -> str | None:
        return None

    def explain(self) -> str:
        return self.explanation(
            "Final results, in Python: the shards of each step take all rows as one bundle.",
            f"shards: {len(self.ids)}, each with all its rows in one task",
        )

"""The route of replays: bounded input in order of processing time; and the tasks that replays and streams share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ...panes import Operator, Watermarks
from ...panes.flow import Flow
from ...panes.transforms import applied
from ..inputs import wire_map
from ..sql_types import spark_schema
from ..wire import WIRE_DDL
from .base import Route
from .tasks import LiftLive, Play, source_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Replay(Route):
    """Runs a flow over bounded input in order of processing time, as a stream would."""

    def df(self) -> DataFrame:
        flow, ids, settings = self.flow, self.ids, self.flow.settings
        lifts = live_lifts(flow, self.schemas, ids)
        columns, at = list(self.schemas[0].names), settings.processing_time
        packed = self.input.mapped(lifts[0], columns, at, WIRE_DDL, self.metric)
        idle = settings.strategy.idle if settings.strategy is not None else None
        fresh = Watermarks(idle_after=None if idle is None else int(idle))
        for i, lift in enumerate(lifts):
            then = lifts[i + 1] if i + 1 < len(lifts) else None
            schema = applied(lift.transforms, lift.schema.empty_table()).schema
            play = Play(
                partial(Operator, lift.grouping, schema),
                (fresh if i == 0 else Watermarks.expecting(source_names(ids)),),
                settings.close_at_end,
                then=then,
                after=flow.transforms if then is None else (),
                late=schema if lift.grouping.late == "emit" else None,
            )
            shuffled = packed.repartition(len(ids), "shard")
            packed = wire_map(shuffled, play, spark_schema(flow.schema) if then is None else WIRE_DDL)
        return packed

    def explain(self) -> str:
        return self.explanation(
            "A replay: all rows in order of their processing time, with the panes that a stream would have given.",
            f"watermark: {self.flow.settings.strategy!r}",
            f"shards: {len(self.ids)}, each with its whole history in one task",
        )


def live_lifts(flow: Flow, schemas: list[pa.Schema], ids: tuple[int, ...]) -> list[LiftLive]:
    """The lift task of each stage of a flow that keeps windows."""
    settings = flow.settings
    out = []
    for i, (stage, schema) in enumerate(zip(flow.stages, schemas, strict=False)):
        strategy = settings.strategy if i == 0 else None
        timed = i == 0 and settings.processing_time is not None
        out.append(LiftLive(stage.grouping, schema, stage.transforms, ids, settings.time, strategy, timed))
    return out

"""The ways in which a flow can run on Spark, and which of them is taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ..combiners import Plan
from ..panes import Grouping
from ..panes.final import FINAL_PANE, nothing
from ..panes.pane_columns import PANE
from ..triggers import AfterBytes, OnPunctuation, UserTrigger, walk
from ..windows import Inherit
from .flow import Flow
from .lowering import Lowered, lowered
from .naming import Label, new_label
from .sources import column, wire_map
from .sql_types import spark_schema, spark_type
from .tasks import LATE, LiftFinal, LiftLive, MergeFinal, Play, Through, source_names
from .transforms import applied
from .wire import WIRE_DDL, shard_ids

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


def route(flow: Flow) -> Route:
    """The way that a flow takes."""
    if not flow.stages:
        return NoStages(flow)
    if flow.source.streaming:
        from .streaming import Streaming

        return Streaming(flow)
    if flow.settings.replay:
        return Replay(flow)
    plan = lowered(flow)
    return Native(flow, plan) if isinstance(plan, Lowered) else FinalPanes(flow, plan)


@dataclass(frozen=True, eq=False)
class Route(ABC):
    """One way."""

    flow: Flow

    @abstractmethod
    def df(self) -> DataFrame:
        """The DataFrame."""

    @abstractmethod
    def explain(self) -> str:
        """What it does and why."""

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        """The columns that come to the transforms of each stage, and to those behind the last."""
        flow = self.flow
        upto = [replace(flow, stages=flow.stages[:i], transforms=()).schema for i in range(len(flow.stages) + 1)]
        wanted = source_columns(flow)
        upto[0] = pa.schema([field for field in upto[0] if field.name in wanted])
        return upto

    @cached_property
    def label(self) -> Label:
        """The label of the metrics of a DataFrame that has some."""
        return new_label(self.flow.settings.name)

    def metric(self, part: str) -> str:
        """The name of the metric of a part of the flow: of a stage, or of its files."""
        return self.label.metric(part)

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The shards, one for each shuffle partition."""
        flow = self.flow
        return shard_ids(flow.settings.shards or int(flow.source.spark.conf.get("spark.sql.shuffle.partitions") or 200))

    def told(self, way: str, *lines: str) -> str:
        """An explanation."""
        out = [way, f"  source: {self.flow.source.describe()}"]
        for i, stage in enumerate(self.flow.stages):
            grouping = stage.grouping
            names = ", ".join(f"{name}={combiner!r}" for name, combiner in grouping.combiners.items())
            out.append(
                f"  stage {i + 1}: {grouping.window!r} by {list(grouping.by)}: {names}; {grouping.mode} panes at"
            )
            out.append(f"    {grouping.asked!r}")
        return "\n".join([*out, *(f"  {line}" for line in lines)])


def source_columns(flow: Flow) -> frozenset[str]:
    """The columns of the source that the flow needs."""
    every = frozenset(flow.source_schema.names)
    settings = flow.settings
    if not flow.stages:
        return every
    first = flow.stages[0]
    before = flow.source_schema
    wanted = stage_columns(first.grouping, applied(first.transforms, before.empty_table()).schema)
    for transform in reversed(first.transforms):
        wanted = transform.before(wanted)
    if wanted is None:
        return every
    told = settings.strategy.columns if settings.strategy is not None else ()
    return frozenset({*wanted, settings.time, *told}) & every


def stage_columns(grouping: Grouping, schema: pa.Schema) -> frozenset[str] | None:
    """The columns that a grouping reads; None is all."""
    sees_rows = any(isinstance(t, UserTrigger | OnPunctuation | AfterBytes) for t in walk(grouping.asked))
    if sees_rows or grouping.late == "emit":
        return None
    plan = Plan(grouping.combiners, schema, append_only=not grouping.changelog)
    names = {*grouping.by, grouping.time, *plan.columns}
    if grouping.diff is not None:
        names.add(grouping.diff)
    if isinstance(grouping.window, Inherit):
        names.add("window")
    return frozenset(names)


@dataclass(frozen=True, eq=False)
class NoStages(Route):
    """A flow that groups nothing."""

    def df(self) -> DataFrame:
        flow = self.flow
        return flow.source.mapped(
            Through(flow.transforms), list(self.schemas[0].names), None, spark_schema(flow.schema), self.metric
        )

    def explain(self) -> str:
        return self.told("Rows through functions of Arrow tables, and nothing grouped.")


@dataclass(frozen=True, eq=False)
class FinalPanes(Route):
    """Bounded input: rows combined where they are read, a few packed rows through the shuffle, merged into panes."""

    why_not_native: str

    def df(self) -> DataFrame:
        flow, ids = self.flow, self.ids
        stages = flow.stages
        groupings = [stages[0].grouping, *(_closed(stage.grouping) for stage in stages[1:])]
        lifts = [
            LiftFinal(grouping, schema, stage.transforms, ids)
            for grouping, schema, stage in zip(groupings, self.schemas, stages, strict=False)
        ]
        packed = flow.source.mapped(lifts[0], list(self.schemas[0].names), None, WIRE_DDL, self.metric)
        for i, lift in enumerate(lifts):
            lifted = applied(lift.transforms, lift.schema.empty_table()).schema
            then = lifts[i + 1] if i + 1 < len(lifts) else None
            last = then is None
            merge = MergeFinal(lift.grouping, lifted, then, flow.transforms if last else ())
            if last and lift.final.always_one:
                packed = flow.source.with_row(packed, ids[lift.final.lift(len(ids)).only_shard], nothing())
            ordered = packed.repartition(len(ids), "shard").sortWithinPartitions("shard", "lo")
            packed = wire_map(ordered, merge, self._output(i) if last else WIRE_DDL)
        if flow.transforms:
            return packed
        diff = F.lit(1).cast("bigint").alias("diff")
        return packed.select(*map(column, packed.columns), diff, final_pane().alias("pane"), *no_late_rows(flow))

    def _output(self, stage: int) -> StructType:
        if self.flow.transforms:
            return spark_schema(self.flow.schema)
        return spark_schema(pa.schema([f for f in self.schemas[stage + 1] if f.name not in ("diff", "pane", LATE)]))

    def explain(self) -> str:
        return self.told(
            "Final panes, merged in Python: rows are combined where they are read, shuffled packed, and merged.",
            f"not Spark's own aggregation: {self.why_not_native}",
            f"shards: {len(self.ids)}",
        )


def no_late_rows(flow: Flow) -> list[Column]:
    """The column of late rows, where it is asked for and nothing can be late."""
    if flow.stages[-1].grouping.late != "emit":
        return []
    return [F.lit(None).cast(spark_type(flow.schema.field(LATE).type, LATE)).alias(LATE)]


def _closed(grouping: Grouping) -> Grouping:
    """A later stage of final panes: nothing is ever taken back."""
    return replace(grouping, diff=None) if grouping.diff == "diff" else grouping


def final_pane() -> Column:
    """What all final panes say about themselves, which Spark leaves out of the plan where nobody asks for it."""
    fields = [F.lit(FINAL_PANE[f.name]).cast(spark_type(f.type, f.name)).alias(f.name) for f in PANE]
    return F.struct(*fields)


@dataclass(frozen=True, eq=False)
class Native(Route):
    """Bounded input whose every part Spark can do itself, with the same results."""

    plan: Lowered

    def df(self) -> DataFrame:
        return self.plan.df()

    def explain(self) -> str:
        return self.told(
            "Spark's own aggregation: every combiner has an exact equivalent, and no row crosses to Python.",
            *(f"{name}: {sql}" for name, sql in self.plan.equivalents.items()),
        )


@dataclass(frozen=True, eq=False)
class Replay(Route):
    """Bounded input played in order of processing time, as a stream would have seen it."""

    def df(self) -> DataFrame:
        flow, ids, settings = self.flow, self.ids, self.flow.settings
        lifts = live_lifts(flow, self.schemas, ids)
        columns, at = list(self.schemas[0].names), settings.processing_time
        packed = flow.source.mapped(lifts[0], columns, at, WIRE_DDL, self.metric)
        idle = settings.strategy.idle if settings.strategy is not None else None
        for i, lift in enumerate(lifts):
            then = lifts[i + 1] if i + 1 < len(lifts) else None
            play = Play(
                lift.grouping,
                applied(lift.transforms, lift.schema.empty_table()).schema,
                () if i == 0 else tuple(source_names(ids)),
                int(idle) if i == 0 and idle is not None else None,
                settings.close_at_end,
                then,
                flow.transforms if then is None else (),
                applied(lift.transforms, lift.schema.empty_table()).schema if lift.grouping.late == "emit" else None,
            )
            shuffled = packed.repartition(len(ids), "shard")
            packed = wire_map(shuffled, play, spark_schema(flow.schema) if then is None else WIRE_DDL)
        return packed

    def explain(self) -> str:
        return self.told(
            "A replay: all rows in order of their processing time, with the panes that a stream would have given.",
            f"watermark: {self.flow.settings.strategy!r}",
            f"shards: {len(self.ids)}, each with its whole history in one task",
        )


def live_lifts(flow: Flow, schemas: list[pa.Schema], ids: tuple[int, ...]) -> list[LiftLive]:
    """The lifting tasks of the stages of a flow that keeps windows."""
    settings = flow.settings
    out = []
    for i, (stage, schema) in enumerate(zip(flow.stages, schemas, strict=False)):
        strategy = settings.strategy if i == 0 else None
        timed = i == 0 and settings.processing_time is not None
        out.append(LiftLive(stage.grouping, schema, stage.transforms, ids, settings.time, strategy, timed))
    return out

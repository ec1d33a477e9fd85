"""The route of final panes, which merges bounded input in Python; and the route of flows without a grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...flows.graph import groupings_of
from ...panes.grouping.final_panes import nothing, over_final_panes
from ...panes.grouping.lift import where_combined
from ...panes.transforms import applied
from ..inputs import column, wire_map
from ..sql_types import spark_schema
from ..wire import WIRE_DDL
from .base import Route
from .final_columns import final_pane
from .pass_through import Through, passed_through
from .tasks import LiftFinal, MergeFinal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True, eq=False)
class NoStages(Route):
    """Runs a flow without a grouping."""

    def df(self) -> DataFrame:
        flow = self.flow
        through = Through(flow.transforms, flow.schema)
        return passed_through(self.input, through, list(self.schemas[0].names), flow.schema, self.metric)

    def explain(self) -> str:
        through = "Rows through functions of Arrow tables" if self.flow.transforms else "Rows as they come"
        return self.explanation(f"{through}, and nothing grouped.")


@dataclass(frozen=True, eq=False)
class FinalPanes(Route):
    """Runs a flow over bounded input: tasks combine the rows they read, shuffle a few packed rows, and merge them."""

    why_not_native: str

    def df(self) -> DataFrame:
        flow, ids = self.flow, self.ids
        stages = flow.stages
        first, *later = groupings_of(flow)
        pairs = zip(later, (stage.transforms for stage in stages[1:]), strict=True)
        groupings = [first, *(over_final_panes(grouping, transforms) for grouping, transforms in pairs)]
        lifts = [
            LiftFinal(grouping=grouping, schema=schema, transforms=stage.transforms, ids=ids)
            for grouping, schema, stage in zip(groupings, self.schemas, stages, strict=False)
        ]
        packed = self.input.mapped(lifts[0], list(self.schemas[0].names), None, WIRE_DDL, self.metric)
        for i, lift in enumerate(lifts):
            lifted = applied(lift.transforms, lift.schema.empty_table()).schema
            then = lifts[i + 1] if i + 1 < len(lifts) else None
            last = then is None
            merge = MergeFinal(grouping=lift.grouping, schema=lifted, then=then, after=flow.transforms if last else ())
            if last and lift.final.always_one:
                packed = self.input.with_row(packed, ids[lift.final.lift(len(ids)).only_shard], nothing())
            # A task that runs again must merge in the same order, or sums of floats, and so its rows, would differ.
            ordered = packed.repartition(len(ids), "shard").sortWithinPartitions("shard", "lo", "payload")
            packed = wire_map(ordered, merge, self._output(i) if last else WIRE_DDL)
        if flow.transforms:
            return packed
        diff = F.lit(1).cast("bigint").alias("diff")
        return packed.select(*map(column, packed.columns), diff, final_pane().alias("pane"))

    def _output(self, stage: int) -> StructType:
        if self.flow.transforms:
            return spark_schema(self.flow.schema)
        return spark_schema(pa.schema([f for f in self.schemas[stage + 1] if f.name not in ("diff", "pane")]))

    def explain(self) -> str:
        grouping = groupings_of(self.flow)[0]
        return self.explanation(
            "Final panes, merged in Python: rows are combined where they are read, shuffled packed, and merged.",
            f"not Spark's own aggregation: {self.why_not_native}",
            f"rows are combined {where_combined(grouping, grouping.splits)}",
            f"shards: {len(self.ids)}",
        )

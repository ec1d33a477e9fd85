"""The route of streams: the stages of a flow as stateful operators, with one shard a shuffle partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import InvalidArgument
from ...flows.fingerprint.flow import Fingerprint, Fingerprints
from ...flows.graph import Feed, Step
from ...flows.left_out import LEFT_OUT, beside
from ...flows.seeds import seed_steps
from ...panes.grouping.lift import needs_rows, where_combined
from ...panes.grouping.pane_columns import few_values
from ...panes.grouping.stage import GroupingStage
from ...panes.parcels import Parcel
from ...panes.stage import StageLift
from ...panes.state.seed import Seed
from ...panes.state.shard_seed import ShardSeed
from ...panes.transforms import Transform, applied
from ..inputs import wire_map
from ..late_rows import LATE
from ..measuring.stage_triggers import TRIGGERS
from ..session import PROVIDER, ROCKSDB, setting
from ..sql_types import spark_schema
from ..time_modes import WITH_TIMERS, wakes
from ..wire import WIRE, payloads
from .flat_rows import FlatRows
from .live import Live
from .shard_processor import ShardProcessor, ShardTask
from .shard_rows import PACKED, PanesAsColumns, counts, without_counts
from .tasks import LiftLive, alone, batches_of
from .thin_processor import thin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession


@dataclass(frozen=True)
class ShowPanes:
    """Unpacks panes to rows."""

    after: Sequence[Transform]
    schema: pa.Schema
    """The columns of the result."""
    left_out: pa.Schema | None = None
    """The columns of rows that were left out, if they are shown beside it."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, _, payload in payloads(batches):
            parcel = Parcel.unpack(payload)
            if parcel.kind == LEFT_OUT:
                yield from batches_of(beside(self.schema.empty_table(), parcel.table))
            else:
                yield from batches_of(alone(applied(self.after, parcel.table), self.left_out))


@dataclass(frozen=True, eq=False)
class StreamRoute(Live):
    """Runs a flow over unbounded input on Structured Streaming."""

    parcels: bool = False
    """True if the panes of the last step leave it as packed parcels, for a task that takes them as a whole."""
    same: tuple[str, ...] = ()
    """The steps that compute what they computed before, although they are written otherwise than in the checkpoint."""
    start: Seed | None = None
    """The seed with which the steps begin, where the checkpoint has no state of them yet."""
    corrected: bool = False
    """True if the corrections of the seed are shown before the first batch, in a way of their own."""

    def run_step(self, step: Step, packed: DataFrame, then: LiftLive | None) -> DataFrame:
        require_rocksdb(self.input.spark)
        task, shards = self.task(step, then), by_shard(packed)
        schema = PACKED if task.columns is None else task.columns.schema
        rows = shards.transformWithStateInPandas(thin(ShardProcessor(task)), schema, "append", self._time_mode)
        metric = self.metric(str(step.number))
        if step.stage.drops_late:
            LATE.watch(metric, step.number)
        TRIGGERS.name(metric, step.stage)
        observed = rows.observe(metric, counts(names_of_inputs(step)))
        sent = WIRE.names if task.columns is None else task.columns.rows.columns()
        return observed.where(without_counts()).select(*sent)

    def shown(self, feed: Feed, packed: DataFrame) -> DataFrame:
        if self.flat is not None:
            return packed
        show = ShowPanes(after=feed.transforms, schema=self.flow.schema, left_out=self.left_out_schema)
        return wire_map(packed, show, spark_schema(self.schema))

    @cached_property
    def flat(self) -> FlatRows | None:
        """A form in which the panes of the last step leave it as columns; None if they leave it as packed parcels."""
        return None if self.beside or self.parcels else FlatRows.of(self.flow.schema)

    def task(self, step: Step, then: LiftLive | None) -> ShardTask:
        """The work of the shards of a step."""
        return ShardTask(
            operator=self.operator(step),
            inputs=self.inputs(step),
            fingerprint=self.fingerprint(step),
            strategies=step.strategies,
            ports=step.ports,
            readers=() if then is None else (then,),
            shows=then is None,
            whole=self.whole,
            left_out=self.forms.get(step),
            columns=self._columns(step) if then is None else None,
            same=self.same,
            seed=self._seeds[step.number - 1] if self._seeds else None,
            lift=partial(_lift, self.lift(step, 0)),
            corrected=self.corrected,
            lags=step.lags,
        )

    def check_start(self) -> None:
        """Raise if the seed is of another flow."""
        _ = self._seeds

    @cached_property
    def _seeds(self) -> list[ShardSeed | None]:
        """The part of the seed for each step; none without a seed."""
        if self.start is None:
            return []
        return seed_steps(self.start, [self.fingerprint(step) for step in self.graph.steps], self.same)

    def fingerprint(self, step: Step) -> Fingerprint:
        """All on which the state of a step depends."""
        lift = self.lift(step, 0).lift
        return self._fingerprints(step, self.lifted(step), len(self.ids), lift.whole_keys, lift.near)

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        return Fingerprints(self.graph, self.flow)

    def _columns(self, last: Step) -> PanesAsColumns | None:
        if self.flat is None:
            return None
        after, stage = self.after(last), last.stage
        few = few_values(stage.grouping) if isinstance(stage, GroupingStage) else {}
        few_constant = {
            path: values for path, values in few.items() if not any(step.may_set(path[0]) for step in after)
        }
        form = FlatRows.of(self.flow.schema, few_constant)
        return None if form is None else PanesAsColumns(after, form)

    @property
    def _time_mode(self) -> str:
        return WITH_TIMERS if self.wakes else "None"

    @property
    def wakes(self) -> bool:
        """True if the query needs batches without data, because timers can be due."""
        return wakes(self.flow.settings, self.graph)

    def explain(self) -> str:
        at = self.flow.settings.processing_time
        clock = f"the column {at!r}" if at is not None else "the time of each batch"
        timers = "batches without data run when a timer is due" if self.wakes else "what is due waits for the next data"
        first = self.graph.steps[0].stage if self.graph.steps else None
        grouping = first.grouping if isinstance(first, GroupingStage) else None
        where = [] if grouping is None else [f"rows are combined {where_combined(grouping, needs_rows(grouping))}"]
        return self.explanation(
            "A stream: rows are combined where they are read, and windows kept in Spark's state store.",
            *where,
            f"processing time: {clock}; {timers}",
            f"shards: {len(self.ids)}, one to a shuffle partition",
        )


def names_of_inputs(step: Step) -> list[str | None]:
    """The names of the sources of a step; None for what comes from another step."""
    return [feed.leaf.settings.name if feed.leaf else None for feed in step.feeds]


def _lift(live: LiftLive) -> StageLift:
    return live.lift


def by_shard(packed: DataFrame) -> GroupedData:
    """The packed rows of each shard; raises if Spark has no stateful processors for them."""
    shards = packed.groupBy("shard")
    if not hasattr(shards, "transformWithStateInPandas"):
        raise InvalidArgument(
            "a streaming flow in a session of Spark Connect needs Spark 4.1: run it in a session beside its JVM, such "
            "as that of spark-submit or, on Databricks, of a cluster with dedicated access mode"
        )
    return shards


def require_rocksdb(spark: SparkSession) -> None:
    """Raise unless the session keeps state in RocksDB, which Spark's stateful processors need."""
    provider = setting(spark, PROVIDER)
    if provider is not None and provider.endswith(".HDFSBackedStateStoreProvider"):
        raise InvalidArgument(
            f"a streaming flow keeps its state in RocksDB, but {PROVIDER} is {provider}: set it to {ROCKSDB}, "
            "as uc.session() does"
        )

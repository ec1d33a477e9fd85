"""The route of streams: the stages of a flow as stateful operators, with one shard a shuffle partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...errors import InvalidArgument
from ...panes import Operator, Watermarks
from ...panes.shard.parcels import Parcel
from ...panes.transforms import Transform, applied
from ...triggers import uses_processing_time
from ..inputs import wire_map
from ..session import PROVIDER, ROCKSDB
from ..sql_types import spark_schema
from ..wire import WIRE, WIRE_DDL, payloads
from .base import Route
from .checkpoint_fingerprint import fingerprint
from .replay import live_lifts
from .shard_processor import CLOCKS, COUNTS, OUT_DDL, ShardProcessor, ShardTask
from .tasks import LiftLive, batches_of, source_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class ShowPanes:
    """Unpacks panes to rows."""

    after: Sequence[Transform]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, _, payload in payloads(batches):
            yield from batches_of(applied(self.after, Parcel.unpack(payload).table))


@dataclass(frozen=True, eq=False)
class Streaming(Route):
    """Runs a flow over unbounded input on Structured Streaming."""

    def df(self) -> DataFrame:
        flow = self.flow
        require_rocksdb(self.input.spark)
        lifts = live_lifts(flow, self.schemas, self.ids)
        at = flow.settings.processing_time or ""
        packed = self.input.mapped(lifts[0], list(self.schemas[0].names), at, WIRE_DDL, self.metric)
        for i, task in enumerate(self.tasks(lifts)):
            stepped = packed.groupBy("shard").transformWithStateInPandas(
                ShardProcessor(task), OUT_DDL, "append", self._time_mode
            )
            observed = stepped.observe(self.metric(str(i + 1)), *numbers())
            packed = observed.where(F.col("payload").isNotNull()).select(*WIRE.names)
        return wire_map(packed, ShowPanes(flow.transforms), spark_schema(flow.schema))

    def tasks(self, lifts: Sequence[LiftLive]) -> Iterator[ShardTask]:
        """The shard task of each stage."""
        strategy = self.flow.settings.strategy
        idle = None if strategy is None or strategy.idle is None else int(strategy.idle)
        for i, (lift, then) in enumerate(zip_longest(lifts, lifts[1:])):
            schema = applied(lift.transforms, lift.schema.empty_table()).schema
            yield ShardTask(
                partial(Operator, lift.grouping, schema),
                (Watermarks(idle_after=idle) if i == 0 else Watermarks.expecting(source_names(self.ids)),),
                fingerprint(lift.grouping, schema, i + 1, len(lifts), len(self.ids), lift.lift.whole_keys),
                (repr(strategy) if i == 0 else "the stage before",),
                then=then,
                late=schema if lift.grouping.late == "emit" else None,
            )

    @property
    def _time_mode(self) -> str:
        return "ProcessingTime" if self.wakes else "None"

    @property
    def wakes(self) -> bool:
        """True if the query needs batches without data, because timers can be due."""
        settings = self.flow.settings
        if settings.processing_time is not None or not settings.wake:
            return False
        idle = settings.strategy is not None and settings.strategy.idle is not None
        return idle or any(uses_processing_time(stage.grouping.asked) for stage in self.flow.stages)

    def explain(self) -> str:
        at = self.flow.settings.processing_time
        clock = f"the column {at!r}" if at is not None else "the time of each batch"
        timers = "batches without data run when a timer is due" if self.wakes else "what is due waits for the next data"
        return self.explanation(
            "A stream: rows are combined where they are read, and windows kept in Spark's state store.",
            f"watermark: {self.flow.settings.strategy!r}",
            f"processing time: {clock}; {timers}",
            f"shards: {len(self.ids)}, one to a shuffle partition",
        )


def require_rocksdb(spark: SparkSession) -> None:
    """Raise unless the session keeps state in RocksDB, which Spark's stateful processors need."""
    found = spark.conf.get(PROVIDER)
    if found is not None and found.endswith(".HDFSBackedStateStoreProvider"):
        raise InvalidArgument(
            f"a streaming flow keeps its state in RocksDB, but {PROVIDER} is {found}: set it to {ROCKSDB}, "
            "as uc.session() does"
        )


def numbers() -> list[Column]:
    """The counts of a stage, over its shards."""
    part = {name: F.col("numbers")[i] for i, name in enumerate((*COUNTS, *CLOCKS))}
    sums = [F.sum(part[name]).alias(name) for name in COUNTS]
    return [*sums, *(F.min(part[name]).alias(name) for name in CLOCKS)]

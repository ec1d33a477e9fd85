"""A query that writes each batch of a flow into a topic of Kafka, each shard of it in a transaction of its own.

The rows of a batch are divided by their keys into as many shards as the first batch had, so that a shard has the same
rows when the batch is repeated; then its marker says if they are written. `docs/design/exactly_once.md` has the proof.

Guarded by tests/sparkops/tables/test_to_kafka.py and tests/sparkops/tables/test_topic_killed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from ...combiners.rows.columns import flat
from ...flows.flow import Flow
from ...flows.graph import graph_of
from ...flows.left_out import LEFT_OUT
from ...flows.tuning import LiveQuery, TopicTarget
from ...kafka.markers import BegunMarkers, Markers, send_batch
from ...local.topic_output import TopicOutput, topic_flow
from ...tables.target import NONE_YET
from ..checkpoints.positions import in_shards, seed_at_start, started_at
from ..ending import end_without_input
from ..inputs import DataFrameInput, column
from ..progress_log import listen
from ..query_log import is_checkpoint, last_commit, last_plan, query_id
from ..restarts import checked_route
from ..routes.base import Route
from ..starting import BatchFunction, batch_writer, started
from ..time_modes import as_stored, wakes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SENT = pa.schema([("messages", pa.int64())])
SENT_DDL = "messages bigint"


def live_topic(
    flow: Flow,
    spark: SparkSession,
    route_of: Callable[[Flow, bool], Route],
    target: TopicTarget,
    keys: str | Sequence[str] | None,
    options: LiveQuery,
) -> StreamingQuery:
    """Start a query that writes the batches of a flow into a topic; `Flow.to_kafka` says how."""
    checkpoint, trigger = options.checkpoint, options.trigger
    settled, output = topic_flow(flow, target, keys)
    output.check()
    settled = in_shards(as_stored(settled, spark, checkpoint), checkpoint)
    seed = seed_at_start(settled, options.start, spark, checkpoint)
    settled = started_at(settled, seed)
    route = checked_route(route_of(settled, output.left_out is not None), checkpoint, options.same, seed)
    batches = TopicBatches(output, checkpoint, len(route.ids))
    if is_checkpoint(spark, checkpoint):
        batches.begin(spark)
    function = BatchFunction(batches)
    writer = batch_writer(route.df(), function, options)
    endless = bool((trigger or {}).get("availableNow")) and wakes(settled.settings, graph_of(settled))
    begun = last_plan(spark, checkpoint) if endless else NONE_YET
    listen(spark)
    name = options.query_name or f"topic {output.topic} of Kafka at {output.cluster.servers}"
    begins = f"{name}: a query starts with checkpoint {checkpoint}"
    query = started(writer.start, lambda: function.called, begins, name)
    if endless:
        end_without_input(query, begun)
    return query


class TopicBatches:
    """Takes the batches of a query, in the process that runs it."""

    def __init__(self, output: TopicOutput, checkpoint: str, shards: int) -> None:
        self.output, self.checkpoint, self.shards = output, checkpoint, shards
        self.begun: BegunMarkers | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        begun = self.begun or self.begin(rows.sparkSession)
        write_shards(rows, self.output, begun, batch)
        self.begun = begun.after()  # the markers of a batch say nothing of the next one

    def begin(self, spark: SparkSession) -> BegunMarkers:
        """Look at the markers of earlier runs of the query."""
        markers = Markers(self.output.cluster, self.output.topic, query_id(spark, self.checkpoint))
        done, planned = last_commit(spark, self.checkpoint), last_plan(spark, self.checkpoint)
        return markers.begun(self.shards, done, planned)


def write_topic(rows: DataFrame, output: TopicOutput) -> None:
    """Write the rows of a bounded flow, whose markers are deleted when all is done."""
    shards = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    begun = Markers(output.cluster, output.topic, uuid4().hex).begun(shards, NONE_YET, 0)
    write_shards(rows, output, begun, 0)
    begun.markers.forget(range(begun.shards))


def write_shards(rows: DataFrame, output: TopicOutput, begun: BegunMarkers, batch: int) -> int:
    """Write the rows of a batch, by shards; the number of messages that this attempt has written."""
    names = [*output.names, *([LEFT_OUT] if output.left_out is not None else [])]
    divided = rows.repartition(begun.shards, *map(column, output.dividing))
    sent = DataFrameInput(divided).mapped(SendShard(output, begun, batch), names, None, SENT_DDL, str)
    return sum(row["messages"] for row in sent.collect())


@dataclass(frozen=True)
class SendShard:
    """Writes the rows of a shard in a transaction."""

    output: TopicOutput
    begun: BegunMarkers
    batch: int

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        full = [table for table in tables if table.num_rows]
        if not full:
            return
        rows, left_out = _parted(pa.concat_tables(full))
        records, count = self.output.records(rows, left_out), 0
        context = TaskContext.get()
        assert context is not None
        if records and send_batch(self.begun, context.partitionId(), self.batch, records):
            count = sum(table.num_rows for table in records.values())
        yield pa.record_batch([pa.array([count], pa.int64())], schema=SENT)


def _parted(rows: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """The rows of the result, and those that were left out."""
    if LEFT_OUT not in rows.column_names:
        return rows, None
    beside = flat(rows[LEFT_OUT])
    there = beside.is_valid()
    whole = beside.filter(there)
    left_out = pa.Table.from_arrays(whole.flatten(), names=[field.name for field in whole.type])
    return rows.filter(pc.invert(there)), left_out


__all__ = ["SendShard", "TopicBatches", "live_topic", "write_shards", "write_topic"]

"""A batch that the tables have and that Spark does not count as done, as its query was killed in between.

Spark would run it again. A topic may not have all of its messages any more, since some were compacted or their time is
over, and a function whose results are remembered may answer otherwise. The states after the batch would then differ
from what the tables show. The states are there, as no table takes a batch before all of them are, so what is left to do
is to note that it is done.

Guarded by tests/sparkops/topics/test_kafka_killed.py and tests/sparkops/tables/test_finished_batch.py.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...flows.flow import Flow
from ...flows.flow_steps import leaves_of
from ...panes.remember.stage import RememberStage
from ..inputs import Input
from ..planners.topic_planner import TopicPlanner
from ..query_log import is_checkpoint, last_commit, last_plan, query_id
from ..spark_private import write_new_file
from .table_start import TableStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGER = logging.getLogger("uncombine")

COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
"""The note of Spark that a batch is done, in a query without a watermark of Spark's own."""

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
"""The setting by which such a note also has names of states, which Spark alone knows."""


def may_differ(flow: Flow) -> bool:
    """True if a batch of a flow that is run again may give other rows."""
    return reads_topics(flow) or remembers(flow)


def remembers(flow: Flow) -> bool:
    """True if a step of a flow remembers the results of a function, which may answer otherwise each time."""
    own = any(isinstance(stage, RememberStage) for stage in flow.stages)
    return own or any(remembers(one) for one in flow.source.inputs)


def reads_topics(flow: Flow) -> bool:
    """True if all sources of a flow are topics."""
    inputs = [getattr(source, "input", None) for source, _ in leaves_of(flow)]
    return bool(inputs) and all(isinstance(one, Input) and of_topics(one) for one in inputs)


def of_topics(input: Input) -> bool:
    """True if an input has the messages of topics."""
    return isinstance(input.planner, TopicPlanner)


def finish_batch(spark: SparkSession, checkpoint: str, tables: Sequence[TableStart], name: str) -> None:
    """Note the last batch that was begun as done if all tables have it."""
    done, begun = last_commit(spark, checkpoint), last_plan(spark, checkpoint)
    if begun != done + 1 or not is_checkpoint(spark, checkpoint) or spark.conf.get(FORMAT, "1") != "1":
        return
    owner = query_id(spark, checkpoint)
    for table in tables:
        keeper, last = table.keeper(spark, owner, name)
        keeper.close()
        if last != begun:
            return
    if write_new_file(spark, f"{checkpoint}/commits/{begun}", COMMIT):
        LOGGER.info("%s: batch %d was whole, so it is not run again", name, begun)


__all__ = ["finish_batch", "may_differ", "of_topics", "remembers"]

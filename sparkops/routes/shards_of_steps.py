"""The shards of several steps on one stateful operator of Spark, and the rows that only pass it.

Guarded by tests/sparkops/together/test_together_streams.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..wire import WIRE
from .shard_processor import ShardProcessor, ShardTask
from .shard_rows import passed_on

if TYPE_CHECKING:
    from pyspark.sql.streaming import StatefulProcessorHandle

    from ..spark_private import ExpiredTimerInfo, TimerValues


class ShardsOfSteps:
    """A processor that gives the rows of each shard to its step; rows of other numbers stay as they are."""

    def __init__(self, tasks: Sequence[ShardTask]) -> None:
        processors = [(task, ShardProcessor(task)) for task in tasks]
        self.processors = {number: processor for task, processor in processors for number in task.ids}

    def begin(self, handle: StatefulProcessorHandle, manifest: Any, chunks: Any) -> None:
        """Take the state of a task of Spark."""
        for processor in dict.fromkeys(self.processors.values()):
            processor.begin(handle, manifest, chunks)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        processor = self.processors.get(int(key[0]))
        if processor is not None:
            yield from processor.handleInputRows(key, rows, timerValues)
            return
        for frame in rows:
            yield passed_on(frame[WIRE.names])

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        yield from self.processors[int(key[0])].handleExpiredTimer(key, timerValues, expiredTimerInfo)


__all__ = ["ShardsOfSteps"]

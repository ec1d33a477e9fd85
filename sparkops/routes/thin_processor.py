"""The part of a shard that a streaming query needs before its first task: the names and types of its state.

For each step Spark starts a Python process on the driver that asks the processor for these alone. Importing the library
and reading the task takes most of a second of a processor there. So the class of this module travels by value and not
by name, needs PySpark alone, and has the processor of the library as bytes, which a task reads when rows come.

Guarded by tests/sparkops/routes/test_thin_processor.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from ..spark_private import pickled, travels_by_value
from ..tuning.thin_function import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd


class ThinProcessor(StatefulProcessor):
    """A processor of shards that is read when the first rows or the first timer of a task come."""

    # A function of the library that a method named would be imported with the class, so it is a value here.
    def __init__(self, whole: Any, pickled: Callable[[Any], bytes]) -> None:
        self.whole, self.pickled, self.begun = whole, pickled, False

    def __getstate__(self) -> dict[str, bytes]:
        # Not earlier: Spark collects the broadcast variables of a function while it pickles the function.
        return {"payload": self.pickled(self.whole)}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.payload, self.whole, self.begun = state["payload"], None, False

    def init(self, handle: Any) -> None:
        bytes_type = StructType([StructField("value", BinaryType())])
        id_type = StructType([StructField("id", LongType())])
        self.handle = handle
        self.manifest = handle.getValueState("manifest", bytes_type)
        self.chunks = handle.getMapState("chunks", id_type, bytes_type)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        frames: Iterator[pd.DataFrame] = self.processor().handleInputRows(key, rows, timerValues)
        return frames

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        frames: Iterator[pd.DataFrame] = self.processor().handleExpiredTimer(key, timerValues, expiredTimerInfo)
        return frames

    def close(self) -> None:
        pass

    def processor(self) -> Any:
        """The processor of the library, with the state of this task."""
        if self.whole is None:
            self.whole = loaded(self.payload)
        if not self.begun:
            self.begun = True
            self.whole.begin(self.handle, self.manifest, self.chunks)
        return self.whole


def thin(whole: Any) -> ThinProcessor:
    """The processor that Spark gets in the place of one of the library."""
    return ThinProcessor(whole, pickled)


travels_by_value(sys.modules[__name__])

__all__ = ["ThinProcessor", "thin"]

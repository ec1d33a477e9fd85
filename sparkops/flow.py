"""Flows over the rows of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import TypeMismatch
from ..panes.flow import Flow, Settings, flow_of
from ..panes.watermark_strategies import Strategy
from .inputs import DataFrameInput
from .source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def flow(
    df: DataFrame,
    time: str = "ts",
    watermark: Strategy | str | None = None,
    *,
    diff: str | None = None,
    processing_time: str | None = None,
    replay: bool = False,
    close_at_end: bool = False,
    wake: bool = True,
    shards: int | None = None,
    name: str | None = None,
) -> Flow:
    """A flow over the rows of a DataFrame, bounded or streaming.

    Parameters
    ----------
    df
        Any DataFrame; a streaming one gives a streaming flow.
    time
        The event time column.
    watermark
        How rows tell how far event time has come: `BoundedLag`, `PerSource`, `Punctuated`, `Monotonic`, `IngressTime`,
        or a length of time, which is a `BoundedLag`. A bounded flow that is not replayed needs none.
    diff
        The weight column of a changelog, or None.
    processing_time
        The column with each row's processing time, so that a backfill gives the panes that a stream has given; None is
        the time of each batch.
    replay
        On a bounded DataFrame: give all the panes that a stream would have given, row by row in order of
        `processing_time`, and not only the last of each window.
    close_at_end
        In a replay: let the watermark go to the end of time when the history is over.
    wake
        Whether a stream with processing-time triggers runs batches without data when something is due. A query with
        `trigger(availableNow=True)` would never end so: give wake=False for one, and what is due comes with the data.
    shards
        Into how many parts the keys are divided; as many as Spark has shuffle partitions if not given.
    name
        The name under which `progress` and `watch` show the flow, where a query has several. It may change between two
        runs from a checkpoint.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> scores = spark.sql("SELECT timestamp'2016-01-20 12:00:26' AS ts, 'dan' AS user, 5 AS score")
    >>> totals = uc.flow(scores).window(uc.Fixed("2 minutes")).combine(by="user", total=uc.Sum("score"))
    >>> totals.df.select("user", "window.start", "total").show()
    +----+-------------------+-----+
    |user|              start|total|
    +----+-------------------+-----+
    | dan|2016-01-20 12:00:00|    5|
    +----+-------------------+-----+
    <BLANKLINE>
    """
    if not hasattr(df, "isStreaming"):
        raise TypeMismatch(f"flow() takes a DataFrame of Spark's, not {type(df).__name__}: see spark.createDataFrame")
    settings = Settings(time, watermark, diff, processing_time, replay, close_at_end, wake, shards, name)
    return flow_of(SparkSource(DataFrameInput(df)), settings)

"""Flows over the rows of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..changelogs.base import Changelog
from ..changelogs.flows import warn_of_changes
from ..errors import TypeMismatch
from ..flows.flow import Flow, flow_of
from ..flows.settings import Settings
from ..panes.watermarks.watermark_strategies import WatermarkStrategy
from .changelogs import flow_over
from .inputs import DataFrameInput, auto
from .source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def flow(
    df: DataFrame,
    time: str = "ts",
    watermark: WatermarkStrategy | str | None = None,
    *,
    diff: str | None = None,
    changelog: Changelog | None = None,
    processing_time: str | None = None,
    replay: bool = False,
    close_at_end: bool = False,
    wake: bool | None = None,
    shards: int | None = None,
    name: str | None = None,
    native: str = "auto",
    files: str = "auto",
) -> Flow:
    """Start a flow over the rows of a DataFrame, bounded or streaming.

    Parameters
    ----------
    df
        Any DataFrame; a streaming one gives a streaming flow.
    time
        The event time column.
    watermark
        The strategy that makes watermark reports from rows: `BoundedLag`, `PerSource`, `Punctuated`, `Monotonic`,
        `IngressTime`, `ProcessingTime`, `EachBatch`, your own `WatermarkStrategy`, or a length of time, which means
        `BoundedLag`. A bounded flow without replay needs none.
    diff
        The weight column of a changelog, or None. With `changelog`: the name of the weight column that it makes.
    changelog
        The convention of the rows if they are messages of another system, such as `uc.changelog.Debezium()`. `time` and
        all other options name columns of the rows in the messages, or columns beside them.
    processing_time
        The column with the processing time of each row; with it a backfill gives the same panes as the stream did. None
        means the time of each batch.
    replay
        For a bounded DataFrame: True gives all panes that a stream gives for these rows in order of `processing_time`,
        and not only the final pane of each window.
    close_at_end
        In a replay: True moves the watermark to the end of time after the last row.
    wake
        A stream with timers of processing time runs batches without data when one is due: those of triggers, of
        `idle_after`, and of a `process` that can set some. A query of its `.df` with `trigger(availableNow=True)` then
        never ends. Pass wake=False for it; timers then fire with the next data. True: it runs such batches for any
        `process`, as earlier versions did; a checkpoint of theirs needs it where `.df` goes on from it.
    shards
        The number of parts into which keys are divided; the number of Spark's shuffle partitions if not given.
    name
        The name of the flow in `progress` and `watch`, for a query with several flows. It may change between two runs
        from a checkpoint, but not if the flow is an input of a union, whose inputs the checkpoint knows by their names.
    native
        "auto": final panes are computed by Spark's own aggregation where its results are the same, or, for plain sums
        and means of floats, within the same tolerance; so are `select`, `where` and `with_columns` of bounded rows, by
        Spark's own expressions. "never": the library computes them itself.
    files
        "auto": if the DataFrame is nothing but Parquet files, with plain conditions and a choice of columns, the tasks
        that combine its rows read the files themselves, as those of `uc.files` do. "never": Spark reads them.

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
        remedy = {"SparkSession": "write uc.flow(spark.table(name))", "str": "write uc.files(spark, path)"}
        remedy |= {"Flow": "it is a flow already"}
        raise TypeMismatch(
            f"flow() takes a DataFrame of Spark, but was given {type(df).__name__}: "
            f"{remedy.get(type(df).__name__, 'use spark.createDataFrame')}"
        )
    settings = Settings(time, watermark, diff, processing_time, replay, close_at_end, wake, shards, name)
    given = DataFrameInput(df, native=auto("native=", native), files=auto("files=", files))
    if changelog is not None:
        return flow_over(given, settings, changelog)
    warn_of_changes(df.columns, settings)
    return flow_of(SparkSource(given), settings)

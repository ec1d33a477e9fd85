"""The one way in: a flow over anything that has rows, in this process or on Spark.

Guarded by tests/test_doors.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import IOBase
from typing import TYPE_CHECKING, Any, Never

from .changelogs.base import Changelog
from .changelogs.flows import MessageTypes, UnreadSource, flow_over
from .combiners.expressions.expr import Expr
from .errors import InvalidArgument, TypeMismatch, UnknownColumn, nearest, require_column
from .files.files import OF_FILES, Files
from .flows.engine import Source
from .flows.event_time import event_time_of
from .flows.flow import Flow
from .flows.settings import Settings
from .flows.tuning import Tuning
from .kafka.kafka import Kafka
from .lakehouse.table_changes import TableChanges
from .local.opening import opened as opened_here
from .local.table_versions import with_weights
from .local.topics import by_partition, without_partition
from .panes.grouping.grouping import EVENT_TIME
from .panes.watermarks.watermark_strategies import WatermarkStrategy
from .windows import Span

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def flow(
    rows: Any,
    /,
    *,
    spark: SparkSession | None = None,
    streaming: bool = False,
    time: str | Expr = "ts",
    time_format: str | None = None,
    watermark: WatermarkStrategy | Span | str | None = None,
    diff: str | None = None,
    changelog: Changelog | None = None,
    processing_time: str | None = None,
    max_future: Span | str | None = "1 day",
    name: str | None = None,
    tuning: Tuning | None = None,
    **others: Never,
) -> Flow:
    """Start a flow: the steps that rows go through, over anything that has rows.

    Three ways lead out of it: `.run()` in this process, `.df` for a DataFrame of Spark, and `.to_table(target)`.

    Parameters
    ----------
    rows
        * a DataFrame of Spark, bounded or streaming;
        * a path, a list of paths, or `uc.Files`;
        * topics of Kafka: `uc.Kafka`;
        * the rows and changes of a table of Delta or Iceberg: `uc.TableChanges`;
        * a table: of pyarrow, pandas, Polars, DuckDB, or of anything with `__arrow_c_stream__`; a list of dicts, or a
          dict of columns. A dataset of pyarrow, a lazy frame and a generator are read whole, here and now;
        * a script: a list of `uc.Elements`, `uc.Watermark` and `uc.Clock`;
        * a `pyarrow.Schema`, for rows that come later, by a script.
    spark
        A session, on which files, topics and tables are run; without it they are run in this process. A DataFrame of
        Spark has its own.
    streaming
        For files, topics and `uc.TableChanges` on Spark: True also reads files, messages and versions that appear
        later, each once.
    time
        The event time column; or an expression that computes the event times, such as `uc.col("ms").cast_time("ms")`.
        Its values are in the column `event_time`, beside the others. A row without a time there is a bad row.
    time_format
        The format of the texts in the column `time`, such as "%d.%m.%Y %H:%M", or the unit of its numbers since 1970:
        "s", "ms", "us" or "ns". `time="day", time_format="%d.%m.%Y"` is `time=uc.col("day").cast_time("%d.%m.%Y")`.
    watermark
        The strategy that makes watermark reports from rows: `BoundedLag`, `PerSource`, `Punctuated`, `Monotonic`,
        `IngressTime`, `ProcessingTime`, `EachBatch`, your own `WatermarkStrategy`, or a length of time, which means
        `BoundedLag`. A bounded flow that is no replay needs none. Without it, a script alone reports watermarks.
    diff
        The weight column of a changelog, or None. With `changelog` and `uc.TableChanges`: the name of the weight column
        that they make, "diff" if not given.
    changelog
        The convention of the rows if they are messages of another system, such as `uc.changelog.Debezium()`. `time` and
        all other options name columns of the rows in the messages, or columns beside them.
    processing_time
        The column with the processing time of each row; with it a backfill gives the same panes as the stream did. None
        means the time of each batch. With `diff` the column does not go on with the rows: a retraction comes later than
        its row, and would not equal it.
    max_future
        The longest time by which the event time of a row may be after its processing time. Other rows are bad rows, and
        move no watermark. None means no limit.
    name
        The name of the source, in `progress` and `watch`, for a script with several sources (`Elements(input=...)`),
        and for the inputs of a union. It may change between two runs from a checkpoint, but not if the flow is an input
        of a union, whose inputs the checkpoint knows by their names.
    tuning
        The options about running on Spark, as `uc.Tuning`.

    Examples
    --------
    >>> import uncombine as uc
    >>> rows = [{"ts": "2016-01-20T12:00:26Z", "user": "dan", "score": 5}]
    >>> totals = uc.flow(rows).window("2 minutes").combine(by="user", total=uc.Sum("score"))
    >>> totals.run().select(["user", "total"]).to_pylist()
    [{'user': 'dan', 'total': 5}]

    >>> spark = uc.session()
    >>> df = spark.sql("SELECT timestamp'2016-01-20 12:00:26' AS ts, 'dan' AS user, 5 AS score")
    >>> on_spark = uc.flow(df).window("2 minutes").combine(by="user", total=uc.Sum("score"))
    >>> on_spark.df.select("user", "window.start", "total").show()
    +----+-------------------+-----+
    |user|              start|total|
    +----+-------------------+-----+
    | dan|2016-01-20 12:00:00|    5|
    +----+-------------------+-----+
    <BLANKLINE>
    """
    _check_others(others)
    if tuning is not None and not isinstance(tuning, Tuning):
        raise TypeMismatch(f"tuning= takes uc.Tuning(...), but was given {tuning!r}")
    if isinstance(rows, Flow):
        raise TypeMismatch("uc.flow() was given a flow, which needs no other start: use it as it is")
    if hasattr(rows, "readStream") and not hasattr(rows, "isStreaming"):  # a DataFrame may give a column of any name
        raise TypeMismatch(
            "uc.flow() was given a session: write uc.flow(spark.table(name)), or uc.flow(path, spark=...)"
        )
    if isinstance(rows, IOBase):
        raise TypeMismatch("uc.flow() was given an open file: write uc.flow(path)")
    if isinstance(rows, Iterator) and not hasattr(rows, "__arrow_c_stream__"):  # of rows, tables, paths or entries
        rows = list(rows)
    tuned, event_time = tuning or Tuning(), event_time_of(time, time_format)
    settings = Settings(
        time=time if event_time is None else EVENT_TIME,  # type: ignore[arg-type]
        watermark=watermark,
        diff=diff,
        processing_time=processing_time,
        wake=tuned.wake,
        shards=tuned.shards,
        name=name,
        max_future=max_future,
        event_time=event_time,
    )
    if isinstance(rows, Kafka) and streaming:
        settings = by_partition(settings)
    if isinstance(rows, TableChanges):
        settings = with_weights(replace(settings, diff=diff or "diff"), changelog is not None)
    unread = _opened(rows, spark, settings, streaming, tuned, getattr(changelog, "typed", None))
    try:
        over = without_partition(flow_over(unread, settings, changelog))
    except UnknownColumn:
        if getattr(getattr(getattr(rows, "index", None), "dtype", None), "kind", None) != "M":
            raise
        raise UnknownColumn(
            "the times of the DataFrame are its index, which is no column: give uc.flow() frame.reset_index(), and "
            f"time={rows.index.name or 'index'!r}"
        ) from None
    return replace(over, door=Door(getattr(rows, "sparkSession", spark), tuned))


@dataclass(frozen=True)
class Door:
    """Opens other rows in the place of those of a source, for a flow over the same columns."""

    spark: SparkSession | None
    tuning: Tuning

    def __call__(self, rows: Any, source: Source[Flow], settings: Settings) -> Source[Flow]:
        if self.spark is None and hasattr(rows, "isStreaming"):
            raise InvalidArgument(
                "a flow that runs in this process takes no DataFrame of Spark: give rows of this process, or give "
                "uc.flow() spark="
            )
        if isinstance(rows, Files):
            rows = rows.bounded()
        messages = None if source.reading is None else source.reading.typed
        spark = None if hasattr(rows, "isStreaming") else self.spark
        unread = _opened(rows, spark, settings, False, self.tuning, messages)
        expected = source.reading.message_schema if source.reading is not None else None
        for name in expected.names if expected is not None else ():
            require_column(name, unread.schema.names, "the messages of the history")
        return unread.make(source.reading, settings.event_time)


_OPTIONS = (
    "spark", "streaming", "time", "time_format", "watermark", "diff", "changelog", "processing_time", "max_future",
    "name",
)  # fmt: skip


def _check_others(names: Iterable[str]) -> None:
    """Raise for an option that a flow does not have, and say where it is."""
    for name in names:
        if name in Tuning.__dataclass_fields__:
            where = f"give tuning=uc.Tuning({name}=...)"
        elif name in OF_FILES:
            where = f"give uc.flow() uc.Files(path, {name}=...)"
        elif name in ("replay", "close_at_end"):
            where = "write .replay() after uc.flow(...)"
        else:
            where = nearest(name, (*_OPTIONS, "tuning"))
        raise InvalidArgument(f"uc.flow() has no option {name!r}: {where}")


def _opened(
    rows: Any,
    spark: SparkSession | None,
    settings: Settings,
    streaming: bool,
    tuning: Tuning,
    messages: MessageTypes | None,
) -> UnreadSource:
    if spark is not None or hasattr(rows, "isStreaming"):
        from .sparkops.opening import opened

        return opened(rows, spark, settings, streaming, tuning, messages)
    if streaming:
        raise InvalidArgument(
            "streaming=True needs spark=, such as uc.session(): it reads files, messages and versions as they appear"
        )
    return opened_here(rows, settings, messages)


__all__ = ["flow"]

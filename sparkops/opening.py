"""The opening of a flow on Spark, over a DataFrame, files, or rows that go to Spark.

Files are listed and tracked by Spark, or by a planner if the user asks for an order or if they are in an object store.
The tasks that combine their rows read them, so that they never enter the JVM.

Guarded by tests/test_doors.py, tests/sparkops/test_flow.py and tests/sparkops/test_files.py.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..changelogs.flows import MessageTypes, UnreadSource
from ..errors import InvalidArgument, TypeMismatch
from ..files.file_format import FileFormat
from ..files.files import Files, Order, is_path
from ..files.paths import absolute, without_parameters
from ..flows.settings import Settings
from ..flows.tuning import Tuning
from ..kafka.kafka import Kafka
from ..lakehouse.table_changes import TableChanges
from ..local.opening import opened as opened_here
from ..local.sources import LocalSource
from ..local.table_versions import parts_now, rows_of
from ..local.topics import columns_named, is_by_partition
from ..panes.watermarks.watermark_strategies import IngressTime
from .changelogs import opened_over
from .files_input import FilesInput
from .inputs import DataFrameInput
from .lakehouse.versions_input import VersionsInput
from .planners.data_source import LIMITS
from .planners.file_planner import FilePlanner
from .planners.topic_planner import TopicPlanner
from .planners.version_planner import VersionPlanner
from .scans.watermark import unused_watermark
from .spark_private import cores
from .sql_types import dataframe_of, spark_schema
from .topics.topics_input import TopicsInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def opened(
    rows: Any,
    spark: SparkSession | None,
    settings: Settings,
    streaming: bool,
    tuning: Tuning,
    messages: MessageTypes | None = None,
) -> UnreadSource:
    """Anything that a flow on Spark takes, ready to be read; `messages` is for those of a changelog."""
    if is_dataframe(rows):
        if spark is not None:
            raise InvalidArgument("a DataFrame has its own session: leave spark= out")
        return _of_dataframe(rows, settings, streaming, tuning)
    if not hasattr(spark, "readStream"):
        raise TypeMismatch(f"spark= takes a session, such as uc.session(), but was given {spark!r}")
    assert spark is not None
    if is_path(rows):
        rows = Files(rows)
    if isinstance(rows, Files):
        return _of_files(rows, spark, settings, streaming, messages)
    if isinstance(rows, Kafka):
        return _of_topics(rows, spark, settings, streaming, messages is not None)
    if isinstance(rows, TableChanges):
        return _of_versions(rows, spark, settings, streaming)
    if streaming:
        raise InvalidArgument(
            "streaming=True is for files, topics and uc.TableChanges: leave it out, or give a DataFrame of "
            "spark.readStream"
        )
    return _of_rows(rows, spark, settings, tuning)


def is_dataframe(rows: Any) -> bool:
    """True for a DataFrame of Spark, also one of Spark Connect."""
    return hasattr(rows, "isStreaming")


def _of_dataframe(df: DataFrame, settings: Settings, streaming: bool, tuning: Tuning) -> UnreadSource:
    if streaming and not df.isStreaming:
        raise InvalidArgument("streaming=True needs a streaming DataFrame: read it with spark.readStream")
    if (name := unused_watermark(df)) is not None:
        warnings.warn(
            f"withWatermark({name!r}, ...) of the DataFrame has no effect on the flow, which has that of watermark= "
            "alone: leave withWatermark out",
            stacklevel=5,
        )
    input = DataFrameInput(df, native=tuning.native == "auto", files=tuning.files == "auto")
    return opened_over(input, settings)


def _of_files(
    files: Files, spark: SparkSession, settings: Settings, streaming: bool, messages: MessageTypes | None
) -> UnreadSource:
    if not streaming:
        files.check_bounded()
    listing, most = files.listed(), files.max_files_per_batch
    paths, form = listing.paths, files.described(listing, streaming, messages)
    tracking = {} if most is None else {"maxFilesPerTrigger": str(most)}
    order = files.order if streaming else None
    if streaming and order is None and any(path.address for path in paths):  # which Spark reads with a jar alone
        order = "modified"
    planner = None if order is None else _planner(files, order, form, settings, cores(spark), messages is not None)
    input = FilesInput(
        spark=spark, paths=paths, format=form, streaming=streaming, options=tracking, planner=planner, files=files
    )
    return opened_over(input, settings)


def _of_topics(kafka: Kafka, spark: SparkSession, settings: Settings, streaming: bool, changelog: bool) -> UnreadSource:
    (kafka.check_streaming if streaming else kafka.check_bounded)()
    if kafka.max_rows_per_batch is not None and not LIMITS:
        raise InvalidArgument(
            "max_rows_per_batch= needs Spark 4.2: leave it out, and each batch has all messages that are there, or "
            "read the topics by Spark's own connector, spark.readStream.format('kafka') with maxOffsetsPerTrigger"
        )
    named = is_by_partition(settings)  # also in a history of such a stream
    message_rows = kafka.opened(named=named, more=columns_named(settings), changelog=changelog)
    many = cores(spark)
    input = TopicsInput(
        spark=spark,
        kafka=kafka,
        message_rows=message_rows,
        streaming=streaming,
        leaves_out=kafka.leaves_out(streaming),
        planner=TopicPlanner(kafka, many) if streaming else None,
        cores=many,
        partitioned=named,
    )
    return opened_over(input, settings)


def _of_versions(changes: TableChanges, spark: SparkSession, settings: Settings, streaming: bool) -> UnreadSource:
    (changes.check_streaming if streaming else changes.check_bounded)()
    if changes.max_versions_per_batch is not None and not LIMITS:
        raise InvalidArgument(
            "max_versions_per_batch= needs Spark 4.2: leave it out, and each batch has all versions that are there"
        )
    table_rows, many = rows_of(changes, settings), cores(spark)
    planner = VersionPlanner(changes, table_rows.versions, many) if streaming else None
    if planner is None:
        parts_now(changes, table_rows)  # what is lost is said before anything starts
    input = VersionsInput(
        spark=spark, changes=changes, table_rows=table_rows, streaming=streaming, planner=planner, cores=many
    )
    return opened_over(input, settings)


def _planner(
    files: Files, order: Order, form: FileFormat, settings: Settings, cores: int, changelog: bool
) -> FilePlanner:
    """The planner of the batches of a stream."""
    most = files.max_files_per_batch
    if most is not None and not LIMITS:
        raise InvalidArgument(
            "max_files_per_batch= needs Spark 4.2 with order=, and for an object store: leave it out, and the first "
            "batch has all files that are there"
        )
    if order == "time":
        _check_times(form, settings, changelog)
    start = [
        path
        for one in files.start
        for path in (absolute(without_parameters(one)[0]), *(place.below(one) for place in form.paths))
    ]
    return FilePlanner(form=form, order=order, time=settings.time, start=start, most=most, cores=cores)


def _check_times(form: FileFormat, settings: Settings, changelog: bool) -> None:
    """Raise unless the files have the event times by which they are put in order."""
    time, processing_time = settings.time, settings.processing_time
    if isinstance(settings.strategy, IngressTime):
        raise InvalidArgument(
            "order='time' reads event times, and with IngressTime() rows have none before they are read: give "
            "order='name'"
        )
    if processing_time is not None:
        raise InvalidArgument(
            f"order='time' and processing_time={processing_time!r} put the same rows in two orders: leave one of them "
            "out"
        )
    kind = form.schema.field(time).type if time in form.schema.names else None
    if changelog and (settings.event_time is not None or kind is None):
        raise InvalidArgument(
            "order='time' reads a column of times in the files, and the times of a changelog are in its messages: give "
            "order='name' and, from the first start on, an allowed_lateness= as long as the history, or make the state "
            "of the history with flow.seed(history, to=)"
        )
    if settings.event_time is not None:
        raise InvalidArgument(
            f"order='time' reads times that are in the files, and time={settings.event_time.value!r} computes them: "
            "give CSV files schema= with a timestamp and timestamp_parsers=, or order='name' if their names are in the "
            "order of their times"
        )
    if kind is None or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        fault = "is not in the files" if kind is None else f"is {kind} there, and no time"
        raise InvalidArgument(f"order='time' reads the column {time!r} (time=), which {fault}: give order='name'")


def _of_rows(rows: Any, spark: SparkSession, settings: Settings, tuning: Tuning) -> UnreadSource:
    """Rows of this process, which become a DataFrame."""
    local = None if isinstance(rows, pa.Schema) else opened_here(rows, settings).make(None, None)
    if not isinstance(local, LocalSource) or local.rows is None:
        raise InvalidArgument(
            "spark= runs files, and rows that are there, on Spark, but a script and a schema have rows in this process "
            "alone: leave spark= out"
        )
    df = dataframe_of(spark, local.rows, spark_schema(local.schema))
    return _of_dataframe(df, settings, False, tuning)


__all__ = ["is_dataframe", "opened"]

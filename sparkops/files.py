"""Flows over files: Spark lists and tracks them, the lift tasks read them, and their rows never enter the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..changelogs.base import Changelog
from ..changelogs.flows import warn_of_changes
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, TypeMismatch
from ..flows.flow import Flow, flow_of
from ..flows.settings import Settings
from ..panes.readers.data_paths import data_paths
from ..panes.readers.formats import check_arguments
from ..panes.readers.reading import describe
from ..panes.watermarks.watermark_strategies import WatermarkStrategy
from .changelogs import flow_over
from .files_input import FilesInput
from .source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files(
    spark: SparkSession,
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    *,
    time: str = "ts",
    watermark: WatermarkStrategy | str | None = None,
    schema: pa.Schema | None = None,
    diff: str | None = None,
    changelog: Changelog | None = None,
    processing_time: str | None = None,
    replay: bool = False,
    close_at_end: bool = False,
    wake: bool | None = None,
    shards: int | None = None,
    name: str | None = None,
    streaming: bool = False,
    max_files_per_batch: int | None = None,
    filter: Expr | None = None,
    on_bad_file: str = "error",
    on_missing_column: str = "error",
    **options: Any,
) -> Flow:
    """Start a flow over files, which the tasks that combine the rows read with pyarrow.

    Parameters
    ----------
    spark
        The session.
    path
        A folder, a file, a pattern, or several of them. A path that exists is itself, and no pattern. Folders named
        `key=value` below it are columns. A link below it that leads out of it is not followed.
    format
        "parquet", "arrow" (also Feather), "csv" or "json" (a row a line). If not given, the names
        of the files decide.
    schema
        The columns and their types; if not given, those of one of the files.
    streaming
        True also reads files that appear later, each once, as Spark's file source tracks them.
    max_files_per_batch
        In a stream: the largest number of new files in a batch.
    filter
        A condition for rows. Parts of files that cannot have such rows are not read.
    on_bad_file
        The treatment of a file that cannot be read: "error" or "skip".
    on_missing_column
        The treatment of a file without one of the columns: "error", or "null" for a column of nulls.
    time, watermark, diff, changelog, processing_time, replay, close_at_end, wake, shards, name
        As for `flow`.
    **options
        Options of the format: for csv delimiter=, quote_char=, header=, null_values=.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile, uncombine as uc
    >>> folder = tempfile.mkdtemp()
    >>> rows = pa.table({"ts": pa.array([0, 61_000_000], pa.timestamp("us", "UTC")), "score": [3, 4]})
    >>> pq.write_table(rows, f"{folder}/scores.parquet")
    >>> totals = uc.files(uc.session(), folder).window(uc.Fixed("1 minute")).combine(total=uc.Sum("score"))
    >>> [row.total for row in totals.df.orderBy("window").collect()]
    [3, 4]
    """
    check_session(spark, path)
    check_arguments(options, files, "uc.files()")
    if max_files_per_batch is not None and not streaming:
        raise InvalidArgument(
            "max_files_per_batch= needs streaming=True: leave it out, because a bounded flow reads all files"
        )
    paths = data_paths(path)
    described = describe(
        paths,
        format,
        schema,
        filter=filter,
        on_bad_file=on_bad_file,
        on_missing_column=on_missing_column,
        options=options,
    )
    tracking = {} if max_files_per_batch is None else {"maxFilesPerTrigger": str(max_files_per_batch)}
    given = FilesInput(spark, paths, described, streaming, tracking)
    settings = Settings(time, watermark, diff, processing_time, replay, close_at_end, wake, shards, name)
    if changelog is not None:
        return flow_over(given, settings, changelog)
    warn_of_changes(given.schema.names, settings)
    return flow_of(SparkSource(given), settings)


def check_session(spark: object, path: object) -> None:
    """Raise unless the session comes first and then the path."""
    if not hasattr(spark, "readStream"):
        is_path = isinstance(spark, str | PathLike)
        raise TypeMismatch(
            "files() takes a session of Spark and then a path, but was first given "
            f"{repr(str(spark)) if is_path else f'a {type(spark).__name__}'}: write uc.files(uc.session(), "
            f"{repr(str(spark)) if is_path else 'path'})"
        )
    if not isinstance(path, str | PathLike | Sequence):
        raise TypeMismatch(f"files() takes a path or several, but was given a {type(path).__name__} as path=")

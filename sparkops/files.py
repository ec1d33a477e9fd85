"""Flows over files: Spark lists and tracks them, the lift tasks read them, and their rows never enter the JVM."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ..combiners.expressions.expr import Expr
from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, TypeMismatch
from ..panes.changelogs.base import Changelog
from ..panes.changelogs.flows import warn_of_changes
from ..panes.flow import Flow, flow_of
from ..panes.settings import Settings
from ..panes.shard.malloc import keep_memory
from ..panes.shard.parcels import AT
from ..panes.watermark_strategies import Strategy
from ..windows import time_column
from .changelogs import flow_over
from .inputs import Input, Metric, Task, processing_time
from .naming import FILES
from .readers.reading import FileFormat, Split, describe, read, splits
from .source import SparkSource
from .wire import WIRE_DDL, wire_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTED = "path string, modificationTime timestamp, length bigint, content binary"
"""The fixed schema of Spark's source of whole files. Only the path is selected, so Spark reads no file."""

_GIVEN = pa.schema([("path", pa.string()), ("first", pa.int64()), ("last", pa.int64())])

LARGE = 128 << 20
"""Files larger than this, in bytes, are read in parts by several tasks."""


def files(
    spark: SparkSession,
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    *,
    time: str = "ts",
    watermark: Strategy | str | None = None,
    schema: pa.Schema | None = None,
    diff: str | None = None,
    changelog: Changelog | None = None,
    processing_time: str | None = None,
    replay: bool = False,
    close_at_end: bool = False,
    wake: bool = True,
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
        A folder, a file, a pattern, or several of them. Folders named `key=value` below it are columns.
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
    if max_files_per_batch is not None and not streaming:
        raise InvalidArgument(
            "max_files_per_batch= needs streaming=True: leave it out, because a bounded flow reads all files"
        )
    paths = [str(one) for one in ([path] if isinstance(path, str | PathLike) else path)]
    described = describe(
        paths,
        format,
        schema,
        filter=filter,
        on_bad_file=on_bad_file,
        on_missing_column=on_missing_column,
        options=options,
    )
    given = FilesInput(spark, tuple(paths), described, streaming, max_files_per_batch)
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


@dataclass(frozen=True, eq=False)
class FilesInput(Input):
    """Files of one format."""

    spark: SparkSession
    paths: tuple[str, ...]
    format: FileFormat
    streaming: bool
    max_files_per_batch: int | None

    @property
    def schema(self) -> pa.Schema:
        return self.format.schema

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        known = self.format.schema.names
        wanted = [name for name in columns if name in known]
        if at and at not in wanted:
            wanted.append(at)
        reading = ReadFiles(replace(self.format, columns=tuple(wanted)), task, tuple(columns), at)
        listed = self._stream() if self.streaming else self._given()
        if at is not None:
            listed = listed.withColumn(AT, processing_time(""))
        if schema != WIRE_DDL or self.format.on_bad_file == "error":
            return listed.mapInArrow(reading, schema)
        packed = listed.mapInArrow(reading, schema)
        skipped = F.coalesce(F.sum((F.col("lo") < 0).cast("bigint")), F.lit(0))
        return packed.observe(metric(FILES), skipped.alias("files_skipped")).where("lo >= 0")

    def _stream(self) -> DataFrame:
        reader = self.spark.readStream.format("binaryFile").schema(_LISTED)
        if self.max_files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.max_files_per_batch)
        if len(self.paths) > 1:
            raise InvalidArgument("a stream reads one path: give one folder or pattern, such as '/data/*/2016'")
        none = F.lit(None).cast("bigint")
        return reader.load(self.paths[0]).select("path", none.alias("first"), none.alias("last"))

    def _given(self) -> DataFrame:
        """The files that exist now, large ones in parts, as Spark lists its own files."""
        listed = self.spark.read.format("binaryFile").schema(_LISTED).load(list(self.paths))
        found = listed.select("path", "length").collect()
        parts: list[Split] = []
        for row in sorted(found):
            parts += splits(self.format, row.path, LARGE) if row.length > LARGE else [Split(row.path)]
        columns = [[getattr(part, name) for part in parts] for name in _GIVEN.names]
        return self.spark.createDataFrame(pa.table(columns, schema=_GIVEN))

    def describe(self) -> str:
        return f"{self.format.format} files at {', '.join(self.paths)}, read by the tasks that combine their rows"


@dataclass(frozen=True)
class ReadFiles:
    """Runs a task over the rows of the files that Spark lists."""

    format: FileFormat
    task: Task
    columns: tuple[str, ...]
    at: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_memory()
        skipped: list[str] = []

        def bad(path: str, reason: str) -> None:
            skipped.append(path)
            sys.stderr.write(f"skipped: {reason}\n")

        yield from self.task(self._tables(batches, bad))
        if skipped:
            # A file in several parts is skipped part by part.
            yield wire_batch((0, -1, path.encode()) for path in dict.fromkeys(skipped))

    def _tables(self, batches: Iterable[pa.RecordBatch], bad: Any) -> Iterator[pa.Table]:
        wanted = [name for name in self.columns if name in self.format.schema.names]
        for batch in batches:
            columns = (batch.column(i).to_pylist() for i in range(3))
            parts = [Split(*part) for part in zip(*columns, strict=True)]  # few: one a file
            batch_time = batch.column(3)[0].as_py() if self.at is not None else 0
            for table in read(self.format, parts, bad):
                rows = table.select(wanted)
                if self.at is not None:
                    rows = rows.append_column(AT, pa.array(self._times(table, batch_time)))
                yield rows

    def _times(self, table: pa.Table, batch_time: int) -> np.ndarray:
        """The processing time of each row: from its column, or that of the batch where the column is null."""
        if not self.at:
            return np.full(table.num_rows, batch_time)
        times, valid = time_column(flat(table[self.at]))
        return np.where(valid, times, batch_time)

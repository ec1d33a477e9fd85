"""Files as an input: Spark, Arrow or a planner lists them, and the tasks that combine their rows read them.

Arrow lists the files of object stores, for which Spark would need a jar. Spark lists those that it alone may see.

Guarded by tests/sparkops/test_files.py.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812

from ..errors import InvalidArgument, UnreadableFile
from ..files.data_paths import DataPath
from ..files.file_format import SKIP
from ..files.files import Files
from ..files.folder_columns import warn_of_differences
from ..files.formats import BY_LINE
from ..files.links import require_inside
from ..files.listing import DataFile, list_data_files, list_files, lost_links
from ..files.paths import parts_of
from ..files.reading import FileFormat, LeaveOut, Split, read, splits
from ..panes.parcels import AT
from ..windows.times import UTC_MICROS
from .inputs import WAKING, Hold, Input, Metric, Task, processing_time, times_of_rows
from .naming import FILES, query_of_task
from .planners.data_source import planned
from .planners.file_planner import FilePlanner
from .sql_types import spark_schema
from .tuning.thin_function import thin_function
from .tuning.worker import ready
from .wire import SKIPPED, UNREADABLE, WIRE_DDL, wire_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTED = spark_schema(
    pa.schema({"path": pa.string(), "modificationTime": UTC_MICROS, "length": pa.int64(), "content": pa.binary()})
)
"""The fixed schema of Spark's source of whole files. Only the path is selected, so Spark reads no file."""

_ALL = {"recursiveFileLookup": "true"}
"""Spark lists all files below a folder, and makes no columns of folders: the tasks do, and the source has none."""

_SPLITS = pa.schema([("path", pa.string()), ("first", pa.int64()), ("last", pa.int64())])

LARGE = 128 << 20
"""Files larger than this, in bytes, are read in parts by several tasks."""

LOOKS = 16
"""The large files that are looked into at once."""


@dataclass(frozen=True, eq=False)
class FilesInput(Input):
    """Files of one format."""

    spark: SparkSession
    paths: tuple[DataPath, ...]
    format: FileFormat
    streaming: bool
    options: Mapping[str, str] = field(default_factory=dict)
    """The options with which Spark tracks the files of a stream."""
    listed_late: bool = False
    """True: Spark lists bounded files whenever the flow is run; then no file is read in parts."""
    text: str = ""
    """The words for them, if they are not files that the user named."""
    planner: FilePlanner | None = None
    files: Files | None = None
    """The files as the user named them."""
    listed: tuple[DataFile, ...] | None = None
    """The files that there were when they were listed, if they are listed no more."""

    @property
    def schema(self) -> pa.Schema:
        return self.format.schema

    @property
    def strict(self) -> bool:
        return self.format.on_bad_row == "error"

    @property
    def may_lose(self) -> bool:
        return self.format.on_bad_file != "error" or self.format.leaves_rows_out

    @property
    def texts(self) -> pa.Schema | None:
        """The types that the values of files of text must have; None of other files, and where options say more."""
        plain = self.format.format in BY_LINE and not self.format.options
        return self.format.schema if plain else None

    def replayed(self) -> Input:
        """The files for a replay, in which a bad row is left out, as in a stream."""
        return self if self.files is None else replace(self, format=self.files.replayed(self.format))

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        names = self.format.schema.names
        wanted = [name for name in columns if name in names]
        if at and at not in wanted:
            wanted.append(at)
        if self.streaming or (self.files is not None and self.files.on_bad_row is None):
            self.format.require_types(wanted)
        # The task says which of its columns can stay dictionaries.
        filtered = () if self.format.filter is None else self.format.filter.columns
        coded = (self.format.coded | frozenset(getattr(task, "coded", ()))) - {at, *filtered}
        root = self.paths[0].fixed if self.streaming and self.format.as_spark else None
        needed = getattr(task, "needed", None)
        if needed is not None and at:
            needed |= {at}
        reading = ReadFiles(
            format=replace(self.format, columns=tuple(wanted), coded=coded, needed=needed),
            task=task,
            columns=tuple(columns),
            at=at,
            root=root,
            packed=schema == WIRE_DDL,
            has_schema=self.files is not None and self.files.schema is not None,
        )
        listed = self._stream(wanted) if self.streaming else self._files_now(wanted)
        if at is not None:
            listed = listed.withColumn(AT, processing_time(""))
        packed, lo = listed.mapInArrow(thin_function(reading), schema), F.col("lo")
        if schema != WIRE_DDL or not self.may_lose:
            return packed
        unreadable = F.when(lo == UNREADABLE, F.col("payload").cast("string").cast("bigint"))
        counts = (
            F.coalesce(F.sum((lo == SKIPPED).cast("bigint")), F.lit(0)).alias("files_skipped"),
            F.coalesce(F.sum(unreadable), F.lit(0)).alias("rows_unreadable"),
        )
        return packed.observe(metric(FILES), *counts).where(lo >= 0)

    def _stream(self, columns: Sequence[str]) -> DataFrame:
        if self.planner is not None:
            self._check(self.listed_here(), columns)
            return planned(self.spark, self.planner)
        reader = self.spark.readStream.format("binaryFile").schema(_LISTED).options(**self.options, **_ALL)
        if len(self.paths) > 1:
            raise InvalidArgument("a stream reads one path: give one folder or pattern, such as '/data/*/2016'")
        self._check(self.listed_here(), columns)
        try:
            return self._whole(reader.load(self.paths[0].for_spark))
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            place = self.paths[0].words
            raise UnreadableFile(
                f"there is no folder {place}: make it, or give uc.Files() order='name', which waits for it"
            ) from None

    def _check(self, files: Sequence[str], columns: Sequence[str]) -> None:
        """Say which of the files that a stream starts with it will not read, and what it will read otherwise."""
        for path in lost_links(files):
            try:
                require_inside(path, self.format.paths)
            except UnreadableFile as error:
                if self.format.on_bad_file == "error":
                    raise
                warnings.warn(f"skipped: {str(error).removesuffix(f', {SKIP}')}", stacklevel=2)
        warn_of_differences(self.format, files, columns)

    def _files_now(self, columns: Sequence[str]) -> DataFrame:
        """The files that exist now, large ones in parts, as Spark lists its own files."""
        if self.listed_late:
            return self._whole(self._listed())
        files = [file for file in self.list_files_now() if file.size or not self.format.as_spark]
        large = [file.path for file in files if file.size > LARGE]
        with ThreadPoolExecutor(LOOKS) as pool:
            cut = dict(zip(large, pool.map(partial(splits, self.format, at_most_bytes=LARGE), large), strict=True))
        parts = [part for file in files for part in cut.get(file.path, [Split(file.path)])]
        if not self.format.as_spark:
            warn_of_differences(self.format, [part.path for part in parts], columns)
            # Spark does not list them; the tasks say what they are.
            parts += map(Split, lost_links(self.listed_here()))
        values = [[getattr(part, name) for part in parts] for name in _SPLITS.names]
        return self.spark.createDataFrame(pa.table(values, schema=_SPLITS))

    def list_files_now(self) -> list[DataFile]:
        """The files that exist now, and those of object stores that the user named and that are gone."""
        if self.listed is not None:
            return list(self.listed)
        far = [] if self.format.as_spark else [path for path in self.paths if path.address]
        files = list_data_files(far, lost=True) if far else []
        if len(far) < len(self.paths):
            listed = self._listed().select("path", "length", F.unix_micros("modificationTime").alias("changed"))
            files += [DataFile(row.path, row.length, row.changed) for row in listed.collect()]
        return sorted(files, key=lambda file: file.path)

    def listed_here(self) -> list[str]:
        """The local files that this process sees, among them the links to nothing, which Spark does not list."""
        local = [path for path in self.format.paths if not path.address]
        return list_files(local) if local else []

    def _listed(self) -> DataFrame:
        """The files that Spark lists: those of a scan, and local ones."""
        paths = [path.for_spark for path in self.paths if self.format.as_spark or not path.address]
        return self.spark.read.format("binaryFile").schema(_LISTED).options(**_ALL).load(paths)

    def _whole(self, listed: DataFrame) -> DataFrame:
        """Files to be read as a whole. Spark takes an empty file for one without rows."""
        if self.format.as_spark:
            listed = listed.where("length > 0")
        none = F.lit(None).cast("bigint")
        return listed.select("path", none.alias("first"), none.alias("last"))

    def describe(self) -> str:
        named = self.text or f"{self.format.format} files at {', '.join(path.words for path in self.paths)}"
        order = "" if self.planner is None else f", ordered by {self.planner.words},"
        return f"{named}{order or ','} read by the tasks that combine their rows"


@dataclass(frozen=True)
class ReadFiles:
    """Runs a task over the rows of the files that Spark lists."""

    format: FileFormat
    task: Task
    columns: tuple[str, ...]
    at: str | None
    root: str | None = None
    """The folder of a stream of which Spark would take the files in it, and make columns of the folders below it."""
    packed: bool = True
    """True if the task gives packed rows, among which the skipped files are counted."""
    has_schema: bool = False
    """True if the user has given the types of the columns."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready()
        skipped, unreadable = list[str](), list[pa.Table]()

        def bad(path: str, reason: str) -> None:
            skipped.append(path)
            sys.stderr.write(f"skipped{query_of_task()}: {reason}\n")

        holds: list[tuple[int, int]] = []
        yield from self.task(self._tables(batches, bad, unreadable.append, holds))
        send: Hold | None = getattr(self.task, "hold", None)
        if send is not None:
            yield from (wire_batch(send(*hold)) for hold in holds)
        count_lost = getattr(self.task, "count_lost", None)
        if skipped and self.packed:
            # A file in several parts is skipped part by part.
            yield wire_batch((0, SKIPPED, path.encode()) for path in dict.fromkeys(skipped))
        elif skipped and count_lost is not None:
            yield from count_lost("files_skipped", len({*skipped}))
        if unreadable:
            yield from self._left_out(pa.concat_tables(unreadable))

    def _left_out(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows that could not be read, as far as the task shows them, and the number of them."""
        of_file = rows.filter(pc.equal(rows["file"], rows["file"][0]))
        first = of_file.sort_by("line").slice(0, 1).to_pylist()[0]
        count = f"{rows.num_rows} row{'s' * (rows.num_rows > 1)}"
        cause = first["cause"]
        wider = " (double for numbers with fractions)" if str(cause).endswith(" is no int64") else ""
        advice = "" if self.has_schema else f", so give schema= if the value is right{wider}"
        told = "" if cause is None else f": {cause}{advice}"
        where = f"the first at {first['file']}, line {first['line']}"
        sys.stderr.write(f"left out{query_of_task()}: {count} that cannot be read, {where}{told}\n")
        if (shown := getattr(self.task, "unreadable", None)) is not None:
            yield from shown(rows)
        if self.packed and getattr(self.task, "counts", True):
            yield wire_batch([(0, UNREADABLE, str(rows.num_rows).encode())])
        elif (count_lost := getattr(self.task, "count_lost", None)) is not None:
            yield from count_lost("rows_unreadable", rows.num_rows)

    def _tables(
        self, batches: Iterable[pa.RecordBatch], bad: Any, leave_out: LeaveOut, holds: list[tuple[int, int]]
    ) -> Iterator[pa.Table]:
        """The rows of the files; `holds` gets the time that the watermark waits for, if the planner names one."""
        wanted = [name for name in self.columns if name in self.format.schema.names]
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in _SPLITS.names)
            parts = [Split(*part) for part in zip(*columns, strict=True) if part[0] is not None]  # few: one a file
            batch_time = batch.column(AT)[0].as_py() if self.at is not None else 0
            if "hold" in batch.schema.names:
                holds += [(time, batch_time) for time in batch.column("hold").drop_null().to_pylist()]
                if batch.num_rows and not (parts or holds):
                    holds.append(WAKING)
            if self.root is not None:
                parts = [part for part in parts if spark_reads(part.path, self.root, self.format.schema)]
            for table in read(self.format, parts, bad, leave_out=leave_out):
                rows = table.select(wanted)
                if self.at is not None:
                    rows = rows.append_column(AT, pa.array(times_of_rows(table, self.at, batch_time)))
                yield rows


def spark_reads(path: str, root: str, schema: pa.Schema) -> bool:
    """True for a file that Spark reads in a stream of the files in a folder; raises if a folder below is a column.

    >>> [spark_reads(f"file:/in/{path}", "/in", pa.schema([])) for path in ("a.parquet", "more/a.parquet")]
    [True, False]
    """
    folders, above = ([part for part in parts_of(place)[1].split("/") if part] for place in (path, root))
    below = folders[len(above) : -1]
    named = [folder.partition("=")[0].casefold() for folder in below if "=" in folder]
    if columns := {name for name in schema.names if name.casefold() in named}:
        raise UnreadableFile(
            f"{path} is in a folder that is column {min(columns)!r}, and there was none when the query started, so "
            "Spark itself has to read it: start the query again",
            path,
        )
    return bool(named) or not below

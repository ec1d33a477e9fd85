"""The faster way of the rows of a DataFrame: its files, if it is nothing but a scan of Parquet files.

Guarded by tests/sparkops/scans/test_scans.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import TypeMismatch
from ...files.data_paths import data_paths
from ...files.file_format import FAULTS, FileFormat
from ...files.formats import open_source
from ...files.listing import list_files
from ...files.parquet_as_spark import otherwise
from ...files.parquet_files import ParquetSource
from ...files.paths import locate
from ...files.reading import folders_of
from ...panes.parcels import AT
from ...windows.times import UTC_MICROS
from ..files_input import LARGE, FilesInput
from ..inputs import DataFrameInput, Input, Metric, Task, instants
from ..session import setting
from ..spark_private import execution
from ..sql_types import arrow_type
from . import classic, connect
from .scan import NoScan, Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKED = 100
"""The largest number of files whose metadata is read before the flow runs; the tasks check every file."""

_AS_FILES = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
}
"""The settings of a session with which Spark reads the values that this library reads."""

_FOLDER_TYPES = (pa.string(), pa.int32(), pa.int64(), pa.date32())
_NO_FOLDER = "/dev/null"
_WILD = set("*?[]{}\\")
_NOT_ASCII = re.compile("%[89a-fA-F][0-9a-fA-F]")
"""An escaped byte of a letter beyond ASCII. Spark takes each byte for a letter of its own."""


def faster(input: Input) -> Input:
    """The input that gives the same rows sooner: files for a DataFrame that is a scan of them, else itself."""
    if not isinstance(input, DataFrameInput):
        return input.over(faster)
    if not input.files:
        return input
    try:
        return _of_files(input)
    except NoScan as reason:
        return replace(input, text=f"{input.text}, whose files Spark reads: {reason}") if str(reason) else input


def _of_files(input: DataFrameInput) -> Input:
    df = input.df if input.before is None else input.before
    plan = execution(df)
    scan = connect.scan_of(df) if plan is None else classic.scan_of(plan, df.isStreaming)
    require_settings(df.sparkSession)
    if any(_WILD & set(path) for path in scan.paths):
        raise NoScan("its paths have wildcards")
    try:
        paths = list_files(scan.paths) if df.isStreaming else scan.paths
        fmt = FileFormat(
            format="parquet",
            schema=_schema(scan),
            base=_base(scan),
            filter=scan.filter,
            on_missing_column="null",
            as_spark=True,
        )
        for path in paths:
            folders_of(fmt, path)  # raises for a value that the type of its column here does not have
        sizes = sizes_if_alike(paths[:CHECKED], fmt)
    except FAULTS as error:
        if isinstance(error, NoScan):
            raise
        raise NoScan(f"the driver cannot read them: {str(error).partition(chr(10))[0]}") from None
    if not paths:
        raise NoScan("there are none yet")
    if scan.listed_late and (len(paths) > CHECKED or max(sizes) > LARGE):
        raise NoScan("they are large")
    if df.isStreaming and any("=" in folder for path in paths for folder in path.split("/")[:-1]):
        raise NoScan("they may be in folders that are columns")
    words = "a DataFrame of Parquet files"
    files = FilesInput(
        spark=df.sparkSession,
        paths=data_paths(scan.paths),
        format=fmt,
        streaming=df.isStreaming,
        options=scan.options,
        listed_late=scan.listed_late,
        text=words,
    )
    names = [name for name in input.schema.names if name in scan.columns]
    return ScannedInput(files=files, columns={name: scan.columns[name] for name in names}, instant=input.instant)


def require_settings(spark: SparkSession) -> None:
    """Raise `NoScan` if Spark reads other values under the settings of the session."""
    for name, value in _AS_FILES.items():
        if str(setting(spark, name, value)).upper() != value.upper():
            raise NoScan(f"{name} is not {value}")


def sizes_if_alike(paths: Sequence[str], fmt: FileFormat) -> list[int]:
    """The bytes of files; raises `NoScan` if Spark would make other values of one of them."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(partial(_size_if_alike, fmt=fmt), paths))


def _schema(scan: Scan) -> pa.Schema:
    """The columns of the files that the DataFrame has or that its condition reads, in the types of Spark."""
    wanted = {*scan.columns.values(), *(scan.filter.columns if scan.filter is not None else ())}
    fields = []
    for field in scan.schema:
        if field.name not in wanted:
            continue
        if set(field.metadata or ()) - {"comment"}:
            raise NoScan(f"column {field.name!r} has metadata")
        try:
            kind = arrow_type(field.dataType, field.name)
        except TypeMismatch:
            continue
        if field.name in scan.folders and kind not in _FOLDER_TYPES:
            raise NoScan(f"the folders {field.name!r} are {kind}")
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _base(scan: Scan) -> str:
    """The folder below which folders are columns."""
    if not scan.folders:
        return _NO_FOLDER
    bases = set()
    for path in scan.paths:
        *above, _ = path.split("/")
        folders, above = above[-len(scan.folders) :], above[: -len(scan.folders)]
        if any(map(_NOT_ASCII.search, folders)):
            raise NoScan("its folders have escaped letters beyond ASCII")
        if [folder.partition("=")[0] for folder in folders] != list(scan.folders):
            raise NoScan("its folders are not named as its columns")
        bases.add("/".join(above))
    if len(bases) > 1:
        raise NoScan("they are in several folders")
    return bases.pop()


def _size_if_alike(path: str, fmt: FileFormat) -> int:
    """The bytes of a file; raises if Spark would make other values of it."""
    system, inside = locate(path, fmt.access)
    size = system.get_file_info(inside).size or 0
    if size == 0:
        return 0
    source = open_source("parquet", system, inside, {}, None)
    assert isinstance(source, ParquetSource)
    if (reason := otherwise(source, fmt)) is not None:
        raise NoScan(f"{path} {reason}")
    if fmt.on_missing_column == "error" and set(fmt.schema.names) - set(source.schema.names):
        raise NoScan(f"{path} lacks a column")
    if not fmt.as_spark and "BROTLI" in source.codecs(fmt.schema.names):
        raise NoScan(f"{path} is compressed with Brotli, which Spark does not come with")
    return int(size)


@dataclass(frozen=True, eq=False)
class ScannedInput(Input):
    """The rows of the files of a DataFrame, under the names that the DataFrame gives their columns."""

    files: FilesInput
    columns: dict[str, str]
    instant: str | None = None
    """A column with the first instant of 1970 in all rows, which the files do not have."""

    @property
    def spark(self) -> Any:
        return self.files.spark

    @property
    def schema(self) -> pa.Schema:
        own_schema = self.files.schema
        fields = [own_schema.field(own).with_name(name) for name, own in self.columns.items()]
        return pa.schema([*fields, *([] if self.instant is None else [pa.field(self.instant, UTC_MICROS)])])

    @property
    def streaming(self) -> bool:  # type: ignore[override]
        return self.files.streaming

    def mapped(self, task: Task, columns: list[str], at: str | None, schema: Any, metric: Metric) -> DataFrame:
        wanted = [name for name in columns if name in self.columns]
        own = [self.columns[name] for name in wanted]
        instant = self.instant if self.instant in columns else None
        read = (
            task
            if own == wanted and instant is None
            else RenamingTask(task=task, own=tuple(own), names=tuple(wanted), instant=instant)
        )
        return self.files.mapped(read, list(dict.fromkeys(own)), self.columns[at] if at else at, schema, metric)

    def describe(self) -> str:
        return self.files.describe()


@dataclass(frozen=True)
class RenamingTask:
    """Runs a task over columns of other names."""

    task: Task
    own: Sequence[str]
    names: Sequence[str]
    instant: str | None

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        return self.task(map(self._renamed, tables))

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts can stay dictionaries under each of their names."""
        coded_names = getattr(self.task, "coded", frozenset[str]())
        pairs = list(zip(self.own, self.names, strict=True))
        return frozenset(self.own) - {own for own, name in pairs if name not in coded_names}

    def _renamed(self, table: pa.Table) -> pa.Table:
        at = [AT] if AT in table.column_names else []
        chosen = table.select([*self.own, *at]).rename_columns([*self.names, *at])
        if self.instant is None:
            return chosen
        return chosen.append_column(self.instant, instants(table.num_rows, UTC_MICROS))

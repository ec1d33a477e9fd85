"""Files: the value that names data files, and says how they are read.

It opens no file. A flow over it lists the files and learns their columns when it is made, and reads rows when it runs.

Guarded by tests/files/test_files_value.py, tests/local/test_local_files.py and tests/sparkops/test_files.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import pyarrow as pa

from ..combiners.expressions.conditions import condition_of
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, TypeMismatch
from .describing import describe
from .file_format import FileFormat
from .formats import BY_LINE, check_option_names, format_name
from .listing import Listing
from .paths import require_no_secret

Path: TypeAlias = str | PathLike[str]


Order: TypeAlias = Literal["time", "name", "modified"]
"""The order in which a stream takes files: by their least event times, by their paths, or by their last changes."""

_ARGUMENTS = (
    "format", "schema", "filter", "on_bad_file", "on_bad_row", "on_missing_column", "max_files_per_batch", "order",
    "start",
)  # fmt: skip

_OF_FLOWS = (
    "spark", "streaming", "time", "time_format", "watermark", "diff", "changelog", "processing_time", "max_future",
    "name",
)  # fmt: skip
_ELSEWHERE = {name: f"give {name}= to uc.flow()" for name in (*_OF_FLOWS, "tuning")}


class CsvOptions(TypedDict, total=False):
    """The options of CSV files; those of pyarrow have its names and meanings."""

    delimiter: str
    quote_char: str | Literal[False]
    double_quote: bool
    escape_char: str | Literal[False]
    newlines_in_values: bool
    header: bool
    skip_rows: int
    encoding: str
    null_values: Sequence[str]
    true_values: Sequence[str]
    false_values: Sequence[str]
    decimal_point: str
    timestamp_parsers: Sequence[str]


OF_FILES = frozenset({*_ARGUMENTS, *CsvOptions.__annotations__})
"""The names of all options."""


class Files:
    r"""Data files of one format, which a flow reads: `uc.flow(uc.Files(path, format="csv"))`.

    `uc.flow(path)` reads a path without options.

    Parameters
    ----------
    path
        A folder, a file, a pattern, or several of them, on disk or in an object store (`s3://bucket/in`, `gs://`,
        `abfs://`). A path that exists is itself, and no pattern. Folders named `key=value` below it are columns. A
        link below it that leads out of it is not followed. Object stores are read by Arrow, on Spark too, which needs
        no jar for them. Credentials come from the environment or a profile, and a path never has them. A path may end
        with parameters of Arrow: `s3://bucket/in?region=eu-west-1&endpoint_override=http://host:9000`.
    format
        "parquet", "arrow" (also Feather), "csv", "json" (a row a line) or "text" (a line as it is, in column
        `value`). If not given, the names of the files decide.
    schema
        The columns and their types; if not given, those of one of the files. Instants are read as UTC. Texts of CSV and
        JSON without a zone are by the clocks of their column, such as `pa.timestamp("us", "Europe/Berlin")`, or UTC; of
        a time that comes twice the first counts, and one that is skipped is a row that cannot be read.
    filter
        A condition for rows. Parts of files that cannot have such rows are not read.
    on_bad_file
        The treatment of a file that cannot be read: "error", or "skip", which leaves out the part of it that one task
        or thread reads, with a warning. Only the columns that a flow needs are read where rows are combined. An object
        store that does not answer, or refuses the credentials, is an error with both.
    on_bad_row
        The treatment of a row of a CSV or JSON file that cannot be read: "error", which makes the file one that cannot
        be read, or "leave_out", which reads the other rows, and shows this one in `left_out` with its file, its line
        and the beginning of its text. Without it, bounded flows have "error", and streams and replays "leave_out". A
        row is judged by the columns that the flow reads alone, so two flows may count different rows of one file; with
        `flow.with_columns(x=uc.col("x"))` each of them reads, and so judges, column `x`.
    on_missing_column
        The treatment of a file without one of the columns: "error", or "null" for a column of nulls.
    max_files_per_batch
        In a stream: the largest number of new files in a batch.
    order
        In a stream: the order of the files that are there, "time" (by the least event time in each), "name" (by their
        paths) or "modified" (by their last changes). A flow that is no stream reads all files at once, and takes it
        without heeding it, so that one `uc.Files` is for both; a run with `until=` heeds "name" and "modified". With
        "time" the watermark waits for the files that are there and not read, so that none of their rows is late.
        Without it files of object stores come by "modified"; Spark lists others and notes which are read, in an order
        that is nearly that of their last changes.
    start
        In a stream with `order`: the files that are read already, by their paths or by their names below `path`. They
        are left out, whether they are there or not.
    **options
        Options of CSV: delimiter=, quote_char=, double_quote=, escape_char=, newlines_in_values=, header=, skip_rows=,
        encoding=, null_values=, true_values=, false_values=, decimal_point=, timestamp_parsers=. The
        last has the formats of times, with the directives of `time_format=`, or `pyarrow.csv.ISO8601`.

    Examples
    --------
    >>> import pathlib, tempfile, uncombine as uc
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("ts;score\n2016-01-20T12:00:26Z;5\n")
    >>> scores = uc.flow(uc.Files(path, delimiter=";"))
    >>> scores.window("global").combine(total=uc.Sum("score")).run()["total"].to_pylist()
    [5]
    """

    def __init__(
        self,
        path: Path | Sequence[Path],
        *,
        format: Literal["parquet", "arrow", "feather", "ipc", "csv", "json", "text"] | None = None,
        schema: pa.Schema | None = None,
        filter: Expr | None = None,
        on_bad_file: Literal["error", "skip"] = "error",
        on_bad_row: Literal["error", "leave_out"] | None = None,
        on_missing_column: Literal["error", "null"] = "error",
        max_files_per_batch: int | None = None,
        order: Order | None = None,
        start: Sequence[Path] = (),
        **options: Unpack[CsvOptions],
    ) -> None:
        if not is_path(path):
            raise TypeMismatch(f"uc.Files() takes a path or several, but was given a {type(path).__name__} as path=")
        format_options: Mapping[str, Any] = options
        check_option_names(format_options, _ARGUMENTS, _ELSEWHERE)
        several = [path] if isinstance(path, str | PathLike) else list(path)
        self.path: list[str] = [fspath(one) for one in several]
        self.format, self.schema = format, _checked_schema(schema)
        if format is not None:
            format_name(format)
        self.filter = None if filter is None else condition_of(filter, "filter=")
        self.on_bad_file, self.on_bad_row, self.on_missing_column = on_bad_file, on_bad_row, on_missing_column
        self.max_files_per_batch, self.options = max_files_per_batch, dict(format_options)
        self.order, self.start = order, _checked_start(start, order)
        require_no_secret([*self.path, *self.start])
        _check_most(max_files_per_batch)

    def listed(self) -> Listing:
        """The paths, each told from a pattern by what is there now; raise for a store that does not answer."""
        return Listing.of(self.path)

    def described(
        self, listing: Listing, streaming: bool = False, typed: Callable[[pa.Schema], pa.Schema] | None = None
    ) -> FileFormat:
        """The format and the columns of the files of a listing; `typed` gives types to inferred columns of JSON."""
        described = describe(
            listing,
            self.format,
            self.schema,
            filter=self.filter,
            on_bad_file=self.on_bad_file,
            on_bad_row=self.on_bad_row or ("leave_out" if streaming else "error"),
            on_missing_column=self.on_missing_column,
            options=self.options,
            typed=typed,
        )
        of_messages = typed is not None and described.format == "text"
        if self.on_bad_row is not None and described.format not in BY_LINE and not of_messages:
            raise InvalidArgument(
                f"on_bad_row= is for CSV and JSON, and these are {described.format} files, which are damaged as a "
                "whole: write on_bad_file="
            )
        return described

    def replayed(self, described: FileFormat) -> FileFormat:
        """The description for a replay, which treats bad rows as a stream does."""
        return described if self.on_bad_row is not None else replace(described, on_bad_row="leave_out")

    def bounded(self) -> Files:
        """The files without the options of a stream, to be read once."""
        if self.start:
            raise InvalidArgument("a history is all files of the past, and start= leaves some out: leave start= out")
        files = copy(self)
        files.order = files.max_files_per_batch = None
        return files

    def check_bounded(self) -> None:
        """Raise if an option is one of streams."""
        for name in ("max_files_per_batch", "start"):
            if getattr(self, name):
                raise InvalidArgument(
                    f"{name}= needs streaming=True: leave it out, because a bounded flow reads all files"
                )

    def __repr__(self) -> str:
        plain = {"on_bad_file": "error", "on_missing_column": "error", "start": []}
        arguments = {name: getattr(self, name) for name in _ARGUMENTS} | self.options
        open_ = [name for name, value in arguments.items() if value is None or (name in plain and value == plain[name])]
        said = [f"{name}={value!r}" for name, value in arguments.items() if name not in open_]
        path = self.path[0] if len(self.path) == 1 else self.path
        return f"Files({', '.join([repr(path), *said])})"


def _checked_schema(schema: Any) -> pa.Schema | None:
    """The schema of the files; raise for anything but an Arrow schema."""
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    raise TypeMismatch(
        f"schema= of uc.Files() takes an Arrow schema, such as pa.schema({{'n': pa.int64()}}), and was given {schema!r}"
    )


def _checked_start(start: Sequence[Path], order: object) -> list[str]:
    """The paths of `start`; raise if it is no list of paths, or if the order is none."""
    if order not in (None, "time", "name", "modified"):
        raise InvalidArgument(f"order= must be 'time', 'name' or 'modified', but is {order!r}")
    if isinstance(start, str | PathLike) or not all(isinstance(one, str | PathLike) for one in start):
        raise TypeMismatch(f"start= takes a list of the files that are read already, but was given {start!r}")
    if start and order is None:
        raise InvalidArgument("start= needs order=, such as order='name', because Spark's own list leaves no file out")
    return [fspath(one) for one in start]


def _check_most(most: object) -> None:
    """Raise unless a batch can have so many files."""
    if most is not None and (type(most) is not int or most < 1):
        raise InvalidArgument(f"max_files_per_batch= must be a whole number of at least 1, but is {most!r}")


def is_path(value: object) -> bool:
    """True for a path, and for a list of paths.

    >>> is_path("a.csv"), is_path(["a.csv", "b.csv"]), is_path([{"x": 1}]), is_path([])
    (True, True, False, False)
    """
    if isinstance(value, str | PathLike):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, str | PathLike) for one in value)


__all__ = ["OF_FILES", "CsvOptions", "Files", "Order", "Path", "is_path"]

"""The description of data files, and their splits: values that are sent to tasks."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from ..combiners.column_names import PLACES
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, TypeMismatch, UncombineError, UnreadableFile, require_column
from .conform import clocks_of, standard_schema
from .data_paths import DataPath, access_of
from .formats import BY_LINE, format_name, require_format_options
from .paths import is_of_store, parts_of, unreachable
from .unreadable_rows import BadRow, shortened

FAULTS = (Exception,)
"""The errors of readers for a damaged file: any kind, from Arrow's own errors to a KeyError."""

OWN_FAULT = 1 << 30
"""A request for this many bytes at once comes from a damaged file; a smaller one that fails means lack of memory."""


SKIP = "or read past such files with on_bad_file='skip'"
"""The advice that ends the error of a file that cannot be read."""

LEAVE_OUT = "leave such rows out with on_bad_row='leave_out', "
"""The advice in the error of a file with a row that cannot be read."""

_ROW = re.compile(r"(CSV parse error: .*?Expected \d+ columns, got \d+): .*")
"""The words of Arrow for a line of a CSV file with too many or too few values, which end with the line."""

_VALUE = re.compile(r"(?<=')[^']{41,}(?=')")

_OF_ANOTHER_TYPE = re.compile(r"conversion error to|changed from|' is no (u?int|float|double|bool|decimal)")
"""The words of Arrow for a text file with a value of another type than the file from which the types were inferred."""


@dataclass(frozen=True)
class FileFormat:
    """The columns of data files, and the options with which tasks read them; a value.

    >>> import pyarrow as pa
    >>> from uncombine.files.reading import FileFormat
    >>> FileFormat("csv", pa.schema({"k": "int64", "v": "int64"}), "/data", columns=("v",)).output.names
    ['v']
    """

    format: str
    schema: pa.Schema
    base: str
    columns: tuple[str, ...] | None = None
    filter: Expr | None = None
    on_bad_file: str = "error"
    on_bad_row: str = "error"
    options: Mapping[str, Any] = field(default_factory=dict)
    on_missing_column: str = "error"
    coded: frozenset[str] = frozenset()
    """The columns whose texts may stay dictionaries, because nothing but the grouping reads them."""
    as_spark: bool = False
    """True: a Parquet file of which Spark would make other values is an error."""
    paths: tuple[DataPath, ...] = ()
    """The paths that the user named. A link below one of them that leads out of it is not followed."""
    needed: frozenset[str] | None = None
    """The columns without which a row that is left out is bad, beside those of the filter; None means all columns."""

    untyped: tuple[str, ...] = ()
    """The fields of JSON that are null in all rows from which the types were inferred, and are taken for texts."""

    clocks: Mapping[str, str] = field(default_factory=dict)
    """The zones of texts of CSV and JSON without a zone of their own, by columns; that of all others is UTC."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", format_name(self.format))
        if self.format in BY_LINE and not self.clocks:
            object.__setattr__(self, "clocks", clocks_of(self.schema))
        object.__setattr__(self, "schema", standard_schema(self.schema))
        object.__setattr__(self, "options", dict(self.options))
        require_format_options(self.format, self.options)
        for name, value, choices in (
            ("on_bad_file", self.on_bad_file, ("error", "skip")),
            ("on_bad_row", self.on_bad_row, ("error", "leave_out")),
            ("on_missing_column", self.on_missing_column, ("error", "null")),
        ):
            if value not in choices:
                raise InvalidArgument(f"{name}= must be {' or '.join(map(repr, choices))}, but is {value!r}")
        names = Counter(self.schema.names)
        twice = {name for name, count in names.items() if count > 1}
        if twice:
            raise InvalidArgument(f"the files have several columns {min(twice)!r}: give schema= with one of each name")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
        for name in self.columns or ():
            if name not in names:
                require_column(name, self.schema.names, "columns=")
        if self.filter is not None and not pt.is_boolean(self.filter.type(self.schema)):
            raise TypeMismatch(f"filter= takes a condition, but {self.filter!r} is {self.filter.type(self.schema)}")
        if self.format == "csv":
            for column in self.schema:
                if pt.is_nested(column.type):
                    raise TypeMismatch(f"CSV cannot hold {column.type}, the type of column {column.name!r}: use string")

    @property
    def output(self) -> pa.Schema:
        """The schema of the tables that are read."""
        return self.schema if self.columns is None else pa.schema([self.schema.field(name) for name in self.columns])

    @cached_property
    def access(self) -> Mapping[str, str]:
        """The parameters of the file systems of its paths, by their addresses."""
        return access_of(self.paths)

    @property
    def leaves_rows_out(self) -> bool:
        """True if rows that cannot be read are left out. Only formats of text have such rows."""
        return self.on_bad_row == "leave_out" and self.format in BY_LINE

    @property
    def with_places(self) -> FileFormat:
        """The format whose lines of text have their file and line too, for the messages in them."""
        if self.format != "text":
            return self
        kinds = zip(PLACES, (pa.string(), pa.int64()), strict=True)
        return replace(self, schema=pa.schema([*self.schema, *kinds]), coded=self.coded | {PLACES[0]})

    def require_types(self, columns: Iterable[str]) -> None:
        """Raise if a column that is read has no known type, where rows with a value of another one are left out."""
        names = {*columns, *(() if self.filter is None else self.filter.columns)}
        unknown = [path for path in self.untyped if path in names or path.partition(".")[0] in names]
        if unknown and self.leaves_rows_out:
            raise InvalidArgument(
                f"{unknown[0]!r} is null in all rows from which the types of the JSON files are inferred, so its type "
                "is not known, and rows with a value that is no text would be left out: give uc.Files() schema="
            )


@dataclass(frozen=True)
class Split:
    """A part of a file: row groups or record batches [first, last); None for the whole file."""

    path: str
    first: int | None = None
    last: int | None = None


def unreadable(path: str, error: Exception) -> UnreadableFile:
    """The error for a file that cannot be read, with its remedy. An error that is no fault of the file is raised."""
    if isinstance(error, UnreadableFile):
        return error
    if isinstance(error, UncombineError | pa.ArrowCancelled) or lacks_memory(error):
        raise error
    if is_of_store(path, error):
        raise unreachable(path, error) from None
    remedy = f"write it again, {LEAVE_OUT if isinstance(error, BadRow) else ''}{SKIP}"
    if isinstance(error, FileNotFoundError) and os.path.islink(parts_of(path)[1]):
        return UnreadableFile(f"{path} is a link to a file that does not exist: restore it, {SKIP}", path)
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(f"{path} does not exist, or was deleted after it was listed: restore it, {SKIP}", path)
    reason = _without_row(str(error).partition("\n")[0])
    if _OF_ANOTHER_TYPE.search(reason):
        remedy = f"give schema= with a type that takes all files (without it the first file decides), {remedy}"
    if not isinstance(error, OSError | pa.ArrowException | BadRow):
        reason = f"{type(error).__name__}: {reason}"
    return UnreadableFile(f"{path} cannot be read: {reason}: {remedy}", path)


def _without_row(reason: str) -> str:
    """The words of Arrow without the line of the file that they end with, and with its values shortened."""
    return _VALUE.sub(lambda value: shortened(value[0]), _ROW.sub(r"\1", reason))


def lacks_memory(error: Exception) -> bool:
    """True if memory is short; False if a damaged file has a length that is impossibly large.

    >>> lacks_memory(MemoryError()), lacks_memory(MemoryError("malloc of size 281474976710656 failed"))
    (True, False)
    """
    size = re.search(r"of size (\d+) failed", str(error))
    return isinstance(error, MemoryError) and (size is None or int(size[1]) < OWN_FAULT)

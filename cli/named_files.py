"""The files that a command names, with its options of formats, types and clocks as those of `uc.Files`.

Guarded by tests/cli/test_file_rows.py.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from ..combiners.rows.plain_types import is_text
from ..errors import InvalidArgument, UncombineError, require_column
from ..files.files import Files
from ..files.formats import format_of
from .parser import Parser
from .words import column_type

_IN_PYTHON = (
    ("delimiter", r"delimiter=('[^']*'), or schema= if it is", r"--delimiter \1, or --delimiter ',' if it is"),
    ("format", r"give format=", "give --format"),
    ("on_bad_row", r"on_bad_row='leave_out'", "--on-bad-row leave_out"),
    ("type", r"cast it \(a column of files has .*?\)", "give its type, as by --type seconds=float64"),
)
"""Options of the command, what errors say of them in the words of `uc.Files`, and in those of the command."""


def add_format(parser: Parser) -> None:
    """The options that say what a file is."""
    parser.add_argument(
        "--format",
        choices=["parquet", "arrow", "csv", "json", "text"],
        help="the format; the ending says it if not given",
    )
    parser.add_argument("--delimiter", metavar="CHARACTER", help="the character between two values of csv")
    parser.add_argument("--encoding", help="the encoding of csv (default: utf8)")
    parser.add_argument("--decimal-point", metavar="CHARACTER", help="the decimal point of csv, such as , (default: .)")
    parser.add_argument(
        "--null-value",
        action="append",
        metavar="TEXT",
        help="of csv: a text that stands for no value, such as - or n/a, beside the empty one; may be repeated",
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="COLUMN=TYPE",
        help="the type of a column, such as seconds=float64, where a wrong value makes it a text; may be repeated",
    )


def files_of(path: str, arguments: argparse.Namespace, **options: Any) -> Files:
    """The files that a command names, with its options of CSV if they are such, and the types that it gives columns."""
    given = {name: getattr(arguments, name) for name in ("delimiter", "encoding", "decimal_point")}
    of_csv: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if getattr(arguments, "null_value", None):
        of_csv["null_values"] = ["", *arguments.null_value]
    files = Files(path, format=arguments.format)
    listing = files.listed()
    if not listing.files or listing.lost:
        raise InvalidArgument(f"there is no file {path!r}")
    named: Any = arguments.format or format_of(listing.files[0])
    if named in (None, "csv"):
        options |= of_csv
    files = Files(path, format=arguments.format, **options)
    types, zone = dict(map(column_type, arguments.type)), getattr(arguments, "time_zone", None)
    columns, form = getattr(arguments, "columns", None), getattr(arguments, "time_format", None)
    if not types and zone is None and columns is None and form is None:
        return files
    with reading_files(arguments):
        schema = files.described(listing, streaming=True).schema
    if zone is not None and named in ("csv", "json"):
        # The texts of times are read by the clocks of the type of their column.
        clock = pa.timestamp("us", zone)
        types = {name: clock for name in times_of(arguments, schema) if is_time(schema, name)} | types
    if named == "csv" and form is not None and "%" in form:
        # The reader knows the line of a text that is no time. Other columns have times of ISO.
        own = pa.timestamp("us", zone or "UTC")
        texts = [name for name in times_of(arguments, schema) if _has_texts(name, schema, types)]
        if getattr(arguments, "processing_time_format", None) is not None:
            texts = [name for name in texts if name == arguments.time]
        if arguments.time in texts:
            types |= dict.fromkeys(texts, own)
            options["timestamp_parsers"] = [form, pacsv.ISO8601]
    for name, kind in types.items():
        require_column(name, schema.names, "--type")
        schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
    if columns is not None:
        for name in columns:
            require_column(name, schema.names, "--columns")
        schema = pa.schema([schema.field(name) for name in columns])
    return Files(path, format=named, schema=schema, **options)


def times_of(arguments: argparse.Namespace, schema: pa.Schema) -> list[str]:
    """The columns of times that a command names, or all columns where it names none."""
    if "time" not in arguments:
        return list(schema.names)
    names = (getattr(arguments, option, None) for option in ("time", "processing_time"))
    return [name for name in names if name is not None]


def _has_texts(name: str, schema: pa.Schema, types: Mapping[str, pa.DataType]) -> bool:
    """True if the values of a column are texts that are to be times."""
    if name in types:
        return pa.types.is_timestamp(types[name])
    return name in schema.names and is_text(schema.field(name).type)


def is_time(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_timestamp(schema.field(name).type)


@contextmanager
def reading_files(arguments: argparse.Namespace) -> Iterator[None]:
    """Say in the options of the command what an error about files says in those of `uc.Files`.

    >>> with reading_files(argparse.Namespace(delimiter=None)):
    ...     raise InvalidArgument("a;b is one column: give delimiter=';', or schema= if it is")
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: a;b is one column: give --delimiter ';', or --delimiter ',' if it is
    """
    try:
        yield
    except UncombineError as error:
        said = str(error)
        for option, pattern, words in _IN_PYTHON:
            if option in arguments:
                said = re.sub(pattern, words, said)
        if said == str(error):
            raise
        raise InvalidArgument(said) from error


__all__ = ["add_format", "files_of", "is_time", "reading_files", "times_of"]


def __dir__() -> list[str]:
    return __all__

"""The columns and types of data files, which the driver reads from the first of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..combiners.column_names import PLACES
from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, UnreadableFile
from .conform import standard_schema, untyped
from .data_paths import DataPath, access_of
from .file_format import FAULTS, SKIP, FileFormat, unreadable
from .formats import format_name, format_of, open_source, require_format_options
from .links import require_inside
from .listing import Listing
from .partitions import folder_values, infer_types
from .paths import absolute, locate
from .unreadable_rows import ERRORS, BadRow, BadRows, shortened


def describe(
    paths: Sequence[str | os.PathLike[str] | DataPath] | str | os.PathLike[str] | Listing,
    format: str | None = None,
    schema: pa.Schema | None = None,
    *,
    base: str | None = None,
    columns: Sequence[str] | None = None,
    filter: Expr | None = None,
    on_bad_file: str = "error",
    on_bad_row: str = "error",
    on_missing_column: str = "error",
    options: Mapping[str, Any] | None = None,
    typed: Callable[[pa.Schema], pa.Schema] | None = None,
) -> FileFormat:
    """Describe files by the first of them. With `format` and `schema` given, no file need exist yet.

    Parameters
    ----------
    paths
        Files, folders or patterns such as `/data/*.parquet`. A path that exists is no pattern. Hidden files
        (`_SUCCESS`, `.crc`) are ignored. A listing of them is not looked up again.
    format
        "parquet", "arrow" (files and streams; "feather" is the same), "csv", "json" (JSON lines) or "text"
        (a line as it is, in column `value`). None: the format of the files' endings.
    schema
        The columns, including those named by folders. Other columns of files are ignored. Instants are read as
        microseconds UTC.
    base
        The folder below which folders named `key=value` are columns. None: the folder that all paths share.
    columns, filter
        The columns to read (None: all), and the condition that rows must fulfil.
    on_bad_file
        "skip" ignores files that are damaged or missing, or do not fit the schema. A split that cannot be read to its
        end then gives no rows at all. For that, up to `reading.SPLIT_BYTES` bytes of its rows are held in memory, and
        a larger split is read twice.
    on_bad_row
        "leave_out" reads the other rows of a CSV or JSON file with a row that cannot be read.
    on_missing_column
        "null" reads a column that a file lacks as nulls. JSON lines are always read so.
    options
        For CSV: delimiter, quote_char, double_quote, escape_char, newlines_in_values, header, skip_rows, encoding,
        null_values, true_values, false_values, decimal_point, timestamp_parsers.
    typed
        Gives the types of columns of JSON for those that were inferred, where a field that is null in all rows has the
        type null. What it leaves so is text.

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow as pa, pyarrow.parquet as pq
    >>> from uncombine.files.reading import describe, read, splits
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "day=2016-01-20"
    >>> folder.mkdir()
    >>> pq.write_table(pa.table({"v": [1, 2]}), folder / "a.parquet")
    >>> fmt = describe(str(folder.parent))
    >>> fmt.schema.names
    ['v', 'day']
    >>> [t.num_rows for t in read(fmt, splits(fmt, str(folder / "a.parquet")), bad=print)]
    [2]
    """
    listing = paths if isinstance(paths, Listing) else Listing.of(paths)
    places = listing.paths
    texts = ", ".join(place.text for place in places)
    chosen = None if format is None else format_name(format)
    root = absolute(base) if base is not None else listing.root
    rest: dict[str, Any] = {
        "columns": None if columns is None else tuple(columns),
        "filter": filter,
        "on_bad_file": on_bad_file,
        "on_bad_row": on_bad_row,
        "on_missing_column": on_missing_column,
        "options": dict(options or {}),
        "paths": places,
    }
    if chosen is not None and schema is not None:
        return FileFormat(format=chosen, schema=schema, base=root, **rest)
    lost = listing.lost
    absent = {place.fixed for place in lost}
    files = [path for path in listing.files if path not in absent]
    if chosen is None:
        files, chosen = _of_one_format(files, texts)
    if not files:
        raise UnreadableFile(
            f"there are no files in {texts}: check the path, or give format= and schema= to read files that come later",
            places[0].text,
        )
    if lost and on_bad_file == "error":
        raise UnreadableFile(f"there is no file or folder {lost[0].text}: check the path, {SKIP}", lost[0].text)
    if schema is None:
        require_format_options(chosen, rest["options"])
        bad = BadRows(leave_out=_ignore) if on_bad_row == "leave_out" else ERRORS
        inferred = _first_schema(files, chosen, rest["options"], on_bad_file, places, bad)
        if chosen == "json":
            inferred = inferred if typed is None else typed(inferred)
            rest["untyped"] = tuple(untyped(inferred))
        file_schema = standard_schema(pa.schema([f for f in inferred if chosen != "text" or f.name not in PLACES]))
        folders = infer_types(folder_values(path, root) for path in files)
        named = [f.with_type(folders[f.name]) if f.name in folders else f for f in file_schema]
        more = [pa.field(name, kind) for name, kind in folders.items() if name not in file_schema.names]
        schema = pa.schema(named + more)
    return FileFormat(format=chosen, schema=schema, base=root, **rest)


def _ignore(rows: pa.Table) -> None:
    """Take rows that tell no types."""


def _of_one_format(files: list[str], texts: str) -> tuple[list[str], str]:
    """The files whose endings name a format, and that format, which must be the same for all."""
    formats = {path: form for path in files if (form := format_of(path)) is not None}
    kinds = sorted(set(formats.values()))
    if len(kinds) > 1:
        raise InvalidArgument(f"{texts} has files of the formats {' and '.join(kinds)}: choose one with format=")
    if files and not kinds:
        raise InvalidArgument(f"the name of {files[0]} does not end with a known format: give format=")
    return list(formats), kinds[0] if kinds else ""


def _require_commas(path: str, schema: pa.Schema) -> None:
    """Raise if all columns of a CSV file were read as one, because another character parts them."""
    others = [] if len(schema) != 1 else [mark for mark in ";\t|" if mark in schema.names[0]]
    if others:
        raise InvalidArgument(
            f"the first line of {path} has no comma, so {shortened(schema.names[0])!r} is one column: give "
            f"delimiter={others[0]!r}, or schema= if it is"
        )


def own_times(files: Sequence[str], places: Sequence[DataPath], format: str) -> dict[str, pa.DataType]:
    """The columns of instants in the first of some Parquet or Arrow files, with the types that they have there."""
    found = _first_schema(list(files), format, {}, "skip", places, ERRORS)
    return {field.name: field.type for field in found if pa.types.is_timestamp(field.type)}


def _first_schema(
    files: list[str],
    format: str,
    options: Mapping[str, Any],
    on_bad_file: str,
    places: Sequence[DataPath],
    bad: BadRows,
) -> pa.Schema:
    """The columns of the first file that can be read, with the types that they have there."""
    access = access_of(places)
    for path in files:
        try:
            require_inside(path, places)
            system, inside = locate(path, access)
            try:
                schema: pa.Schema = open_source(format, system, inside, options, None, bad).schema
            except BadRow:  # as a decimal comma makes of a row whose values a semicolon parts
                if format == "csv" and "delimiter" not in options:
                    lenient = BadRows(leave_out=_ignore)
                    _require_commas(path, open_source(format, system, inside, options, None, lenient).schema)
                raise
            if format == "csv" and "delimiter" not in options:
                _require_commas(path, schema)
            return schema
        except FAULTS as error:
            failed = unreadable(path, error)
            if on_bad_file == "error":
                break
    raise failed

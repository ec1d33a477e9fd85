"""The formats of data files: their names, their options, and the opening of a file of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from ..errors import InvalidArgument, nearest, require_options
from .arrow_files import ArrowSource
from .parquet_files import ParquetSource
from .text_files import CsvSource, JsonSource, LineSource, require_csv_options
from .unreadable_rows import ERRORS, BadRows

NAMES = {
    "parquet": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
    "csv": "csv",
    "json": "json",
    "text": "text",
}
"""The formats by each of their names."""

BY_LINE = frozenset({"csv", "json"})
"""The formats whose rows are lines of text, each of which can be bad by itself."""

_ENDINGS = {
    "parquet": "parquet", "parq": "parquet", "pq": "parquet",
    "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow",
    "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json",
}  # fmt: skip
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMPRESSED = re.compile(r"\.(gz|bz2|zst|lz4|br)$")

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "parquet": (),
    "arrow": (),
    "csv": (
        "delimiter", "quote_char", "double_quote", "escape_char", "newlines_in_values", "header", "skip_rows",
        "encoding", "null_values", "true_values", "false_values", "decimal_point", "timestamp_parsers",
    ),
    "json": (),
    "text": (),
}  # fmt: skip
"""The options that each format takes."""


def format_of(path: str) -> str | None:
    """The format for the ending of a file, or None.

    >>> from uncombine.files.formats import format_of
    >>> format_of("x/y.csv.gz"), format_of("README")
    ('csv', None)
    """
    return _ENDINGS.get(_COMPRESSED.sub("", path.lower()).rpartition(".")[2])


def format_name(name: str) -> str:
    """The name of the format in `FileFormat`; raise for an unknown format."""
    if name not in NAMES:
        raise InvalidArgument(f"there is no file format {name!r}: {nearest(str(name), NAMES)}")
    return NAMES[name]


def require_format_options(format: str, options: Mapping[str, object]) -> None:
    """Raise for an option that the format does not have, or for a wrong value of an option."""
    require_options(options, OPTIONS[format], f"the file format {format!r}")
    if format == "csv":
        require_csv_options(options)


def check_option_names(options: Iterable[str], arguments: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """Raise for an option of no format; `elsewhere` has the options of other functions, and what to write for each."""
    formats = {name for names in OPTIONS.values() for name in names}
    all_names = [*arguments, *sorted(formats)]
    for name in options:
        plain = _CAPITAL.sub("_", name).lower()
        if name in formats:
            continue
        meant = (
            plain if plain in all_names or plain in elsewhere else next(iter(get_close_matches(plain, elsewhere)), "")
        )
        if meant in elsewhere and not get_close_matches(plain, all_names, n=1, cutoff=0.8):
            raise InvalidArgument(f"uc.Files() has no option {name!r}: {elsewhere[meant]}")
        raise InvalidArgument(f"uc.Files() has no option {name!r}: {nearest(plain, all_names)}")


Source = ParquetSource | ArrowSource | CsvSource | JsonSource | LineSource


def open_source(
    format: str,
    system: pafs.FileSystem,
    path: str,
    options: Mapping[str, Any],
    schema: pa.Schema | None,
    bad: BadRows = ERRORS,
) -> Source:
    """Open a file; `schema` has the columns of a CSV or JSON file, None to infer them, and `bad` gets its bad rows."""
    if format == "parquet":
        return ParquetSource(system, path)
    if format == "arrow":
        return ArrowSource(system, path)
    if format == "text":
        return LineSource(system, path, bad)
    return CsvSource(system, path, options, schema, bad) if format == "csv" else JsonSource(system, path, schema, bad)

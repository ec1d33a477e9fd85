"""Data files as Arrow tables, without Spark: their splits, and the rows of splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.rows.columns import joined_tables
from ..combiners.rows.decoded_sizes import cut, fixed_bytes
from ..combiners.rows.plain_types import is_text
from ..errors import InvalidArgument, UnreadableFile
from .conform import conform, on_their_clocks
from .describing import describe
from .file_format import FAULTS, SKIP, FileFormat, Split, lacks_memory, unreadable
from .folder_columns import folders_of, may_have, warn_of_difference
from .formats import Source, open_source
from .links import require_inside
from .parquet_as_spark import otherwise
from .parquet_files import ParquetSource
from .paths import locate
from .pushdown import folder_excluded, statistics_condition
from .unreadable_rows import BadRows
from .validated import validated

__all__ = ["FileFormat", "LeaveOut", "Split", "describe", "folders_of", "ignore", "joined", "read", "splits"]

ROWS = 1 << 20
"""The largest number of rows in a table of `read`."""

BYTES = 64 << 20
"""The largest number of bytes in a table of `read`, unless a single row is longer."""

SHORT = 128
"""The largest number of bytes of a text in a dictionary that is not decoded."""

SPLIT_BYTES = 256 << 20
"""The largest number of bytes of a split that are held until all of it has been read."""


LeaveOut: TypeAlias = Callable[[pa.Table], None]
"""Takes rows that cannot be read, in the columns of `UNREADABLE`."""


def ignore(rows: pa.Table) -> None:
    """Take rows that are left out, for callers that do not ask for them."""


def splits(fmt: FileFormat, path: str, at_most_bytes: int = 128 << 20) -> list[Split]:
    """Cut a file into parts of about `at_most_bytes`, between row groups or record batches.

    A file that cannot be opened is one split; reading it raises the error. A file has no splits if the filter excludes
    its folders.
    """
    if at_most_bytes < 1:
        raise InvalidArgument(f"at_most_bytes must be at least 1, but is {at_most_bytes!r}")
    whole = [Split(path)]
    try:
        if folder_excluded(fmt.filter, folders_of(fmt, path)):
            return []
        require_inside(path, fmt.paths)
        system, inside = locate(path, fmt.access)
        size = system.get_file_info(inside).size
        if size is None or size <= at_most_bytes or fmt.format not in ("parquet", "arrow"):
            return whole
        parts = open_source(fmt.format, system, inside, fmt.options, None).parts()
    except FAULTS:
        return whole
    total = sum(parts) or 1.0
    cuts, load = [0], 0.0
    for i, part in enumerate(parts):
        mine = part / total * size
        if load and load + mine > at_most_bytes:
            cuts.append(i)
            load = 0.0
        load += mine
    if len(cuts) == 1:
        return whole
    return [Split(path=path, first=first, last=last) for first, last in zip(cuts, [*cuts[1:], len(parts)], strict=True)]


def read(
    fmt: FileFormat,
    splits: Iterable[Split],
    bad: Callable[[str, str], None],
    told: set[str] | None = None,
    leave_out: LeaveOut = ignore,
) -> Iterator[pa.Table]:
    """Read the rows of splits that fulfil the filter, in order, in tables of at most `ROWS` rows and `BYTES` bytes.

    `bad(path, reason)` is called for each split that `on_bad_file="skip"` leaves out. `told` has the columns of folders
    of which a warning says that files have others; no warning says so again. `leave_out` gets the rows that
    `on_bad_row="leave_out"` leaves out, in the columns of `UNREADABLE`, whatever the filter is.
    """
    yield from joined(_checked(fmt, splits, bad, set() if told is None else told, leave_out))


def joined(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables of one schema joined as far as they have at most `ROWS` rows and `BYTES` bytes together."""
    tables: list[pa.Table] = []
    rows = size = 0
    for table in parts:
        if tables and (rows + table.num_rows > ROWS or size + table.nbytes > BYTES):
            yield _joined(tables, rows)
            tables, rows, size = [], 0, 0
        tables.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
    if tables:
        yield _joined(tables, rows)


def _joined(tables: list[pa.Table], rows: int) -> pa.Table:
    if tables[0].num_columns:
        return joined_tables(tables)
    # Concatenated tables without columns lose their rows.
    return pa.table({"": pa.nulls(rows)}).select([])


def _checked(
    fmt: FileFormat, splits: Iterable[Split], bad: Callable[[str, str], None], told: set[str], leave_out: LeaveOut
) -> Iterator[pa.Table]:
    """The tables of the splits; with `on_bad_file="skip"` only of splits that can be read to their end."""
    for split in splits:
        if fmt.on_bad_file == "skip":
            bad_rows: list[pa.Table] = []
            try:
                tables = _tables_in_memory(fmt, split, told, bad_rows.append)
            except UnreadableFile as error:
                bad(split.path, str(error).removesuffix(f", {SKIP}"))
                continue
            if tables is not None:
                for rows in bad_rows:
                    leave_out(rows)
                yield from tables
                continue
        yield from _read_split(fmt, split, told, leave_out)


def _tables_in_memory(fmt: FileFormat, split: Split, told: set[str], leave_out: LeaveOut) -> list[pa.Table] | None:
    """The tables of a split. None if they take more than `SPLIT_BYTES` bytes: the split is sound, and is read again."""
    tables: list[pa.Table] | None = []
    size = 0
    for table in _read_split(fmt, split, told, leave_out):
        size += table.nbytes
        if size > SPLIT_BYTES:
            tables = None
        elif tables is not None:
            tables.append(table)
    return tables


def _read_split(fmt: FileFormat, split: Split, told: set[str], leave_out: LeaveOut) -> Iterator[pa.Table]:
    path, output = split.path, fmt.output.names
    folders = folders_of(fmt, path)
    if folder_excluded(fmt.filter, folders):
        return
    needed = list(dict.fromkeys([*output, *(fmt.filter.columns if fmt.filter is not None else ())]))
    wanted = [name for name in needed if name not in folders]
    own = pa.schema([f for f in fmt.schema if f.name not in folders]) if folders else fmt.schema
    source = _open(fmt, path, own, leave_out)
    if fmt.as_spark and isinstance(source, ParquetSource) and (reason := otherwise(source, fmt)) is not None:
        raise UnreadableFile(f"{path} {reason}, which Spark itself has to read: give files='never'", path)
    twice = [name for name in needed if name in folders and name not in told]
    if not (fmt.as_spark or split.first) and may_have(source, twice):
        warn_of_difference(fmt, path, told)
    present = _present(fmt, path, wanted, source.schema)
    where = statistics_condition(fmt.filter, source.schema, fmt.schema)
    tables = source.tables(present, split.first, split.last, where)
    row = _row_bytes(fmt, needed, folders)
    while (read := _next(tables, path)) is not None:
        parts = cut(read, row, ROWS, BYTES)
        del read
        for part in parts:
            table = _whole_table(fmt, path, part, needed, folders)
            if fmt.filter is not None:
                table = table.filter(fmt.filter.evaluate(table))
            if table.num_rows:
                yield table.select(output)


def _next(tables: Iterator[pa.Table], path: str) -> pa.Table | None:
    """The next table of a file, with all values checked, or None."""
    try:
        table = next(tables, None)
        return None if table is None else validated(table)
    except FAULTS as error:
        raise unreadable(path, error) from None


def _row_bytes(fmt: FileFormat, needed: list[str], folders: Mapping[str, pa.Scalar]) -> int:
    """The bytes of each row in memory without its texts and lists."""
    named = sum(len(str(value)) for value in folders.values())
    return named + sum(fixed_bytes(fmt.schema.field(name).type) for name in needed)


def _open(fmt: FileFormat, path: str, schema: pa.Schema, leave_out: LeaveOut) -> Source:
    require_inside(path, fmt.paths)
    needed = None
    if fmt.needed is not None:
        needed = frozenset({*fmt.needed, *(() if fmt.filter is None else fmt.filter.columns)})
    bad = BadRows(path, leave_out if fmt.leaves_rows_out else None, needed)
    try:
        system, inside = locate(path, fmt.access)
        source = open_source(fmt.format, system, inside, fmt.options, on_their_clocks(schema, fmt.clocks), bad)
        str(source.schema.names)  # raises if a name is not text
    except FAULTS as error:
        raise unreadable(path, error) from None
    return source


def _present(fmt: FileFormat, path: str, wanted: list[str], has: pa.Schema) -> list[str]:
    """The wanted columns that the file has."""
    names = Counter(has.names)
    for name in wanted:
        if name not in names and fmt.on_missing_column == "error":
            raise UnreadableFile(
                f"{path} has no column {name!r}, which schema= or the first file has: write the file again with it, "
                "or read nulls with on_missing_column='null'",
                path,
            )
        if names[name] > 1:
            raise UnreadableFile(f"{path} has several columns {name!r}: write it again with one of each name", path)
    return [name for name in wanted if name in names]


def _whole_table(
    fmt: FileFormat, path: str, table: pa.Table, needed: list[str], folders: Mapping[str, pa.Scalar]
) -> pa.Table:
    """The table with the columns of folders, with nulls for missing columns, and in the types of the schema."""
    if table.schema.names == needed and table.schema.types == [fmt.schema.field(name).type for name in needed]:
        return table
    columns = []
    fields = []
    for name in needed:
        field = fmt.schema.field(name)
        to = field.type
        if name in folders:
            columns.append(pa.chunked_array([pa.repeat(folders[name], table.num_rows)]))
        elif name in table.schema.names:
            column = table.column(name)
            coded = name in fmt.coded and _may_stay(column, to)
            columns.append(column if coded else _conformed(column, to, name, path))
        else:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, to)]))
        fields.append(field.with_type(columns[-1].type))
    if not columns:
        return table
    return pa.table(columns, schema=pa.schema(fields))


def _may_stay(column: pa.ChunkedArray, to: pa.DataType) -> bool:
    """True for a dictionary of texts so short that any number of rows that is combined at once can be decoded."""
    kind = column.type
    if not pa.types.is_dictionary(kind) or kind.value_type != to or not is_text(to):
        return False
    texts = [chunk.dictionary for chunk in column.chunks]
    # Arrow cannot join dictionaries that have a null.
    return all(not text.null_count and (pc.max(pc.binary_length(text)).as_py() or 0) <= SHORT for text in texts)


def _conformed(column: pa.ChunkedArray, to: pa.DataType, name: str, path: str) -> pa.ChunkedArray:
    try:
        return conform(column, to)
    except FAULTS as error:
        if lacks_memory(error):
            raise
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(
            f"{path}: column {name!r} is {column.type}, which cannot be read as {to}, the type that it was given or "
            f"has in other files ({reason}): give schema= (--type) with one that takes all files, and cast it as "
            f"col({name!r}).cast('float64', strict=False) does, or write this file again",
            path,
        ) from None

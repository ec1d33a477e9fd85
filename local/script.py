"""Scripts: the input of a pipeline, entry by entry, for tests and for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..combiners.aggregate import as_table
from ..combiners.rows.plain_types import plain_table
from ..errors import InvalidArgument, NamedOptions, TypeMismatch, UncombineError, UnknownColumn, nearest
from ..windows import timestamp
from ..windows.times import times_of


@dataclass(frozen=True)
class Elements(NamedOptions):
    """Rows that arrive together at the processing time `at` (None: processing time stays as it is).

    `rows` is a list of dicts, a dict of columns, an Arrow table, a pandas or Polars DataFrame, or anything with
    `__arrow_c_stream__`.
    In a list of dicts, times may be datetimes, ISO texts, or whole microseconds since 1970.

    `watermarks` are watermark reports in the same bundle, as in a micro-batch of a stream. The watermark before the
    bundle decides which of its rows are late. `input` names the source of the rows, if a flow has several.

    >>> import uncombine as uc
    >>> rows = [{"ts": "2016-01-20T12:00:26Z", "score": 5}]
    >>> uc.Elements(rows, at="2016-01-20T12:05:19Z").at
    '2016-01-20T12:05:19Z'
    """

    rows: Sequence[Mapping[str, Any]] | pa.Table | Any
    at: datetime | str | int | None = None
    watermarks: Sequence[Watermark] = ()
    input: str | None = None

    def __post_init__(self) -> None:
        if hasattr(self.rows, "__arrow_c_stream__") or isinstance(self.rows, Mapping):
            object.__setattr__(self, "rows", as_table(self.rows))


@dataclass(frozen=True)
class Watermark(NamedOptions):
    """A watermark report: the watermark, or that of one `source`, advances to `t` (None: to the end of time).

    `input` names the source of the flow that reports, if it has several; without it all of them report.

    >>> import uncombine as uc
    >>> uc.Watermark("2016-01-20T12:02:00Z").source is None
    True
    """

    t: datetime | str | int | None
    source: str | None = None
    at: datetime | str | int | None = None
    input: str | None = None


@dataclass(frozen=True)
class Clock(NamedOptions):
    """Processing time advances to `t`.

    >>> import uncombine as uc
    >>> uc.Clock("2016-01-20T12:06:00Z").t
    '2016-01-20T12:06:00Z'
    """

    t: datetime | str | int


Entry = Elements | Watermark | Clock


_AS_ENTRIES = "write [uc.Elements(rows), uc.Watermark(None)]"


def check_script(script: Sequence[Entry]) -> list[Entry]:
    """The script as a list; raise an error that names the first value that is not an entry."""
    if isinstance(script, Mapping) or hasattr(script, "__arrow_c_stream__"):
        then = "give it after the result" if hasattr(script, "panes") else _AS_ENTRIES
        raise InvalidArgument(f"a script must be a list of entries, but is a {type(script).__name__}: {then}")
    if not isinstance(script, Iterable):
        raise InvalidArgument(f"a script must be a list of Elements, Watermark and Clock, but is {script!r}")
    entries = list(script)
    for i, entry in enumerate(entries):
        if not isinstance(entry, Elements | Watermark | Clock):
            then = f": {_AS_ENTRIES}" if isinstance(entry, Mapping) else ""
            raise InvalidArgument(
                f"entry {i} of the script must be Elements, Watermark or Clock, but is {entry!r}{then}"
            )
        if isinstance(entry, Elements):
            if not isinstance(entry.rows, pa.Table) and not _readable(entry.rows):
                raise InvalidArgument(
                    f"the rows of entry {i} of the script must be a list of dicts, an Arrow table or a DataFrame"
                )
            if not _readable(entry.watermarks):
                raise InvalidArgument(f"watermarks= of entry {i} of the script must be a list of Watermark")
            for report in entry.watermarks:
                if not isinstance(report, Watermark) or (report.at, report.input) != (None, None):
                    raise InvalidArgument(
                        f"watermarks= of entry {i} of the script takes Watermark(t, source) without at= and input=, "
                        f"but has {report!r}"
                    )
    return entries


def _readable(values: object) -> bool:
    """True if values can be read more than once; a generator cannot."""
    return isinstance(values, Iterable) and not isinstance(values, Iterator)


def reports(entry: Entry) -> Sequence[Watermark]:
    """The watermark reports of an entry."""
    match entry:
        case Watermark():
            return [entry]
        case Elements(watermarks=watermarks):
            return watermarks
        case _:
            return []


def tables_of(script: Sequence[Entry], times: Sequence[str], schema: pa.Schema | None = None) -> list[pa.Table | None]:
    """The rows of each entry as tables of one schema (None for an entry without rows).

    The columns `times`, and those that the schema has as timestamps, become timestamps.
    """
    if schema is not None:
        times = [*times, *(field.name for field in schema if pa.types.is_timestamp(field.type))]
    raw_tables = (
        rows_table(entry.rows, times, _of_entry(i)) if isinstance(entry, Elements) else None
        for i, entry in enumerate(script)
    )
    tables = [None if table is None else plain_table(table) for table in raw_tables]
    schemas = [table.schema for table in tables if table is not None and table.num_columns]
    if not schemas:
        return [None for _ in tables]
    if schema is None:
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TypeMismatch(f"the entries of the script have columns of different types: {error}") from None
    return [None if table is None else _fit(table, schema, i) for i, table in enumerate(tables)]


def _of_entry(place: int) -> str:
    return f"entry {place} of the script"


def rows_table(rows: Sequence[Mapping[str, Any]] | pa.Table, times: Sequence[str], where: str) -> pa.Table:
    """Rows as a table, whose columns `times` are timestamps; errors say `where` the rows are."""
    if isinstance(rows, pa.Table):
        return with_times(rows, times)
    if isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidArgument(f"the rows of {where} must be a list of dicts, an Arrow table or a DataFrame")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, pa.Array] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = times_of(values) if name in times else pa.array(values)
        except UncombineError as error:
            raise type(error)(f"column {name!r} of {where}: {error}") from None
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise TypeMismatch(f"column {name!r} of {where} has values of different types: {error}") from None
    return pa.table(columns)


def with_times(table: pa.Table, times: Sequence[str]) -> pa.Table:
    """The table with its time columns as timestamps; they may be text or numbers."""
    for name in times:
        if name in table.column_names and not pa.types.is_temporal(table.schema.field(name).type):
            column = times_of(table[name].to_pylist())
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def _fit(table: pa.Table, schema: pa.Schema, entry: int) -> pa.Table:
    for name in table.column_names:
        if name not in schema.names:
            hint = nearest(name, schema.names)
            raise UnknownColumn(
                f"entry {entry} of the script has column {name!r}, which the schema does not have: {hint}", name
            )
    columns = [_column(table, field, entry) for field in schema]
    return pa.table(columns, schema=schema)


def _column(table: pa.Table, field: pa.Field, entry: int) -> pa.Array | pa.ChunkedArray:
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    try:
        return _reordered(table[field.name], field.type).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise TypeMismatch(
            f"column {field.name!r} of entry {entry} of the script does not fit {field.type}: {error}"
        ) from None


def _reordered(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A struct with its fields in the order of `kind`; older versions of Arrow order the keys of a dict by name."""
    names = [field.name for field in column.type] if pa.types.is_struct(column.type) else []
    wanted = [field.name for field in kind] if pa.types.is_struct(kind) else []
    if names == wanted or sorted(names) != sorted(wanted):
        return column
    fields = [column.type.field(name) for name in wanted]
    chunks = [
        pa.StructArray.from_arrays([chunk.field(name) for name in wanted], fields=fields, mask=chunk.is_null())
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.struct(fields))


def instant(value: datetime | str | int | None, default: int) -> int:
    """The time of an entry in microseconds, or `default` if it has none."""
    return default if value is None else timestamp(value)

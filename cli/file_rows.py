"""The rows of the files that a command names, in the order in which they arrived.

Guarded by tests/cli/test_file_rows.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners import Combiner
from ..combiners.expressions.expr import Expr, col
from ..combiners.rows.columns import flat
from ..combiners.rows.plain_types import is_text
from ..errors import InvalidArgument, require_column
from ..files.describing import own_times
from ..files.reading import LeaveOut
from ..flows.event_time import EventTime, event_time_of
from ..local.data_files import LocalFiles
from ..local.read_source import MadeRows
from ..local.script import with_times
from ..panes.grouping.grouping import EVENT_TIME
from ..windows import time_column
from ..windows.times import MAX_TIME, UTC_MICROS
from .conditions import Clock, condition_of, expression_of, is_expression
from .named_files import add_format, files_of, is_time, reading_files, times_of
from .parser import Parser
from .results import shown_twice, unreadable_notes
from .words import needed_columns, with_keys


@dataclass(frozen=True)
class FileRows:
    """Rows of files, their key columns, and sentences about rows that could not be read."""

    table: pa.Table
    by: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    unreadable: tuple[pa.Table, ...] = ()
    files: int = 1


def add_reading(parser: Parser) -> None:
    """The options that say which rows are read, and how."""
    parser.add_argument("file", metavar="FILE", help="a file, folder or pattern, also s3://...")
    add_format(parser)
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="the event time column (default: ts)")
    parser.add_argument(
        "--time-format", metavar="FORMAT", help="of times: their format, such as %%d.%%m.%%Y, or the unit of numbers"
    )
    parser.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="the clock of results, such as Europe/Paris, and of times in the file that say no zone",
    )
    parser.add_argument(
        "--processing-time", metavar="COLUMN", help="when each row arrived; the order of the file if not given"
    )
    parser.add_argument(
        "--processing-time-format",
        metavar="FORMAT",
        help="of the times of arrival: their format (default: that of --time-format, where they are no ISO times)",
    )
    parser.add_argument(
        "--file-order",
        choices=["name", "time"],
        default="name",
        help="read the files of a folder by their names, or by their times, the median of each (default: name)",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="read only such rows; also != < <= > >=, or an expression: col('x') > 3; may be repeated",
    )
    parser.add_argument(
        "--on-bad-row",
        choices=["leave_out", "error"],
        help="what to do with a row of csv or json that cannot be read (default: leave_out)",
    )


def read_rows(arguments: argparse.Namespace, results: Mapping[str, Combiner], *others: str | None) -> FileRows:
    """The rows that a command asks for, with timestamps as times; a bad value is one in a column that it needs.

    A condition is part of the reading: parts of Parquet files that cannot have such rows are not read.
    """
    source = _source(arguments)
    schema, kinds = source.format.schema, _own_kinds(source, arguments)
    for name, option in ((arguments.time, "--time"), (arguments.processing_time, "--processing-time")):
        if name is not None:
            require_column(name, schema.names, option)
    # A reader that has the format gives times.
    form = None if source.format.options.get("timestamp_parsers") else arguments.time_format
    time_of = _time_of(arguments.time, form, arguments.time_zone, kinds)
    event_time = event_time_of(time_of, None if isinstance(time_of, Expr) else form)
    if event_time is not None:
        event_time = event_time.over(schema)
        source = replace(source, made=MadeRows(schema, event_time=event_time))
    clock = _clock(arguments, event_time, kinds)
    by_clock = [text for text in arguments.where if _of_the_clock(text, arguments, schema)]
    condition = condition_of([text for text in arguments.where if text not in by_clock], schema, clock)
    unreadable: list[pa.Table] = []
    with reading_files(arguments):
        filtered = replace(source, format=replace(source.format, filter=condition))
        needed = needed_columns(arguments.by, results, schema)
        if needed is not None:
            compared = (expression_of(text).columns for text in by_clock)
            needed = needed.union(times_of(arguments, schema), filter(None, others), *compared)
        table = _whole(filtered, arguments, needed, unreadable.append)
    read = None if needed is None else {*needed, *(() if condition is None else condition.columns)}
    if arguments.where and not table.num_rows:
        raise InvalidArgument(f"no row is left by --where {' --where '.join(map(repr, arguments.where))}")
    if event_time is None and (made := _parsed(table, arguments.time)) is not None:
        table, event_time = made(table), made
    if event_time is not None:
        table = _with_times(table, arguments.time)
    table = _timed(table, arguments.time, "; --time-format has the format of others")
    if arguments.processing_time is not None:
        table = _with_arrivals(table, arguments, kinds).sort_by(arguments.processing_time)
    table = _left_by(by_clock, table, arguments)
    table, by = with_keys(_by_the_clock(table, arguments), arguments.by)
    notes = (*unreadable_notes(unreadable), *shown_twice(table[arguments.time], arguments.time_zone))
    notes += _unjudged(arguments.type, read)
    return FileRows(table=table, by=by, notes=notes, unreadable=tuple(unreadable), files=len(source.listed))


def _unjudged(types: Sequence[str], read: Collection[str] | None) -> tuple[str, ...]:
    """That wrong values in columns with a type lose no row, where nothing reads the column.

    >>> _unjudged(["status=int64", "n=int64"], ["n"])[0]
    "nothing reads column 'status', so its wrong values are no bad rows: --where 'status!=' reads it"
    """
    names = [text.partition("=")[0] for text in types]
    return tuple(
        f"nothing reads column {name!r}, so its wrong values are no bad rows: --where '{name}!=' reads it"
        for name in names
        if read is not None and name not in read
    )


def _of_the_clock(text: str, arguments: argparse.Namespace, schema: pa.Schema) -> bool:
    """True for an expression over times that has the hour of the clock of `--time-zone`."""
    if arguments.time_zone is None or not is_expression(text):
        return False
    times = {name for name in times_of(arguments, schema) if is_time(schema, name)}
    return not times.isdisjoint(expression_of(text).columns)


def _left_by(conditions: Sequence[str], table: pa.Table, arguments: argparse.Namespace) -> pa.Table:
    """The rows for which expressions over times are true."""
    for text in conditions:
        table = table.filter(expression_of(text).evaluate(_by_the_clock(table, arguments)))
        if not table.num_rows:
            raise InvalidArgument(f"no row is left by --where {text!r}")
    return table


def _by_the_clock(table: pa.Table, arguments: argparse.Namespace) -> pa.Table:
    """The rows with times of the zone of `--time-zone`, so that their hour is that of its clock."""
    if arguments.time_zone is not None:
        for place, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
            if name in times_of(arguments, table.schema) and pa.types.is_timestamp(kind) and kind.tz is not None:
                table = table.set_column(place, name, table[name].cast(pa.timestamp("us", arguments.time_zone)))
    return table


def _own_kinds(source: LocalFiles, arguments: argparse.Namespace) -> pa.Schema:
    """The columns of files, with the types that times have there: those without a zone are read as if they were UTC."""
    schema, form = source.format.schema, source.format.format
    if arguments.time_zone is None or form not in ("parquet", "arrow"):
        return schema
    own = own_times(source.listed, source.paths, form)
    return pa.schema([f.with_type(own.get(f.name, f.type)) if pa.types.is_timestamp(f.type) else f for f in schema])


def _clock(arguments: argparse.Namespace, event_time: EventTime | None, schema: pa.Schema) -> Clock | None:
    """The comparison of event times in conditions; None where they compare the column as it is."""
    name, zone = arguments.time, arguments.time_zone
    kind = schema.field(name).type
    if event_time is not None:
        return Clock(name, event_time.value, zone, parsed=True)
    if is_text(kind):
        return Clock(name, col(name).cast_time(), zone, parsed=True)
    return Clock(name, col(name), zone) if pa.types.is_timestamp(kind) and kind.tz else None


def _source(arguments: argparse.Namespace) -> LocalFiles:
    """The files, listed and described."""
    on_bad_row = getattr(arguments, "on_bad_row", None)
    files = files_of(arguments.file, arguments, on_bad_row=on_bad_row)
    listing = files.listed()
    with reading_files(arguments):
        described = files.described(listing, streaming=True)
    return LocalFiles(
        made=MadeRows(described.schema),
        streaming=False,
        paths=listing.paths,
        listed=listing.files,
        format=described,
    )


def _whole(
    source: LocalFiles, arguments: argparse.Namespace, needed: frozenset[str] | None, leave_out: LeaveOut
) -> pa.Table:
    """The rows of all files, in the order that `--file-order` says."""
    if getattr(arguments, "file_order", "name") == "name":
        return source.whole(needed, leave_out)
    place = source.paths[0]
    ones = [
        replace(source, paths=(replace(place, text=path, fixed=path, pattern=()),), listed=(path,))
        for path in source.listed
    ]
    tables = [one.whole(needed, leave_out) for one in ones]
    return pa.concat_tables(sorted(tables, key=lambda table: _middle_time(table, arguments.time)))


def _middle_time(table: pa.Table, name: str) -> int:
    """The median of the times of some rows in microseconds, which late rows do not move."""
    if EVENT_TIME in table.column_names:
        times = table[EVENT_TIME]
    elif is_text(table.schema.field(name).type):
        times = col(name).cast_time().evaluate(table)
    else:
        times = table[name]
    found, valid = time_column(flat(times))
    middle = np.sort(found[valid])
    return int(middle[len(middle) // 2]) if len(middle) else -MAX_TIME


def _with_arrivals(table: pa.Table, arguments: argparse.Namespace, kinds: pa.Schema) -> pa.Table:
    """The rows with the times of their arrival, by the clock and perhaps the format of event times."""
    name, form, zone = arguments.processing_time, arguments.processing_time_format, arguments.time_zone
    kind, place = kinds.field(name).type, table.column_names.index(name)
    if form is None:
        try:
            table = with_times(table, [name])
        except InvalidArgument as error:
            form = arguments.time_format
            if form is None:
                remedy = "--processing-time-format has the format of others"
                raise InvalidArgument(f"column {name!r} has no times: {error}; {remedy}") from None
    if form is not None:
        times = col(name).cast_time(form).evaluate(table)
        if wrong := table[name].filter(pc.and_(pc.is_valid(table[name]), pc.is_null(times))).slice(0, 1).to_pylist():
            raise InvalidArgument(
                f"column {name!r} has times of arrival in the format {form!r}, and {wrong[0]!r} is none"
            )
        table = table.set_column(place, name, times)
    if zone is None or name == arguments.time or not _lacks_zone(kind, form):
        return table
    return table.set_column(place, name, col(name).dt.replace_time_zone(zone).evaluate(table).cast(UTC_MICROS))


def read_columns(arguments: argparse.Namespace) -> pa.Table:
    """All columns of the files that a command names."""
    return _source(arguments).whole()


def _time_of(name: str, form: str | None, zone: str | None, schema: pa.Schema) -> str | Expr:
    """The column of event times, or the times of the wall clock in it."""
    kind = schema.field(name).type
    if zone is None or not _lacks_zone(kind, form):
        return name
    read = col(name).cast_time(form or "") if is_text(kind) else col(name)
    return read.dt.replace_time_zone(zone)


def _lacks_zone(kind: pa.DataType, form: str | None) -> bool:
    """True if times of this type, or texts of them in this format, do not say their zone."""
    return (is_text(kind) and "%z" not in (form or "")) or (pa.types.is_timestamp(kind) and kind.tz is None)


def _parsed(table: pa.Table, name: str) -> EventTime | None:
    """The computation of times from texts, where some are times and others are not; None where all or none are."""
    if not is_text(table.schema.field(name).type):
        return None
    event_time = EventTime(col(name).cast_time()).over(table.schema)
    bad = event_time(table)[EVENT_TIME].null_count
    return event_time if table[name].null_count < bad < table.num_rows else None


def _with_times(table: pa.Table, name: str) -> pa.Table:
    """The rows with their times in the column of the texts; those that are none have the text in another one."""
    times, texts = table[EVENT_TIME], table[name]
    out = table.drop_columns(EVENT_TIME)
    out = out.set_column(out.column_names.index(name), name, times)
    bad = pc.and_(pc.is_null(times), pc.is_valid(texts))
    beside = f"{name}_text"
    if not pc.any(bad).as_py() or beside in out.column_names:
        return out
    return out.append_column(beside, pc.if_else(bad, texts, pa.scalar(None, texts.type)))


def _timed(table: pa.Table, name: str, remedy: str = "") -> pa.Table:
    try:
        return with_times(table, [name])
    except InvalidArgument as error:
        raise InvalidArgument(f"column {name!r} has no times: {error}{remedy}") from None


__all__ = ["FileRows", "add_reading", "read_columns", "read_rows"]


def __dir__() -> list[str]:
    return __all__

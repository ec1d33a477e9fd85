"""A live table in a file of DuckDB.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from ..errors import InvalidArgument, TableMismatch, TableUnreachable
from ..panes.state.seed import SeedMaker
from ..windows.spans import UNITS, ZERO, Span
from .changes import Changes
from .column_types import DURATION, nested, require_names_apart, require_types, table_type, timed_type, with_durations
from .layout import CHANGE, Layout
from .publishing import PublishedCopy
from .sql import STAGING_TABLE, Database, SqlWriter, StagedChanges, qualified, quoted
from .target import Target, Writer, library

_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    DURATION: "INTERVAL",
}


STREAM = "_uncombine_stream"
"""The name under which DuckDB sees the changes on their way."""


_HOLDER = re.compile(r"held in (.+?\(PID \d+\))")
"""The part of an error that names the process which has a file open."""


@dataclass(frozen=True, repr=False)
class DuckDB(Target):
    """A table in a file of DuckDB, which either one process writes, or several read."""

    path: str
    table: str
    schema: str | None = None
    publish: str | None = None
    """The file that gets a copy of this one, for readers."""
    publish_every: Span = ZERO
    """The time from one copy to the next, at the least."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"table {'.'.join(filter(None, (self.schema, self.table)))!r} of {self.path}"

    def check(self, layout: Layout) -> None:
        library("duckdb", "duckdb")
        require_types(layout.schema, with_durations(nested(timed_type)), "DuckDB")
        require_names_apart(layout.schema, "DuckDB")
        for path in filter(None, (self.path, self.publish)):
            if not (folder := Path(path).absolute().parent).is_dir():
                raise InvalidArgument(f"{self.name} needs the folder {folder}, which is not there: make it first")

    def beside(self, table: Target) -> Target:
        """The same; in the file of the other table without a copy of its own, since one copy has both."""
        if not isinstance(table, DuckDB) or os.path.realpath(table.path) != os.path.realpath(self.path):
            return self
        if self.publish is not None and (
            table.publish is None or os.path.realpath(table.publish) != os.path.realpath(self.publish)
        ):
            raise InvalidArgument(
                f"{self.name} and {table.name} are in one file, whose copy has both: give both tables the same publish="
            )
        return replace(self, publish=None)

    def writer(self, layout: Layout, owner: str) -> DuckDBWriter:
        return DuckDBWriter(self, layout, owner)


class _Connection:
    """A connection within a transaction."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.inner.execute(statement, list(values)).fetchall()
        return rows

    def run(self, statement: str, *values: object) -> None:
        self.inner.execute(statement, list(values))


class DuckDBWriter(SqlWriter):
    """Writes a table of DuckDB. The file is open during a batch alone, so that others can read it after the batch."""

    waits_at_start = True

    def __init__(self, target: DuckDB, layout: Layout, owner: str) -> None:
        super().__init__(target.name, layout, owner)
        self.path, self.table, self.schema = target.path, target.table, target.schema
        self.duckdb = library("duckdb", "duckdb")
        self._copy: PublishedCopy | None = None
        if target.publish is not None:
            every = target.publish_every / UNITS["second"]
            self._copy = PublishedCopy(Path(self.path), Path(target.publish), every, owner, self._guard)

    def start(self, maker: SeedMaker | None = None) -> int:
        last = super().start(maker)
        if self._copy is not None:
            self._copy.start()
        return last

    def apply(self, batch: int, changes: Changes) -> bool:
        return self._published(super().apply(batch, changes))

    def apply_both(self, batch: int, changes: Changes, other: Writer, more: Changes) -> bool:
        return self._published(super().apply_both(batch, changes, other, more))

    def shares(self, other: Writer) -> bool:
        return isinstance(other, DuckDBWriter) and os.path.realpath(other.path) == os.path.realpath(self.path)

    def _published(self, applied: bool) -> bool:
        if self._copy is not None:
            if applied:
                self._copy.note_change()
            self._copy.refresh()
        return applied

    def once(self, changes: Changes) -> None:
        super().once(changes)
        if self._copy is not None:
            self._copy.start()

    def finish(self) -> None:
        if self._copy is not None:
            self._copy.finish()

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        with self._connection() as connection:
            try:
                connection.execute("BEGIN")
                yield _Connection(connection)
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(self.duckdb.Error):
                    connection.execute("ROLLBACK")
                if isinstance(error, self.duckdb.TransactionException):
                    raise TableUnreachable(
                        f"{self.name} was changed by another writer at the same time: {error}"
                    ) from None
                if isinstance(error, self.duckdb.ProgrammingError | self.duckdb.IntegrityError | self.duckdb.DataError):
                    raise TableMismatch(f"{self.name} refuses the rows: {error}") from None
                raise

    def columns(self, db: Database) -> Mapping[str, object] | None:
        assert isinstance(db, _Connection)
        where = "table_name = ? AND table_schema = coalesce(?, current_schema()) AND table_catalog = current_database()"
        tables = db.rows(f"SELECT 1 FROM information_schema.tables WHERE {where}", self.table, self.schema)
        if not tables:
            return None
        schema = db.inner.sql(f"SELECT * FROM {self.quoted_table} LIMIT 0").to_arrow_table().schema
        return {field.name: _column_type(field.type) for field in schema}

    def column_type(self, field: pa.Field) -> object:
        return field.type

    def type_text(self, field: pa.Field) -> str:
        return _type(field.type)

    def definitions(self, db: Database, there: bool) -> Sequence[str]:
        if there:
            return []
        columns = ", ".join(f"{quoted(field.name)} {_type(field.type)}" for field in self.layout.schema)
        return [f"CREATE TABLE {self.quoted_table} ({columns})"]

    def merged(self, db: Database, changes: Changes) -> int:
        """Delete the rows that change and insert those of the changes, which DuckDB does faster than a merge."""
        assert isinstance(db, _Connection)
        staged, change, changed = StagedChanges(changes), quoted(CHANGE), qualified("temp", STAGING_TABLE)
        db.inner.register(STREAM, staged.reader())
        try:
            with staged.own_errors():
                db.run(f"CREATE OR REPLACE TEMPORARY TABLE {quoted(STAGING_TABLE)} AS FROM {qualified('temp', STREAM)}")
        finally:
            with suppress(self.duckdb.Error):  # an error of the statement is the one to show
                db.inner.unregister(STREAM)
        [(new,)] = db.rows(f"SELECT count(*) FILTER ({change} > 0) FROM {changed}")
        fitting = int(new)
        for of_pattern, equal in staged.matches():
            table, match = f"{self.quoted_table} AS t", f"{changed} AS s WHERE {of_pattern} AND {equal} AND s.{change}"
            if new:
                [(there,)] = db.rows(f"SELECT count(*) FROM {table}, {match} > 0")
                fitting -= int(there)
            [(gone,)] = db.rows(f"DELETE FROM {table} USING {match} <= 0")
            fitting += int(gone)
        names = ", ".join(map(quoted, self.layout.schema.names))
        db.run(f"INSERT INTO {self.quoted_table} ({names}) SELECT {names} FROM {changed} WHERE {change} >= 0")
        db.run(f"DROP TABLE {changed}")
        return fitting

    def read(self, limit: int | None = None) -> pa.Table:
        with self._connection(read_only=True) as connection:
            return connection.sql(self.selection(limit)).to_arrow_table().cast(self.layout.schema)

    def selected(self, field: pa.Field) -> str:
        name = quoted(field.name)
        # Arrow has an interval of DuckDB in nanoseconds, which hold 292 years.
        return f"epoch_us({name}) AS {name}" if field.type == DURATION else name

    @contextmanager
    def _connection(self, read_only: bool = False, alone: bool = False) -> Iterator[Any]:
        """A connection to the file, which this process has open by no other writer of a live table."""
        with _lock(os.path.realpath(self.path)):
            connection = self._connect(read_only, alone)
            try:
                connection.execute("SET TimeZone = 'UTC'")
                yield connection
            finally:
                connection.close()

    def _connect(self, read_only: bool, alone: bool) -> Any:
        """A connection; one to read may be shared with what else this process has open, unless it must be alone."""
        connect = partial(self.duckdb.connect, self.path)
        try:
            return connect(read_only=read_only)
        except self.duckdb.ConnectionException as error:  # this process has it open in another way
            if read_only and not alone:
                return connect()
            raise TableUnreachable(
                f"{self.name} has another connection in this process, which must be closed first: {error}"
            ) from None
        except self.duckdb.IOException as error:
            if "lock" not in str(error):
                raise
            holder = _HOLDER.search(str(error))
            readers = "" if self._copy is not None else ", or let readers open a copy, which publish= in the URL makes"
            raise TableUnreachable(
                f"{self.name} cannot be opened, because another process has it open, "
                f"{holder[1] if holder else error}: close it there{readers}"
            ) from None

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Keep writers away from the file, which then has all changes that were made."""
        with self._connection(read_only=True, alone=True):
            if os.path.exists(f"{self.path}.wal"):
                raise TableUnreachable(f"{self.name} has changes that are not in its file yet, but in {self.path}.wal")
            yield


@cache
def _lock(path: str) -> Lock:
    """The lock of a file, so that two writers of this process do not open it in different ways at once."""
    return Lock()


def _column_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a table holds the values of a column that DuckDB gives to Arrow in this type."""
    return DURATION if pt.is_interval(kind) else table_type(kind)


def _type(kind: pa.DataType) -> str:
    """The name of a type in DuckDB."""
    if pt.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pt.is_list(kind):
        return f"{_type(kind.value_type)}[]"
    if pt.is_struct(kind):
        return f"STRUCT({', '.join(f'{quoted(field.name)} {_type(field.type)}' for field in kind)})"
    return _TYPES[kind]


__all__ = ["DuckDB", "DuckDBWriter"]

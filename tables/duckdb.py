"""A live table in a file of DuckDB.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from ..errors import TableMismatch, TableUnreachable
from .changes import Changes
from .kinds import nested, require_names_apart, require_types, table_type, timed_type
from .layout import CHANGE, Layout
from .sql import STAGING_TABLE, Database, SqlWriter, StagedChanges, qualified, quoted
from .target import Target, library

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
}


STREAM = "_uncombine_stream"
"""The name under which DuckDB sees the changes on their way."""


@dataclass(frozen=True, repr=False)
class DuckDB(Target):
    """A table in a file of DuckDB, which one process can open at a time."""

    path: str
    table: str
    schema: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"table {'.'.join(filter(None, (self.schema, self.table)))!r} of {self.path}"

    def check(self, layout: Layout) -> None:
        library("duckdb", "duckdb")
        require_types(layout.schema, nested(timed_type), "DuckDB")
        require_names_apart(layout.schema, "DuckDB")

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
    """Writes a table of DuckDB. The file stays open until `close`, as opening it takes longer than a small batch."""

    def __init__(self, target: DuckDB, layout: Layout, owner: str) -> None:
        super().__init__(target.name, layout, owner)
        self.path, self.table, self.schema = target.path, target.table, target.schema
        self.duckdb = library("duckdb", "duckdb")
        self._opened: Any = None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        connection = self._cursor()
        try:
            connection.execute("BEGIN")
            yield _Connection(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(self.duckdb.Error):
                connection.execute("ROLLBACK")
            with suppress(self.duckdb.Error):
                self.close()  # a file whose disk was full can only be opened again
            if isinstance(error, self.duckdb.TransactionException):
                raise TableUnreachable(f"{self.name} was changed by another writer at the same time: {error}") from None
            if isinstance(error, self.duckdb.ProgrammingError | self.duckdb.IntegrityError | self.duckdb.DataError):
                raise TableMismatch(f"{self.name} refuses the rows: {error}") from None
            raise
        finally:
            connection.close()

    def columns(self, db: Database) -> Mapping[str, object] | None:
        assert isinstance(db, _Connection)
        where = "table_name = ? AND table_schema = coalesce(?, current_schema()) AND table_catalog = current_database()"
        tables = db.rows(f"SELECT 1 FROM information_schema.tables WHERE {where}", self.table, self.schema)
        if not tables:
            return None
        schema = db.inner.sql(f"SELECT * FROM {self.quoted_table} LIMIT 0").to_arrow_table().schema
        return {field.name: table_type(field.type) for field in schema}

    def column_type(self, field: pa.Field) -> object:
        return field.type

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
        connection = self._cursor()
        try:
            return connection.sql(self.selection(limit)).to_arrow_table().cast(self.layout.schema)
        finally:
            connection.close()

    def _cursor(self) -> Any:
        if self._opened is None:
            try:
                self._opened = self.duckdb.connect(self.path)
            except self.duckdb.IOException as error:
                if "lock" in str(error):
                    raise TableUnreachable(
                        f"{self.name} cannot be opened, because another process has it open: {error}"
                    ) from None
                raise
        cursor = self._opened.cursor()
        cursor.execute("SET TimeZone = 'UTC'")
        return cursor


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

"""A live table in PostgreSQL 15 or newer: changes are copied into a temporary table and merged by one statement.

Guarded by tests/tables/test_tables_postgresql.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from ..errors import InvalidArgument, TableMismatch, TableUnreachable, UncombineError
from ..panes.state.seed import SeedMaker
from ..urls import secrets_of, shown_url, without_secrets
from .changes import Changes
from .column_types import DURATION, require_types, timed_type, with_durations
from .layout import CHANGE, Layout
from .sql import STAGING_TABLE, Database, SqlWriter, StagedChanges, joined, qualified, quoted
from .target import TableFacts, Target, Writer, library

_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.time64("us"): "time without time zone",
    pa.timestamp("us"): "timestamp without time zone",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    DURATION: "interval",
}
"""The names of types, as PostgreSQL itself writes them."""

FILL = 80
"""The part of a page, in percent, that new rows fill. In the rest the index finds updated rows without a new entry."""

LEAST_VERSION = 15
LONGEST_NAME = 63
"""The bytes of a name that PostgreSQL keeps; it cuts off the others without a word."""

_OWN_COLUMNS = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})

_AWAY = re.compile("08...|57P0[123]|53300|40001|40P01")
"""The states of errors after which another attempt may succeed."""

_FULL = "53100"
"""The state of a full disk, which may have room again soon."""

_CLAIM = 0x756E636F6D62
"""The lock under which a writer makes a table or takes it as its own."""


@dataclass(frozen=True, repr=False)
class PostgreSQL(Target):
    """A table in PostgreSQL. The rest of the URL goes to its client library, TLS parameters too."""

    url: str = field(repr=False)
    table: str
    schema: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        table = ".".join(filter(None, (self.schema, self.table)))
        return f"table {table!r} of PostgreSQL at {shown_url(self.url).removeprefix('postgresql://')}"

    def check(self, layout: Layout) -> None:
        library("adbc_driver_postgresql", "postgresql")
        require_types(layout.schema, with_durations(_has), "PostgreSQL")
        for name in (*layout.schema.names, self.table, self.schema or ""):
            if len(name.encode()) > LONGEST_NAME:
                raise InvalidArgument(
                    f"PostgreSQL keeps {LONGEST_NAME} bytes of a name, but {name!r} has {len(name.encode())}: give a "
                    "shorter one"
                )
        for name in layout.schema.names:
            if name in _OWN_COLUMNS:
                raise InvalidArgument(
                    f"PostgreSQL has a column {name!r} of its own in every table: give that of the flow another name"
                )

    def writer(self, layout: Layout, owner: str) -> PostgreSQLWriter:
        return PostgreSQLWriter(self, layout, owner)


class _Connection:
    """A connection within a transaction."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(self.inner.cursor()) as cursor:
            cursor.execute(statement, values or None)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def run(self, statement: str, *values: object) -> None:
        with closing(self.inner.cursor()) as cursor:
            cursor.execute(statement, values or None)


class PostgreSQLWriter(SqlWriter):
    """Writes a table of PostgreSQL over one connection, which stays open until `close`."""

    def __init__(self, target: PostgreSQL, layout: Layout, owner: str) -> None:
        super().__init__(target.name, layout, owner)
        self.table, self.schema = target.table, target.schema
        self._url, self._secrets = target.url, secrets_of(target.url)
        self.adbc = library("adbc_driver_postgresql.dbapi", "postgresql")
        self._opened: Any = None

    def secrets(self) -> Sequence[str]:
        return self._secrets

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(self.adbc.Error):
                opened.close()

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        with self._translated():
            if self._opened is None:
                self._opened = self.adbc.connect(self._url)
            try:
                yield _Connection(self._opened)
                self._opened.commit()
            except BaseException:
                with suppress(self.adbc.Error):
                    self._opened.rollback()
                raise

    def shares(self, other: Writer) -> bool:
        return isinstance(other, PostgreSQLWriter) and other._url == self._url

    def forget_staged(self, db: Database) -> None:
        db.run(f"DROP TABLE IF EXISTS {qualified('pg_temp', STAGING_TABLE)}")

    def mark(self, place: int) -> str:
        return f"${place}"

    def columns(self, db: Database) -> Mapping[str, object] | None:
        fields = db.rows(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
            self.quoted_table,
        )
        return {str(name): kind for name, kind in fields} or None

    def column_type(self, field: pa.Field) -> object:
        return _type(field.type)

    def type_text(self, field: pa.Field) -> str:
        return _type(field.type)

    def definitions(self, db: Database, there: bool) -> Sequence[str]:
        columns = ", ".join(f"{quoted(field.name)} {_type(field.type)}" for field in self.layout.schema)
        index = f"CREATE UNIQUE INDEX ON {self.quoted_table} ({joined(self.layout.keys, str)}) NULLS NOT DISTINCT"
        return [index] if there else [f"CREATE TABLE {self.quoted_table} ({columns}) WITH (fillfactor = {FILL})", index]

    def merged(self, db: Database, changes: Changes) -> int:
        assert isinstance(db, _Connection)
        fields = ", ".join(f"{quoted(field.name)} {_type(field.type)}" for field in self.layout.changes)
        db.run(f"CREATE TEMPORARY TABLE IF NOT EXISTS {quoted(STAGING_TABLE)} ({fields}) ON COMMIT DELETE ROWS")
        staged = StagedChanges(changes, ordered=True)
        with closing(db.inner.cursor()) as cursor, staged.own_errors():
            cursor.adbc_ingest(STAGING_TABLE, staged.reader(), mode="append", temporary=True)
        return sum(int(db.rows(self._merge_of(*match))[0][0]) for match in staged.matches())

    def _merge_of(self, of_pattern: str, equal: str) -> str:
        """The statement that merges the changes of a pattern of nulls."""
        table, staged, change = self.quoted_table, f"pg_temp.{quoted(STAGING_TABLE)}", f"s.{quoted(CHANGE)}"
        keys, values = self.layout.keys, self.layout.values
        every = [*keys, *values]
        return (
            f"WITH gone AS (DELETE FROM {table} AS t USING {staged} AS s "
            f"WHERE {of_pattern} AND {equal} AND {change} < 0 RETURNING 1), "
            f"other AS (UPDATE {table} AS t SET {joined(values or keys, lambda n: f'{n} = s.{n}')} FROM {staged} AS s "
            f"WHERE {of_pattern} AND {equal} AND {change} = 0 RETURNING 1), "
            f"new AS (INSERT INTO {table} ({joined(every, str)}) SELECT {joined(every, lambda n: f's.{n}')} "
            f"FROM {staged} AS s WHERE {of_pattern} AND {change} > 0 RETURNING 1) "
            "SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM other) + (SELECT count(*) FROM new)"
        )

    def read(self, limit: int | None = None) -> pa.Table:
        with self._translated(), closing(self.adbc.connect(self._url)) as opened, closing(opened.cursor()) as cursor:
            cursor.execute(self.selection(limit))
            return cursor.fetch_arrow_table().cast(self.layout.schema)

    def selected(self, field: pa.Field) -> str:
        name = quoted(field.name)
        if field.type == DURATION:  # its client gives an interval in nanoseconds, which hold 292 years
            return f"(extract(epoch FROM {name}) * 1000000)::bigint AS {name}"
        return f"{name}::text AS {name}" if pt.is_decimal(field.type) else name

    def _claimed(self, db: Database, maker: SeedMaker | None = None) -> TableFacts:
        version = int(db.rows("SELECT current_setting('server_version_num')::int / 10000")[0][0])
        if version < LEAST_VERSION:
            raise TableMismatch(
                f"{self.name} is on version {version}, but PostgreSQL {LEAST_VERSION} or newer is needed"
            )
        db.rows(f"SELECT pg_advisory_xact_lock({_CLAIM})::text")
        return super()._claimed(db, maker)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of the server as those of this library, without credentials."""
        try:
            yield
        except UncombineError:
            raise
        except self.adbc.Error as error:
            words = without_secrets(str(error), self._secrets)
            away = error.sqlstate is None and isinstance(error, self.adbc.OperationalError)
            if away or _AWAY.fullmatch(error.sqlstate or ""):
                raise TableUnreachable(f"{self.name} cannot be reached: {words}") from None
            if error.sqlstate == _FULL:
                raise TableUnreachable(f"{self.name} has no room: {words}") from None
            if error.sqlstate == "23505":
                raise TableMismatch(
                    f"{self.name} has a row for a key that the flow adds: something else has written it, or two rows "
                    f"have one key ({words})"
                ) from None
            raise TableMismatch(f"{self.name} refuses the rows: {words}") from None


def _has(kind: pa.DataType) -> bool:
    if pt.is_list(kind):
        return not pt.is_nested(kind.value_type) and _has(kind.value_type)
    return timed_type(kind) and (pt.is_decimal(kind) or kind in _TYPES)


def _type(kind: pa.DataType) -> str:
    """The name of a type in PostgreSQL."""
    if pt.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    return f"{_type(kind.value_type)}[]" if pt.is_list(kind) else _TYPES[kind]


__all__ = ["PostgreSQL", "PostgreSQLWriter"]

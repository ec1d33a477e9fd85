"""The writer of a table in a database: one transaction has the changes of a batch and the number of the batch.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..errors import TableMismatch, TableUnreachable
from ..panes.state.seed import SeedMaker
from .changes import Changes
from .target import BATCHES, NONE_YET, TableFacts, Writer

STAGING_TABLE = "_uncombine_staged"
"""The name under which a database sees the changes of a batch."""


class Database(Protocol):
    """A connection within a transaction."""

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""

    def run(self, statement: str, *values: object) -> None:
        """Run a statement that gives no rows."""


class SqlWriter(Writer):
    """Writes a table of a database. A subclass has the words of its dialect."""

    table: str
    """The name of the table, which is its key in the table of batches."""
    schema: str | None
    """The schema of the database that has the table; None for its default."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Database]:
        """A transaction, which is committed at the end, or rolled back by an error."""

    @abstractmethod
    def columns(self, db: Database) -> Mapping[str, object] | None:
        """The columns of the table with their types; None if there is no table."""

    @abstractmethod
    def column_type(self, field: pa.Field) -> object:
        """The type of a column, as `columns` has it."""

    @abstractmethod
    def type_text(self, field: pa.Field) -> str:
        """The type of a column, for a statement."""

    @abstractmethod
    def definitions(self, db: Database, there: bool) -> Sequence[str]:
        """The statements that make the table, or that make an empty one ready that is `there` already."""

    @abstractmethod
    def merged(self, db: Database, changes: Changes) -> int:
        """Apply the changes; the number of those that fit the rows of the table."""

    def mark(self, place: int) -> str:
        """The mark of a value in a statement; the first one has place 1."""
        return "?"

    def start(self, maker: SeedMaker | None = None) -> int:
        with self.transaction() as db:
            return self._claimed(db, maker).batch

    def facts(self) -> TableFacts | None:
        with self.transaction() as db:
            self._make_batches(db)
            return None if self.columns(db) is None else self._facts(db)

    def apply(self, batch: int, changes: Changes) -> bool:
        with self.transaction() as db:
            return self._taken(db, batch, changes)

    def apply_both(self, batch: int, changes: Changes, other: Writer, more: Changes) -> bool:
        assert isinstance(other, SqlWriter)
        with self.transaction() as db:
            other._taken(db, batch, more)
            self.forget_staged(db)
            applied = self._taken(db, batch, changes)
            self.forget_staged(db)
        return applied

    def forget_staged(self, db: Database) -> None:
        """Drop the table of staged changes, if it would stay for others."""

    def _taken(self, db: Database, batch: int, changes: Changes) -> bool:
        if not self._counted(db, batch, batch - 1):
            if self.is_done(self._facts(db), batch):
                return False
            raise TableUnreachable(f"another process has changed the last batch of {self.name}")
        self._merge(db, changes)
        return True

    def once(self, changes: Changes) -> None:
        with self.transaction() as db:
            self._claimed(db)
            if not self._counted(db, 0, NONE_YET):
                raise self.foreign()
            self._merge(db, changes)

    def drop(self) -> None:
        with self.transaction() as db:
            db.run(f"DROP TABLE {self.quoted_table}")

    def _merge(self, db: Database, changes: Changes) -> None:
        applied = self.merged(db, changes) if changes.rows else 0
        if applied != changes.rows:
            raise self.unfit(applied, changes)

    def _counted(self, db: Database, batch: int, last: int) -> bool:
        """Count the batch as the last one, if the one before it is that now."""
        one, two, three, four = map(self.mark, range(1, 5))
        return bool(
            db.rows(
                f"UPDATE {self.batches} SET batch = {one} "
                f"WHERE table_name = {two} AND owner = {three} AND batch = {four} RETURNING batch",
                *(batch, self.table, self.owner, last),
            )
        )

    def _claimed(self, db: Database, maker: SeedMaker | None = None) -> TableFacts:
        """The facts of the table of this writer, which is made if it is not there, or taken over."""
        self._make_batches(db)
        facts, there = self._facts(db), self.columns(db)
        if self.takes_over(None if there is None else facts, maker):
            assert facts is not None
            assert there is not None
            self._adapt(db, facts, there)
            facts, there = self._taken_over(db), self.columns(db)
        if there is None and facts is not None:
            if facts.owner == self.owner:
                raise self.gone()
            db.run(f"DELETE FROM {self.batches} WHERE table_name = {self.mark(1)}", self.table)
            facts = None
        if facts is None and there is not None and db.rows(f"SELECT 1 FROM {self.quoted_table} LIMIT 1"):
            raise self.foreign()
        if facts is not None:
            self.check(facts)
        if there is not None:
            self._check_columns(there)
        if facts is not None:
            return facts
        for statement in self.definitions(db, there is not None):
            db.run(statement)
        facts = TableFacts(owner=self.owner, batch=NONE_YET, layout=self.layout.text())
        marks = ", ".join(map(self.mark, range(1, 5)))
        db.run(f"INSERT INTO {self.batches} VALUES ({marks})", self.table, facts.owner, facts.batch, facts.layout)
        return facts

    def _make_batches(self, db: Database) -> None:
        db.run(
            f"CREATE TABLE IF NOT EXISTS {self.batches} "
            "(table_name text PRIMARY KEY, owner text NOT NULL, batch bigint NOT NULL, layout text NOT NULL)"
        )

    def _taken_over(self, db: Database) -> TableFacts | None:
        """The facts of the table, which from now on is that of this writer."""
        one, two, three, four = map(self.mark, range(1, 5))
        statement = (
            f"UPDATE {self.batches} SET owner = {one}, batch = {two}, layout = {three} WHERE table_name = {four}"
        )
        db.run(statement, self.owner, NONE_YET, self.layout.text(), self.table)
        return self._facts(db)

    def _adapt(self, db: Database, facts: TableFacts, there: Mapping[str, object]) -> None:
        """Give the table new columns, and no values in those that the flow has no more."""
        for field in self.layout.added(facts.layout):
            if field.name not in there:
                db.run(f"ALTER TABLE {self.quoted_table} ADD COLUMN {quoted(field.name)} {self.type_text(field)}")
        if gone := [name for name in self.layout.dropped(facts.layout) if name in there]:
            db.run(f"UPDATE {self.quoted_table} SET {', '.join(f'{quoted(name)} = NULL' for name in gone)}")

    def _facts(self, db: Database) -> TableFacts | None:
        where = f"WHERE table_name = {self.mark(1)}"
        rows = db.rows(f"SELECT owner, batch, layout FROM {self.batches} {where}", self.table)
        return TableFacts(*rows[0]) if rows else None

    def _check_columns(self, there: Mapping[str, object]) -> None:
        self.require_columns(there)
        for field in self.layout.schema:
            wanted = self.column_type(field)
            if there[field.name] != wanted:
                raise TableMismatch(
                    f"column {field.name!r} of {self.name} is {there[field.name]}, but that of the flow needs {wanted}"
                )

    @property
    def batches(self) -> str:
        """The table of batches, for a statement."""
        return qualified(self.schema, BATCHES)

    @property
    def quoted_table(self) -> str:
        """The table, for a statement."""
        return qualified(self.schema, self.table)

    def selected(self, field: pa.Field) -> str:
        """A column, for a statement that reads the table."""
        return quoted(field.name)

    def selection(self, limit: int | None) -> str:
        """The statement that reads the table."""
        names = ", ".join(map(self.selected, self.layout.schema))
        first = "" if limit is None else f" ORDER BY {', '.join(map(quoted, self.layout.keys))} LIMIT {int(limit)}"
        return f"SELECT {names} FROM {self.quoted_table}{first}"


def quoted(name: str) -> str:
    """A name, for a statement.

    >>> print(quoted('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str | None, name: str) -> str:
    """A name with its schema, for a statement."""
    return quoted(name) if schema is None else f"{quoted(schema)}.{quoted(name)}"


def joined(names: Sequence[str], text: Callable[[str], str], by: str = ", ") -> str:
    """The text of each name, quoted, one after the other."""
    return by.join(text(quoted(name)) for name in names)


class StagedChanges:
    """Changes on their way into a temporary table, and the ways to find the rows of their keys.

    A database finds rows by an index, or by the least and greatest values of its blocks, for = and IS NULL, and not for
    IS NOT DISTINCT FROM. So changes are told apart by the key columns that are null.
    """

    def __init__(self, changes: Changes, ordered: bool = False) -> None:
        self.changes = changes
        self.ordered = ordered
        """True to give each part in the order of the keys, in which an index finds them with fewer reads."""
        self._patterns = set[tuple[bool, ...]]()
        self._failed: Exception | None = None

    def reader(self) -> pa.RecordBatchReader:
        """All changes, as a stream of Arrow."""
        return pa.RecordBatchReader.from_batches(self.changes.layout.changes, self._batches())

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise an error of the changes as it was, and not as one of the database that reads them."""
        try:
            yield
        except Exception:
            if self._failed is not None:
                raise self._failed from None
            raise

    def matches(self) -> Iterator[tuple[str, str]]:
        """For each pattern of nulls that has come, the condition of its changes `s`, and that of their rows `t`."""
        for pattern in sorted(self._patterns):
            pairs = [(quoted(name), null) for name, null in zip(self.changes.layout.keys, pattern, strict=True)]
            changes = " AND ".join(f"s.{name} IS {'' if null else 'NOT '}NULL" for name, null in pairs)
            yield changes, " AND ".join(f"t.{name} IS NULL" if null else f"t.{name} = s.{name}" for name, null in pairs)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        keys = self.changes.layout.keys
        try:
            for batch in self.changes.batches():
                self._patterns |= null_patterns(batch, keys)
                yield batch.sort_by([(name, "ascending") for name in keys]) if self.ordered else batch
        except Exception as error:
            self._failed = error
            raise


def null_patterns(batch: pa.RecordBatch, keys: Sequence[str]) -> set[tuple[bool, ...]]:
    """The sets of key columns that are null in some row, as a flag for each key.

    >>> sorted(null_patterns(pa.record_batch({"a": [1, None, 2], "b": ["x", "y", "z"]}), ["a", "b"]))
    [(False, False), (True, False)]
    """
    columns = [batch.column(name) for name in keys]
    if not any(column.null_count for column in columns):
        return {(False,) * len(keys)} if batch.num_rows else set()
    nulls = np.stack([np.asarray(column.is_null()) for column in columns], axis=1)
    return {tuple(map(bool, row)) for row in np.unique(nulls, axis=0)}


__all__ = ["STAGING_TABLE", "Database", "SqlWriter", "StagedChanges", "joined", "null_patterns", "qualified", "quoted"]

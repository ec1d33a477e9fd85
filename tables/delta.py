"""A live table in a Delta table: each batch is one merge and one commit, which has the number of the batch.

Guarded by tests/tables/test_tables_delta.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, TableMismatch, TableUnreachable
from ..panes.state.seed import SeedMaker
from ..urls import secrets_of, shown_url
from .changes import Changes
from .column_types import flat_type, nested, require_names_apart, require_types
from .copying import new_rows
from .failures import is_network, says_network
from .layout import CHANGE, Layout
from .sql import joined, null_patterns, quoted
from .target import NONE_YET, TableFacts, Target, Writer, library

REFUSED = " ,;{}()\n\t="
"""The characters that the columns of a Delta table do not have."""

ROWS_IN_MEMORY = 1 << 20
"""The changes of a batch that are held in memory, so that files without their keys are not read."""

_TAKEN_OVER = "uncombine.taken_over"
"""The property with the writer that took the table over and with its former one: a description is too short."""

_UNFIT = "uncombine: a change does not fit"
"""The text that a merge fails to read as a number when a change does not fit the rows of the table."""


@dataclass(frozen=True, repr=False)
class Delta(Target):
    """A Delta table in a folder, or at a URL of delta-rs, which takes credentials from the environment."""

    path: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"the Delta table {shown_url(self.path)}"

    def check(self, layout: Layout) -> None:
        library("deltalake", "delta")
        require_types(layout.schema, nested(flat_type), "Delta")
        require_names_apart(layout.schema, "Delta")
        for name in layout.schema.names:
            if letters := [letter for letter in name if letter in REFUSED]:
                raise InvalidArgument(
                    f"a Delta table has no column {name!r}, because its name has {letters[0]!r}: give it another one"
                )

    def writer(self, layout: Layout, owner: str) -> DeltaWriter:
        return DeltaWriter(self, layout, owner)


class DeltaWriter(Writer):
    """Writes a Delta table. The number of a batch is a transaction of the application `uncombine <owner>`."""

    def __init__(self, target: Delta, layout: Layout, owner: str) -> None:
        super().__init__(target.name, layout, owner)
        self.path, self.application = target.path, _application(owner)
        self.deltalake = library("deltalake", "delta")
        self._opened: Any = None

    def secrets(self) -> Sequence[str]:
        return secrets_of(self.path)

    def is_away(self, error: BaseException) -> bool:
        return is_network(error) or (isinstance(error, self.deltalake.exceptions.DeltaError) and says_network(error))

    def start(self, maker: SeedMaker | None = None) -> int:
        table = self._table()
        if maker is not None and self.takes_over(facts := self._found(table), maker):
            assert facts is not None
            self._adapt(table, facts)
            self._take_over(table, maker)
            table = self._table()
        if table is None:
            try:
                made = {"name": None, "description": self._about(), "mode": "error"}
                self.deltalake.DeltaTable.create(self.path, self.layout.schema, **made)
            except self.deltalake.exceptions.DeltaError:  # another writer may have made it just now
                if (table := self._table()) is None:
                    raise
            else:
                table = self._table()
        facts = self._facts(table)
        if facts is None:
            raise self.foreign()
        return facts.batch

    def facts(self) -> TableFacts | None:
        return self._found(self._table())

    def apply(self, batch: int, changes: Changes) -> bool:
        table = self._table()
        if self.is_done(self._facts(table), batch):
            return False
        try:
            if changes.rows:
                self._merge(table, batch, changes)
            else:
                table.create_write_transaction([], "append", table.schema(), commit_properties=self._commit(batch))
        except self.deltalake.exceptions.CommitFailedError as error:
            raise TableUnreachable(f"{self.name} was changed by another process at the same time: {error}") from None
        return True

    def once(self, changes: Changes) -> None:
        if self._table() is not None:
            raise self.foreign()
        self.deltalake.write_deltalake(
            self.path,
            pa.RecordBatchReader.from_batches(self.layout.schema, new_rows(changes)),
            mode="error",
            description=self._about(),
            commit_properties=self._commit(0),
        )

    def read(self, limit: int | None = None) -> pa.Table:
        table = self._existing()
        if limit is None:
            return table.to_pyarrow_table(columns=self.layout.schema.names).cast(self.layout.schema)
        names, keys = (joined(part, str) for part in (self.layout.schema.names, self.layout.keys))
        query = self.deltalake.QueryBuilder().register("live", table)
        rows = query.execute(f"SELECT {names} FROM live ORDER BY {keys} LIMIT {int(limit)}")
        return pa.table(rows).cast(self.layout.schema)

    def files(self) -> list[str] | None:
        return list(self._existing().file_uris())

    def close(self) -> None:
        self._opened = None

    def _table(self) -> Any:
        """The table as it is now; None if there is none."""
        try:
            if self._opened is None:
                self._opened = self.deltalake.DeltaTable(self.path)
            else:
                self._opened.update_incremental()
        except self.deltalake.exceptions.TableNotFoundError:
            self._opened = None
        return self._opened

    def _existing(self) -> Any:
        try:
            table = self.deltalake.DeltaTable(self.path)
        except self.deltalake.exceptions.TableNotFoundError:
            raise self.gone() from None
        self.require_columns(_names(table))
        return table

    def _facts(self, table: Any) -> TableFacts | None:
        facts = self._found(table)
        if facts is not None:
            self.check(facts)  # a table of other rows has other columns
            self.require_columns(_names(table))
        return facts

    def _found(self, table: Any) -> TableFacts | None:
        """The facts of a table, of whatever writer."""
        if table is None:
            return None
        try:
            about = json.loads(table.metadata().description or "{}")["uncombine"]
        except (ValueError, KeyError, TypeError):
            raise self.foreign() from None
        about |= json.loads(table.metadata().configuration.get(_TAKEN_OVER, "{}"))
        done = table.transaction_version(_application(about["owner"]))
        former = about.get("maker")
        if former and table.transaction_version(_application(former["owner"])) != former["batch"]:
            raise TableMismatch(
                f"{self.name} was still written by its former query when it was taken over: restore its version before"
            )
        return TableFacts(
            owner=about["owner"], batch=NONE_YET if done is None else done, layout=json.dumps(about["layout"])
        )

    def _adapt(self, table: Any, facts: TableFacts) -> None:
        """Give the table new columns, and no values in those that the flow has no more, by commits of their own."""
        there = _names(table)
        if added := [field for field in self.layout.added(facts.layout) if field.name not in there]:
            table.alter.add_columns(self.deltalake.Schema.from_arrow(pa.schema(added)).fields)
        if gone := [name for name in self.layout.dropped(facts.layout) if name in there]:
            table.update(updates=dict.fromkeys(map(quoted, gone), "NULL"))

    def _take_over(self, table: Any, maker: SeedMaker) -> None:
        """Make the table that of this writer, by one commit. It tells if another commit came in between."""
        layout = json.loads(self.layout.text())
        taken = json.dumps({"owner": self.owner, "maker": asdict(maker), "layout": layout})
        try:
            table.alter.set_table_properties({_TAKEN_OVER: taken}, raise_if_not_exists=False)
        except self.deltalake.exceptions.CommitFailedError as error:
            raise TableUnreachable(f"{self.name} was changed by another process at the same time: {error}") from None

    def _about(self) -> str:
        return json.dumps({"uncombine": {"owner": self.owner, "layout": json.loads(self.layout.text())}})

    def _commit(self, batch: int) -> Any:
        done = self.deltalake.Transaction(self.application, batch)
        return self.deltalake.CommitProperties(app_transactions=[done])

    def _merge(self, table: Any, batch: int, changes: Changes) -> None:
        keys, values, change = self.layout.keys, self.layout.values, f"s.{quoted(CHANGE)}"
        every = [*keys, *values]
        # A change that does not fit must fail before the commit, so its new values need a text that is no boolean.
        unfit = f"CAST(concat('{_UNFIT}', CAST({change} AS VARCHAR)) AS BOOLEAN)"
        failing = {name: f"CASE WHEN {unfit} THEN {value} END" for name, value in _assigned(every).items()}
        merge = table.merge(
            changes.reader(),
            _matching(changes),
            source_alias="s",
            target_alias="t",
            streamed_exec=changes.rows > ROWS_IN_MEMORY,
            commit_properties=self._commit(batch),
        )
        merge = merge.when_matched_delete(f"{change} < 0")
        merge = merge.when_matched_update(_assigned(values or keys), f"{change} = 0")
        merge = merge.when_matched_update(failing, f"{change} > 0")
        merge = merge.when_not_matched_insert(_assigned(every), f"{change} > 0")
        merge = merge.when_not_matched_insert(failing, f"{change} <= 0")
        try:
            merge.execute()
        except self.deltalake.exceptions.CommitFailedError:
            raise
        except self.deltalake.exceptions.DeltaError as error:
            if _UNFIT in str(error):
                raise self.unfit(changes.rows - 1, changes) from None
            raise


def _application(owner: str) -> str:
    """The name under which a table counts the batches of a writer."""
    return f"uncombine {owner}"


def _names(table: Any) -> list[str]:
    return [field.name for field in table.schema().fields]


def _matching(changes: Changes) -> str:
    """The condition of a row and a change of one key: by =, which is faster, if all rows have the same nulls."""
    keys = changes.layout.keys
    patterns = set[tuple[bool, ...]]().union(*(null_patterns(batch, keys) for batch in changes.batches()))
    if len(patterns) != 1 or all(min(patterns)):
        return joined(keys, lambda n: f"(t.{n} IS NOT DISTINCT FROM s.{n})", " AND ")
    pairs = zip(map(quoted, keys), min(patterns), strict=True)
    return " AND ".join(f"t.{n} IS NULL AND s.{n} IS NULL" if null else f"t.{n} = s.{n}" for n, null in pairs)


def _assigned(names: Iterable[str]) -> dict[str, str]:
    """Each column with its new value, for a merge."""
    return {quoted(name): f"s.{quoted(name)}" for name in names}


__all__ = ["Delta", "DeltaWriter"]

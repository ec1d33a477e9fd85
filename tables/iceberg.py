"""A live table in Iceberg: each batch is one snapshot, which has the number of the batch.

The files that have a changed row are written again.

Guarded by tests/tables/test_tables_iceberg.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, TableMismatch, TableUnreachable
from ..panes.state.seed import SeedMaker
from ..urls import secrets_among, shown_url
from .changes import Changes
from .column_types import nested, require_types, timed_type
from .copying import ChangedKeys, new_rows
from .failures import is_network
from .layout import Layout
from .made_once import made_once
from .target import NONE_YET, TableFacts, Target, Writer, library

_SQLITE_AWAY = re.compile("locked|unable to open|disk I/O|busy")

_OWNER, _BATCH, _LAYOUT = "uncombine.owner", "uncombine.batch", "uncombine.layout"
_TAKEN = "uncombine.taken_over_after"
"""The property with the snapshot after which a writer took the table over."""

_SETTINGS = {
    # A batch whose commit fails is done again from the start, by the keeper of the table.
    "commit.retry.num-retries": "0",
    "write.target-file-size-bytes": str(128 << 20),
}


@dataclass(frozen=True, repr=False)
class Iceberg(Target):
    """A table of a catalog that pyiceberg knows by a URI, or by a name in its own settings."""

    catalog: str = field(repr=False)
    warehouse: str | None
    identifier: tuple[str, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"the Iceberg table {'.'.join(self.identifier)!r} of {shown_url(self.catalog)}"

    def check(self, layout: Layout) -> None:
        library("pyiceberg.catalog", "iceberg")
        require_types(layout.schema, nested(timed_type), "Iceberg")
        for name in layout.schema.names:
            if "." in name:
                raise InvalidArgument(f"Iceberg takes column {name!r} for a field of a struct: give it another name")

    def writer(self, layout: Layout, owner: str) -> IcebergWriter:
        return IcebergWriter(self, layout, owner)


class IcebergWriter(Writer):
    """Writes a table of Iceberg, of which it is the only writer."""

    def __init__(self, target: Iceberg, layout: Layout, owner: str) -> None:
        super().__init__(target.name, layout, owner)
        self.target, self.errors = target, library("pyiceberg.exceptions", "iceberg")
        self._catalog: Any = None
        self._options: Mapping[str, object] = {}

    def secrets(self) -> Sequence[str]:
        properties = {} if self._catalog is None else self._catalog.properties
        return secrets_among(
            {"uri": self.target.catalog, "warehouse": self.target.warehouse, **self._options, **properties}
        )

    def is_away(self, error: BaseException) -> bool:
        errors = self.errors
        if isinstance(error, errors.ServerError | errors.ServiceUnavailableError | errors.CommitStateUnknownException):
            return True
        if type(error).__module__ == "sqlalchemy.exc" and type(error).__name__ in (
            "OperationalError",
            "InterfaceError",
        ):
            text = str(error)  # SQLite has one error for all
            return "sqlite3" not in text or _SQLITE_AWAY.search(text) is not None
        return is_network(error)

    def start(self, maker: SeedMaker | None = None) -> int:
        table = self._table()
        if maker is not None and self.takes_over(facts := self._found(table), maker):
            assert facts is not None
            self._take_over(table, facts)
            table = self._table()
        if table is None:
            try:
                table = self._opened().create_table(
                    self.target.identifier, self.layout.schema, properties=self._about()
                )
            except self.errors.TableAlreadyExistsError:  # another writer has made it just now
                table = self._table()
        facts = self._facts(table)
        assert facts is not None
        return facts.batch

    def facts(self) -> TableFacts | None:
        return self._found(self._table())

    def apply(self, batch: int, changes: Changes) -> bool:
        table = self._table()
        if self.is_done(self._facts(table), batch):
            return False
        touched = self._touched(table, changes)
        transaction = table.transaction()
        rows = pa.RecordBatchReader.from_batches(self.layout.schema, self._rows(table, touched, changes))
        self._written(transaction, rows, batch, touched)
        return True

    def once(self, changes: Changes) -> None:
        if self._table() is not None:
            raise self.foreign()
        made = self._opened().create_table_transaction(
            self.target.identifier, self.layout.schema, properties=self._about()
        )
        rows = pa.RecordBatchReader.from_batches(self.layout.schema, new_rows(changes))
        self._written(made, rows, 0, [])

    def read(self, limit: int | None = None) -> pa.Table:
        source = self._existing()
        self.require_columns(source.schema().column_names)
        table = source.scan(selected_fields=tuple(self.layout.schema.names)).to_arrow()
        table = table.select(self.layout.schema.names).cast(self.layout.schema)
        if limit is None:
            return table
        return table.sort_by([(name, "ascending") for name in self.layout.keys]).slice(0, limit)

    def close(self) -> None:
        opened, self._catalog = self._catalog, None
        if opened is not None and hasattr(opened, "engine"):
            opened.engine.dispose()

    def _written(self, transaction: Any, rows: Any, batch: int, touched: Sequence[Any]) -> None:
        """Write rows into files that take the place of those touched, as one snapshot with the number of the batch."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        io = transaction._table.io
        change = transaction.update_snapshot(snapshot_properties={_BATCH: str(batch), _OWNER: self.owner}).overwrite()
        for task in touched:
            change.delete_data_file(task.file)
        for file in _dataframe_to_data_files(transaction.table_metadata, rows, io):
            change.append_data_file(file)
        change.commit()
        try:
            transaction.commit_transaction()
        except self.errors.CommitFailedException as error:
            raise TableUnreachable(f"{self.name} was changed by another process at the same time: {error}") from None

    def _touched(self, table: Any, changes: Changes) -> list[Any]:
        """The scans of files that have a row of a key that changes; raises if a change does not fit the rows."""
        keys, out = ChangedKeys(changes), []
        for task in table.scan().plan_files() if changes.rows else ():
            if task.delete_files:
                raise TableMismatch(f"{self.name} has deletions that were not written here: choose another table")
            met = [keys.meets(part) for part in self._parts(table, task, self.layout.keys)]
            out += [task] if any(met) else []
        if keys.fitting != changes.rows:
            raise self.unfit(keys.fitting, changes)
        return out

    def _rows(self, table: Any, touched: Sequence[Any], changes: Changes) -> Iterator[pa.RecordBatch]:
        keys = ChangedKeys(changes)
        for task in touched:
            for part in self._parts(table, task, self.layout.schema.names):
                yield keys.left(part)
        yield from new_rows(changes)

    def _parts(self, table: Any, task: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a file, in these columns. Their names in the file may be others."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        schema = pa.schema([self.layout.schema.field(name) for name in names])
        scan = ArrowScan(table.metadata, table.io, table.schema().select(*names), AlwaysTrue())
        for part in scan.to_record_batches([task]):
            yield part.select(list(names)).cast(schema)

    def _opened(self) -> Any:
        if self._catalog is None:
            catalog = library("pyiceberg.catalog", "iceberg")
            name, options = catalog_options(self.target)
            self._options = (_settings(name) if name != "default" else {}) | options

            def make() -> Any:
                opened = catalog.load_catalog(name, **options)
                self._options = {**self._options, **opened.properties}  # before its first use: some are secrets
                opened.create_namespace_if_not_exists(self.target.identifier[:-1])
                return opened

            self._catalog = made_once(make)
        return self._catalog

    def _table(self) -> Any:
        try:
            return self._opened().load_table(self.target.identifier)
        except self.errors.NoSuchTableError:
            return None

    def _existing(self) -> Any:
        table = self._table()
        if table is None:
            raise self.gone()
        return table

    def _facts(self, table: Any) -> TableFacts | None:
        facts = self._found(table)
        if facts is not None:
            self.check(facts)  # a table of other rows has other columns
            self.require_columns(table.schema().column_names)
        return facts

    def _found(self, table: Any) -> TableFacts | None:
        """The facts of a table, of whatever writer."""
        if table is None:
            return None
        if _OWNER not in table.properties:
            raise self.foreign()
        owner = table.properties[_OWNER]
        return TableFacts(owner=owner, batch=self._last_batch(table, owner), layout=table.properties[_LAYOUT])

    def _last_batch(self, table: Any, owner: str) -> int:
        """The number of the last batch of the owner of a table."""
        snapshot = table.current_snapshot()
        while snapshot is not None and str(snapshot.snapshot_id) != table.properties.get(_TAKEN):
            summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
            if _BATCH in summary:
                if summary.get(_OWNER, owner) != owner:
                    raise TableMismatch(
                        f"{self.name} was still written by its former query when it was taken over: roll it back to "
                        f"the snapshot {table.properties.get(_TAKEN)}"
                    )
                return int(summary[_BATCH])
            parent = snapshot.parent_snapshot_id  # a snapshot of maintenance has no number
            snapshot = None if parent is None else table.snapshot_by_id(parent)
        return NONE_YET

    def _take_over(self, table: Any, facts: TableFacts) -> None:
        """Make the table that of this writer, by one commit. It tells if another commit came in between.

        The commit also adds columns, and drops those that the flow has no more.
        """
        last, names = table.current_snapshot(), table.schema().column_names
        added = [field for field in self.layout.added(facts.layout) if field.name not in names]
        gone = [name for name in self.layout.dropped(facts.layout) if name in names]
        try:
            with table.transaction() as transaction:
                if added or gone:
                    with transaction.update_schema(allow_incompatible_changes=True) as schema:
                        schema.union_by_name(pa.schema(added))
                        for name in gone:
                            schema.delete_column(name)
                    transaction.set_properties({_LAYOUT: self.layout.text()})
                transaction.set_properties({_OWNER: self.owner, _TAKEN: "" if last is None else str(last.snapshot_id)})
        except self.errors.CommitFailedException as error:
            raise TableUnreachable(f"{self.name} was changed by another process at the same time: {error}") from None

    def _about(self) -> dict[str, str]:
        return {_OWNER: self.owner, _LAYOUT: self.layout.text(), **_SETTINGS}


def catalog_options(target: Iceberg) -> tuple[str, dict[str, str]]:
    """The name of the catalog of a table, and the options by which it is opened, if they are not elsewhere."""
    if ":" not in target.catalog:
        return target.catalog, {}
    given = {"uri": target.catalog, "warehouse": target.warehouse}
    return "default", {key: value for key, value in given.items() if value is not None}


def _settings(name: str) -> dict[str, object]:
    """The settings of a catalog in pyiceberg's own file or in the environment, of which some are secrets."""
    from pyiceberg.utils.config import Config

    return dict(Config().get_catalog_config(name) or {})


__all__ = ["Iceberg", "IcebergWriter", "catalog_options"]

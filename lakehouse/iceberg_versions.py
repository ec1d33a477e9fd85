"""The versions of an Iceberg table: its snapshots from the first one to the newest, as pyiceberg plans and reads them.

A snapshot that only appends says which files it adds, and one that only replaces files, as a compaction does, changes
no row. Any other is compared with the one before it: a file that is there no more, or with other deletions, retracts
its rows, and one that is new, or has other deletions, gives its rows.

Guarded by tests/lakehouse/test_iceberg_changes.py.
"""

from __future__ import annotations

import json
import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.rows.plain_types import decoded_inside
from ..errors import InvalidArgument, StateMismatch, UnreadableFile
from ..files.conform import conform, standard_schema
from ..tables.iceberg import Iceberg, catalog_options
from ..tables.made_once import made_once
from ..tables.target import library
from ..urls import secrets_among
from .changed_files import ChangedFile, Part, parts_of
from .versions import NOTHING, TableVersions


class IcebergVersions(TableVersions):
    """The snapshots of an Iceberg table, by their ids."""

    def __init__(self, target: Iceberg) -> None:
        self.target, self.name = target, target.name
        library("pyiceberg.catalog", "iceberg")
        self._options = catalog_options(target)[1]
        self.attempt(self._describe)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_opened", "_described")}

    def _describe(self) -> None:
        table = self._table()
        self.table = str(table.metadata.table_uuid)
        self._properties = dict(table.io.properties)
        self._fields = {field.name: (field.field_id, str(field.field_type)) for field in table.schema().fields}
        self.schema = standard_schema(pa.schema([pa.field(f.name, f.type) for f in table.schema().as_arrow()]))

    def secrets(self) -> Sequence[str]:
        known = {"uri": self.target.catalog, "warehouse": self.target.warehouse}
        return secrets_among({**known, **self._options, **vars(self).get("_properties", {})})

    def newest(self, known: int | None = None) -> int:
        snapshot = self.attempt(self._table).current_snapshot()
        return NOTHING if snapshot is None else int(snapshot.snapshot_id)

    def at(self, time: int) -> int:
        table = self.attempt(self._table)
        snapshot = table.current_snapshot()
        while snapshot is not None and snapshot.timestamp_ms * 1000 > time:
            snapshot = self._before(table, snapshot)
        return NOTHING if snapshot is None else int(snapshot.snapshot_id)

    def require(self, version: int) -> None:
        if version != NOTHING and self.attempt(self._table).snapshot_by_id(version) is None:
            raise InvalidArgument(
                f"{self.name} has no snapshot {version}, or has it no more: name one of table.snapshots()"
            )

    def after(self, version: int, last: int) -> list[int]:
        return [int(snapshot.snapshot_id) for snapshot in self._after(self.attempt(self._table), version, last)]

    def snapshot(self, version: int) -> list[Part]:
        return self.attempt(lambda: self._snapshot(self._table(), version))

    def changes(self, after: int, last: int) -> list[Part]:
        return self.attempt(lambda: self._changes(self._table(), after, last))

    def rows(
        self, part: Part, file: ChangedFile, columns: Sequence[str]
    ) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
        try:
            yield from ((rows, None) for rows in self.attempt(lambda: self._rows(part, file, columns)))
        except FileNotFoundError as error:
            raise self.lost(part.version, f"{error.filename or file.path} is gone") from None
        except (pa.ArrowException, ValueError, NotImplementedError) as error:
            raise UnreadableFile(
                f"{file.path} of {self.name} cannot be read with the columns of the table ({error}): rewrite it, or "
                "read the table by Spark",
                file.path,
            ) from None

    def _rows(self, part: Part, file: ChangedFile, columns: Sequence[str]) -> list[pa.Table]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        table = self._described_at(part.metadata)
        # A scan without columns has no rows, so the first one says how many there are.
        wanted = list(columns) or self.schema.names[:1]
        scan = ArrowScan(table.metadata, table.io, table.schema().select(*wanted), AlwaysTrue())
        tables = []
        for batch in scan.to_record_batches([pickle.loads(b64decode(file.scan or ""))]):
            rows = pa.Table.from_batches([batch])
            made = [conform(_decoded(rows[name]), self.schema.field(name).type) for name in columns]
            tables.append(pa.table(made, names=list(columns)) if columns else rows.select([]))
        return tables

    def _described_at(self, location: str | None) -> Any:
        """The table as a file of its metadata describes it."""
        from pyiceberg.table import StaticTable

        described: dict[str | None, Any] = vars(self).setdefault("_described", {})
        if location not in described:
            described.clear()
            described[location] = StaticTable.from_metadata(str(location), self._properties)
        return described[location]

    def _table(self) -> Any:
        errors = library("pyiceberg.exceptions", "iceberg")
        name, options = catalog_options(self.target)
        if "_opened" not in vars(self):
            catalog = library("pyiceberg.catalog", "iceberg")
            self._opened = made_once(lambda: catalog.load_catalog(name, **options))
        try:
            return self._opened.load_table(self.target.identifier)
        except (errors.NoSuchTableError, errors.NoSuchNamespaceError):
            raise InvalidArgument(f"{self.name} is not there: name a table of the catalog") from None

    def _before(self, table: Any, snapshot: Any) -> Any:
        """The snapshot before another; None before the first one."""
        if snapshot.parent_snapshot_id is None:
            return None
        parent = table.snapshot_by_id(snapshot.parent_snapshot_id)
        if parent is None:
            raise self.lost(snapshot.snapshot_id, "the snapshot before it has expired")
        return parent

    def _after(self, table: Any, version: int, last: int) -> list[Any]:
        """The snapshots after one, up to another, in their order."""
        snapshots, snapshot = [], None if last == NOTHING else table.snapshot_by_id(last)
        if snapshot is None and last != NOTHING:
            raise self.lost(last, "the snapshot has expired")
        while snapshot is not None and snapshot.snapshot_id != version:
            snapshots.append(snapshot)
            if snapshot.parent_snapshot_id == version:  # which may have expired, if nothing needs it
                return snapshots[::-1]
            snapshot = self._before(table, snapshot)
        if snapshot is None and version != NOTHING:
            gone = table.snapshot_by_id(version) is None
            raise self.lost(version, "the snapshot has expired") if gone else self._no_ancestor(version)
        return snapshots[::-1]

    def _no_ancestor(self, version: int) -> StateMismatch:
        return StateMismatch(
            f"{self.name} was rolled back behind snapshot {version}, or goes on from another one, so what was read is "
            "not in it: start from a new checkpoint, or without start="
        )

    def _snapshot(self, table: Any, version: int) -> list[Part]:
        if version == NOTHING:
            return []
        snapshot = table.snapshot_by_id(version)
        if snapshot is None:
            raise self.lost(version, "the snapshot has expired")
        return self._parts(table, snapshot, [(scan, 1) for scan in self._plan(table, version)])

    def _changes(self, table: Any, after: int, last: int) -> list[Part]:
        parts: list[Part] = []
        for snapshot in self._after(table, after, last):
            parts += self._parts(table, snapshot, self._changed(table, snapshot))
        return parts

    def _changed(self, table: Any, snapshot: Any) -> list[tuple[Any, int]]:
        """The scans of files whose rows a snapshot retracts or gives, with their weights."""
        from pyiceberg.table.snapshots import Operation

        operation = None if snapshot.summary is None else snapshot.summary.operation
        if operation == Operation.REPLACE:
            return []
        if operation == Operation.APPEND:
            added = self._appended(table, snapshot)
            if added is not None:
                return [(scan, 1) for scan in added]
        parent = self._before(table, snapshot)
        then = {_identity(scan): scan for scan in self._plan(table, snapshot.snapshot_id)}
        before = {} if parent is None else {_identity(scan): scan for scan in self._plan(table, parent.snapshot_id)}
        retracted = [(scan, -1) for one, scan in before.items() if one not in then]
        return [*retracted, *((scan, 1) for one, scan in then.items() if one not in before)]

    def _appended(self, table: Any, snapshot: Any) -> list[Any] | None:
        """The scans of the files that a snapshot adds; None if it adds other things than rows."""
        from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestEntryStatus
        from pyiceberg.table import FileScanTask

        scans = []
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            if manifest.content != ManifestContent.DATA:
                return None
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.status == ManifestEntryStatus.DELETED and entry.snapshot_id == snapshot.snapshot_id:
                    return None
                if entry.status != ManifestEntryStatus.ADDED:
                    continue
                if entry.data_file.content != DataFileContent.DATA:
                    return None
                scans.append(FileScanTask(entry.data_file))
        return scans

    def _plan(self, table: Any, version: int) -> list[Any]:
        """The scans of all files of a snapshot, each with the files that delete rows of it."""
        try:
            return list(table.scan(snapshot_id=version).plan_files())
        except (ValueError, NotImplementedError) as error:
            if "equality delete" not in str(error).lower():
                raise
            raise InvalidArgument(
                f"{self.name} has equality deletes in snapshot {version}, which are not read here: rewrite its data "
                "files, as rewrite_data_files of Spark does, and begin after that"
            ) from None

    def _parts(self, table: Any, snapshot: Any, scans: Iterable[tuple[Any, int]]) -> list[Part]:
        """The parts of the rows of a snapshot; raises if the columns have changed, or if a file is gone."""
        self._check(table)
        version, files = int(snapshot.snapshot_id), []
        several = list(scans)
        specs = {scan.file.spec_id for scan, _ in several}
        for scan, weight in several:
            for path in (scan.file.file_path, *(deletes.file_path for deletes in scan.delete_files)):
                if not table.io.new_input(path).exists():
                    raise self.lost(version, f"{path} is gone")
            one = f"{scan.file.spec_id} {scan.file.partition!r}" if len(specs) == 1 else ""
            files.append(
                ChangedFile(
                    path=scan.file.file_path,
                    weight=weight,
                    size=int(scan.file.file_size_in_bytes),
                    partition={"": one},
                    scan=b64encode(pickle.dumps(scan)).decode(),
                )
            )
        return parts_of(files, version, snapshot.timestamp_ms * 1000, table.metadata_location)

    def _check(self, table: Any) -> None:
        if str(table.metadata.table_uuid) != self.table:
            raise StateMismatch(
                f"{self.name} was made again, so its snapshots are no longer those that were read: start from a new "
                "checkpoint"
            )
        there = {field.name: (field.field_id, str(field.field_type)) for field in table.schema().fields}
        for name, known in self._fields.items():
            if not _goes_on(known, there.get(name)):
                raise StateMismatch(
                    f"{self.name} changes column {name!r}, or drops it: build the flow over the table as it is now, "
                    "and start it from a new checkpoint"
                )


def _goes_on(known: tuple[int, str], new: tuple[int, str] | None) -> bool:
    """True if a column is the same one still; a struct may have more fields, which are not read."""
    nested = known[1].partition("<")[0] in ("struct", "list", "map")
    return new is not None and new[0] == known[0] and (new[1] == known[1] or (nested and "<" in new[1]))


def _identity(scan: Any) -> str:
    """A text for a file less the rows that other files delete, which is what a scan reads."""
    return json.dumps([scan.file.file_path, *sorted(deletes.file_path for deletes in scan.delete_files)])


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return decoded_inside(column)


__all__ = ["IcebergVersions"]

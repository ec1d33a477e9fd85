"""The versions of a Delta table, from its log and its data files; deltalake says what a snapshot has.

A commit whose changes are in a feed is read from there, as the format asks; any other from the files that it adds and
removes. A commit that only moves rows, such as a compaction, says so and has none.

Guarded by tests/lakehouse/test_delta_changes.py and tests/lakehouse/test_delta_formats.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from ..errors import InvalidArgument, StateMismatch, UncombineError, UnreadableFile
from ..files.conform import standard_schema
from ..files.parquet_files import ParquetSource
from ..tables.delta import Delta
from ..tables.target import library
from ..urls import secrets_of
from .changed_files import ChangedFile, Part, parts_of
from .delta_columns import check_mapping, column_of, nodes_of, partition_column, same_columns
from .delta_log import DeltaCommit, check_protocol, inner_path
from .versions import NOTHING, TableVersions

KIND = "_change_type"
"""The column of a feed that says what a row is."""

_WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

_LOG = "_delta_log"


class DeltaVersions(TableVersions):
    """The versions of a Delta table. The columns are those of a version, the newest one if none is given."""

    def __init__(self, target: Delta, version: int | None = None) -> None:
        self.path, self.name = target.path, target.name
        library("deltalake", "delta")
        self.attempt(lambda: self._describe(version))

    def __getstate__(self) -> dict[str, Any]:
        caches = ("system", "_masks")
        return {name: value for name, value in vars(self).items() if name not in caches}

    def _describe(self, version: int | None) -> None:
        deltalake = library("deltalake", "delta")
        try:
            table = deltalake.DeltaTable(self.path)
        except deltalake.exceptions.TableNotFoundError:
            raise InvalidArgument(f"{self.name} is not there: name the folder that has {_LOG}") from None
        if version is not None:
            self.require_between(version, table.version())
            table = self._table(version)
        protocol = table.protocol()
        check_protocol(protocol.reader_features, protocol.min_reader_version, self.name)
        metadata = table.metadata()
        self.table, self.known = str(metadata.id), int(table.version())
        check_mapping(metadata.configuration.get("delta.columnMapping.mode", "none"), self.name)
        self.fields: Sequence[Mapping[str, Any]] = json.loads(table.schema().to_json())["fields"]
        self.partitioned = frozenset(metadata.partition_columns)
        self.schema = standard_schema(pa.schema(table.schema().to_arrow()))

    @cached_property
    def system(self) -> pafs.FileSystem:
        """The files below the table."""
        if "://" not in self.path:
            return pafs.SubTreeFileSystem(os.path.abspath(self.path), pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.path))

    def secrets(self) -> Sequence[str]:
        return secrets_of(self.path)

    def newest(self, known: int | None = None) -> int:
        return self.attempt(lambda: self._newest(self.known if known is None else known))

    def at(self, time: int) -> int:
        return self.attempt(lambda: self._at(time))

    def require(self, version: int) -> None:
        self.require_between(version, self.newest())

    def after(self, version: int, last: int) -> list[int]:
        return list(range(version + 1, last + 1))

    def snapshot(self, version: int) -> list[Part]:
        return self.attempt(lambda: self._snapshot(version))

    def changes(self, after: int, last: int) -> list[Part]:
        return self.attempt(lambda: [part for one in self.after(after, last) for part in self._changes(one)])

    def rows(
        self, part: Part, file: ChangedFile, columns: Sequence[str]
    ) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
        physical = {name: self._nodes[name].physical for name in columns}
        try:
            source = self.attempt(lambda: ParquetSource(self.system, file.path))
            wanted = [name for name in physical.values() if name in source.schema.names]
            wanted += [KIND] if file.weight == 0 else []
            keep = None if file.masked is None else self._kept(file)
            # A file that has none of the columns says by its first one how many rows there are.
            for table in source.tables(wanted or source.schema.names[:1], None, None, None):
                rows = self._columns(table, file, columns)
                weights = None if file.weight else _weights(table[KIND], file)
                if keep is not None:
                    mask, keep = pa.array(keep[: table.num_rows]), keep[table.num_rows :]
                    rows = rows.filter(mask)
                yield rows, weights
        except FileNotFoundError:
            raise self.lost(part.version, f"{file.path} is gone") from None
        except UncombineError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFile(
                f"{file.path} of {self.name} cannot be read with the columns of the table ({error}): rewrite it, or "
                "read the table by Spark",
                file.path,
            ) from None

    def require_between(self, version: int, newest: int) -> None:
        """Raise unless there is such a version."""
        if not NOTHING <= version <= newest:
            raise InvalidArgument(f"{self.name} has no version {version}: it has those up to {newest}")

    @cached_property
    def _nodes(self) -> Any:
        return nodes_of({"fields": self.fields})

    def _columns(self, table: pa.Table, file: ChangedFile, columns: Sequence[str]) -> pa.Table:
        made = []
        for name in columns:
            node, kind = self._nodes[name], self.schema.field(name).type
            if name in self.partitioned:
                value = file.partition.get(node.physical)
                made.append(pa.chunked_array([partition_column(value, kind, table.num_rows)]))
            elif node.physical in table.column_names:
                made.append(column_of(table[node.physical], node, kind))
            else:
                made.append(pa.chunked_array([pa.nulls(table.num_rows, kind)]))
        if not columns:
            return table.select([])
        return pa.table(made, names=list(columns))

    def _table(self, version: int) -> Any:
        deltalake = library("deltalake", "delta")
        try:
            return deltalake.DeltaTable(self.path, version=version)
        except deltalake.exceptions.DeltaError as error:
            raise self.lost(version, " ".join(str(error).split())[:200]) from None

    def _newest(self, known: int) -> int:
        while self._there(f"{_LOG}/{known + 1:020}.json"):
            known += 1
        try:
            with self.system.open_input_file(f"{_LOG}/_last_checkpoint") as file:
                checkpoint = int(json.loads(file.read())["version"])
        except FileNotFoundError:
            return known
        if checkpoint > known:
            raise self.lost(known + 1, "it is not in the log")
        return known

    def _there(self, path: str) -> bool:
        return bool(self.system.get_file_info([path])[0].type == pafs.FileType.File)

    def _at(self, time: int) -> int:
        version = self._newest(self.known)
        while version > NOTHING and self._commit(version).at > time:
            version -= 1
        return version

    def _commit(self, version: int) -> DeltaCommit:
        path = f"{_LOG}/{version:020}.json"
        try:
            with self.system.open_input_file(path) as file:
                text = file.read().decode()
        except FileNotFoundError:
            raise self.lost(version, "it is not in the log") from None
        modified = self.system.get_file_info([path])[0].mtime_ns or 0
        return DeltaCommit.of(text, modified // 1000)

    def _snapshot(self, version: int) -> list[Part]:
        if version == NOTHING:
            return []
        for one in self.after(self.known, version):
            self._check(self._commit(one), one)
        table = self._table(version)
        masked = self._masks_of(table)
        actions = pa.table(table.get_add_actions())
        physical = {name: self._nodes[name].physical for name in self.partitioned}
        files = []
        wanted = ["path", "size_bytes", *(["partition"] if self.partitioned else [])]
        for action in actions.select(wanted).to_pylist():  # few: one a file
            path, values = inner_path(action["path"], self.name), action.get("partition") or {}
            texts = {physical.get(name, name): _text(value) for name, value in values.items()}
            files.append(
                ChangedFile(
                    path=path,
                    weight=1,
                    size=action["size_bytes"] or 0,
                    partition=texts,
                    masked=version if path in masked else None,
                )
            )
        self._require(files, version)
        try:
            at = self._commit(version).at
        except UncombineError:  # of an older log a checkpoint is left
            at = max((int(one) for one in actions["modification_time"].to_pylist()), default=0) * 1000
        return parts_of(files, version, at)

    def _changes(self, version: int) -> list[Part]:
        commit = self._commit(version)
        self._check(commit, version)
        files = commit.files(version, self.name)
        if self.partitioned and any(not file.partition for file in files):
            files = self._with_partitions(files, version)
        self._require(files, version)
        return parts_of(files, version, commit.at)

    def _with_partitions(self, files: Sequence[ChangedFile], version: int) -> list[ChangedFile]:
        """The files with the values of their partitions, which a writer may leave out where it removes one."""
        known = {file.path: file for part in self._snapshot(version - 1) for file in part.files}
        out = []
        for file in files:
            if not file.partition:
                if file.path not in known:
                    raise self.lost(version, f"nothing says in which partition {file.path} was")
                values = vars(file) | {"partition": known[file.path].partition}
                file = ChangedFile(**values)
            out.append(file)
        return out

    def _check(self, commit: DeltaCommit, version: int) -> None:
        """Raise if the table is another one from this version on, or if its columns do not go on."""
        if commit.protocol is not None:
            check_protocol(commit.protocol.get("readerFeatures"), commit.protocol["minReaderVersion"], self.name)
        if commit.metadata is None:
            return
        if commit.metadata["id"] != self.table:
            raise StateMismatch(
                f"{self.name} was made again, so its versions are no longer those that were read: start from a new "
                "checkpoint"
            )
        if version <= self.known:
            return  # the columns are those of a later version
        check_mapping(commit.metadata.get("configuration", {}).get("delta.columnMapping.mode", "none"), self.name)
        changed = same_columns(self.fields, json.loads(commit.metadata["schemaString"])["fields"])
        if changed is not None or frozenset(commit.metadata["partitionColumns"]) != self.partitioned:
            what = "its partitions" if changed is None else f"column {changed!r}, or drops it"
            raise StateMismatch(
                f"version {version} of {self.name} changes {what}: build the flow over the table as it is now, and "
                "start it from a new checkpoint"
            )

    def _require(self, files: Sequence[ChangedFile], version: int) -> None:
        """Raise if a file of a version is gone."""
        for info in self.system.get_file_info([file.path for file in files]) if files else ():
            if info.type != pafs.FileType.File:
                raise self.lost(version, f"{info.path} is gone")

    def _kept(self, file: ChangedFile) -> np.ndarray:
        """True for each row of a file that is not deleted in a version."""
        assert file.masked is not None
        masks: dict[int, dict[str, np.ndarray]] = vars(self).setdefault("_masks", {})
        if file.masked not in masks:
            masks.clear()
            masks[file.masked] = self.attempt(lambda: self._masks_of(self._table(file.masked or 0)))
        return masks[file.masked][file.path]

    def _masks_of(self, table: Any) -> dict[str, np.ndarray]:
        """The rows that are not deleted, of each file of a version some of whose rows are."""
        if "deletionVectors" not in (table.protocol().reader_features or ()):
            return {}
        root = str(table.table_uri).rstrip("/") + "/"
        out = {}
        for batch in table.deletion_vectors():
            rows = pa.table(pa.record_batch(batch)).to_pydict()
            for path, keep in zip(rows["filepath"], rows["selection_vector"], strict=True):
                out[inner_path(path.removeprefix(root), self.name)] = np.array(keep, np.bool_)
        return out


def _weights(kinds: pa.ChunkedArray, file: ChangedFile) -> np.ndarray:
    """The weights of the rows of a feed."""
    names = pa.array(list(_WEIGHTS))
    places = pc.index_in(kinds.cast(pa.string()), names)
    if places.null_count:
        raise UnreadableFile(f"{file.path} has changes of another kind than {', '.join(_WEIGHTS)}", file.path)
    return np.array(list(_WEIGHTS.values()))[np.asarray(places)]


def _text(value: Any) -> str | None:
    """The text of a value of a partition."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


__all__ = ["DeltaVersions"]

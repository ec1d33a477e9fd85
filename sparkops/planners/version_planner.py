"""The planner of the versions of a table: it looks which are new, and divides the files that they change among tasks.

Guarded by tests/sparkops/planners/test_version_planner.py and tests/sparkops/lakehouse/test_table_streams.py.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import pyarrow as pa

from ...lakehouse.changed_files import Part
from ...lakehouse.table_changes import TableChanges
from ...lakehouse.versions import TableVersions
from .file_planner import in_parts
from .planner import Offset, Planner
from .version_offset import VersionOffset

ROWS = pa.schema([("part", pa.string())])
"""A part of the changes of a version, as a text."""

PAUSE = 0.5
"""The seconds after which a table without a new version is looked at again."""


class VersionPlanner(Planner):
    """Plans the versions of a table."""

    columns = "part string"
    rows = ROWS

    def __init__(self, changes: TableChanges, versions: TableVersions, cores: int = 1) -> None:
        self.versions, self.cores = versions, cores
        self.most = changes.max_versions_per_batch
        self.first = VersionOffset(table=versions.table, begun=changes.first(versions)).stored
        self._frozen: int | None = None

    def begun(self, offset: Offset) -> Self:
        last = VersionOffset.of(offset, self.versions.table).last
        return super().begun(VersionOffset(table=self.versions.table, begun=last).stored)

    def freeze(self) -> None:
        self._frozen = self.versions.newest()

    def after(self, offset: Offset, most: int | None) -> Offset:
        before = VersionOffset.of(offset, self.versions.table)
        last = before.last
        newest = self.versions.newest(last) if self._frozen is None else self._frozen
        if last is None:
            return replace(before, version=newest).stored
        new = [] if newest == last else self.versions.after(last, newest)[:most]
        if not new:
            time.sleep(PAUSE)  # Spark asks again at once
            return offset
        return replace(before, version=new[-1]).stored

    def tasks(self, start: Offset, end: Offset) -> Sequence[pa.RecordBatch]:
        before, after = (VersionOffset.of(one, self.versions.table) for one in (start, end))
        if after.version is None:
            return []
        versions, last = self.versions, before.last
        parts = versions.snapshot(after.version) if last is None else versions.changes(last, after.version)
        return rows_of_parts(parts, self.cores)


def rows_of_parts(parts: Sequence[Part], cores: int) -> list[pa.RecordBatch]:
    """The rows that name parts, for each task."""
    tasks = in_parts([(part.text, part.size) for part in parts], cores)
    return [pa.RecordBatch.from_pydict({"part": task}, schema=ROWS) for task in tasks]


__all__ = ["ROWS", "VersionPlanner", "rows_of_parts"]

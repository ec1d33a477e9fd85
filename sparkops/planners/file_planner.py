"""The planner of files: it lists them, and takes those that are not read in the order that the user asked for.

With the order "time" it says beside each batch what the watermark must wait for: the least time of the files that are
there and not read. These times are looked up only where some files must wait for a later batch.

Guarded by tests/sparkops/planners/test_file_planner.py and tests/sparkops/test_backfill.py.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import UnreadableFile
from ...files.file_format import FileFormat
from ...files.files import Order
from ...files.least_times import least_time
from ...files.listing import DataFile, list_data_files
from ...windows.times import MAX_TIME, MIN_TIME
from .file_offset import FileOffset
from .path_set import hashes_of
from .planner import Offset, Planner

ROWS = pa.schema([("path", pa.string()), ("first", pa.int64()), ("last", pa.int64()), ("hold", pa.int64())])
"""A part of a file, as bounded flows name it, or a row without a path that has the hold of the batch."""

LOOKS = 16
"""The files that are looked into at once."""

TASK_BYTES = 32 << 20
"""The bytes of files, roughly, for which a batch has one more task than there are cores."""

OPEN_BYTES = 4 << 20
"""The bytes that could be read in the time in which a file is opened, as Spark counts for its own files."""


class FilePlanner(Planner):
    """Plans the files of one format. With the order "time" it reads their column `time`."""

    columns = "path string, first bigint, last bigint, hold bigint"
    rows = ROWS

    def __init__(
        self,
        form: FileFormat,
        order: Order,
        time: str,
        start: Sequence[str] = (),
        most: int | None = None,
        cores: int = 1,
    ) -> None:
        self.form, self.order, self.time = form, order, time
        self.start, self.most, self.cores = frozenset(start), most, cores
        self.first = FileOffset().stored
        self._frozen: Sequence[DataFile] | None = None
        self._least: Mapping[DataFile, int | None] = {}

    @property
    def words(self) -> str:
        """The order in words."""
        return {"time": f"their least {self.time!r}", "name": "name", "modified": "their last change"}[self.order]

    def freeze(self) -> None:
        self._frozen = self._there()

    def after(self, offset: Offset, most: int | None) -> Offset:
        before, there = FileOffset.of(offset), self._there() if self._frozen is None else self._frozen
        hashes = hashes_of([file.path for file in there])
        unread = [there[place] for place in np.flatnonzero(~before.has(hashes)).tolist()]
        waits = most is not None and len(unread) > most
        unread.sort(key=self._place(unread, waits))
        batch, rest = unread[:most], unread[most:] if waits else []
        hold = self._hold(rest)
        if not batch and hold == before.hold:
            return offset
        files = {file.path: file.size for file in batch}
        today, waiting = datetime.now(UTC).date(), len(unread) - len(batch)
        return before.after(files, hold, hashes, today, waiting).stored

    def tasks(self, start: Offset, end: Offset) -> Sequence[pa.RecordBatch]:
        before, after = FileOffset.of(start), FileOffset.of(end)
        # Without a start of its own, Spark before 4.2 may ask for an offset over files that are read.
        read = before.has(hashes_of(list(after.files)))
        parts = in_parts([file for file, known in zip(after.files.items(), read, strict=True) if not known], self.cores)
        rows = [[_row(path=path) for path in part] for part in parts]
        if after.hold != before.hold:
            rows = rows or [[]]
            rows[0].insert(0, _row(hold=MAX_TIME if after.hold is None else after.hold))
        return [pa.RecordBatch.from_pylist(some, schema=ROWS) for some in rows]

    def _there(self) -> list[DataFile]:
        """The files that are there, but for those with which the user started."""
        return [file for file in list_data_files(self.form.paths) if file.path not in self.start]

    def _place(self, unread: Sequence[DataFile], waits: bool) -> Callable[[DataFile], Any]:
        """The place of a file in the order; all files of a last batch have one, so their times are not looked up."""
        if self.order == "modified":
            return lambda file: (file.changed, file.path)
        if self.order == "name" or not waits:
            return lambda file: file.path
        self._look(unread)
        return lambda file: (MIN_TIME if self._least[file] is None else self._least[file], file.path)

    def _look(self, files: Sequence[DataFile]) -> None:
        """Look up the least times of these files, and forget all others."""
        times = {file: self._least[file] for file in files if file in self._least}
        new = [file for file in files if file not in times]
        with ThreadPoolExecutor(LOOKS) as pool:
            look = partial(_least_time, self.form, self.time)
            self._least = times | dict(zip(new, pool.map(look, [file.path for file in new]), strict=True))

    def _hold(self, rest: Sequence[DataFile]) -> int | None:
        """The least time of the files that wait. One without a time comes first, so that it never waits for long."""
        if self.order != "time":
            return None
        return min((time for file in rest if (time := self._least[file]) is not None), default=None)


def in_parts(files: Sequence[tuple[str, int]], cores: int) -> list[list[str]]:
    """Files with their sizes in parts of about one size: not fewer than cores, if there are as many files.

    >>> in_parts([("a", 9 << 20), ("b", 1), ("c", 1), ("d", 1)], cores=2)
    [['a'], ['b', 'c', 'd']]
    """
    costs = {path: size + OPEN_BYTES for path, size in files}
    count = min(len(costs), max(cores, -(-sum(costs.values()) // TASK_BYTES)))
    loads = [(0, place) for place in range(count)]
    parts: list[list[str]] = [[] for _ in loads]
    for path in sorted(costs, key=lambda path: (-costs[path], path)):
        load, place = heapq.heappop(loads)
        parts[place].append(path)
        heapq.heappush(loads, (load + costs[path], place))
    return parts


def _least_time(form: FileFormat, column: str, path: str) -> int | None:
    """The least time of a file; None also for one that its task will skip."""
    try:
        return least_time(form, column, path)
    except UnreadableFile:
        if form.on_bad_file == "error":
            raise
        return None


def _row(path: str | None = None, hold: int | None = None) -> dict[str, Any]:
    return {"path": path, "first": None, "last": None, "hold": hold}


__all__ = ["FilePlanner", "in_parts"]

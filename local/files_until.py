"""Files that are read until a trigger fires on the whole of them, one after the other in the order of their paths.

So the rows that a result is of are the first ones, and a second reading gives the same: the first one notes where it
ended, and asks neither the trigger nor the clock again. Threads read small files before their turn; what they read of
files after the end is thrown away, with its errors.

Guarded by tests/local/test_early_end.py.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa

from ..files.listing import DataFile
from ..files.reading import FileFormat, LeaveOut, Split, joined, read
from ..flows.early_end.job_triggers import Progress, counts_of, fired
from ..flows.early_end.seen import Seen
from ..triggers import Trigger

SMALL = 32 << 20
"""The size of the largest file that is read before its turn, as a whole."""

Tables: TypeAlias = Iterator[pa.Table]
Skipped: TypeAlias = Callable[[str, str], None]
Read: TypeAlias = Callable[[str, Skipped, LeaveOut], Tables]
"""Reads a file, and tells of it if it is skipped, and of rows that are left out."""


def micros_now() -> int:
    """The clock of a run, which does not go back."""
    return time.monotonic_ns() // 1_000


@dataclass(frozen=True)
class End:
    """The place where the reading ended."""

    files: Sequence[DataFile]
    """The files that were read, the last one perhaps in part."""
    rows_of_part: int | None
    """The rows of the last file, if it was not read to its end."""


class ReadUntil:
    """A reading of files that a trigger ends, in a run that begins now."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger, self.counts, self.start = trigger, counts_of(trigger), micros_now()
        self.end: End | None = None
        self.seen: Seen | None = None

    def tables(
        self, form: FileFormat, files: Sequence[DataFile], told: set[str], skipped: Skipped, leave_out: LeaveOut
    ) -> Tables:
        """The rows of files in their order, up to the end; a second reading gives those of the first."""

        def rows(path: str, bad: Skipped, unreadable: LeaveOut) -> Tables:
            return read(form, [Split(path)], bad, told, unreadable)

        if self.end is None:
            return joined(self._first(in_order(files, rows, skipped, leave_out), files, form.leaves_rows_out))
        return joined(self._again(self.end, in_order(self.end.files, rows, skipped, leave_out)))

    def _first(self, read_files: Iterable[tuple[DataFile, Tables]], files: Sequence[DataFile], whole: bool) -> Tables:
        """The rows until the trigger fires; files that are `whole` are read to their end where they are begun."""
        rows = size = 0
        for done, (file, tables) in enumerate(read_files):
            begun = rows
            for piece, is_last in _with_last(_cut(tables, rows, self.counts)):
                rows += piece.num_rows
                yield piece
                if not (whole or is_last) and (by := self._fired(rows, done, len(files))) is not None:
                    self._note(files, done, rows, size, by, rows - begun)
                    return
            size += file.size
            if done + 1 < len(files) and (by := self._fired(rows, done + 1, len(files))) is not None:
                self._note(files, done + 1, rows, size, by)
                return
        self._note(files, len(files), rows, size, None)

    def _fired(self, rows: int, files: int, all_files: int) -> Trigger | None:
        micros = micros_now() - self.start
        return fired(self.trigger, Progress(rows=rows, files=files, all_files=all_files, micros=micros))

    def _note(
        self, files: Sequence[DataFile], done: int, rows: int, size: int, by: Trigger | None, of_part: int | None = None
    ) -> None:
        read_files = files[: done + (of_part is not None)]
        self.end = End(read_files, of_part)
        self.seen = Seen(
            files=done,
            all_files=len(files),
            rows=rows,
            bytes=size,
            all_bytes=sum(file.size for file in files),
            ended_by=by,
            paths=tuple(file.path for file in read_files),
        )

    def _again(self, end: End, read_files: Iterable[tuple[DataFile, Tables]]) -> Tables:
        for place, (_, tables) in enumerate(read_files, 1):
            is_part = place == len(end.files) and end.rows_of_part is not None
            yield from _first_rows(tables, end.rows_of_part or 0) if is_part else tables


def _cut(tables: Tables, rows: int, counts: Sequence[int]) -> Tables:
    """The tables after so many rows, cut where the rows reach one of the counts."""
    for table in tables:
        places = [0, *(count - rows for count in counts if 0 < count - rows < table.num_rows), table.num_rows]
        for first, last in pairwise(places):
            yield table.slice(first, last - first)
        rows += table.num_rows


def _first_rows(tables: Tables, rows: int) -> Tables:
    """The first rows of tables."""
    for table in tables:
        yield table.slice(0, rows)
        rows -= table.num_rows
        if rows <= 0:
            return


def _with_last(tables: Tables) -> Iterator[tuple[pa.Table, bool]]:
    """Each table, and True for the last one."""
    before = next(tables, None)
    while before is not None:
        after = next(tables, None)
        yield before, after is None
        before = after


@dataclass(frozen=True)
class ReadFile:
    """A file that was read as a whole."""

    tables: Sequence[pa.Table]
    skipped: Sequence[tuple[str, str]]
    left_out: Sequence[pa.Table]

    @classmethod
    def of(cls, path: str, rows: Read) -> ReadFile:
        """Read a file."""
        skipped, left_out = list[tuple[str, str]](), list[pa.Table]()
        tables = list(rows(path, lambda path, reason: skipped.append((path, reason)), left_out.append))
        return cls(tables, skipped, left_out)


def in_order(
    files: Sequence[DataFile], rows: Read, skipped: Skipped, leave_out: LeaveOut
) -> Iterator[tuple[DataFile, Tables]]:
    """Each file with its rows; threads read small ones before their turn."""
    threads, coming = pa.cpu_count(), iter(files)
    waiting = deque[tuple[DataFile, Future[ReadFile] | None]]()
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                while len(waiting) < 2 * threads and (file := next(coming, None)) is not None:
                    waiting.append((file, pool.submit(ReadFile.of, file.path, rows) if file.size <= SMALL else None))
                if not waiting:
                    return
                file, ahead = waiting.popleft()
                if ahead is None:
                    yield file, rows(file.path, skipped, leave_out)
                    continue
                done = ahead.result()
                for path, reason in done.skipped:
                    skipped(path, reason)
                for some in done.left_out:
                    leave_out(some)
                yield file, iter(done.tables)
        finally:
            for _, ahead in waiting:
                if ahead is not None:
                    ahead.cancel()


__all__ = ["ReadUntil", "in_order", "micros_now"]

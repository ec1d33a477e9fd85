"""Files that are read until a trigger fires on the whole of them, one after the other in their order.

So the rows that a result is of are the first ones, and a second reading gives the same: the first one notes where it
ended, and neither the trigger nor the clock is asked again. Threads read files before their turn; what they read of
files after the end is thrown away, with its errors.

Guarded by tests/local/test_early_end.py.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import TypeAlias

import pyarrow as pa

from ..files.listing import DataFile
from ..files.reading import FileFormat, LeaveOut, Split, joined, read, splits
from ..flows.early_end.job_triggers import Progress, counts_of, fired
from ..flows.early_end.seen import Seen
from ..triggers import Trigger

PART_BYTES = 32 << 20
"""The bytes of a part of a file, roughly. A larger file has several, where its format allows it."""

AHEAD_BYTES = 64 << 20
"""The bytes of rows of a part that are read before its turn."""

Tables: TypeAlias = Iterator[pa.Table]


@dataclass(frozen=True)
class Tell:
    """Takes what there is to tell of files beside their rows."""

    skipped: Callable[[str, str], None]
    leave_out: LeaveOut
    told: set[str]
    """The columns of which a warning has said that folders and files differ."""


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

    def tables(self, form: FileFormat, files: Sequence[DataFile], tell: Tell) -> Tables:
        """The rows of files in their order, up to the end; a second reading gives those of the first."""
        if self.end is None:
            return joined(self._first(in_order(files, form, tell), files, form.leaves_rows_out))
        return joined(self._again(self.end, in_order(self.end.files, form, tell)))

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


class Ahead:
    """The rows of a part of a file, of which a thread reads the first before its turn.

    What is to be told of it waits for its turn too: that it was skipped, and rows that are left out.
    """

    def __init__(self, form: FileFormat, part: Split, told: set[str]) -> None:
        self._skipped, self._left_out = list[tuple[str, str]](), list[pa.Table]()
        skipped = self._skipped.append
        self._rest = read(form, [part], lambda path, why: skipped((path, why)), told, self._left_out.append)
        self._first: list[pa.Table] = []

    def begin(self) -> None:
        """Read the first rows."""
        size = 0
        while size < AHEAD_BYTES and (table := next(self._rest, None)) is not None:
            self._first.append(table)
            size += table.nbytes

    def tables(self, begun: Future[None], tell: Tell) -> Tables:
        """All rows, in the turn of the part; raises what `begin` has raised."""
        begun.result()
        for table in chain(self._first, self._rest):
            self._tell(tell)
            yield table
        self._tell(tell)

    def _tell(self, tell: Tell) -> None:
        for path, why in self._skipped:
            tell.skipped(path, why)
        for rows in self._left_out:
            tell.leave_out(rows)
        self._skipped.clear()
        self._left_out.clear()


def in_order(files: Sequence[DataFile], form: FileFormat, tell: Tell) -> Iterator[tuple[DataFile, Tables]]:
    """Each file with its rows. Threads read some files, or parts of large ones, before their turn."""
    for file, some in groupby(_parts_in_order(files, form, tell), lambda one: one[0]):
        yield file, chain.from_iterable(tables for _, tables in some)


def _parts_in_order(files: Sequence[DataFile], form: FileFormat, tell: Tell) -> Iterator[tuple[DataFile, Tables]]:
    threads, coming = pa.cpu_count(), ((file, part) for file in files for part in _parts(form, file))
    waiting = deque[tuple[DataFile, Ahead, Future[None]]]()
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                while len(waiting) <= threads and (one := next(coming, None)) is not None:
                    ahead = Ahead(form, one[1], tell.told)
                    waiting.append((one[0], ahead, pool.submit(ahead.begin)))
                if not waiting:
                    return
                file, ahead, begun = waiting.popleft()
                yield file, ahead.tables(begun, tell)
        finally:
            for *_, begun in waiting:
                begun.cancel()


def _parts(form: FileFormat, file: DataFile) -> Sequence[Split]:
    """The parts of a large file, which have one at least."""
    parts = splits(form, file.path, PART_BYTES) if file.size > PART_BYTES else []
    return parts or [Split(file.path)]


__all__ = ["ReadUntil", "Tell", "micros_now"]

"""Files as the source of a run in this process: threads read them, and combine their rows.

Guarded by tests/local/test_local_files.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from ..changelogs.flows import MessageTypes, UnreadSource
from ..errors import InvalidArgument
from ..files.data_paths import DataPath
from ..files.files import Files
from ..files.listing import DataFile, list_data_files
from ..files.pushdown import folder_excluded
from ..files.reading import FileFormat, LeaveOut, Split, folders_of, ignore, read, splits
from ..flows.changelog_reading import Reading
from ..flows.engine import Source
from ..flows.event_time import EventTime
from ..flows.flow import Flow
from ..flows.settings import Settings
from .files_until import ReadUntil, Tell
from .read_source import MadeRows, ReadSource

READER_BYTES = 32 << 20
"""The bytes of files, roughly, that one reader reads. A larger file has several readers, where its format allows it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalFiles(ReadSource):
    """Files of one format."""

    paths: tuple[DataPath, ...]
    listed: tuple[str, ...]
    """The files that there were when the flow was made, which are read or missed."""
    format: FileFormat
    files: Files | None = None
    """The files as the user named them."""
    told: set[str] = field(default_factory=set)
    """The columns of which a warning has said that folders and files differ."""
    until: ReadUntil | None = None
    """The reading that a trigger ends, in a run with `until=`."""

    def describe(self) -> str:
        return f"{self.format.format} files at {', '.join(path.words for path in self.paths)}{self.made.words}"

    def replayed(self) -> Source[Flow]:
        """The source for a replay, in which a bad row is left out, as in a stream."""
        if self.files is None:
            return super().replayed()
        form = self.files.replayed(self.format)
        return replace(self, format=form, made=self.made.strict(form.on_bad_row == "error"))

    def ended_by(self, until: ReadUntil) -> Source[Flow]:
        if self.files is not None and self.files.order == "time":
            raise InvalidArgument(
                "until= reads as few files as it can, and order='time' looks for the least time in each: give "
                "uc.Files() order='name' or order='modified'"
            )
        return replace(self, until=until)

    def readers(
        self,
        columns: Sequence[str],
        coded: frozenset[str] = frozenset(),
        needed: frozenset[str] | None = None,
        leave_out: LeaveOut = ignore,
    ) -> list[Iterator[pa.Table]]:
        form = self.format
        if self.files is not None and self.files.on_bad_row is None:
            form.require_types(self.made.needs(list(columns if needed is None else needed)))
        own = frozenset((*self.made.event_time.value.columns,) if self.made.event_time else ())
        own |= frozenset(() if form.filter is None else form.filter.columns)
        form = replace(
            form,
            columns=tuple(self.made.needs(columns)),
            needed=None if needed is None else frozenset(self.made.needs(list(needed))),
            coded=coded - own if self.reading is None else form.coded,
        )
        make = partial(self.made, columns=list(columns))
        if self.until is not None:
            files = [file for file in self._files() if not folder_excluded(form.filter, folders_of(form, file.path))]
            if self.files is not None and self.files.order == "modified":
                files.sort(key=lambda file: file.changed)
            return [map(make, self.until.tables(form, files, Tell(_skipped, leave_out, self.told)))]
        return [map(make, read(form, parts, _skipped, self.told, leave_out)) for parts in self._parts()]

    def _files(self) -> list[DataFile]:
        """The files that there are now, and those that were there when the flow was made, in their order."""
        files = {file.path: file for file in list_data_files(self.paths, lost=True)}
        return [files.get(path) or DataFile(path) for path in sorted({*files, *self.listed})]

    def _parts(self) -> Iterator[list[Split]]:
        """The parts of files for each reader: several small files, or a part of a large one."""
        group: list[Split] = []
        size = 0
        for file in self._files():
            path, mine = file.path, file.size
            if group and size + mine > READER_BYTES:
                yield group
                group, size = [], 0
            if mine > READER_BYTES:
                yield from ([part] for part in splits(self.format, path, READER_BYTES))
                continue
            group.append(Split(path))
            size += mine
        if group:
            yield group


def _skipped(path: str, reason: str) -> None:
    warnings.warn(f"skipped: {reason}", stacklevel=2)


def files_opened(files: Files, settings: Settings, messages: MessageTypes | None = None) -> UnreadSource:
    """The files, listed and described; `messages` gives the types of the messages of a changelog."""
    files.check_bounded()
    listing = files.listed()
    described = files.described(listing, typed=messages)

    def source(reading: Reading | None, event_time: EventTime | None) -> LocalFiles:
        form = described if reading is None else described.with_places
        return LocalFiles(
            made=MadeRows(form.schema, reading, event_time),
            streaming=settings.strategy is not None,
            paths=listing.paths,
            listed=listing.files,
            format=form,
            files=files,
        )

    return UnreadSource(described.schema, source, strict=described.on_bad_row == "error")


__all__ = ["LocalFiles", "files_opened"]

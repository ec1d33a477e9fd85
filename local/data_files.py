"""Files as the source of a run in this process: threads read them, and combine their rows.

Guarded by tests/local/test_local_files.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from ..changelogs.flows import UnreadSource
from ..files.data_paths import DataPath
from ..files.files import Files
from ..files.listing import list_files
from ..files.paths import locate
from ..files.reading import FileFormat, Split, read, splits
from ..flows.changelog_reading import Reading
from ..flows.settings import Settings
from .sources import WithoutSpark
from .threads import in_threads

READER_BYTES = 32 << 20
"""The bytes of files, roughly, that one reader reads. A larger file has several readers, where its format allows it."""


@dataclass(frozen=True, eq=False)
class LocalFiles(WithoutSpark):
    """Files of one format."""

    paths: tuple[DataPath, ...]
    listed: tuple[str, ...]
    """The files that there were when the flow was made, which are read or missed."""
    format: FileFormat
    schema: pa.Schema
    streaming: bool
    reading: Reading | None = None
    told: set[str] = field(default_factory=set)
    """The columns of which a warning has said that folders and files differ."""
    has_rows = many = True

    def describe(self) -> str:
        read_by = "" if self.reading is None else f", messages read by {self.reading.words}"
        return f"{self.format.format} files at {', '.join(path.words for path in self.paths)}{read_by}"

    @property
    def whole(self) -> pa.Table:
        names = self.schema.names
        return pa.concat_tables([self.schema.empty_table(), *in_threads(lambda table: table, self.readers(names))])

    def readers(self, columns: Sequence[str], coded: frozenset[str] = frozenset()) -> list[Iterator[pa.Table]]:
        reading, form = self.reading, self.format
        if reading is not None:
            form = replace(form, columns=tuple(reading.needs(columns)))
            return [
                map(partial(reading, columns=columns), read(form, parts, _skipped, self.told))
                for parts in self._parts()
            ]
        filtered = () if form.filter is None else form.filter.columns
        form = replace(form, columns=tuple(columns), coded=coded - set(filtered))
        return [read(form, parts, _skipped, self.told) for parts in self._parts()]

    def _parts(self) -> Iterator[list[Split]]:
        """The parts of files for each reader: several small files, or a part of a large one."""
        group: list[Split] = []
        size = 0
        for path in sorted({*list_files(self.paths), *self.listed}):
            system, inside = locate(path)
            mine = system.get_file_info(inside).size or 0
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


def files_opened(files: Files, settings: Settings) -> UnreadSource:
    """The files, listed and described."""
    files.check_bounded()
    paths = files.paths
    listed = tuple(list_files(paths))
    described = files.described(paths, listed)

    def source(reading: Reading | None) -> LocalFiles:
        schema = described.schema if reading is None else reading.schema
        return LocalFiles(
            paths=paths,
            listed=listed,
            format=described,
            schema=schema,
            streaming=settings.strategy is not None,
            reading=reading,
        )

    return UnreadSource(described.schema, source, strict=True)


__all__ = ["LocalFiles", "files_opened"]

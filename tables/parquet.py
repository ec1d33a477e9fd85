"""A live table in a folder with one Parquet file, which each batch writes again and puts in the place of the last one.

Guarded by tests/tables/test_tables_parquet.py.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..panes.state.seed import SeedMaker
from .changes import Changes
from .column_types import nested, require_types, timed_type
from .copying import ChangedKeys, new_rows
from .layout import Layout
from .renames import remove_leftovers, replaced
from .target import NONE_YET, TableFacts, Target, Writer

FILE = "table.parquet"
ROWS = 1 << 16
"""The rows of the last file that are read at a time."""

_OWNER, _BATCH, _LAYOUT = b"uncombine.owner", b"uncombine.batch", b"uncombine.layout"


@dataclass(frozen=True, repr=False)
class ParquetFolder(Target):
    """A folder with one Parquet file, on a file system that renames a file in one step."""

    path: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"the Parquet folder {self.path}"

    def check(self, layout: Layout) -> None:
        require_types(layout.schema, nested(timed_type), "a Parquet table")

    def writer(self, layout: Layout, owner: str) -> ParquetWriter:
        return ParquetWriter(self, layout, owner)


class ParquetWriter(Writer):
    """Writes a Parquet file. The number of the batch is in the file, so that both change by one rename."""

    def __init__(self, target: ParquetFolder, layout: Layout, owner: str) -> None:
        super().__init__(target.name, layout, owner)
        self.folder = Path(target.path)
        self.file = self.folder / FILE

    def start(self, maker: SeedMaker | None = None) -> int:
        with _locked(self.folder):
            return self._started(maker)

    def _started(self, maker: SeedMaker | None) -> int:
        remove_leftovers(self.folder, self.owner)
        if self.takes_over(self._found(), maker):
            self._write(NONE_YET, self._parts())  # in the columns that the flow has now
        facts = self._facts()
        if facts is None:
            if any(self.folder.glob("*.parquet")):
                raise self.foreign()
            self._write(NONE_YET, [])
            facts = self._facts()
            assert facts is not None
        return facts.batch

    def facts(self) -> TableFacts | None:
        return self._found()

    def apply(self, batch: int, changes: Changes) -> bool:
        with _locked(self.folder):
            if self.is_done(self._facts(), batch):
                return False
            self._write(batch, self._changed(changes))
        return True

    def once(self, changes: Changes) -> None:
        with _locked(self.folder):
            if any(self.folder.glob("*.parquet")):
                raise self.foreign()
            self._write(0, new_rows(changes))

    def drop(self) -> None:
        self.file.unlink()

    def read(self, limit: int | None = None) -> pa.Table:
        with self._file() as file:
            table = file.read(columns=self.layout.schema.names).cast(self.layout.schema)
        if limit is None:
            return table
        return table.sort_by([(name, "ascending") for name in self.layout.keys]).slice(0, limit)

    def files(self) -> list[str] | None:
        with self._file():
            return [str(self.file)]

    def _file(self) -> pq.ParquetFile:
        try:
            file = pq.ParquetFile(self.file)
        except FileNotFoundError:
            raise self.gone() from None
        self.require_columns(file.schema_arrow.names)
        return file

    def _facts(self) -> TableFacts | None:
        facts = self._found()
        if facts is not None:
            self.check(facts)  # a table of other rows has other columns
            self.require_columns(pq.read_schema(self.file).names)
        return facts

    def _found(self) -> TableFacts | None:
        """The facts of the table that is there, of whatever writer."""
        try:
            about = pq.read_schema(self.file).metadata or {}
        except FileNotFoundError:
            return None
        if _OWNER not in about:
            raise self.foreign()
        return TableFacts(owner=about[_OWNER].decode(), batch=int(about[_BATCH]), layout=about[_LAYOUT].decode())

    def _write(self, batch: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write a file beside the last one, and put it in its place."""
        about = {_OWNER: self.owner.encode(), _BATCH: str(batch).encode(), _LAYOUT: self.layout.text().encode()}
        schema = self.layout.schema.with_metadata(about)
        with replaced(self.file, self.owner) as file, pq.ParquetWriter(file, schema) as writer:
            for part in rows:
                writer.write_batch(part.replace_schema_metadata(about))

    def _changed(self, changes: Changes) -> Iterator[pa.RecordBatch]:
        """The rows after the changes, of which only the hashes of the keys are held."""
        keys = ChangedKeys(changes)
        for part in self._parts():
            rest = keys.left(part) if keys.meets(part) else part
            if rest.num_rows:
                yield rest
        applied = keys.fitting
        if applied != changes.rows:
            raise self.unfit(applied, changes)
        yield from new_rows(changes)

    def _parts(self) -> Iterator[pa.RecordBatch]:
        """The rows of the last file, some at a time."""
        file, schema = pq.ParquetFile(self.file), self.layout.schema
        there = [name for name in schema.names if name in file.schema_arrow.names]
        for part in file.iter_batches(ROWS, columns=there):
            columns = [part.column(f.name) if f.name in there else pa.nulls(part.num_rows, f.type) for f in schema]
            yield pa.record_batch(columns, names=schema.names).cast(schema)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other writers away from a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


__all__ = ["FILE", "ParquetFolder", "ParquetWriter"]

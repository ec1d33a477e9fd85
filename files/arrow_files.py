"""Arrow IPC files and streams, and Feather files: their parts, and the rows of some parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs


class ArrowSource:
    """An open Arrow IPC file or stream."""

    def __init__(self, system: pafs.FileSystem, path: str) -> None:
        self.file = system.open_input_file(path)
        start = self.file.read(6)
        self.file.seek(0)
        if start.startswith(b"FEA1"):
            raise pa.ArrowInvalid("it is Feather of version 1: write it again as version 2")
        self.random = start == b"ARROW1"
        self.schema: pa.Schema = self._open(pa.ipc.IpcReadOptions(use_threads=False)).schema

    def _open(self, options: pa.ipc.IpcReadOptions) -> Any:
        self.file.seek(0)
        opened = pa.ipc.open_file if self.random else pa.ipc.open_stream
        return opened(self.file, options=options)

    def parts(self) -> list[float]:
        """The sizes of the record batches, all equal. A stream has one part, since it is read from its beginning."""
        count = self._open(pa.ipc.IpcReadOptions()).num_record_batches if self.random else 1
        return [1.0] * count

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows of record batches [first, last), each batch as a whole."""
        fields = [self.schema.get_field_index(name) for name in columns]
        # An empty list of fields would mean all fields.
        reader = self._open(pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields or [0]))
        if self.random:
            end = reader.num_record_batches if last is None else last
            batches = (reader.get_batch(i) for i in range(first or 0, end))
        else:
            batches = iter(reader)
        for batch in batches:
            batch.validate()
            yield pa.Table.from_batches([batch]).select(columns)

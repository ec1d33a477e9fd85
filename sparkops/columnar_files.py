"""Files that hold columns, Parquet and Arrow IPC: their parts, and the rows of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as pt

BATCH = 1 << 17
"""Rows of a Parquet file that are decoded at once."""

AHEAD = 4
"""Batches of a Parquet file that are decoded ahead."""

AT_ONCE_ROWS = 1 << 20
"""Rows of a single row group that is decoded at once, at most."""

AT_ONCE_BYTES = 128 << 20
"""Bytes of a single row group that is decoded at once, at most."""


class ParquetSource:
    """An open Parquet file."""

    def __init__(self, system: pafs.FileSystem, path: str) -> None:
        self.system, self.path = system, path
        # Coalescing small reads pays over a network; from a disk it costs a little.
        self.remote = not isinstance(system, pafs.LocalFileSystem)
        self.fragment = self._fragment()
        self.schema: pa.Schema = self.fragment.physical_schema

    def _fragment(self, encoded: list[str] | None = None) -> ds.ParquetFileFragment:
        form = ds.ParquetFileFormat(
            read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us", dictionary_columns=encoded),
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=self.remote),
        )
        return form.make_fragment(self.path, filesystem=self.system)

    def parts(self) -> list[float]:
        """The sizes of the row groups in proportion."""
        return [float(group.total_byte_size) for group in self.fragment.row_groups]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows of row groups [first, last), but for groups in which `where` can hold nowhere."""
        fragment = self.fragment
        if first is not None:
            end = fragment.num_row_groups if last is None else last
            fragment = fragment.subset(row_group_ids=list(range(first, end)))
        if where is not None:
            fragment = fragment.subset(where, schema=self.schema)
        groups = [group.id for group in fragment.row_groups]
        if not groups:
            return
        encoded = self._encoded(columns, groups[0])
        footer = self.fragment.metadata.row_group(groups[0])
        if len(groups) == 1 and footer.num_rows <= AT_ONCE_ROWS and footer.total_byte_size <= AT_ONCE_BYTES:
            tables = self._one_group(groups[0], columns, encoded)
        else:
            tables = self._scan(fragment, groups, columns, encoded)
        for table in tables:
            for name in encoded:
                i = table.schema.get_field_index(name)
                table = table.set_column(i, self.schema.field(name), table.column(i).cast(pa.string()))
            yield table

    def _one_group(self, group: int, columns: list[str], encoded: list[str]) -> Iterator[pa.Table]:
        """One row group as a whole: a scanner that works ahead has nothing to gain here, and costs a little."""
        with self.system.open_input_file(self.path) as source:
            file = pq.ParquetFile(
                source,
                metadata=self.fragment.metadata,
                read_dictionary=encoded,
                pre_buffer=self.remote,
                coerce_int96_timestamp_unit="us",
            )
            yield file.read_row_group(group, columns=columns, use_threads=False).select(columns)

    def _scan(
        self, fragment: ds.ParquetFileFragment, groups: list[int], columns: list[str], encoded: list[str]
    ) -> Iterator[pa.Table]:
        if encoded:
            # make_fragment(row_groups=) would lose their order.
            fragment = self._fragment(encoded).subset(row_group_ids=groups)
        for batch in fragment.to_batches(
            columns=columns, batch_size=BATCH, batch_readahead=AHEAD, fragment_readahead=1, use_threads=False
        ):
            yield pa.Table.from_batches([batch])

    def _encoded(self, columns: list[str], group: int) -> list[str]:
        """The columns of text that are quicker to read as dictionaries and then decode.

        A text that stands in the file itself takes at least 4 bytes, so those that take less are in a dictionary.
        """
        texts = {name for name in columns if pt.is_string(self.schema.field(name).type)}
        if not texts:
            return []
        footer = self.fragment.metadata.row_group(group)
        chunks = (footer.column(i) for i in range(footer.num_columns))
        return [
            chunk.path_in_schema
            for chunk in chunks
            if chunk.path_in_schema in texts
            and chunk.total_uncompressed_size < 4 * chunk.num_values
            and any("DICTIONARY" in encoding for encoding in chunk.encodings)
        ]


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
        """The record batches as equals; a stream cannot be entered in its middle, so it has one part."""
        count = self._open(pa.ipc.IpcReadOptions()).num_record_batches if self.random else 1
        return [1.0] * count

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows of record batches [first, last)."""
        fields = [self.schema.get_field_index(name) for name in columns]
        # No field at all would be read as all of them.
        reader = self._open(pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields or [0]))
        if self.random:
            end = reader.num_record_batches if last is None else last
            batches = (reader.get_batch(i) for i in range(first or 0, end))
        else:
            batches = iter(reader)
        for batch in batches:
            yield pa.Table.from_batches([batch]).select(columns)

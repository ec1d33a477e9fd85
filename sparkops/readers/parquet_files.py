"""Parquet files: their parts, and the rows of some parts, decoded a bounded number of bytes at a time.

The metadata of a file has the encoded size of its columns, in which a repeated text takes almost no bytes. Columns that
are dictionaries throughout stay dictionaries. If the decoded size is unknown, a few rows are decoded at a time, and
fewer from the first long ones on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as pt

from ...combiners.rows.decoded_sizes import expanded_bytes

BATCH = 1 << 17
"""The largest number of rows that are decoded at once, if not a whole row group is."""

UNSURE = 1 << 14
"""The largest number of rows that are decoded at once, if their length is unknown."""

NO_STATISTICS = 1 << 12
"""The same for a file without statistics, which writers leave out for long values."""

AT_ONCE_ROWS = 1 << 20
"""The largest number of rows of a single row group that is decoded at once."""

AT_ONCE_BYTES = 128 << 20
"""The largest number of bytes of a single row group that is decoded at once."""

BATCH_BYTES = 32 << 20
"""The bytes that are decoded at once, roughly, if not a whole row group is."""

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TOO_LARGE = (pa.ArrowNotImplementedError, pa.ArrowCapacityError, MemoryError)
"""Errors that Arrow raises for a batch of nested texts of more than 2 GiB."""


class ParquetSource:
    """An open Parquet file."""

    def __init__(self, system: pafs.FileSystem, path: str) -> None:
        self.system, self.path = system, path
        # Coalescing small reads is much faster over a network, and a little slower from a disk.
        self.remote = not isinstance(system, pafs.LocalFileSystem)
        form = ds.ParquetFileFormat(
            read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"),
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=self.remote),
        )
        self.fragment: ds.ParquetFileFragment = form.make_fragment(path, filesystem=system)
        self.schema: pa.Schema = self.fragment.physical_schema

    def parts(self) -> list[float]:
        """The relative sizes of the row groups."""
        return [float(group.total_byte_size) for group in self.fragment.row_groups]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows of row groups [first, last), without groups in which no row can fulfil `where`.

        Columns of text can be dictionaries.
        """
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
        with self.system.open_input_file(self.path) as source:
            file = pq.ParquetFile(
                source,
                metadata=self.fragment.metadata,
                read_dictionary=encoded,
                pre_buffer=self.remote,
                coerce_int96_timestamp_unit="us",
            )
            sizes = GroupSizes(file, columns, set(encoded))
            for run in sizes.runs(groups):
                yield from _run(file, run, columns, sizes)

    def _encoded(self, columns: list[str], group: int) -> list[str]:
        """The columns of text that are read as dictionaries, which is faster and takes no more memory than the file.

        A text outside a dictionary takes at least 4 bytes in the file, so a column with less a row is in a dictionary.
        """
        texts = {name for name in columns if _is_text(self.schema.field(name).type)}
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


def _is_text(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_binary(kind)


@dataclass(frozen=True)
class GroupSizes:
    """The decoded sizes of the wanted columns of row groups, as far as the metadata has them."""

    file: pq.ParquetFile
    columns: Sequence[str]
    encoded: set[str]
    """The columns that stay dictionaries."""

    @cached_property
    def _leaves(self) -> list[tuple[int, str, Any]]:
        """The leaf columns of the wanted columns: place, name of the wanted column, description."""
        wanted, schema = set(self.columns), self.file.schema
        leaves = ((i, schema.column(i)) for i in range(len(schema)))
        # The name of a column may contain dots.
        named = ((i, leaf.path if leaf.path in wanted else leaf.path.partition(".")[0], leaf) for i, leaf in leaves)
        return [(i, root, leaf) for i, root, leaf in named if root in wanted]

    def runs(self, groups: Sequence[int]) -> Iterator[list[int]]:
        """The row groups in runs that are, as far as is known, small enough to be decoded at once; others alone."""
        run: list[int] = []
        rows = size = 0
        for group in groups:
            more, known = self.file.metadata.row_group(group).num_rows, self.known(group)
            if run and (rows + more > AT_ONCE_ROWS or size + known > AT_ONCE_BYTES):
                yield run
                run, rows, size = [], 0, 0
            run.append(group)
            rows, size = rows + more, size + known
        if run:
            yield run

    def known(self, group: int) -> int:
        """The decoded bytes of the columns whose size is in the metadata."""
        footer = self.file.metadata.row_group(group)
        size = 0
        for i, _, leaf in self._leaves:
            chunk = footer.column(i)
            if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
                size += chunk.num_values * leaf.length
            elif leaf.physical_type != "BYTE_ARRAY":
                size += chunk.num_values * _WIDTHS[leaf.physical_type]
            elif not self._unsure(leaf, chunk):
                size += chunk.num_values * 4 + chunk.total_uncompressed_size
        return size

    def unsure(self, group: int) -> dict[str, int]:
        """The columns of texts of unknown size, each with the number of rows to decode at once."""
        footer = self.file.metadata.row_group(group)
        found: dict[str, int] = {}
        for i, root, leaf in self._leaves:
            chunk = footer.column(i)
            if self._unsure(leaf, chunk):
                found[root] = min(_few_rows(chunk, footer.num_rows), found.get(root, UNSURE))
        return found

    def _unsure(self, leaf: Any, chunk: Any) -> bool:
        if leaf.physical_type != "BYTE_ARRAY" or leaf.path in self.encoded:
            return False
        return any("DICTIONARY" in name or name == "DELTA_BYTE_ARRAY" for name in chunk.encodings)


def _few_rows(chunk: Any, rows: int) -> int:
    """The number of rows to decode at once of texts that may repeat, by the two texts in the statistics."""
    statistics = chunk.statistics
    if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
        return UNSURE
    if statistics is None or not statistics.has_min_max:
        return NO_STATISTICS
    longest = max(len(statistics.min_raw), len(statistics.max_raw), 1)
    each = longest * max(chunk.num_values // max(rows, 1), 1)
    return max(min(UNSURE, BATCH_BYTES // each), 1)


def _run(file: pq.ParquetFile, groups: list[int], columns: list[str], sizes: GroupSizes) -> Iterator[pa.Table]:
    """Decode row groups at once if they prove small enough, else in batches."""
    rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    known = sum(map(sizes.known, groups))
    unsure: dict[str, int] = {}
    for group in groups:
        unsure = {name: min(few, unsure.get(name, UNSURE)) for name, few in (unsure | sizes.unsure(group)).items()}
    at_once = min([BATCH, *unsure.values(), max(BATCH_BYTES * rows // max(known, 1), 1)])
    if rows <= AT_ONCE_ROWS and known <= AT_ONCE_BYTES:
        texts = _texts(file, groups, unsure, at_once) if unsure else {}
        if texts is not None:
            rest = [name for name in columns if name not in texts]
            table = file.read_row_groups(groups, columns=rest, use_threads=False).select(rest)
            for name, column in texts.items():
                table = table.append_column(name, column)
            yield table.select(columns)
            return
    yield from _batches(file, groups, columns, at_once)


def _texts(
    file: pq.ParquetFile, groups: list[int], names: Iterable[str], rows: int
) -> dict[str, pa.ChunkedArray] | None:
    """Decode some columns of row groups, a number of rows at a time; None if they take too many bytes."""
    batches: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(names), use_threads=False):
            batches.append(batch)
            size += batch.nbytes
            if size > 2 * BATCH_BYTES:
                return None
    except _TOO_LARGE:
        return None
    table = pa.Table.from_batches(batches)
    return {name: table.column(name) for name in names}


def _batches(file: pq.ParquetFile, groups: list[int], columns: list[str], rows: int) -> Iterator[pa.Table]:
    """Decode row groups in tables of `rows` rows, and of fewer from the first long rows on."""
    done = 0
    while groups:
        skip = done
        try:
            for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=columns, use_threads=False):
                fresh = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - fresh.num_rows
                size, read = expanded_bytes(batch), batch.num_rows
                if fresh.num_rows:
                    done += fresh.num_rows
                    yield pa.Table.from_batches([fresh]).select(columns)
                del batch, fresh
                if size > 2 * BATCH_BYTES and read > 1:
                    rows = max(BATCH_BYTES * read // size, 1)
                    break
            else:
                return
        except _TOO_LARGE:
            if rows == 1:
                raise
            rows = max(rows // 8, 1)
        groups, done = _left(file, groups, done)


def _left(file: pq.ParquetFile, groups: list[int], done: int) -> tuple[list[int], int]:
    """The row groups with rows left to read, and the number of rows of the first that are done."""
    while groups and done >= (rows := file.metadata.row_group(groups[0]).num_rows):
        groups, done = groups[1:], done - rows
    return groups, done

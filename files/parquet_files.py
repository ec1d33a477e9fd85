"""Parquet files: their parts, and the rows of some parts, decoded a bounded number of bytes at a time.

The metadata of a file has the encoded size of its columns, in which a repeated text takes almost no bytes. Columns that
are dictionaries throughout stay dictionaries. If the decoded size is unknown, a few rows are decoded at a time, and
fewer from the first long ones on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as pt

from ..combiners.rows.decoded_sizes import expanded_bytes
from .parquet_footer import Leaf, file_end, leaves, require_sound

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
        with system.open_input_file(path) as source:
            self.end = file_end(source)
        self.fragment: ds.ParquetFileFragment = form.make_fragment(pa.py_buffer(self.end))
        self.schema: pa.Schema = self.fragment.physical_schema

    def parts(self) -> list[float]:
        """The relative sizes of the row groups."""
        return [float(group.total_byte_size) for group in self.fragment.row_groups]

    def codecs(self, columns: list[str]) -> set[str]:
        """The compressions of some columns."""
        metadata = self.fragment.metadata
        wanted, groups = leaves(metadata.schema, columns), range(metadata.num_row_groups)
        require_sound(self.end, wanted, metadata.num_columns, 0, len(groups))
        return {metadata.row_group(group).column(leaf.place).compression for group in groups for leaf in wanted}

    def least(self, column: str) -> pa.Array | None:
        """The least values of a column of times, one for each row group that has some; None without statistics."""
        metadata = self.fragment.metadata
        wanted, count = leaves(metadata.schema, [column]), metadata.num_row_groups
        if [leaf.path for leaf in wanted] != [column]:
            return None
        place = wanted[0].place
        stored = _stored_times(json.loads(metadata.schema.column(place).logical_type.to_json()))
        if stored is None or not require_sound(self.end, wanted, metadata.num_columns, 0, count):
            return None
        least = []
        for group in range(count):  # few: one a row group
            chunk = metadata.row_group(group).column(place)
            statistics = chunk.statistics
            if statistics is None or not statistics.has_null_count:
                return None
            if statistics.has_min_max:
                least.append(statistics.min_raw)
            elif statistics.null_count < chunk.num_values:
                return None
        numbers, kind = stored
        return pa.array(least, numbers).view(kind)

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows of row groups [first, last), without groups in which no row can fulfil `where`.

        Columns of text can be dictionaries.
        """
        fragment = self.fragment
        metadata = fragment.metadata
        wanted = leaves(metadata.schema, columns)
        start, end = first or 0, metadata.num_row_groups if last is None else last
        sound = require_sound(self.end, wanted, metadata.num_columns, start, end)
        if first is not None:
            fragment = fragment.subset(row_group_ids=list(range(start, end)))
        if where is not None and sound:
            fragment = fragment.subset(where, schema=self.schema)
        groups = [group.id for group in fragment.row_groups]
        if not groups:
            return
        encoded = self._encoded(wanted, groups)
        with self.system.open_input_file(self.path) as source:
            file = pq.ParquetFile(
                source,
                metadata=metadata,
                read_dictionary=encoded,
                pre_buffer=self.remote,
                coerce_int96_timestamp_unit="us",
            )
            for run in _runs(_row_group(metadata, group, wanted, encoded) for group in groups):
                yield from _run(file, run, columns)

    def _encoded(self, wanted: list[Leaf], groups: list[int]) -> list[str]:
        """The columns of text that are read as dictionaries, which is faster and takes no more memory than the file.

        A text outside a dictionary takes at least 4 bytes in the file, so a column with less a row is in a dictionary.
        If a dictionary becomes too large, version 2 of Parquet's Java writer goes on with differences of texts,
        which Arrow does not read as dictionaries.
        """
        metadata = self.fragment.metadata
        footer = metadata.row_group(groups[0])
        chunks = ((leaf, footer.column(leaf.place)) for leaf in wanted if self._is_text(leaf))
        return [
            leaf.path
            for leaf, chunk in chunks
            if chunk.total_uncompressed_size < 4 * chunk.num_values
            and any("DICTIONARY" in encoding for encoding in chunk.encodings)
            and not any(_has_differences(metadata.row_group(group).column(leaf.place)) for group in groups)
        ]

    def _is_text(self, leaf: Leaf) -> bool:
        kind = self.schema.field(leaf.root).type if leaf.path == leaf.root else None
        return kind is not None and (pt.is_string(kind) or pt.is_binary(kind))


def _stored_times(logical: Mapping[str, Any]) -> tuple[pa.DataType, pa.DataType] | None:
    """The numbers with which a file stores times, and the type of these times; None if the column has no times."""
    if logical["Type"] == "Date":
        return pa.int32(), pa.date32()
    unit = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}.get(logical.get("timeUnit", ""))
    return (pa.int64(), pa.timestamp(unit)) if logical["Type"] == "Timestamp" and unit is not None else None


@dataclass(frozen=True)
class RowGroup:
    """A row group, and the decoded size of the wanted columns, as far as the metadata has it."""

    number: int
    rows: int
    size: int
    """The decoded bytes of the columns whose size is in the metadata."""
    unsure: Mapping[str, int]
    """The columns of texts of unknown size, each with the number of rows to decode at once."""


def _row_group(metadata: pq.FileMetaData, number: int, wanted: Sequence[Leaf], encoded: Sequence[str]) -> RowGroup:
    """A row group of which some columns stay dictionaries."""
    footer = metadata.row_group(number)
    rows, size = footer.num_rows, 0
    unsure: dict[str, int] = {}
    for leaf in wanted:
        chunk = footer.column(leaf.place)
        if leaf.width is not None:
            size += chunk.num_values * leaf.width
        elif leaf.path in encoded or not _may_repeat(chunk):
            size += chunk.num_values * 4 + chunk.total_uncompressed_size
        else:
            unsure[leaf.root] = min(_few_rows(chunk, rows), unsure.get(leaf.root, UNSURE))
    return RowGroup(number=number, rows=rows, size=size, unsure=unsure)


def _runs(groups: Iterable[RowGroup]) -> Iterator[list[RowGroup]]:
    """The row groups in runs that are, as far as is known, small enough to be decoded at once; others alone."""
    run: list[RowGroup] = []
    rows = size = 0
    for group in groups:
        if run and (rows + group.rows > AT_ONCE_ROWS or size + group.size > AT_ONCE_BYTES):
            yield run
            run, rows, size = [], 0, 0
        run.append(group)
        rows, size = rows + group.rows, size + group.size
    if run:
        yield run


def _has_differences(chunk: Any) -> bool:
    """True if some values of a column are stored by their difference from others."""
    return any("DELTA" in name for name in chunk.encodings)


def _may_repeat(chunk: Any) -> bool:
    """True if the encoding of a column of texts can hide their size."""
    hide = any("DICTIONARY" in name or name == "DELTA_BYTE_ARRAY" for name in chunk.encodings)
    return hide and chunk.num_values > 0


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


def _run(file: pq.ParquetFile, run: list[RowGroup], columns: list[str]) -> Iterator[pa.Table]:
    """Decode row groups at once if they prove small enough, else in batches."""
    groups = [group.number for group in run]
    rows, size = sum(group.rows for group in run), sum(group.size for group in run)
    unsure: dict[str, int] = {}
    for group in run:
        unsure = {name: min(few, unsure.get(name, UNSURE)) for name, few in (unsure | dict(group.unsure)).items()}
    at_once = min([BATCH, *unsure.values(), max(BATCH_BYTES * rows // max(size, 1), 1)])
    if rows <= AT_ONCE_ROWS and size <= AT_ONCE_BYTES:
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

"""How each format of data files is opened: what columns a file has, its parts, and its rows in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.json as pajson
import pyarrow.types as pt

from ..errors import InvalidArgument, nearest, require_options
from .conform import from_text, with_times

NAMES = {"parquet": "parquet", "arrow": "arrow", "feather": "arrow", "ipc": "arrow", "csv": "csv", "json": "json"}
"""The formats, with what else they are called."""

_ENDINGS = {
    "parquet": "parquet", "parq": "parquet", "pq": "parquet",
    "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow",
    "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json",
}  # fmt: skip
_COMPRESSED = re.compile(r"\.(gz|bz2|zst|lz4|br)$")

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "parquet": (),
    "arrow": (),
    "csv": (
        "delimiter", "quote_char", "double_quote", "escape_char", "newlines_in_values", "header", "skip_rows",
        "encoding", "null_values", "true_values", "false_values", "decimal_point", "timestamp_parsers",
    ),
    "json": (),
}  # fmt: skip
"""The options that each format takes."""

HEAD = 1 << 20
"""Bytes of a CSV or JSON file from which its columns' types are inferred."""

BLOCK = 8 << 20
"""Bytes of a CSV or JSON file that are parsed at once."""

BATCH = 1 << 17
"""Rows of a Parquet file that are decoded at once."""

AHEAD = 4
"""Batches of a Parquet file that are decoded ahead."""


def format_of(path: str) -> str | None:
    """The format that a file's ending tells, or None.

    >>> from uncombine.sparkops.formats import format_of
    >>> format_of("x/y.csv.gz"), format_of("README")
    ('csv', None)
    """
    return _ENDINGS.get(_COMPRESSED.sub("", path.lower()).rpartition(".")[2])


def format_name(name: str) -> str:
    """The format's name as `FileFormat` has it; raises for a format that there is not."""
    if name not in NAMES:
        raise InvalidArgument(f"there is no file format {name!r}: {nearest(str(name), NAMES)}")
    return NAMES[name]


def require_format_options(format: str, options: Mapping[str, object]) -> None:
    """Raise for an option that the format does not take."""
    require_options(options, OPTIONS[format], f"the file format {format!r}")


class ParquetSource:
    """An open Parquet file; its footer is read once."""

    def __init__(self, system: pafs.FileSystem, path: str) -> None:
        # Coalescing small reads pays over a network; from a disk it costs a little.
        remote = not isinstance(system, pafs.LocalFileSystem)
        form = ds.ParquetFileFormat(
            read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"),
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=remote),
        )
        self.fragment = form.make_fragment(path, filesystem=system)
        self.schema: pa.Schema = self.fragment.physical_schema

    def parts(self) -> list[float]:
        """The sizes of the row groups in proportion."""
        return [float(group.total_byte_size) for group in self.fragment.row_groups]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows of row groups [first, last), but for groups in which `where` can hold nowhere."""
        fragment = self.fragment
        if first is not None:
            fragment = fragment.subset(
                row_group_ids=list(range(first, fragment.num_row_groups if last is None else last))
            )
        if where is not None:
            fragment = fragment.subset(where, schema=self.schema)
        if not fragment.num_row_groups:
            return
        for batch in fragment.to_batches(
            columns=columns, batch_size=BATCH, batch_readahead=AHEAD, fragment_readahead=1, use_threads=False
        ):
            yield pa.Table.from_batches([batch])


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


class CsvSource:
    """An open CSV file."""

    def __init__(
        self, system: pafs.FileSystem, path: str, options: Mapping[str, Any], schema: pa.Schema | None
    ) -> None:
        self.system, self.path, self.options = system, path, options
        self.wanted = schema
        header = options.get("header", True)
        names = None if header or schema is None else schema.names
        self._reading = {
            "block_size": BLOCK,
            "use_threads": False,
            "skip_rows": options.get("skip_rows", 0),
            "encoding": options.get("encoding", "utf8"),
            "column_names": names,
            "autogenerate_column_names": not header and names is None,
        }
        given = ("delimiter", "quote_char", "double_quote", "escape_char", "newlines_in_values")
        self._parse = pacsv.ParseOptions(**{name: options[name] for name in given if name in options})
        converted = ("true_values", "false_values", "decimal_point", "timestamp_parsers")
        self._convert: dict[str, Any] = {name: options[name] for name in converted if name in options}
        self._convert |= {
            "null_values": list(options.get("null_values", [""])),
            "strings_can_be_null": True,
            "quoted_strings_can_be_null": False,
        }
        self.schema: pa.Schema = self._open(HEAD, None, {}).schema

    def _open(self, block: int, columns: list[str] | None, types: Mapping[str, pa.DataType]) -> Any:
        stream = self.system.open_input_stream(self.path, compression="detect")
        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(**{**self._reading, "block_size": block}),
            parse_options=self._parse,
            convert_options=pacsv.ConvertOptions(column_types=types, include_columns=columns, **self._convert),
        )

    def parts(self) -> list[float]:
        """One: a line's beginning cannot be told without reading all that precedes it."""
        return [1.0]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows, each column parsed as what the schema says."""
        assert self.wanted is not None
        as_text = not self.options.get("timestamp_parsers")
        types = {}
        for name in columns:
            kind = self.wanted.field(name).type
            types[name] = pa.string() if pt.is_timestamp(kind) and as_text else kind
        for name, kind in types.items():
            if pt.is_timestamp(kind):
                zoned = any("%z" in parser for parser in self.options["timestamp_parsers"])
                types[name] = kind if zoned else pa.timestamp("us")
        for batch in self._open(BLOCK, columns or self.schema.names[:1], types):
            yield _parsed(pa.Table.from_batches([batch]).select(columns), self.wanted)


class JsonSource:
    """An open file of JSON lines."""

    def __init__(self, system: pafs.FileSystem, path: str, schema: pa.Schema | None) -> None:
        self.system, self.path, self.wanted = system, path, schema
        if schema is None:
            block = next(self._blocks(HEAD), b"")
            schema = with_times(pajson.read_json(pa.BufferReader(block), read_options=_whole(block)))
        # A field that a line does not have is null there, so that every column is in every file.
        self.schema: pa.Schema = schema

    def _blocks(self, size: int) -> Iterator[bytes]:
        """The file in pieces that end where a line ends."""
        rest = b""
        with self.system.open_input_stream(self.path, compression="detect") as stream:
            while piece := stream.read(size):
                end = piece.rfind(b"\n") + 1
                if not end:
                    rest += piece
                    continue
                yield rest + piece[:end]
                rest = piece[end:]
        if rest.strip():
            yield rest

    def parts(self) -> list[float]:
        """One: the file is read from its beginning to its end."""
        return [1.0]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows, each column parsed as what the schema says."""
        assert self.wanted is not None
        fields = [self.wanted.field(name) for name in columns]
        fields = [f.with_type(pa.string()) if pt.is_date(f.type) or pt.is_timestamp(f.type) else f for f in fields]
        parse = pajson.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
        empty = True
        for block in self._blocks(BLOCK):
            if block.strip():
                empty = False
                read = pajson.read_json(pa.BufferReader(block), read_options=_whole(block), parse_options=parse)
                yield _parsed(read, self.wanted)
        if empty:
            raise pa.ArrowInvalid("it is empty")


Source = ParquetSource | ArrowSource | CsvSource | JsonSource


def open_source(
    format: str, system: pafs.FileSystem, path: str, options: Mapping[str, Any], schema: pa.Schema | None
) -> Source:
    """Open a file; `schema` has the columns of a CSV or JSON file, None to infer them."""
    if format == "parquet":
        return ParquetSource(system, path)
    if format == "arrow":
        return ArrowSource(system, path)
    return CsvSource(system, path, options, schema) if format == "csv" else JsonSource(system, path, schema)


def _whole(block: bytes) -> pajson.ReadOptions:
    return pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)


def _parsed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns that were read as text as what they mean."""
    for i, field in enumerate(table.schema):
        kind = schema.field(field.name).type
        if field.type != kind and pt.is_string(field.type):
            table = table.set_column(i, pa.field(field.name, kind), from_text(table.column(i), kind))
    return table

"""Files of lines, CSV and JSON: their columns, inferred or as told, and their rows in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.fs as pafs
import pyarrow.json as pajson
import pyarrow.types as pt

from .conform import from_text, with_times

HEAD = 1 << 20
"""Bytes of a CSV or JSON file from which its columns' types are inferred."""

BLOCK = 8 << 20
"""Bytes of a CSV or JSON file that are parsed at once."""


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


def _whole(block: bytes) -> pajson.ReadOptions:
    return pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)


def _parsed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns that were read as text as what they mean."""
    for i, field in enumerate(table.schema):
        kind = schema.field(field.name).type
        if field.type != kind and pt.is_string(field.type):
            table = table.set_column(i, pa.field(field.name, kind), from_text(table.column(i), kind))
    return table

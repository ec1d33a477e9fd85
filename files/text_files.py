"""CSV and JSON files: their columns, inferred or from a schema, and their rows in order."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.fs as pafs
import pyarrow.json as pajson
import pyarrow.types as pt

from ..combiners.rows.decimal_casts import far_in, far_pattern
from ..combiners.rows.decoded_sizes import fixed_bytes
from ..errors import InvalidArgument
from .conform import from_text, with_times

HEAD = 1 << 20
"""The bytes of a CSV or JSON file from which the types of its columns are inferred."""

BLOCK = 8 << 20
"""The bytes of a CSV or JSON file that are parsed at once."""

PARSED = 128 << 20
"""The largest number of bytes of the parsed rows of one block, without the texts in the file."""

LONGEST = 1 << 30
"""The bytes of the longest line that can be read, since Arrow counts the bytes of a block in 31 bits."""

DEEPEST = 5000
"""The deepest nesting of a JSON value whose type is inferred; deeper types of Arrow crash the process."""

HEADER = 64 << 20
"""The bytes of the longest first line of a CSV file."""


class CsvSource:
    """An open CSV file."""

    def __init__(
        self, system: pafs.FileSystem, path: str, options: Mapping[str, Any], schema: pa.Schema | None
    ) -> None:
        self.system, self.path, self.options = system, path, options
        self.wanted = schema
        header = options.get("header", True)
        names = None if header or schema is None else schema.names
        self._naming = {"column_names": names, "autogenerate_column_names": not header and names is None}
        self._parse, self._convert = csv_options(options)
        self.schema: pa.Schema = next(self._opened(HEAD, None, {}))[0].schema

    def _open(self, block: int, columns: list[str] | None, types: Mapping[str, pa.DataType]) -> Any:
        stream = self.system.open_input_stream(self.path, compression="detect")
        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(
                block_size=block,
                use_threads=False,
                skip_rows=self.options.get("skip_rows", 0),
                encoding=self.options.get("encoding", "utf8"),
                **self._naming,
            ),
            parse_options=self._parse,
            convert_options=pacsv.ConvertOptions(column_types=types, include_columns=columns, **self._convert),
        )

    def _opened(
        self, block: int, columns: list[str] | None, types: Mapping[str, pa.DataType]
    ) -> Iterator[tuple[Any, int]]:
        """Readers with blocks of increasing size, each with the size of its blocks."""
        while True:
            try:
                yield self._open(block, columns, types), block
            except pa.ArrowInvalid as error:
                if not _too_long(error, block):
                    raise
            block = min(8 * block, LONGEST)

    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """All rows. After a line that is longer than a block, blocks are larger."""
        done = 0
        for reader, block in self._opened(BLOCK, columns, types):
            skip = done
            try:
                for batch in reader:
                    fresh = batch.slice(min(skip, batch.num_rows))
                    skip -= batch.num_rows - fresh.num_rows
                    done += fresh.num_rows
                    yield fresh
            except pa.ArrowInvalid as error:
                if not _too_long(error, block):
                    raise
            else:
                return

    def parts(self) -> list[float]:
        """One part: the beginning of a line is known only after reading everything before it."""
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
            plain = pt.is_decimal(kind) or (pt.is_timestamp(kind) and as_text)
            types[name] = pa.string() if plain else kind
        for name, kind in types.items():
            if pt.is_timestamp(kind):
                zoned = any("%z" in parser for parser in self.options["timestamp_parsers"])
                types[name] = kind if zoned else pa.timestamp("us")
        for batch in self._batches(columns or self.schema.names[:1], types):
            table = pa.Table.from_batches([batch]).select(columns)
            yield _parsed(self._with_points(table), self.wanted)

    def _with_points(self, table: pa.Table) -> pa.Table:
        """The texts of decimals as Arrow's cast takes them, which are trimmed and have a point."""
        assert self.wanted is not None
        point = self.options.get("decimal_point", ".")
        for i, name in enumerate(table.column_names):
            if pt.is_decimal(self.wanted.field(name).type):
                texts = pc.ascii_trim(table.column(i), " \t")
                if point != ".":
                    if pc.any(pc.match_substring(texts, ".")).as_py():
                        raise pa.ArrowInvalid(
                            f"column {name!r} has a point in a number, whose decimal point is {point!r}"
                        )
                    texts = pc.replace_substring(texts, point, ".")
                table = table.set_column(i, name, texts)
        return table


def csv_options(options: Mapping[str, Any]) -> tuple[pacsv.ParseOptions, dict[str, Any]]:
    """The options that cut a CSV file into values, and the arguments for converting the values."""
    parse_names = ("delimiter", "quote_char", "double_quote", "escape_char", "newlines_in_values")
    parse = pacsv.ParseOptions(**{name: options[name] for name in parse_names if name in options})
    converted = ("true_values", "false_values", "decimal_point", "timestamp_parsers")
    convert: dict[str, Any] = {name: options[name] for name in converted if name in options}
    convert |= {
        "null_values": list(options.get("null_values", [""])),
        "strings_can_be_null": True,
        "quoted_strings_can_be_null": False,
    }
    return parse, convert


def require_csv_options(options: Mapping[str, Any]) -> None:
    """Raise for a wrong value of an option."""
    try:
        parse, convert = csv_options(options)
        parse.validate()
        pacsv.ConvertOptions(**convert).validate()
        pacsv.ReadOptions(skip_rows=options.get("skip_rows", 0)).validate()
        codecs.lookup(options.get("encoding", "utf8"))
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise InvalidArgument(f"an option of the file format 'csv' has a value that is not allowed: {error}") from None


def _too_long(error: pa.ArrowInvalid, block: int) -> bool:
    """True if a line of a CSV file is longer than a block, and larger blocks are allowed."""
    if "straddl" in str(error):
        return block < LONGEST
    # Arrow reports a first line that does not end in the block as an empty file.
    return "Empty CSV file or block" in str(error) and block < HEADER


class JsonSource:
    """An open file of JSON lines."""

    def __init__(self, system: pafs.FileSystem, path: str, schema: pa.Schema | None) -> None:
        self.system, self.path, self.wanted = system, path, schema
        if schema is None:
            block = next(self._blocks(HEAD), b"")
            if _depth(block) > DEEPEST:
                raise pa.ArrowInvalid(f"values are nested more than {DEEPEST} deep")
            schema = with_times(pajson.read_json(pa.BufferReader(block), read_options=_whole(block)))
        # A field that a line lacks is null there, so every file has every column.
        self.schema: pa.Schema = schema

    def _blocks(self, size: int) -> Iterator[bytes]:
        """The file in blocks that end at the end of a line."""
        rest: list[bytes] = []
        with self.system.open_input_stream(self.path, compression="detect") as stream:
            # read() does not free its memory when it fails.
            while piece := stream.read_buffer(size).to_pybytes():
                end = piece.rfind(b"\n") + 1
                if not end:
                    rest.append(piece)
                    if len(rest) * size > LONGEST:
                        raise pa.ArrowInvalid(f"it has a line of more than {LONGEST} bytes")
                    continue
                yield b"".join([*rest, piece[:end]])
                rest = [piece[end:]]
        last = b"".join(rest)
        if last.strip():
            yield last

    def parts(self) -> list[float]:
        """One part: the file is read from its beginning to its end."""
        return [1.0]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows, each column parsed as what the schema says."""
        assert self.wanted is not None
        fields = [self.wanted.field(name) for name in columns]
        fields = [f.with_type(pa.string()) if pt.is_date(f.type) or pt.is_timestamp(f.type) else f for f in fields]
        parse = pajson.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
        row = sum(fixed_bytes(field.type) for field in self.wanted)
        empty = True
        for block in chain.from_iterable(_fewer(lines, row) for lines in self._blocks(BLOCK)):
            if block.strip():
                empty = False
                if far_decimals(block, fields):
                    raise pa.ArrowInvalid("a decimal has too many digits or too large an exponent")
                read = pajson.read_json(pa.BufferReader(block), read_options=_whole(block), parse_options=parse)
                yield _parsed(read, self.wanted)
        if empty:
            raise pa.ArrowInvalid("it is empty")


def _fewer(block: bytes, row: int) -> Iterator[bytes]:
    """Lines in parts whose rows take at most `PARSED` bytes, since a line of two bytes is a row of all columns."""
    if len(block) // 3 * row > PARSED and block.count(b"\n") * row > PARSED:
        middle = block.rfind(b"\n", 0, len(block) // 2) + 1
        if middle:
            yield from _fewer(block[:middle], row)
            yield from _fewer(block[middle:], row)
            return
    yield block


def far_decimals(block: bytes, fields: list[pa.Field]) -> bool:
    """True if a decimal in lines of JSON has more digits after its point than Arrow's parser takes without danger."""
    kinds = {field.name: field.type for field in fields}
    far = far_in(kinds.values())
    if far is None or not far.search(block):
        return False
    lines = (line for line in block.split(b"\n") if far.search(line))
    try:
        return any(_is_far(json.loads(line, parse_float=str, parse_int=str), kinds) for line in lines)
    except ValueError:  # no JSON, so that nobody knows where it is
        return True


def _is_far(value: Any, kind: Any) -> bool:
    if isinstance(kind, dict):
        return isinstance(value, dict) and any(_is_far(value.get(name), inner) for name, inner in kind.items())
    if pt.is_struct(kind):
        return _is_far(value, {field.name: field.type for field in kind})
    if isinstance(value, list):
        return pt.is_nested(kind) and any(_is_far(item, kind.field(0).type) for item in value)
    return pt.is_decimal(kind) and isinstance(value, str) and re.search(far_pattern(kind), value) is not None


def _depth(block: bytes) -> int:
    """The deepest nesting of values, with the brackets in texts."""
    data = np.frombuffer(block, np.uint8)
    # [ and { differ in one bit, and so do ] and }.
    opens, closes = (data & 0xDF) == ord("["), (data & 0xDF) == ord("]")
    return int(np.cumsum(opens.astype(np.int32) - closes).max(initial=0))


def _whole(block: bytes) -> pajson.ReadOptions:
    return pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)


def _parsed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with its columns of text parsed to the types of the schema."""
    for i, field in enumerate(table.schema):
        kind = schema.field(field.name).type
        if field.type != kind and pt.is_string(field.type):
            table = table.set_column(i, pa.field(field.name, kind), from_text(table.column(i), kind))
    return table

"""CSV and JSON files: their columns, inferred or from a schema, and their rows in order."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.fs as pafs
import pyarrow.json as pajson
import pyarrow.types as pt

from ..combiners.column_names import PLACES
from ..combiners.expressions.times import check_time_format
from ..combiners.rows.decoded_sizes import fixed_bytes
from ..errors import InvalidArgument
from .conform import from_text, with_times
from .csv_text import BOM, LONGEST, CsvForm, TextStream, csv_beginning, line_ends
from .row_screens import depth, far_decimals, screened_csv, screened_json
from .unreadable_rows import ERRORS, REFUSED, BadRow, BadRows, TextBlock, TextRow, read_rows
from .validated import validated

HEAD = 1 << 20
"""The bytes of a CSV or JSON file from which the types of its columns are inferred."""

BLOCK = 8 << 20
"""The bytes of a file of text that are parsed at once."""

PARSED = 128 << 20
"""The largest number of bytes of the parsed rows of one block, without the texts in the file."""

DEEPEST = 300
"""The deepest nesting of a JSON value whose type is inferred: functions that look into types call themselves."""

HEADER = 64 << 20
"""The bytes of the longest first line of a CSV file."""

_NULL = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(null)")
"""The beginning of lines of JSON of which the first is null."""


class InOnePart:
    """An open file of lines, each of which begins where the line before it ends."""

    def parts(self) -> list[float]:
        """One part: the file is read from its beginning to its end."""
        return [1.0]


class CsvSource(InOnePart):
    """An open CSV file."""

    def __init__(
        self,
        system: pafs.FileSystem,
        path: str,
        options: Mapping[str, Any],
        schema: pa.Schema | None,
        bad: BadRows = ERRORS,
    ) -> None:
        self.system, self.path, self.options, self.wanted, self.bad = system, path, options, schema, bad
        self.form, self.header = CsvForm.of(options), options.get("header", True)
        self.skip_rows = options.get("skip_rows", 0)
        self._odd = False
        if schema is None:
            self.schema: pa.Schema = self._inferred().schema
        else:  # its types count, and the header has the names of the columns of the file
            self.schema = self._named() if self.header else schema
        if self._odd and bad.are_errors:
            for _ in self._tables(pa.schema([])):  # raises for the row, with its line
                pass

    def _inferred(self) -> pa.Table:
        """The first rows, in the types that their values have."""
        parse, convert = csv_options(self.options)
        # A row of another length tells no types. It is found again, with its line, when the rows are read.
        parse.invalid_row_handler = self._skip
        data, size = self._beginning(HEAD), HEAD
        while len(data) == size and not (end := self.form.end(data, 0, size)) and size < HEADER:
            size = min(8 * size, HEADER)
            data = self._beginning(size)
        if len(data) == size and end:
            data = data[:end]
        if not self.bad.are_errors:  # Arrow hands on no row with a letter that is none, which is found again too
            data = data.decode("utf-8", "replace").encode()
        options = {"skip_rows": self.skip_rows, "autogenerate_column_names": not self.header}
        read = pacsv.ReadOptions(block_size=len(data) + 1, use_threads=False, **options)
        return csv_beginning(data, read, parse, convert)

    def _skip(self, row: Any) -> str:
        self._odd = True
        return "skip"

    def _named(self) -> pa.Schema:
        """The names in the header, with types that say nothing."""
        size, body = 1 << 14, None
        while body is None and size <= HEADER:
            data = self._beginning(size)
            is_whole = len(data) < size
            body = self.form.body(data + b"\n" * is_whole, self.skip_rows, header=True)
            size = HEADER + 1 if is_whole else 8 * size
        if body is not None and data and (names := self.form.names(body[1])) is not None:
            return pa.schema([(name, pa.null()) for name in names])
        head = data if body is None else data[: body[0]]
        parse, _ = csv_options(self.options)
        read = pacsv.ReadOptions(block_size=len(head) + 1, use_threads=False, skip_rows=self.skip_rows)
        return pacsv.read_csv(pa.BufferReader(head), read, parse).schema

    def _beginning(self, size: int) -> bytes:
        """So many bytes of the file, or all of it if it is shorter."""
        data = bytearray(size)
        with self._text() as stream:
            count = stream.fill(memoryview(data))
        return bytes(memoryview(data)[:count])

    def _text(self) -> TextStream:
        return TextStream(self.system, self.path, self.options.get("encoding", "utf8"))

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows, each column parsed as what the schema says."""
        assert self.wanted is not None
        return self._tables(pa.schema([self.wanted.field(name) for name in columns]))

    def _tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        read = CsvRows(self.schema.names, schema, self.options)
        is_empty = True
        with self._text() as stream:
            for block in self.form.blocks(stream, BLOCK, self.skip_rows, self.header):
                is_empty = False
                yield from read_rows(block, read, self.bad)
        if is_empty and not self.header:
            raise pa.ArrowInvalid("Empty CSV file")


class CsvRows:
    """Reads some columns of rows of CSV."""

    def __init__(self, names: list[str], schema: pa.Schema, options: Mapping[str, Any]) -> None:
        self.names, self.schema, self.options, self.form = names, schema, options, CsvForm.of(options)
        self._parse, self._convert = csv_options(options)
        self.formats = options.get("timestamp_parsers") or ()
        self.types: dict[str, pa.DataType] = {
            field.name: pa.string() if pt.is_decimal(field.type) or pt.is_timestamp(field.type) else field.type
            for field in schema
        }

    def __call__(self, data: bytes | memoryview) -> pa.Table:
        return _parsed(self._with_points(self._table(data, self.types, self._parse)), self.schema, self.formats)

    def _table(self, data: bytes | memoryview, types: Mapping[str, pa.DataType], parse: pacsv.ParseOptions) -> pa.Table:
        # Without a column the first one counts the rows.
        included = self.schema.names or self.names[:1]
        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names),
            parse_options=parse,
            convert_options=pacsv.ConvertOptions(column_types=types, include_columns=included, **self._convert),
        )
        return table.select(self.schema.names)

    def _with_points(self, table: pa.Table) -> pa.Table:
        """The texts of decimals as Arrow's cast takes them, which are trimmed and have a point."""
        point = self.options.get("decimal_point", ".")
        for i, name in enumerate(table.column_names):
            if pt.is_decimal(self.schema.field(name).type):
                texts = pc.ascii_trim(table.column(i), " \t")
                if point != ".":
                    if pc.any(pc.match_substring(texts, ".")).as_py():
                        raise pa.ArrowInvalid(
                            f"column {name!r} has a point in a number, whose decimal point is {point!r}"
                        )
                    texts = pc.replace_substring(texts, point, ".")
                table = table.set_column(i, name, texts)
        return table

    def only(self, columns: Sequence[str]) -> CsvRows:
        return CsvRows(self.names, pa.schema([self.schema.field(name) for name in columns]), self.options)

    def is_whole(self, block: TextBlock, rows: int) -> bool:
        return self.form.is_whole(block, rows)

    def rows(self, data: bytes, line: int) -> tuple[list[TextRow], list[TextRow]]:
        return self.form.rows(data, line)

    def screened(self, rows: Sequence[TextRow]) -> np.ndarray:
        parse, _ = csv_options(self.options)
        types = dict.fromkeys(self.types, pa.binary())

        def raw(data: bytes, skip: Any) -> pa.Table:
            parse.invalid_row_handler = skip
            return self._table(data, types, parse)

        told = pa.schema([field for field in self.schema if not (self.formats and pt.is_timestamp(field.type))])
        return screened_csv(rows, raw, told, self.options.get("decimal_point", "."))


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
        for form in options.get("timestamp_parsers") or ():
            if isinstance(form, str):
                check_time_format(form)
        pacsv.ReadOptions(skip_rows=options.get("skip_rows", 0)).validate()
        codecs.lookup(options.get("encoding", "utf8"))
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise InvalidArgument(f"an option of the file format 'csv' has a value that is not allowed: {error}") from None


class JsonSource(InOnePart):
    """An open file of JSON lines."""

    def __init__(self, system: pafs.FileSystem, path: str, schema: pa.Schema | None, bad: BadRows = ERRORS) -> None:
        self.system, self.path, self.wanted, self.bad = system, path, schema, bad
        if schema is None:
            blocks = self._blocks(HEAD)
            block, rest = next(blocks, b""), next(blocks, b"")
            if len(block) + len(rest) <= HEAD:  # the last line of a small file may have no end
                block += rest
            if depth(block) > DEEPEST:
                raise pa.ArrowInvalid(f"values are nested more than {DEEPEST} deep")
            schema = with_times(_inferred(block, bad))
        # A field that a line lacks is null there, so every file has every column.
        self.schema: pa.Schema = schema

    def _blocks(self, size: int) -> Iterator[bytes]:
        blocks = blocks_of_lines(self.system, self.path, size)
        return (block for block in blocks if block.endswith(b"\n") or block.strip())

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The rows, each column parsed as what the schema says."""
        assert self.wanted is not None
        read = JsonRows(pa.schema([self.wanted.field(name) for name in columns]))
        row = sum(fixed_bytes(field.type) for field in self.wanted)
        empty, line = True, 1
        for block in chain.from_iterable(_fewer(lines, row) for lines in self._blocks(BLOCK)):
            lines = line_ends(block)
            if block.strip():
                empty = False
                yield from read_rows(TextBlock(block, line, lines), read, self.bad)
            line += lines
        if empty:
            raise pa.ArrowInvalid("it is empty")


def blocks_of_lines(system: pafs.FileSystem, path: str, size: int) -> Iterator[bytes]:
    """A file in blocks that end at the end of a line, or of the file."""
    rest: list[bytes] = []
    with system.open_input_stream(path, compression="detect") as stream:
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
    if last := b"".join(rest):
        yield last


class JsonRows:
    """Reads some columns of lines of JSON."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        fields = (f.with_type(pa.string()) if pt.is_date(f.type) or pt.is_timestamp(f.type) else f for f in schema)
        self.fields = list(fields)

    def __call__(self, data: bytes | memoryview) -> pa.Table:
        data = bytes(data)
        if far_decimals(data, self.fields):
            raise pa.ArrowInvalid("a decimal has too many digits or too large an exponent")
        parse = pajson.ParseOptions(explicit_schema=pa.schema(self.fields), unexpected_field_behavior="ignore")
        return validated(_parsed(_read_json(data, parse), self.schema))

    def only(self, columns: Sequence[str]) -> JsonRows:
        return JsonRows(pa.schema([self.schema.field(name) for name in columns]))

    def is_whole(self, block: TextBlock, rows: int) -> bool:
        return True

    def rows(self, data: bytes, line: int) -> tuple[list[TextRow], list[TextRow]]:
        lines = enumerate(data.removeprefix(BOM if line == 1 else b"").splitlines(), line)
        return [TextRow(number, text) for number, text in lines if text.strip()], []

    def screened(self, rows: Sequence[TextRow]) -> np.ndarray:
        return screened_json(rows, self.schema)


class LineSource(InOnePart):
    """An open file of text, whose lines are rows with their places. Bytes that are no UTF-8 are a fault.

    An empty line is an empty text. A line ends with a line feed, with or without a carriage return before it.
    """

    schema: pa.Schema = pa.schema({"value": pa.string(), PLACES[0]: pa.string(), PLACES[1]: pa.int64()})

    def __init__(self, system: pafs.FileSystem, path: str, bad: BadRows = ERRORS) -> None:
        self.system, self.path, self.file = system, path, bad.file

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The lines in their order."""
        line = 1
        for block in blocks_of_lines(self.system, self.path, BLOCK):
            lines = block.decode("utf-8-sig" if line == 1 else "utf-8").removesuffix("\n").split("\n")
            values = pa.array([line.removesuffix("\r") for line in lines], pa.string())
            file = pa.DictionaryArray.from_arrays(np.zeros(len(lines), np.int32), pa.array([self.file]))
            parts = [values, file, pa.array(np.arange(line, line := line + len(lines)))]
            yield pa.table(parts, names=self.schema.names).select(columns)


def _read_json(data: bytes, parse: pajson.ParseOptions) -> pa.Table:
    """Lines of JSON as a table."""
    null = _NULL.match(data)
    if null is not None:  # Arrow 26 ends the process if the first value is null
        data = b"{}\n" + data[null.start(1) :]
    options = pajson.ReadOptions(use_threads=False, block_size=len(data) + 1)
    table = pajson.read_json(pa.BufferReader(data), read_options=options, parse_options=parse)
    return table if null is None else table.slice(1)


def _inferred(data: bytes, bad: BadRows) -> pa.Table:
    """Lines of JSON with the types that their values have; without the bad ones, if these are left out."""
    try:
        return _read_json(data, pajson.ParseOptions())
    except REFUSED:
        lines = [TextRow(place, line) for place, line in enumerate(data.splitlines(), 1) if line.strip()]
        wrong = screened_json(lines, pa.schema([]))
        if bad.are_errors and wrong.any():
            raise BadRow(f"line {lines[int(wrong.argmax())].line}: it is no object of JSON") from None
        if bad.are_errors:
            raise
    tables, waiting = list[pa.Table](), [[row.text for row, no in zip(lines, wrong, strict=True) if not no]]
    while waiting:
        some = waiting.pop()
        fields = pa.unify_schemas([pa.schema([]), *(table.schema for table in tables)])
        # The first type that a column has is its type, as it is for the rest of the file.
        parse = pajson.ParseOptions(explicit_schema=pa.schema([f for f in fields if not pt.is_null(f.type)]))
        try:
            tables.append(_read_json(b"\n".join([*some, b""]), parse))
        except REFUSED:
            if len(some) > 1:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
    if not any(table.num_columns for table in tables):
        raise pa.ArrowInvalid("it has no line of JSON that can be read")
    return pa.concat_tables(tables, promote_options="default")


def _fewer(block: bytes, row: int) -> Iterator[bytes]:
    """Lines in parts whose rows take at most `PARSED` bytes, since a line of two bytes is a row of all columns."""
    if len(block) // 3 * row > PARSED and block.count(b"\n") * row > PARSED:
        middle = block.rfind(b"\n", 0, len(block) // 2) + 1
        if middle:
            yield from _fewer(block[:middle], row)
            yield from _fewer(block[middle:], row)
            return
    yield block


def _parsed(table: pa.Table, schema: pa.Schema, formats: Sequence[str] = ()) -> pa.Table:
    """The table with its columns of text parsed to the types of the schema."""
    for i, field in enumerate(table.schema):
        kind = schema.field(field.name).type
        if field.type != kind and pt.is_string(field.type):
            table = table.set_column(i, pa.field(field.name, kind), from_text(table.column(i), kind, formats))
    return table

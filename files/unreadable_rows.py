"""Rows of text files that cannot be read: each is found among its neighbours, and is an error or is left out.

Arrow's readers refuse all rows of a block for one bad value. Here the block is cut in halves until what is refused is a
single row, so that the readers alone say what is good.

Guarded by tests/files/test_unreadable_rows.py and tests/files/test_bad_rows.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from .paths import parts_of

UNREADABLE = pa.schema([("file", pa.string()), ("line", pa.int64()), ("text", pa.string()), ("cause", pa.string())])
"""The columns of rows that cannot be read: where each is, the beginning of its text, and the fault of the row."""

CAUSES = 100
"""The most rows of a block, of those that are known to be bad without trying each, whose cause is told."""

LONGEST_TEXT = 40
"""The most characters of a file that are shown in a sentence."""

LONGEST_ROW = 200
"""The most characters of a row that are kept of one that cannot be read."""

LONGEST_CAUSE = 200
"""The most characters of a cause, which may have a value of the file."""

REFUSED = (ValueError, OverflowError)
"""The errors of readers for rows, among them Arrow's. Errors of files and of memory are others."""

NO_TEXT = "\udcff".encode("utf-8", "surrogatepass")
"""Stands for bytes that are no text in the encoding of a file, and is no UTF-8."""

_ENDLESS = "a quote is not closed (values of several lines need newlines_in_values=True)"

_VALUE = re.compile(r"Failed to parse string: ('.*') as a scalar of type ([^:]+)(: expected .*)?$")
"""Arrow's words for a value that it cannot read; the cause that it supposes is that of one of several ways to read."""

_OF_CSV = re.compile(r"In CSV column #\d+: CSV conversion error to (.+): invalid value ('.*')$")
"""Arrow's words for a value of CSV that it cannot read, which count columns from 0."""

_PLACE = re.compile(r"Row #\d+: | in row \d+")
"""The place of a row in the words of Arrow, which counts from where it was told to begin."""

_JSON_ERROR = "JSON parse error: "
"""The beginning of Arrow's words for a row of JSON that it cannot read."""

_CHANGED = re.compile(r"Column\((?P<path>/[^)]*)\) changed from \w+ to \w+$")

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\]]', re.DOTALL)
"""Whole texts, a quote that begins one without an end, and brackets."""

_PARTS = {b"{": "an object", b"[": "a list"}


class TextRow(NamedTuple):
    """A row as text, and the number of the line in which it begins."""

    line: int
    text: bytes


class TextBlock(NamedTuple):
    """Some rows of a file as text."""

    data: bytes | memoryview
    line: int
    """The number of the line in which it begins."""
    lines: int
    """The number of ends of lines in it."""
    is_last: bool = False


class BadRow(pa.ArrowInvalid):  # type: ignore[misc]
    """A row cannot be read, which is an error; the message names its line."""


@dataclass(frozen=True)
class BadRows:
    """The treatment of the rows of a file that cannot be read.

    >>> left = []
    >>> BadRows("/data/a.csv", left.append)([TextRow(7, b"five")], "it is no number")
    >>> left[0].select(["line", "text", "cause"]).to_pylist()
    [{'line': 7, 'text': 'five', 'cause': 'it is no number'}]
    """

    path: str = ""
    leave_out: Callable[[pa.Table], None] | None = None
    """Takes the rows that are left out, in the columns of `UNREADABLE`; None if the first of them is an error."""
    needed: frozenset[str] | None = None
    """The columns without which a row is bad. A bad value of another one is null. None means all columns."""

    def __call__(self, rows: Sequence[TextRow], *reasons: object) -> None:
        """Leave these rows out, or raise for the first of them; there is one reason for all, or one for each."""
        if not rows:
            return
        causes = [_cause(reason, row.text) for reason, row in zip(reasons, rows, strict=False)]
        if self.leave_out is None:
            raise BadRow(f"line {rows[0].line}: {causes[0]}")
        lines, texts = [row.line for row in rows], [_shown(row.text) for row in rows]
        each = causes * len(rows) if len(causes) == 1 else causes
        self.leave_out(pa.table([[self.file] * len(rows), lines, texts, each], schema=UNREADABLE))

    @property
    def file(self) -> str:
        """The file, as users write it."""
        address, inside = parts_of(self.path)
        return address + inside

    @property
    def are_errors(self) -> bool:
        """True if a bad row is an error."""
        return self.leave_out is None


ERRORS = BadRows()
"""Every bad row is an error."""


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """The first characters of a text from a file.

    >>> shortened("k" * 99)
    'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...'
    """
    return text if len(text) <= longest else f"{text[:longest]}..."


def _cause(reason: object, text: bytes) -> str | None:
    """The reason of a reader in a few words; None if it is not known."""
    if reason is None:
        return None
    words = _OF_CSV.sub(r"\2 is no \1", _PLACE.sub("", str(reason).partition("\n")[0]))
    words = _VALUE.sub(r"\1 is no \2", words)
    words = _json_cause(words, text) if words.startswith(_JSON_ERROR) else words
    return words if len(words) <= LONGEST_CAUSE else f"{words[:LONGEST_CAUSE]}..."


def _json_cause(words: str, text: bytes) -> str:
    """Arrow's words about a row of JSON, with what the row itself tells.

    Of a line that somebody has cut off Arrow names the rule that its last character breaks, and of a value of another
    type the type alone.

    >>> _json_cause("JSON parse error: Invalid encoding in string.", b'{"user": "ada", "ts": "2024-05')
    'the line ends within a text'
    >>> changed = "JSON parse error: Column(/x) changed from number to string"
    >>> _json_cause(changed, b'{"x": "hot"}')
    'JSON parse error: Column(/x) changed from number to string: "hot"'
    """
    if (part := _open_part(text)) is not None:
        return f"the line ends within {part}"
    changed = _CHANGED.search(words)
    value = None if changed is None else _value_at(changed["path"].split("/")[1:], text)
    return words if value is None else f"{words}: {value}"


def _value_at(path: list[str], text: bytes) -> str | None:
    """The value at a path in a row, as JSON; None if the row has none there."""
    try:
        value: Any = json.loads(text)
        for name in path:
            value = value[name]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False)


def _open_part(text: bytes) -> str | None:
    """The innermost part of a row that has no end; None if each has one."""
    opened: list[bytes] = []
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token == b'"':
            return "a text"
        if token in _PARTS:
            opened.append(token)
        elif token in (b"}", b"]") and opened:
            opened.pop()
    return _PARTS[opened[-1]] if opened else None


def _shown(text: bytes) -> str:
    beginning = text[: 4 * LONGEST_ROW + 4].replace(NO_TEXT, "\ufffd".encode())
    return shortened(beginning.decode("utf-8", "replace"), LONGEST_ROW)


class RowReader(Protocol):
    """Reads some columns of rows that are text, all of them or none."""

    schema: pa.Schema
    """The columns that it reads."""

    def __call__(self, data: bytes | memoryview) -> pa.Table:
        """The rows; raises one of `REFUSED` if one of them cannot be read."""

    def only(self, columns: Sequence[str]) -> RowReader:
        """The reader of some of its columns."""

    def is_whole(self, block: TextBlock, rows: int) -> bool:
        """False if not every row of a block is one of so many rows that were read from it."""

    def rows(self, data: bytes, line: int) -> tuple[list[TextRow], list[TextRow]]:
        """The rows in data that begin at a line, and the lines among them of which the end is missing."""

    def screened(self, rows: Sequence[TextRow]) -> np.ndarray:
        """A mask of rows of which it is certain, without trying each, that they cannot be read."""


def read_rows(block: TextBlock, read: RowReader, bad: BadRows) -> Iterator[pa.Table]:
    """The rows of a block, in tables; those that cannot be read go to `bad`."""
    try:
        table = read(block.data)
        if read.is_whole(block, table.num_rows):
            yield table
            return
    except REFUSED:
        pass
    rows, endless = read.rows(bytes(block.data), block.line)
    if bad.are_errors:
        if endless:
            rows = [row for row in rows if row.line < endless[0].line]
    elif rows and (wrong := _needed_part(read, bad.needed).screened(rows)).any():
        some = [row for row, is_wrong in zip(rows, wrong, strict=True) if is_wrong]
        part = _needed_part(read, bad.needed)
        bad(some, *(_reason(row, part) if place < CAUSES else None for place, row in enumerate(some)))
        rows = [row for row, is_wrong in zip(rows, wrong, strict=True) if not is_wrong]
    yield from _good(rows, read, bad)
    bad(endless, _ENDLESS)


def _reason(row: TextRow, read: RowReader) -> object:
    """The reason why a single row cannot be read."""
    try:
        _counted([row], read(_joined([row])))
    except REFUSED as error:
        return error
    return None


def _good(rows: list[TextRow], read: RowReader, bad: BadRows) -> Iterator[pa.Table]:
    """The good rows, in tables."""
    waiting = [rows] if rows else []
    while waiting:
        some = waiting.pop()
        try:
            yield _table(some, read, bad.needed)
        except REFUSED as error:
            if len(some) == 1:
                bad(some, error)
            else:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]


def _table(rows: Sequence[TextRow], read: RowReader, needed: frozenset[str] | None) -> pa.Table:
    """The rows as a table, with null for a bad value that is not needed; raises if one of them is bad."""
    data = _joined(rows)
    names = read.schema.names
    optional = [] if needed is None else [name for name in names if name not in needed]
    try:
        return _counted(rows, read(data))
    except REFUSED:
        if not optional:
            raise
    table = _counted(rows, _needed_part(read, needed)(data))
    columns = {name: _values(rows, read.only([name]), read.schema.field(name).type) for name in optional}
    return pa.table({name: columns[name] if name in columns else table[name] for name in names})


def _needed_part(read: RowReader, needed: frozenset[str] | None) -> RowReader:
    """The reader of the columns without which a row is bad."""
    return read if needed is None else read.only([name for name in read.schema.names if name in needed])


def _values(rows: Sequence[TextRow], read: RowReader, kind: pa.DataType) -> pa.ChunkedArray:
    """The values of the only column of a reader, with null for those that are bad."""
    chunks: list[pa.Array] = []
    waiting = [rows]
    while waiting:
        some = waiting.pop()
        try:
            chunks += _counted(some, read(_joined(some))).column(0).chunks
        except REFUSED:
            if len(some) == 1:
                chunks.append(pa.nulls(1, kind))
            else:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
    return pa.chunked_array(chunks, kind)


def _joined(rows: Sequence[TextRow]) -> bytes:
    return b"\n".join([*(row.text for row in rows), b""])


def _counted(rows: Sequence[TextRow], table: pa.Table) -> pa.Table:
    """The table; raises if some of the rows became one."""
    if len(rows) > 1 and table.num_rows != len(rows):
        raise pa.ArrowInvalid("rows run into each other")
    return table


__all__ = [
    "CAUSES",
    "ERRORS",
    "LONGEST_TEXT",
    "NO_TEXT",
    "REFUSED",
    "UNREADABLE",
    "BadRow",
    "BadRows",
    "RowReader",
    "TextBlock",
    "TextRow",
    "read_rows",
    "shortened",
]

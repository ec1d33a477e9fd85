"""The text of a CSV file in blocks of whole rows, cut as Arrow's parser cuts it: by quotes, and by any end of a line.

Guarded by tests/files/test_csv_text.py and tests/files/test_bad_rows.py.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from ..errors import InvalidArgument
from .text_stream import SMALL, TextStream
from .unreadable_rows import TextBlock, TextRow

LONGEST = 1 << 30
"""The bytes of the longest row that can be read, since Arrow counts the bytes of a block in 31 bits."""

BOM = b"\xef\xbb\xbf"
"""The mark of the order of bytes, with which a file of UTF-8 may begin."""

_END = re.compile(rb"\r\n|\r|\n")


def csv_options(options: Mapping[str, Any]) -> tuple[pacsv.ParseOptions, dict[str, Any]]:
    """The options that cut a CSV file into values, and the arguments for converting the values."""
    given = ("delimiter", "quote_char", "double_quote", "escape_char", "newlines_in_values")
    parse = pacsv.ParseOptions(**{name: options[name] for name in given if name in options})
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


def line_ends(data: bytes | bytearray, start: int = 0, stop: int | None = None) -> int:
    r"""The number of ends of lines between two places.

    >>> line_ends(b"a\r\nb\rc\n")
    3
    """
    stop = len(data) if stop is None else stop
    letters = np.frombuffer(data, np.uint8, stop - start, start) if stop > start else np.zeros(0, np.uint8)
    count = int(np.count_nonzero(letters == ord("\n")))
    if data.find(b"\r", start, stop) >= 0:
        count += int(np.count_nonzero(letters == ord("\r"))) - data.count(b"\r\n", start, stop)
    return count


@dataclass(frozen=True)
class CsvForm:
    r"""The characters that part the values and the rows of a CSV file.

    >>> rows, endless = CsvForm(newlines_in_values=True).rows(b'1,"a\nb"\n\n2,c\n3,"d\n4,e\n', 1)
    >>> [(row.line, row.text) for row in rows], endless[0].line
    ([(1, b'1,"a\nb"'), (4, b'2,c'), (6, b'4,e')], 5)
    """

    delimiter: bytes = b","
    quote: bytes | None = b'"'
    double_quote: bool = True
    escape: bytes | None = None
    newlines_in_values: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CsvForm:
        """The form that the options of a CSV file name, with Arrow's defaults."""
        quote, escape = options.get("quote_char", '"'), options.get("escape_char", False)
        return cls(
            options.get("delimiter", ",").encode(),
            quote.encode() if quote else None,
            options.get("double_quote", True),
            escape.encode() if escape else None,
            options.get("newlines_in_values", False),
        )

    def blocks(self, stream: TextStream, size: int, skip_rows: int, header: bool) -> Iterator[TextBlock]:
        """The rows after the lines that are skipped and the header, in blocks of at most about so many bytes.

        The memory of a block is used again when the next one is asked for.
        """
        line = 0
        for window in stream.windows(size):
            data, stop = window.data, window.stop
            if line == 0:
                # The header may be all that there is, in a line without an end.
                text = bytes(memoryview(data)[window.start : stop]) + b"\n" * window.is_last
                body = self.body(text, skip_rows, header)
                if body is not None:
                    line, window.start = 1 + line_ends(text, 0, body[0]), min(window.start + body[0], stop)
            start = window.start
            end = 0
            if line:
                end = stop if window.is_last else self.end(data, start, stop)
            if end > start:
                block, lines = memoryview(data)[start:end], line_ends(data, start, end)
                yield TextBlock(block, line, lines, window.is_last, self._is_special(data, start, end))
                line, window.start = line + lines, end
            elif stop - start > LONGEST:
                raise pa.ArrowInvalid(f"it has a line of more than {LONGEST} bytes")

    def body(self, data: bytes, skip_rows: int, header: bool) -> tuple[int, bytes] | None:
        """The place after the skipped lines and the header, and the text of the header; None if the data end before."""
        place, text = len(BOM) if data.startswith(BOM) else 0, b""
        for _ in range(skip_rows):
            end = _END.search(data, place)
            if end is None or end.end() == len(data):
                return None
            place = end.end()
        if header:
            place = len(data) - len(data[place:].lstrip(b"\r\n"))
            row = self._row.match(data, place)
            end = None if row is None else _END.match(data, row.end())
            if row is None or end is None or (end[0] == b"\r" and end.end() == len(data)):
                return None
            place, text = end.end(), row[0]
        return place, text

    def names(self, header: bytes) -> list[str] | None:
        """The names in a header; None if some are in quotes, or no text."""
        if self._is_special(header, 0, len(header)):
            return None
        try:
            return header.decode().split(self.delimiter.decode())
        except UnicodeDecodeError:
            return None

    def end(self, data: bytes | bytearray, start: int, stop: int) -> int:
        """The place after the last whole row of those that begin at a place; 0 if there is none."""
        last = stop - 1  # after an \r there may come the \n that belongs to it
        if not self.newlines_in_values or not self._is_special(data, start, stop):
            return max(data.rfind(b"\n", start, stop), data.rfind(b"\r", start, last)) + 1
        quotes = self._quotes(data, start, stop)
        if quotes is None:
            rows, endless = self._places(data, start, stop)
            if endless:  # its quote may be closed by what comes next
                rows = [row for row in rows if row < endless[0]]
            ends = (_END.match(data, end, stop) for _, end in reversed(rows))
            return next((end.end() for end in ends if end and not (end[0] == b"\r" and end.end() == stop)), 0)
        end = stop
        while (end := max(data.rfind(b"\n", start, end), data.rfind(b"\r", start, min(end, last)))) >= 0:
            if np.searchsorted(quotes, end) % 2 == 0:
                return end + 1
        return 0

    def is_closed(self, data: bytes) -> bool:
        """False if data that begin with a row end within quotes."""
        if not self._is_special(data, 0, len(data)):
            return True
        quotes = self._quotes(data, 0, len(data))
        return not self._places(data, 0, len(data))[1] if quotes is None else len(quotes) % 2 == 0

    def rows(self, data: bytes, line: int) -> tuple[list[TextRow], list[TextRow]]:
        """The rows of data that begin at a line, and the lines with a quote that is not closed, which are none.

        Without `newlines_in_values` each line is a row.
        """
        if not self.newlines_in_values or not self._is_special(data, 0, len(data)):
            rows = [TextRow(number, text) for number, text in enumerate(data.splitlines(), line) if text]
            endless = {
                row for row in rows if self._is_special(row.text, 0, len(row.text)) and not self._is_row(row.text)
            }
            return [row for row in rows if row not in endless] if endless else rows, sorted(endless)
        ends = np.array([end.start() for end in _END.finditer(data)], np.int64)
        whole, endless_rows = (
            [TextRow(line + int(number), data[start:end]) for number, (start, end) in zip(numbers, places, strict=True)]
            for places in self._places(data, 0, len(data))
            for numbers in [np.searchsorted(ends, [start for start, _ in places])]
        )
        return whole, endless_rows

    def is_whole(self, block: TextBlock, rows: int) -> bool:
        """True if so many rows are all of a block, and none of them ends within quotes because the block does."""
        if not block.has_quotes:
            return True
        if self.newlines_in_values:
            return not block.is_last or self.is_closed(bytes(block.data))
        # A line that goes on takes the next one with it, so that there are fewer rows, unless it is the last.
        lines = block.lines + (block.data[-1] not in b"\r\n")
        if rows != lines and rows != sum(map(bool, bytes(block.data).splitlines())):
            return False
        for tail in (block.data[-SMALL:], block.data):
            *before, last = bytes(tail).rstrip(b"\r\n").splitlines() or [b""]
            if before or len(tail) == len(block.data):
                break
        return self._is_row(last)

    def _is_row(self, text: bytes) -> bool:
        return self._row.fullmatch(text) is not None

    def _is_special(self, data: bytes | bytearray, start: int, stop: int) -> bool:
        """True if a row can be more than a line."""
        return any(mark is not None and data.find(mark, start, stop) >= 0 for mark in (self.quote, self.escape))

    def _quotes(self, data: bytes | bytearray, start: int, stop: int) -> np.ndarray | None:
        """The places of quotes, if every second one begins a value in quotes and the next one ends it."""
        if self.quote is None or (self.escape is not None and data.find(self.escape, start, stop) >= 0):
            return None
        letters = np.frombuffer(data, np.uint8, stop)
        places = start + np.flatnonzero(letters[start:] == ord(self.quote))
        opening = places[::2]
        return places if self._may_open[letters[opening[opening > start] - 1]].all() else None

    @cached_property
    def _may_open(self) -> np.ndarray:
        """True for each letter after which a quote opens a value.

        After a quote that ends a value, one that begins another is the second of two that stand for one.
        """
        may = np.zeros(256, np.bool_)
        may[list(self.delimiter + b"\r\n" + (self.quote or b"" if self.double_quote else b""))] = True
        return may

    def _places(
        self, data: bytes | bytearray, start: int, stop: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The places of rows, and of lines in which a quote opens that is not closed."""
        rows, endless = list[tuple[int, int]](), list[tuple[int, int]]()
        place, match = start, self._row.match
        while place < stop:  # a loop over rows, because a row says where the next one begins
            if data[place] in b"\r\n":
                place += 1
            elif (row := match(data, place, stop)) is not None:
                rows.append((place, row.end()))
                place = row.end()
            else:
                end = _END.search(data, place, stop)
                endless.append((place, stop if end is None else end.start()))
                place = endless[-1][1]
        return rows, endless

    @cached_property
    def _row(self) -> re.Pattern[bytes]:
        """A row up to the end of its last line. It does not match where a quote is not closed."""
        mark, escape = re.escape(self.delimiter), re.escape(self.escape or b"")
        escaped = b"|" + escape + b"." if escape else b""
        plain = b"(?:[^" + mark + rb"\r\n" + escape + b"]++" + escaped + b")*+"
        value = plain
        if self.quote is not None:
            quote = re.escape(self.quote)
            double = b"|" + quote * 2 if self.double_quote else b""
            inside = b"(?:[^" + quote + escape + b"]++" + double + escaped + b")*+"
            value = b"(?:" + quote + inside + quote + plain + b"|(?!" + quote + b")" + plain + b")"
        return re.compile(value + b"(?:" + mark + value + rb")*+(?=[\r\n]|\Z)", re.DOTALL)


__all__ = ["BOM", "LONGEST", "CsvForm", "csv_options", "line_ends", "require_csv_options"]

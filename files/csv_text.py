"""The text of a CSV file in blocks of whole rows, cut as Arrow's parser cuts it: by quotes, and by any end of a line.

It is read into memory that is used again and again, since new memory takes as long as the parsing of what comes into
it. While a block is parsed, a thread reads what comes next.

Without a schema the types of its columns are Arrow's, but numbers that begin with a zero stay texts.

Guarded by tests/files/test_csv_text.py, tests/files/test_csv_types.py, tests/files/test_text_stream.py and
tests/files/test_bad_rows.py.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.fs as pafs

from .unreadable_rows import NO_TEXT, TextBlock, TextRow

LONGEST = 1 << 30
"""The bytes of the longest row that can be read, since Arrow counts the bytes of a block in 31 bits."""

BOM = b"\xef\xbb\xbf"
"""The mark of the order of bytes, with which a file of UTF-8 may begin."""

_END = re.compile(rb"\r\n|\r|\n")

SMALL = 1 << 16
"""The bytes of the first piece, and of the longest beginning of a row that is put before the next piece."""

_NAMES = r"^[+-]?0[0-9]+$"
"""A number that is a name, of a place or an article: 01234 is another one than 1234."""

_MARK = "uncombine.unreadable"
"""The name of the treatment of bytes that are no text in the encoding of a file."""

_DECODED = 1 << 18
"""The bytes that are decoded together, which fit into the caches of a processor."""

_Piece: TypeAlias = tuple[bytearray, int, bool]
"""Memory whose bytes from `SMALL` on are text, the number of them, and True if it is the last text."""


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return NO_TEXT.decode("utf-8", "surrogatepass"), error.end


codecs.register_error(_MARK, _marked)


@dataclass
class Window:
    """A part of the text. A reader moves `start` on; what is left comes before the next piece."""

    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    stop: int = 0
    is_last: bool = False

    def goes_on(self, memory: bytearray, count: int) -> bytearray:
        """Put what is left before some bytes that came into memory; gives the memory that is free then."""
        rest, free = memoryview(self.data)[self.start : self.stop], self.data
        if len(rest) <= SMALL:
            memory[SMALL - len(rest) : SMALL] = rest
            self.data, self.start, self.stop = memory, SMALL - len(rest), SMALL + count
            return free
        self.data = bytearray(len(rest) + count)
        self.data[: len(rest)] = rest
        self.data[len(rest) :] = memoryview(memory)[SMALL : SMALL + count]
        self.start, self.stop = 0, len(self.data)
        return memory


class TextStream:
    """The text of a file.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("käse", encoding="latin-1")
    >>> with TextStream(pafs.LocalFileSystem(), str(path), "latin-1") as stream:
    ...     [bytes(window.data[window.start : window.stop]).decode() for window in stream.windows(100)]
    ['käse']
    """

    def __init__(self, system: pafs.FileSystem, path: str, encoding: str = "utf8") -> None:
        self._stream = system.open_input_stream(path, compression="detect")
        self._decoder, self._text = None, memoryview(b"")
        if codecs.lookup(encoding).name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding)(_MARK)

    def windows(self, size: int) -> Iterator[Window]:
        """A window over the text, which grows by at most about so many bytes at a time, and by few at first."""
        window, step, free = Window(), min(size, SMALL), bytearray()
        coming: Future[_Piece] | None = None
        with ThreadPoolExecutor(1) as thread:
            while not window.is_last:
                rest = window.stop - window.start
                more = max(step, rest)  # so that a row of many pieces is not moved with each of them
                memory, count, window.is_last = self._piece(free, more) if coming is None else coming.result()
                free, coming, step = window.goes_on(memory, count), None, min(8 * step, size)
                if step == size and not window.is_last:
                    coming = thread.submit(self._piece, free, max(size, rest))
                yield window

    def _piece(self, free: bytearray, size: int) -> _Piece:
        memory = free if len(free) >= SMALL + size else bytearray(SMALL + size)
        count = self.fill(memoryview(memory)[SMALL : SMALL + size])
        return memory, count, count < size

    def fill(self, memory: memoryview) -> int:
        """Fill some memory; the number of bytes is smaller than asked for only where the file ends."""
        count = 0
        while count < len(memory) and (more := self._read(memory[count:])):
            count += more
        return count

    def _read(self, memory: memoryview) -> int:
        if self._decoder is None:
            return int(self._stream.readinto(memory))
        while not self._text:
            piece = self._stream.read_buffer(_DECODED).to_pybytes()
            self._text = memoryview(self._decoder.decode(piece, not piece).encode("utf-8", "surrogatepass"))
            if not piece:
                break
        count = min(len(memory), len(self._text))
        memory[:count], self._text = self._text[:count], self._text[count:]
        return count

    def __enter__(self) -> TextStream:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()


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
                yield TextBlock(block, line, lines, window.is_last)
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
        if self.newlines_in_values:
            return not block.is_last or self.is_closed(bytes(block.data))
        # A line that goes on takes the next one with it, so that there are fewer rows, unless it is the last.
        if rows == block.lines + (block.data[-1] not in b"\r\n"):
            return self._ends_with_row(block.data)
        data = bytes(block.data)
        if not self._is_special(data, 0, len(data)):
            return True
        return rows == sum(map(bool, data.splitlines())) and self._ends_with_row(block.data)

    def _ends_with_row(self, data: bytes | memoryview) -> bool:
        """True if the last line that is not empty is a row."""
        for tail in (data[-SMALL:], data):
            *before, last = bytes(tail).rstrip(b"\r\n").splitlines() or [b""]
            if before or len(tail) == len(data):
                break
        return not self._is_special(last, 0, len(last)) or self._is_row(last)

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


def csv_beginning(
    data: bytes, read: pacsv.ReadOptions, parse: pacsv.ParseOptions, convert: Mapping[str, Any]
) -> pa.Table:
    """The first rows of a file in the types that their values have.

    >>> text = b" ".join([b"zip,n", b"01234,0", b"99999,10", b""]).replace(b" ", bytes([10]))
    >>> csv_beginning(text, pacsv.ReadOptions(), pacsv.ParseOptions(), {}).schema.types
    [DataType(string), DataType(int64)]
    """

    def table(types: Mapping[str, pa.DataType]) -> pa.Table:
        return pacsv.read_csv(pa.BufferReader(data), read, parse, pacsv.ConvertOptions(column_types=types, **convert))

    first = table({})
    names = first.column_names
    kinds = {field.name: field.type for field in first.schema if names.count(field.name) == 1}
    numbers = [name for name, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    texts = table(dict.fromkeys(numbers, pa.string())) if numbers else first
    kept = [name for name in numbers if pc.any(pc.match_substring_regex(texts[name], _NAMES)).as_py()]
    return table(dict.fromkeys(kept, pa.string())) if kept else first


__all__ = ["BOM", "LONGEST", "SMALL", "CsvForm", "TextStream", "Window", "csv_beginning", "line_ends"]

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
import pyarrow.fs as pafs

from .unreadable_rows import NO_TEXT, TextBlock, TextRow

LONGEST = 1 << 30
"""The bytes of the longest row that can be read, since Arrow counts the bytes of a block in 31 bits."""

BOM = b"\xef\xbb\xbf"
"""The mark of the order of bytes, with which a file of UTF-8 may begin."""

_END = re.compile(rb"\r\n|\r|\n")

_MARK = "uncombine.unreadable"
"""The name of the treatment of bytes that are no text in the encoding of a file."""


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return NO_TEXT.decode("utf-8", "surrogatepass"), error.end


codecs.register_error(_MARK, _marked)


def text_pieces(system: pafs.FileSystem, path: str, size: int, encoding: str = "utf8") -> Iterator[bytes]:
    """The text of a file as UTF-8, without its compression, in pieces that begin and end anywhere."""
    decoder = None
    if codecs.lookup(encoding).name != "utf-8":
        decoder = codecs.getincrementaldecoder(encoding)(_MARK)
    with system.open_input_stream(path, compression="detect") as stream:
        # read() does not free its memory when it fails.
        while piece := stream.read_buffer(size).to_pybytes():
            yield piece if decoder is None else decoder.decode(piece).encode("utf-8", "surrogatepass")
    if decoder is not None and (last := decoder.decode(b"", True)):
        yield last.encode("utf-8", "surrogatepass")


def line_ends(data: bytes) -> int:
    r"""The number of ends of lines.

    >>> line_ends(b"a\r\nb\rc\n")
    3
    """
    letters = np.frombuffer(data, np.uint8)
    count = int(np.count_nonzero(letters == ord("\n")))
    if b"\r" in data:
        count += int(np.count_nonzero(letters == ord("\r"))) - data.count(b"\r\n")
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

    def blocks(self, pieces: Iterator[bytes], skip_rows: int, header: bool) -> Iterator[TextBlock]:
        """The rows after the lines that are skipped and the header, in blocks."""
        parts, size, wanted, line = list[bytes](), 0, 0, 0
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size < wanted:  # so that a row of many pieces is not searched with each of them
                continue
            data = b"".join(parts)
            start = self._body(data, skip_rows, header) if line == 0 else 0
            if start is not None and line == 0:
                line, data = 1 + line_ends(data[:start]), data[start:]
            end = 0 if start is None else self.end(data)
            if end:
                yield TextBlock(data[:end], line, lines := line_ends(data[:end]))
                line, data = line + lines, data[end:]
            elif len(data) > LONGEST:
                raise pa.ArrowInvalid(f"it has a line of more than {LONGEST} bytes")
            parts, size, wanted = [data], len(data), 0 if end else 2 * len(data)
        data = b"".join(parts)
        if line == 0:
            # The header is all that there is, and its line may have no end.
            start = self._body(data + b"\n", skip_rows, header)
            line, data = 1 + line_ends(data[:start]), data[start:] if start is not None else b""
        if data:
            yield TextBlock(data, line, line_ends(data), is_last=True)

    def _body(self, data: bytes, skip_rows: int, header: bool) -> int | None:
        """The place after the skipped lines and the header; None if the data end before."""
        place = len(BOM) if data.startswith(BOM) else 0
        for _ in range(skip_rows):
            end = _END.search(data, place)
            if end is None or end.end() == len(data):
                return None
            place = end.end()
        if header:
            place = re.compile(rb"[\r\n]*").match(data, place).end()  # type: ignore[union-attr]
            row = self._row.match(data, place)
            end = None if row is None else _END.match(data, row.end())
            if end is None or (end[0] == b"\r" and end.end() == len(data)):
                return None
            place = end.end()
        return place

    def end(self, data: bytes) -> int:
        """The place after the last whole row of data that begin with a row; 0 if there is none."""
        if not self.newlines_in_values or not self._is_special(data):
            # After an \r at the end there may come the \n that belongs to it.
            return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        quotes = self._quotes(data)
        if quotes is None:
            rows, endless = self._rows(data)
            if endless:  # its quote may be closed by what comes next
                rows = [row for row in rows if row < endless[0]]
            ends = (_END.match(data, end) for _, end in reversed(rows))
            return next((end.end() for end in ends if end and not (end[0] == b"\r" and end.end() == len(data))), 0)
        end = len(data)
        while (end := max(data.rfind(b"\n", 0, end), data.rfind(b"\r", 0, min(end, len(data) - 1)))) >= 0:
            if np.searchsorted(quotes, end) % 2 == 0:
                return end + 1
        return 0

    def is_closed(self, data: bytes) -> bool:
        """False if data that begin with a row end within quotes."""
        if not self._is_special(data):
            return True
        quotes = self._quotes(data)
        return not self._rows(data)[1] if quotes is None else len(quotes) % 2 == 0

    def rows(self, data: bytes, line: int) -> tuple[list[TextRow], list[TextRow]]:
        """The rows of data that begin at a line, and those whose quotes are not closed, which end with their line."""
        if not self._is_special(data):
            texts = data.splitlines()
            return [TextRow(number, text) for number, text in enumerate(texts, line) if text], []
        ends = np.array([end.start() for end in _END.finditer(data)], np.int64)
        whole, endless = (
            [TextRow(line + int(number), data[start:end]) for number, (start, end) in zip(numbers, places, strict=True)]
            for places in self._rows(data)
            for numbers in [np.searchsorted(ends, [start for start, _ in places])]
        )
        return whole, endless

    def parted(self, row: TextRow) -> tuple[TextRow, bytes]:
        """A bad row without its lines after the first, and these lines, unless values may have several lines."""
        end = None if self.newlines_in_values else _END.search(row.text)
        if end is None:
            return row, b""
        return TextRow(row.line, row.text[: end.start()]), row.text[end.end() :]

    def _is_special(self, data: bytes) -> bool:
        """True if a row can be more than a line."""
        return any(mark is not None and mark in data for mark in (self.quote, self.escape))

    def _quotes(self, data: bytes) -> np.ndarray | None:
        """The places of quotes, if every second one begins a value in quotes and the next one ends it."""
        if self.quote is None or (self.escape is not None and self.escape in data):
            return None
        letters = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(letters == ord(self.quote))
        opening = places[::2]
        before = letters[opening[opening > 0] - 1]
        # After a quote that ends a value, one that begins another is the second of two that stand for one.
        allowed = [ord(self.delimiter), ord("\r"), ord("\n"), *([ord(self.quote)] if self.double_quote else [])]
        return places if np.isin(before, allowed).all() else None

    def _rows(self, data: bytes) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The places of rows, and of lines in which a quote opens that is not closed."""
        rows, endless = list[tuple[int, int]](), list[tuple[int, int]]()
        place, match = 0, self._row.match
        while place < len(data):  # a loop over rows, because a row says where the next one begins
            if data[place] in b"\r\n":
                place += 1
            elif (row := match(data, place)) is not None:
                rows.append((place, row.end()))
                place = row.end()
            else:
                end = _END.search(data, place)
                endless.append((place, len(data) if end is None else end.start()))
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


__all__ = ["BOM", "LONGEST", "CsvForm", "line_ends", "text_pieces"]

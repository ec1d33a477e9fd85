"""The text of a file, as UTF-8 and without its compression, in memory that is used again and again.

New memory takes as long as the parsing of what comes into it. While a piece is parsed, a thread reads the next one.

Guarded by tests/files/test_text_stream.py and tests/files/test_bad_rows.py.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow.fs as pafs

from .unreadable_rows import NO_TEXT

SMALL = 1 << 16
"""The bytes of the first piece, and of the longest beginning of a row that is put before the next piece."""

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


__all__ = ["SMALL", "TextStream", "Window"]

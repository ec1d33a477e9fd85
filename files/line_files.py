"""Files of text: a row a line, in one column.

Guarded by tests/files/test_line_files.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from .csv_text import LONGEST

BLOCK = 8 << 20
"""The bytes of a CSV or JSON file, or one of lines, that are parsed at once."""

COLUMN = "value"
"""The column of the lines, as Spark's own format of text names it."""


class LineSource:
    """An open file of text, whose lines are rows. An empty line is an empty text; bytes that are no UTF-8 are a fault.

    A line ends with a line feed, with or without a carriage return before it.
    """

    schema: pa.Schema = pa.schema({COLUMN: pa.string()})

    def __init__(self, system: pafs.FileSystem, path: str) -> None:
        self.system, self.path = system, path

    def parts(self) -> list[float]:
        """One part: the file is read from its beginning to its end."""
        return [1.0]

    def tables(
        self, columns: list[str], first: int | None, last: int | None, where: pc.Expression | None
    ) -> Iterator[pa.Table]:
        """The lines in their order."""
        start = True
        for block in blocks_of_lines(self.system, self.path, BLOCK):
            text = block.decode("utf-8-sig" if start else "utf-8")
            start = False
            lines = text.removesuffix("\n").split("\n")
            values = pa.array([line.removesuffix("\r") for line in lines], pa.string())
            yield pa.table({COLUMN: values}).select(columns)


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


__all__ = ["BLOCK", "COLUMN", "LineSource", "blocks_of_lines"]

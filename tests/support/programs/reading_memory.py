"""A process of its own that reads a file in pieces and prints the rows, the bytes of text and the peak of memory."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from uncombine.files.reading import describe, read, splits
from uncombine.sparkops.routes.tasks import pieces


def text_bytes(column: pa.ChunkedArray) -> int:
    if pa.types.is_list(column.type):
        return sum(text_bytes(pa.chunked_array([chunk.flatten()])) for chunk in column.chunks)
    return sum(pc.sum(pc.binary_length(chunk)).as_py() or 0 for chunk in column.chunks)


def main(path: str, on_bad_file: str) -> dict[str, Any]:
    fmt = describe(path, on_bad_file=on_bad_file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    skipped: list[str] = []
    rows = size = largest = 0
    for piece in pieces(read(fmt, splits(fmt, path), lambda name, reason: skipped.append(reason))):
        rows, largest = rows + piece.num_rows, max(largest, piece.nbytes)
        size += text_bytes(piece["text"])
        del piece
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"rows": rows, "size": size, "largest": largest, "peak": (peak - before) << 10, "skipped": skipped}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))

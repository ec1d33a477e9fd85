"""Rows in pieces: small tables are joined, and large ones cut, before their rows are combined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..combiners.rows.columns import joined_tables
from ..combiners.rows.decoded_sizes import cut, fixed_bytes

PIECE_ROWS = 2_000_000
PIECE_BYTES = 256 << 20
"""The bytes of rows that are combined at once: more rows together give fewer cells, but take more memory."""


def pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join tables until they are large enough, and cut a table that is too large.

    >>> table = pa.table({"n": range(3)})
    >>> [piece.num_rows for piece in pieces([table, table.slice(0, 0), table])]
    [6]
    """
    parts: list[pa.Table] = []
    rows = size = 0
    for table in _cut(tables):
        if parts and (rows + table.num_rows > PIECE_ROWS or size + table.nbytes > PIECE_BYTES):
            yield joined_tables(parts)
            parts, rows, size = [], 0, 0
        parts.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        del table  # so that no reference to a used table is left
        if rows >= PIECE_ROWS or size >= PIECE_BYTES:
            yield joined_tables(parts)
            parts, rows, size = [], 0, 0
    if parts:
        yield joined_tables(parts)


def _cut(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    fixed, schema = 0, None
    for table in tables:
        if table.num_rows:
            if table.schema != schema:
                schema = table.schema
                fixed = sum(map(fixed_bytes, schema.types))
            yield from cut(table, fixed, PIECE_ROWS, PIECE_BYTES)

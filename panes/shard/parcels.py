"""Parcels: what travels from where rows are read to the shard that keeps their windows."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...windows.times import MIN_TIME

AT = "uncombine_at"
"""The column of rows that travel which says when they arrived."""

MARKS = pa.schema([("source", pa.string()), ("time", pa.int64()), ("at", pa.int64())])
"""What sources say: the source, how far it has come (null: it only was heard of), and when it said so.

A row of two nulls is of no source and tells only how late it is."""

_ABOUT = b"uncombine.parcel"

_PACKING = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
"""Much of what counts and weighs is small or the same: what is left out need not go through the shuffle."""


@dataclass(frozen=True)
class Parcel:
    """Some of a bundle, for one shard.

    `kind` is "cells", "rows", "marks", "spent" (which says only that), or "nothing" (which says that a row is wanted
    even of no rows); cells came all at one processing time, `at`.
    """

    kind: str
    table: pa.Table
    at: int = MIN_TIME
    bad: int = 0
    unassigned: int = 0
    lo: int = 0
    """Where the parcel begins in the order of the shard's parcels."""
    spent: tuple[int, int] = (0, 0)
    """Microseconds that the task which sent it took to read rows, and to combine them."""

    def pack(self) -> bytes:
        """The parcel as one Arrow IPC message."""
        about: dict[str, object] = {
            "kind": self.kind,
            "at": self.at,
            "bad": self.bad,
            "unassigned": self.unassigned,
            "lo": self.lo,
        }
        about["spent"] = self.spent
        table = self.table.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_PACKING) as writer:
            writer.write_table(table)
        packed: bytes = sink.getvalue().to_pybytes()
        return packed

    @classmethod
    def unpack(cls, packed: bytes | pa.Buffer) -> Parcel:
        """A parcel out of its message."""
        table = pa.ipc.open_stream(pa.py_buffer(packed)).read_all()
        about = json.loads(table.schema.metadata[_ABOUT])
        about["spent"] = tuple(about["spent"])
        return cls(table=table.replace_schema_metadata(None), **about)


def parts(table: pa.Table, column: str) -> list[tuple[int, pa.Table]]:
    """The rows for each value of an int64 column, values in order, rows in theirs."""
    values = np.asarray(flat(table[column]).to_numpy(zero_copy_only=False))
    if len(values) == 0:
        return []
    if (values == values[0]).all():
        return [(int(values[0]), table)]
    order = np.argsort(values, kind="stable")
    ordered = table.take(pa.array(order))
    cuts = np.flatnonzero(np.diff(values[order])) + 1
    first, last = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(values)]])
    return [(int(values[order[a]]), ordered.slice(int(a), int(b - a))) for a, b in zip(first, last, strict=True)]

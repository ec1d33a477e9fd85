"""Parcels: they carry rows, cells and watermark reports from the tasks that read them to the shards."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from ..combiners.rows.columns import int64_column
from ..errors import StateMismatch
from ..windows.times import MIN_TIME

AT = "uncombine_at"
"""The column with the processing time of rows that travel as rows."""

MARKS = pa.schema([("source", pa.string()), ("time", pa.int64()), ("at", pa.int64())])
"""Watermark reports: the source, its event time (null: it is only active), and the processing time of the report.

A row with two nulls is of no source and only carries the processing time."""

_ABOUT = b"uncombine.parcel"

READS = pa.schema(
    [
        ("source", pa.string()),
        ("offset", pa.int64()),
        ("end", pa.int64()),
        ("idle", pa.bool_()),
        ("at", pa.int64()),
    ]
)
"""The place to which each source has been read after the batch of a processing time."""

_KINDS = frozenset({"cells", "rows", "marks", "hold", "reads", "clock", "panes", "left_out", "nothing", "piece"})
_NUMBERS = ("at", "bad", "unassigned", "lo", "input")

_CHECK = 4
"""The bytes of the checksum at the end of a parcel. Arrow's messages have none, so a changed byte changes a sum."""

_PACKING = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
"""Counts and weights are often small or equal, so compression makes the shuffle smaller."""


@dataclass(frozen=True)
class Parcel:
    """A part of a bundle, for one shard.

    `kind` is "cells", "rows", "marks" (watermark reports), "hold" (a time that no report of the input passes), "reads"
    (how far each source of the input is read), "clock" (only the processing time `at` of another source, up to which
    timers fire), "panes" (from the shard to the result), "left_out" (rows without a result, on their way past later
    steps), or "nothing" (asks for the result of no rows).
    All cells of a parcel came at one processing time, `at`. Rows, reports and holds belong to one `input` of the shard.
    """

    kind: str
    table: pa.Table
    at: int = MIN_TIME
    bad: int = 0
    unassigned: int = 0
    lo: int = 0
    """The first place of the parcel in the order of the shard's parcels."""
    input: int = 0
    """The input of the shard, if it has several."""

    def pack(self) -> bytes:
        """The parcel as one Arrow IPC message and its checksum."""
        about: dict[str, object] = {
            "kind": self.kind,
            "at": self.at,
            "bad": self.bad,
            "unassigned": self.unassigned,
            "lo": self.lo,
            "input": self.input,
        }
        table = self.table.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_PACKING) as writer:
            writer.write_table(table)
        message = sink.getvalue()
        return b"".join((message, zlib.crc32(message).to_bytes(_CHECK, "little")))

    @classmethod
    def unpack(cls, packed: bytes | pa.Buffer) -> Parcel:
        """The parcel that `pack` wrote."""
        whole = memoryview(packed)
        message, check = whole[:-_CHECK], whole[-_CHECK:]
        if not message or zlib.crc32(message) != int.from_bytes(check, "little"):
            _refuse("has another checksum than it was sent with")
        try:
            table = pa.ipc.open_stream(pa.py_buffer(message)).read_all()
            table.validate(full=True)
            about = json.loads((table.schema.metadata or {})[_ABOUT])
        except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, RecursionError) as error:
            _refuse(f"cannot be read ({type(error).__name__})")
        _check(about)
        return cls(table=table.replace_schema_metadata(None), **about)


def _check(about: Any) -> None:
    """Raise unless these are the words and numbers of a parcel."""
    if not isinstance(about, dict) or set(about) != {"kind", *_NUMBERS} or about["kind"] not in _KINDS:
        _refuse("is of no kind that is sent")
    for name in _NUMBERS:
        number = about[name]
        if not isinstance(number, int) or isinstance(number, bool) or not -(2**63) <= number < 2**63:
            _refuse(f"has no whole number as {name!r}")


def _refuse(fault: str) -> NoReturn:
    raise StateMismatch(
        f"a parcel on its way between two steps {fault}: another version of the library sent it, or the shuffle is "
        "damaged, so run the batch again with one version on all workers"
    ) from None


def parts(table: pa.Table, column: str) -> list[tuple[int, pa.Table]]:
    """The rows of each value of an int64 column. Values are sorted, rows keep their order."""
    values = int64_column(table[column])
    if len(values) and (values == values[0]).all():
        return [(int(values[0]), table)]
    order, cuts = runs(values)
    ordered = table.take(pa.array(order))
    return [(value, ordered.slice(first, stop - first)) for value, first, stop in cuts]


def runs(values: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """A stable order of int64 values, and in it each value with its first place and the place after its last.

    >>> import numpy as np
    >>> order, cuts = runs(np.array([7, 5, 7]))
    >>> order.tolist(), cuts
    ([1, 0, 2], [(5, 0, 1), (7, 1, 3)])
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = [*(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)] if len(ordered) else []
    return order, [(int(ordered[first]), first, stop) for first, stop in zip([0, *ends], ends, strict=False)]

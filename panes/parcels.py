"""What travels from where rows are read to where windows are kept: parcels of cells, of rows, and of watermarks.

Rows are combined as far as that is possible where they are read, so that few large parcels travel instead of many rows.
Rows travel as they are only where a trigger, or late rows that are given back, need to see them one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..combiners.columns import flat
from ..combiners.groups import keyed_groups, stable_order
from ..combiners.keycodes import normal_keys
from ..triggers import UserTrigger, walk
from ..windows import Assigned, Sliding
from ..windows.times import MAX_TIME, MIN_TIME
from .cells import Cells
from .grouping import Grouping
from .hashes import key_hashes
from .operator import Operator
from .rows import good_rows
from .rows_to_cells import cells_of, merge_in_order
from .slices import windows_from_slices

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


def needs_rows(grouping: Grouping) -> bool:
    """Whether rows must be seen one by one where the windows are kept, and cells are not enough."""
    return (
        grouping.granularity == "record"
        or grouping.late == "emit"
        or grouping.policy == "earliest"
        or grouping.splits
        or any(isinstance(t, UserTrigger) for t in walk(grouping.asked))
    )


class Lift:
    """Makes parcels of rows for a number of shards.

    With `timed`, rows may have a time each: then some travel as rows and some as cells, and the windows of a key stay
    together, since a row does not know its window before it arrives.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.parcels import Lift
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "x": pa.int64()})
    >>> op = uc.Operator(uc.Grouping({"n": uc.Sum("x")}, uc.Fixed("1 minute")), schema)
    >>> rows = pa.table({"ts": [0, 1], "x": [1, 2]}).cast(schema)
    >>> [(shard, parcel.kind, parcel.table.num_rows) for shard, parcel in Lift(op, 1)(rows, at=0)]
    [(0, 'cells', 1)]
    """

    def __init__(self, operator: Operator, shards: int, timed: bool = False) -> None:
        self.operator, self.shards, self.timed = operator, shards, timed
        self.as_rows = needs_rows(operator.grouping)

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        """The parcels of rows that arrived `at`, one time for all or one for each."""
        if rows.num_rows == 0:
            return []
        if isinstance(at, np.ndarray) and int(at.min()) == int(at.max()):
            at = int(at[0])
        if self.as_rows or isinstance(at, np.ndarray):
            return self._rows(rows, at)
        return self._cells(cells_of_rows(self.operator, rows, at), at)

    def _cells(self, cells: Cells, at: int) -> list[tuple[int, Parcel]]:
        counts = (cells.bad, cells.unassigned)
        out = []
        whole = cells_table(cells, live_numbers(self.operator))
        for shard, table in self._split(whole, self.shard_of(cells.keys, cells.start), self.shards):
            out.append((shard, Parcel("cells", table, at, *counts)))
            counts = (0, 0)
        if any(counts):  # rows of which nothing was left but their number
            out.append((0, Parcel("cells", whole, at, *counts)))
        return out

    def _rows(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        keys = [normal_keys(flat(rows[name])) for name in self.operator.grouping.by]
        shards = self.shard_of(keys, None, rows.num_rows)
        times = np.full(rows.num_rows, at) if isinstance(at, int) else at
        table = rows.append_column(AT, pa.array(times, pa.int64()))
        return [(shard, Parcel("rows", part)) for shard, part in self._split(table, shards, self.shards)]

    def shard_of(self, keys: Sequence[pa.Array], start: np.ndarray | None, count: int | None = None) -> np.ndarray:
        """The shard of each key, or of each window where windows of a key have nothing to do with each other."""
        return self._shard(self.hashes(keys, start, count))

    def hashes(self, keys: Sequence[pa.Array], start: np.ndarray | None, count: int | None = None) -> np.ndarray:
        """A hash of what must stay together."""
        rows = len(start) if count is None and start is not None else int(count or 0)
        return key_hashes(keys, rows, None if self.whole_keys else start)

    @property
    def whole_keys(self) -> bool:
        """Whether all windows of a key are in one shard."""
        window = self.operator.grouping.window
        return window.merging or isinstance(window, Sliding) or self.as_rows or self.timed

    def _shard(self, hashes: np.ndarray) -> np.ndarray:
        mixed = (hashes * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        return (mixed % np.uint64(self.shards)).astype(np.int64)

    def _split(self, table: pa.Table, codes: np.ndarray, count: int) -> Iterable[tuple[int, pa.Table]]:
        if table.num_rows == 0:
            return
        if count == 1:
            yield 0, table
            return
        ordered = table.take(pa.array(stable_order(codes, count)))
        sizes = np.bincount(codes, minlength=count)
        ends = np.cumsum(sizes)
        for code in np.flatnonzero(sizes).tolist():
            yield code, ordered.slice(int(ends[code] - sizes[code]), int(sizes[code]))


def cells_of_rows(op: Operator, rows: pa.Table, at: int) -> Cells:
    """Rows combined; windows merged among them, sliding windows still in slices."""
    good = good_rows(op.grouping, rows, at)
    return replace(cells_of(op.compiled, good, MIN_TIME, slices=True), bad=good.bad)


def live_numbers(op: Operator) -> tuple[str, ...]:
    """The numbers of cells that travel to where windows are kept."""
    return ("start", "end", "count", "weight", *op.grouping.extents)


def cells_table(cells: Cells, numbers: Sequence[str]) -> pa.Table:
    """Cells as a table; `cells_back` reads it, and takes what is missing for what it is without it."""
    columns: dict[str, pa.Array] = {f"key.{i}": key for i, key in enumerate(cells.keys)}
    for name in numbers:
        columns[name] = pa.array(getattr(cells, name))
    columns.update({f"acc.{i}": acc for i, acc in enumerate(cells.acc)})
    columns.update({f"fact.{name}": pa.array(values) for name, values in cells.facts.items()})
    return pa.table(columns)


def cells_back(op: Operator, parcels: Sequence[Parcel]) -> Cells:
    """The cells of one or more parcels, one behind the other."""
    table = pa.concat_tables([parcel.table for parcel in parcels])
    count = table.num_rows

    def numbers(name: str, otherwise: int = 1) -> np.ndarray:
        if name not in table.column_names:
            return np.full(count, otherwise)
        return np.asarray(flat(table[name]).to_numpy(zero_copy_only=False))

    return Cells(
        [flat(table[f"key.{i}"]) for i in range(len(op.grouping.by))],
        numbers("start"),
        numbers("end"),
        tuple(flat(table[f"acc.{i}"]) for i in range(len(op.plan.fields))),
        numbers("count"),
        numbers("weight"),
        numbers("earliest", MAX_TIME),
        numbers("latest", MIN_TIME),
        {fact.name: numbers(f"fact.{fact.name}") for fact in op.facts},
        unassigned=sum(parcel.unassigned for parcel in parcels),
        bad=sum(parcel.bad for parcel in parcels),
    )


def together(op: Operator, cells: Cells) -> Cells:
    """Cells from several places made one for each (key, window)."""
    window = op.grouping.window
    if len(cells) == 0:
        return cells
    if window.merging:
        merged = merge_in_order(window, cells.keys, Assigned(None, cells.start, cells.end))
        one = cells.summed(op.plan, merged.groups)
        return replace(one, start=merged.start, end=merged.end)
    bounds = [cells.start] if window.end_follows_start else [cells.start, cells.end]
    groups, _ = keyed_groups([*map(pa.array, bounds), *cells.keys], len(cells))
    return cells if groups.count == len(cells) else cells.summed(op.plan, groups)


def whole_windows(op: Operator, cells: Cells) -> Cells:
    """Cells of sliding windows out of those of their slices; other cells as they are."""
    window = op.grouping.window
    return windows_from_slices(window, op.plan, cells) if isinstance(window, Sliding) else cells


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

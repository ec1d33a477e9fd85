"""The windows, or other entries, that a state has in memory between steps: immutable chunks with an index.

So a step reads only the windows that it needs.

A step takes out the windows that its rows, its watermark or its processing time touch, and puts the remaining ones
back as one new chunk. Nothing else is copied: the cost of a step follows the windows it touches, not the windows held.
Chunks of similar size are joined as they pile up. Rows that were taken out are dead. They are dropped when
their chunk is joined.

A chunk has a bound in bytes, because the offsets of one Arrow array of texts end at 2 GiB, and because a chunk is one
value of a state store. Chunks that would exceed the bound together stay apart, and a larger table is cut.

Guarded by tests/panes/state/test_store.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ...combiners.rows.decoded_sizes import value_bytes
from ...windows.times import NEVER
from .hashes import Index, Part, upper_half

_FANOUT = 4

Places: TypeAlias = tuple[np.ndarray, ...]
"""For each chunk of a store, the places of some of its rows."""

CHUNK_BYTES = 256 << 20
"""Chunks are joined up to this many bytes. Sizes assume rows of average size, so a chunk can be up to twice as large. A
larger row is a chunk of its own."""


@dataclass(frozen=True)
class Chunk:
    """Rows of a table, some of them dead, with the hashes and clocks by which a step finds them."""

    hashes: np.ndarray
    table: pa.Table
    wake: dict[str, np.ndarray]
    """For each clock ("event", "processing", "hold"), one int64 a row: the reading from which the row is due."""
    alive: np.ndarray
    count: int
    least: dict[str, int]
    index: Index
    """The index also identifies the chunk: it stays the same object as rows die, and no two sets of rows share it."""
    exact: bool = True
    """True if `least` is of the living rows; otherwise it can be of a dead row."""

    @classmethod
    def of(cls, hashes: np.ndarray, table: pa.Table, wake: dict[str, np.ndarray]) -> Chunk:
        rows = len(hashes)
        least = {name: int(values.min()) if rows else NEVER for name, values in wake.items()}
        return cls(
            hashes=hashes,
            table=table,
            wake=wake,
            alive=np.ones(rows, np.bool_),
            count=rows,
            least=least,
            index=Index(hashes),
        )

    @property
    def living_bytes(self) -> int:
        """The bytes of the living rows, roughly: as if each had the average size."""
        # This number is much faster than the exact one, and good enough if it is small.
        most = self.table.get_total_buffer_size()
        if 8 * most > CHUNK_BYTES:
            most = self.table.nbytes
        return int(-(-most * self.count // max(len(self.alive), 1)))

    @property
    def weight(self) -> int:
        """The bytes of the values of the living rows, as if each had the average size; the same after a load."""
        return int(-(-value_bytes(self.table) * self.count // max(len(self.alive), 1)))

    def places(self, touched: np.ndarray, clocks: dict[str, int]) -> np.ndarray:
        """The places of living rows whose hash may be in `touched` (sorted, unique) or that are due."""
        chosen: np.ndarray | None = None
        for name, reading in clocks.items():
            if self.least[name] <= reading:
                due = self.wake[name] <= reading
                chosen = due if chosen is None else chosen | due
        by_hash = self.index.places(touched) if self.count else np.empty(0, np.int64)
        if chosen is None and 8 * len(by_hash) < len(self.alive):
            return by_hash[self.alive[by_hash]]
        if chosen is None:  # many rows are read faster, and if they are all rows not copied, in their own order
            chosen = np.zeros(len(self.alive), np.bool_)
        chosen[by_hash] = True
        return np.flatnonzero(chosen & self.alive)

    def without(self, places: np.ndarray) -> Chunk:
        """The chunk with these rows dead. `least` is not updated; `least_alive` computes it."""
        alive = self.alive.copy()
        alive[places] = False
        return replace(self, alive=alive, count=self.count - len(places), exact=False)

    def least_alive(self, clock: str) -> int:
        """The least reading of a clock among the living rows."""
        if self.exact or self.count == 0:
            return self.least[clock] if self.count else NEVER
        return int(self.wake[clock].min(where=self.alive, initial=NEVER))

    def living(self) -> tuple[np.ndarray, pa.Table, dict[str, np.ndarray]]:
        """The hashes, table and clocks of the living rows."""
        if self.count == len(self.alive):
            return self.hashes, self.table, self.wake
        places = np.flatnonzero(self.alive)
        wake = {name: values[places] for name, values in self.wake.items()}
        return self.hashes[places], self.table.take(pa.array(places)), wake


@dataclass(frozen=True)
class Store:
    """A set of rows found by hash or by clock; every operation gives a new store and leaves the old one as it was."""

    schema: pa.Schema
    chunks: tuple[Chunk, ...] = ()

    def __len__(self) -> int:
        return sum(chunk.count for chunk in self.chunks)

    def least(self, clock: str, below: int = NEVER) -> int:
        """The least reading of a clock at which a row is due, if it is less than `below`; else `below`."""
        least = below
        for chunk in self.chunks:
            if chunk.count and chunk.least[clock] < least:
                least = min(least, chunk.least_alive(clock))
        return least

    def next_due(self, clocks: Sequence[str]) -> int:
        """The least reading of any of these clocks at which a row is due; `NEVER` if none is."""
        names = {name for chunk in self.chunks for name in chunk.least if name in clocks}
        return min(map(self.least, names), default=NEVER)

    def weight(self, touched: np.ndarray, clocks: dict[str, int], below: int) -> tuple[int, int]:
        """The bytes, roughly, and the number of the rows that `take` would return.

        Both are 0 if all rows together have at most `below` bytes.
        """
        size = count = 0
        if sum(chunk.living_bytes for chunk in self.chunks) <= below:
            return size, count
        for chunk in self.chunks:
            rows = len(chunk.places(touched, clocks))
            size, count = size + chunk.living_bytes * rows // max(chunk.count, 1), count + rows
        return size, count

    def take(self, touched: np.ndarray, clocks: dict[str, int], part: Part | None = None) -> tuple[pa.Table, Store]:
        """The rows whose hash may be in `touched` (see `lookup`) or that are due, and the store without them.

        With `part`, only rows of that part of all hashes are taken.
        """
        out: list[pa.Table] = []
        chunks: list[Chunk] = []
        for chunk in self.chunks:
            places = chunk.places(touched, clocks)
            if part is not None:
                places = places[part.has(upper_half(chunk.hashes[places]))]
            if len(places) == 0:
                chunks.append(chunk)
                continue
            if len(places) == len(chunk.alive):
                out.append(chunk.table)
                continue
            out.append(chunk.table.take(pa.array(places)))
            left = chunk.without(places)
            if left.count:
                chunks.append(left)
        table = pa.concat_tables(out) if out else self.schema.empty_table()
        return table.combine_chunks(), replace(self, chunks=tuple(chunks))

    def places(self, touched: np.ndarray, clocks: dict[str, int]) -> Places:
        """The places, chunk by chunk, of the rows that `take` would return."""
        return tuple(chunk.places(touched, clocks) for chunk in self.chunks)

    def without(self, places: Places) -> Store:
        """The store without the rows at these places."""
        pairs = zip(self.chunks, places, strict=True)
        left = [chunk.without(gone) if len(gone) else chunk for chunk, gone in pairs]
        return replace(self, chunks=tuple(chunk for chunk in left if chunk.count))

    def without_due(self, clocks: dict[str, int]) -> Store:
        """The store without the rows that are due."""
        return self.without(self.places(np.empty(0, np.uint32), clocks))

    def put(self, hashes: np.ndarray, table: pa.Table, wake: dict[str, np.ndarray]) -> Store:
        """The store with more rows. Chunks are joined so that they stay few and each row is copied few times."""
        if table.num_rows == 0:
            return self
        chunks = list(self.chunks)
        for first, stop in cuts(table, CHUNK_BYTES):
            some = {name: values[first:stop] for name, values in wake.items()}
            chunks.append(Chunk.of(hashes[first:stop], table.slice(first, stop - first), some))
        at = len(chunks) - 1
        # By bytes, since a row may be as large as all others together.
        while at > 0 and chunks[at - 1].weight < _FANOUT * chunks[at].weight:
            if chunks[at - 1].living_bytes + chunks[at].living_bytes <= CHUNK_BYTES:
                chunks[at - 1 : at + 1] = [_join(chunks[at - 1], chunks[at])]
            at -= 1
        chunks = [_join(c) if 2 * c.count < len(c.alive) else c for c in chunks]
        return replace(self, chunks=tuple(chunks))

    def rows(self) -> pa.Table:
        """All living rows, for inspection and tests."""
        return pa.concat_tables([self.schema.empty_table(), *(chunk.living()[1] for chunk in self.chunks)])


def _join(*chunks: Chunk) -> Chunk:
    parts = [chunk.living() for chunk in chunks]
    wake = {name: np.concatenate([part[2][name] for part in parts]) for name in parts[0][2]}
    table = pa.concat_tables([part[1] for part in parts]).combine_chunks()
    return Chunk.of(np.concatenate([part[0] for part in parts]), table, wake)


def cuts(table: pa.Table, most: int) -> list[tuple[int, int]]:
    """Slices (first row, row after the last) of a table, each of at most `most` bytes or of one row."""
    out: list[tuple[int, int]] = []
    todo = [(0, table.num_rows)]
    small = table.get_total_buffer_size() <= most
    while todo:
        first, stop = todo.pop()
        if small or stop - first < 2 or table.slice(first, stop - first).nbytes <= most:
            out.append((first, stop))
        else:
            middle = (first + stop) // 2
            todo += [(middle, stop), (first, middle)]
    return out

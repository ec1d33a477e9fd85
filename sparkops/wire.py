"""The rows that cross Spark's shuffle: few, each with a shard, a place in its order, and a parcel as bytes.

A large parcel crosses in parts, a row each. So a batch of some thousand rows is not large, and the session needs no
limit for the bytes of a batch, which Spark would compare with the size of the batch after every single row.

A task that runs again must give the same rows, since Spark compares their checksums, and fails a job if they differ
after some of its results are given. So nothing random and no times are in them.

Guarded by tests/sparkops/test_wire.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from struct import Struct

import pyarrow as pa

from ..errors import StateMismatch

WIRE = pa.schema([("shard", pa.int32()), ("lo", pa.int32()), ("payload", pa.binary())])
WIRE_DDL = "shard int, lo int, payload binary"

SKIPPED = -1
"""The `lo` of a row that is counted and dropped before the shuffle: its payload names a file that was skipped."""

UNREADABLE = -2
"""The `lo` of a row that is added up and dropped before the shuffle: its payload is the number of rows of files, as
text, that could not be read."""

LOST = -3
"""The `lo` of a row that is added up and dropped before the shuffle: its payload is the number of offsets of topics, as
text, that are not there any more."""

_PART = b"a part: "
"""The first bytes of a part. A parcel begins in another way."""

_ABOUT = Struct("<8s16sII")
"""The head of a part: `_PART`, a hash of its parcel, its number, and how many parts there are."""

PART_BYTES = (16 << 10) - _ABOUT.size
"""The bytes of a parcel in a part. The 4,096 rows that `session` sends to Python at once have 64 MB then."""


@lru_cache
def shard_ids(partitions: int, place: int = 0) -> tuple[int, ...]:
    """One number for each shuffle partition, which Spark's hash partitioning sends to that partition.

    The numbers of each place, counted from 0, are others, for steps that share an operator.

    >>> from uncombine.sparkops.wire import shard_ids
    >>> shard_ids(2), shard_ids(2, 1)
    ((2, 0), (4, 1))
    """
    numbers: list[list[int]] = [[] for _ in range(partitions)]
    number = 0
    while any(len(own) <= place for own in numbers):
        numbers[murmur3(number) % partitions].append(number)
        number += 1
    return tuple(own[place] for own in numbers)


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int column: Murmur3 (A. Appleby, public domain) of four bytes, as a signed number.

    >>> from uncombine.sparkops.wire import murmur3
    >>> murmur3(1)
    -559580957
    """
    mask = 0xFFFFFFFF

    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    k = rotated((value & mask) * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    h = (rotated((seed & mask) ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def wire_batch(rows: Iterable[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Rows for the shuffle, as a batch."""
    shards, los, payloads = zip(*in_parts(rows), strict=True)
    arrays = [pa.array(shards, pa.int32()), pa.array(los, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE)


def payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    """The parcels from the shuffle, as bytes; those of one row are not copied."""
    return whole(row for batch in batches for row in _rows(batch))


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.Buffer]]:
    shards, los = batch.column("shard").to_pylist(), batch.column("lo").to_pylist()
    column = batch.column("payload")
    for i, (shard, lo) in enumerate(zip(shards, los, strict=True)):  # few: one a part of a parcel
        yield shard, lo, column[i].as_buffer()


def in_parts(rows: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """The rows, each with a payload that is too long in several rows.

    >>> from uncombine.sparkops.wire import in_parts, whole
    >>> rows = list(in_parts([(2, 0, bytes(100_000)), (0, 7, b"small")]))
    >>> len(rows), max(len(payload) for _, _, payload in rows) <= 16 << 10
    (8, True)
    >>> [(shard, lo, len(payload)) for shard, lo, payload in whole(reversed(rows))]
    [(0, 7, 5), (2, 0, 100000)]
    """
    for shard, lo, payload in rows:
        if len(payload) <= PART_BYTES and not payload.startswith(_PART):
            yield shard, lo, payload
            continue
        name, starts = sha256(payload).digest()[:16], range(0, len(payload), PART_BYTES)
        for number, start in enumerate(starts):
            about = _ABOUT.pack(_PART, name, number, len(starts))
            yield shard, lo, about + payload[start : start + PART_BYTES]


def whole(rows: Iterable[tuple[int, int, pa.Buffer | bytes]]) -> Iterator[tuple[int, int, pa.Buffer]]:
    """The rows of `in_parts` put together again; their parts may come in any order, a payload comes with its last."""
    begun: dict[tuple[int, int, bytes], dict[int, list[memoryview]]] = {}
    for shard, lo, payload in rows:
        view = memoryview(payload)
        if bytes(view[: len(_PART)]) != _PART:
            yield shard, lo, pa.py_buffer(payload)
            continue
        if len(view) < _ABOUT.size:
            raise _damaged("a part of a parcel is cut off")
        _, name, number, count = _ABOUT.unpack_from(view)
        key = shard, lo, name
        parts = begun.setdefault(key, {})
        parts.setdefault(number, []).append(view[_ABOUT.size :])
        if len(parts) == count:
            yield shard, lo, pa.py_buffer(b"".join(_part_of(parts, i) for i in range(count)))
            # Other parts are of parcels with the same bytes.
            begun[key] = {i: others for i, others in parts.items() if others}
            if not begun[key]:
                del begun[key]
    if begun:
        raise _damaged(f"{len(begun)} parcels came without some of their parts")


def _part_of(parts: Mapping[int, list[memoryview]], number: int) -> memoryview:
    if not parts.get(number):
        raise _damaged("a part of a parcel has a number that the parcel does not have")
    return parts[number].pop()


def _damaged(fault: str) -> StateMismatch:
    return StateMismatch(f"{fault}: the shuffle is damaged, so run the batch again")

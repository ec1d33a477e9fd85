"""The rows that cross Spark's shuffle: few, each with a shard, a place in its order, and a parcel as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import pyarrow as pa

WIRE = pa.schema([("shard", pa.int32()), ("lo", pa.int32()), ("payload", pa.binary())])
WIRE_DDL = "shard int, lo int, payload binary"


@lru_cache
def shard_ids(partitions: int) -> tuple[int, ...]:
    """One number for each shuffle partition, which Spark's hash partitioning sends to that partition.

    >>> from uncombine.sparkops.wire import shard_ids
    >>> shard_ids(2)
    (2, 0)
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(murmur3(number) % partitions, number)
        number += 1
    return tuple(found[partition] for partition in range(partitions))


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
    shards, los, payloads = zip(*rows, strict=True)
    arrays = [pa.array(shards, pa.int32()), pa.array(los, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE)


def payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    """The rows from the shuffle; their bytes are not copied."""
    for batch in batches:
        shards, los = batch.column("shard").to_pylist(), batch.column("lo").to_pylist()
        column = batch.column("payload")
        for i, (shard, lo) in enumerate(zip(shards, los, strict=True)):  # few: one a task and shard
            yield shard, lo, column[i].as_buffer()

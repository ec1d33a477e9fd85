"""The store of live windows against a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from uncombine.panes.store import NEVER, Store, lookup

SCHEMA = pa.schema({"id": pa.int64(), "hash": pa.uint64(), "event": pa.int64()})


def put(store: Store, ids: np.ndarray, hashes: np.ndarray, event: np.ndarray) -> Store:
    table = pa.table({"id": ids, "hash": hashes, "event": event}, schema=SCHEMA)
    return store.put(hashes, table, {"event": event, "hold": event})


@pytest.mark.parametrize("seed", range(20))
def test_rows_come_out_by_hash_or_by_clock_and_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    store, held = Store(SCHEMA), {}
    next_id = 0
    for _ in range(60):
        if rng.random() < 0.6:
            count = int(rng.integers(0, 40))
            ids = np.arange(next_id, next_id + count)
            next_id += count
            hashes = rng.integers(0, 30, count).astype(np.uint64) << np.uint64(32)
            event = np.where(rng.random(count) < 0.2, NEVER, rng.integers(0, 1000, count))
            before = store.rows()
            after = put(store, ids, hashes, event)
            assert store.rows().equals(before)
            store = after
            held.update({int(i): (int(h), int(e)) for i, h, e in zip(ids, hashes, event, strict=True)})
        else:
            wanted = rng.integers(0, 30, int(rng.integers(0, 6))).astype(np.uint64) << np.uint64(32)
            clock = int(rng.integers(0, 200))
            taken, store = store.take(lookup(wanted), {"event": clock})
            due = {i for i, (h, e) in held.items() if h in set(wanted.tolist()) or e <= clock}
            assert set(taken["id"].to_pylist()) == due
            assert taken.num_rows == len(due)
            held = {i: row for i, row in held.items() if i not in due}
        assert len(store) == len(held)
        assert sorted(store.rows()["id"].to_pylist()) == sorted(held)
        assert store.least("event") == min((e for _, e in held.values()), default=NEVER)
        assert store.least("event", below=500) == min([500, *(e for _, e in held.values())])


def test_chunks_stay_few_and_dead_rows_go() -> None:
    store, rng = Store(SCHEMA), np.random.default_rng(1)
    for step in range(200):
        ids = np.arange(step * 10, step * 10 + 10)
        hashes = rng.integers(0, 2**63, 10).astype(np.uint64)
        store = put(store, ids, hashes, np.full(10, step))
        if step >= 20:
            taken, store = store.take(lookup(np.empty(0, np.uint64)), {"event": step - 20})
            assert taken.num_rows in (10, 210)
    assert len(store) == 200
    assert len(store.chunks) <= 6
    assert sum(len(chunk.alive) for chunk in store.chunks) <= 2 * len(store) + 10

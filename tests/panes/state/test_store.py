"""The store of live windows against a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

from uncombine.panes.state import store as store_module
from uncombine.panes.state.hashes import Part, lookup, upper_half
from uncombine.panes.state.store import Store
from uncombine.panes.state.store_rows import StoreRows
from uncombine.windows.times import NEVER

SCHEMA = pa.schema({"id": pa.int64(), "hash": pa.uint64(), "event": pa.int64()})


def put(store: Store, ids: np.ndarray, hashes: np.ndarray, event: np.ndarray) -> Store:
    table = pa.table({"id": ids, "hash": hashes, "event": event}, schema=SCHEMA)
    return store.put(hashes, table, {"event": event, "hold": event})


@pytest.mark.weekly
@pytest.mark.parametrize("most", [store_module.CHUNK_BYTES, 2_000, 300])
@pytest.mark.parametrize("seed", seeds(7))
def test_rows_come_out_by_hash_or_by_clock_and_no_others(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CHUNK_BYTES", most)
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
            found = StoreRows.of(store, lookup(wanted), {}, SCHEMA)
            seen, there = found.read()["id"].to_pylist(), set(wanted.tolist())
            assert sorted(seen) == sorted(i for i, (h, _) in held.items() if h in there)
            assert found.clock("event").tolist() == [held[i][1] for i in seen]
            some = rng.random(len(found)) < 0.5
            gone = {i for i, chosen in zip(seen, some.tolist(), strict=True) if chosen}
            assert set(found.where(some).removed().rows()["id"].to_pylist()) == held.keys() - gone
            left = store.without_due({"event": clock}).rows()
            assert set(left["id"].to_pylist()) == {i for i, (_, e) in held.items() if e > clock}
            weight = store.weight(lookup(wanted), {"event": clock}, below=-1)
            if rng.random() < 0.5:
                taken, store = store.take(lookup(wanted), {"event": clock})
            else:
                tables = []
                for part in (Part(number, 3) for number in range(3)):
                    table, store = store.take(lookup(wanted), {"event": clock}, part)
                    assert part.has(upper_half(table["hash"].to_numpy())).all()
                    tables.append(table)
                taken = pa.concat_tables(tables)
            assert weight == (taken.nbytes, taken.num_rows)
            due = {i for i, (h, e) in held.items() if h in set(wanted.tolist()) or e <= clock}
            assert set(taken["id"].to_pylist()) == due
            assert taken.num_rows == len(due)
            held = {i: row for i, row in held.items() if i not in due}
        assert len(store) == len(held)
        sizes = [chunk.table.nbytes for chunk in store.chunks]
        assert all(size <= 2 * most or len(chunk.alive) == 1 for size, chunk in zip(sizes, store.chunks, strict=True))
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


@pytest.mark.weekly
def test_chunks_have_a_bound_in_bytes_and_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where each step takes out some of all chunks, so that there are many that are nearly empty."""
    monkeypatch.setattr(store_module, "CHUNK_BYTES", 24_000)
    store, rng = Store(SCHEMA), np.random.default_rng(1)
    hashes = rng.integers(0, 2**63, 10_000).astype(np.uint64)
    store = put(store, np.arange(10_000), hashes, np.zeros(10_000, np.int64))
    assert len(store.chunks) == 16
    most = 0
    for _ in range(300):
        wanted = rng.choice(hashes, 500, replace=False)
        taken, store = store.take(lookup(wanted), {})
        store = put(store, *(taken[name].to_numpy() for name in ("id", "hash", "event")))
        most = max(most, len(store.chunks))
        assert all(chunk.table.nbytes <= 48_000 for chunk in store.chunks)
    assert sorted(store.rows()["id"].to_pylist()) == list(range(10_000))
    assert most <= 2 * 240_000 // 24_000 + 6


def test_rows_can_be_looked_at_before_they_go() -> None:
    rng = np.random.default_rng(3)
    store = Store(SCHEMA)
    for start in range(0, 300, 100):
        hashes = rng.integers(0, 30, 100).astype(np.uint64) << np.uint64(32)
        store = put(store, np.arange(start, start + 100), hashes, rng.integers(0, 200, 100))
    _, store = store.take(np.empty(0, np.uint32), {"event": 20})
    wanted, clocks = lookup(np.array([3, 7], np.uint64) << np.uint64(32)), {"event": 40}
    before = store.rows()
    places = store.places(wanted, clocks)
    seen = pa.concat_tables([c.table.take(pa.array(at)) for c, at in zip(store.chunks, places, strict=True)])
    taken, left = store.take(wanted, clocks)
    assert 0 < taken.num_rows < before.num_rows
    assert seen["id"].to_pylist() == taken["id"].to_pylist()
    assert store.without(places).rows().equals(left.rows())
    assert store.rows().equals(before)

"""Pipelines on a cluster where all goes wrong that can give the panes and the counts of an undisturbed run."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from chaos import Cluster, disturbed, draw_batches, draw_flow
from engine import Engine, Handle
from seeds import seeds

from uncombine.panes.grouping import step
from uncombine.panes.state import cache as chunkcache
from uncombine.panes.state import chunk_log, store
from uncombine.panes.state import host_files as filecache
from uncombine.sparkops.routes import shard_processor as processor
from uncombine.sparkops.routes import shard_rows


def told(got: Any, engine: Engine, small: bool) -> tuple[list[str], list[Any], dict[Any, Any]]:
    """The panes of a batch, what it counted, and what the store holds after it.

    Small chunks are cut by the bytes that windows take in memory. A window that was read again can take fewer, so the
    same windows can lie in other chunks.
    """
    panes, counts = got
    left_out = {"chunks", "state_bytes"} if small else set()
    numbers = [
        {name: n for name, n in stage.items() if not name.endswith("_us") and name not in left_out} for stage in counts
    ]
    handles = engine.snapshot().items()
    held = {key: (None if small else handle.states.get("chunks"), handle.timers) for key, handle in handles}
    return sorted(map(repr, panes.to_pylist())), numbers, held


def bounded(monkeypatch: pytest.MonkeyPatch, chunk: int, in_hand: int) -> None:
    """So many bytes to a chunk, and of windows in hand and panes on their way at once."""
    monkeypatch.setattr(store, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(step, "IN_HAND", in_hand)
    monkeypatch.setattr(shard_rows, "OUT_BYTES", in_hand)


def agree(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Check that a pipeline gives the same panes when disturbed; the number of panes and of tasks that crashed."""
    r = random.Random(seed)
    monkeypatch.setattr(processor, "_CACHE", processor._CACHE)
    monkeypatch.setattr(chunk_log, "uuid4", lambda: UUID(int=r.getrandbits(128)))
    monkeypatch.setattr(filecache, "LARGE", r.choice([2_000, 1 << 30]))
    small = r.choice([True, False])
    bounded(monkeypatch, *((3_000, 3_000) if small else (1 << 28, 1 << 29)))
    flow = draw_flow(r)
    batches = draw_batches(r, flow)
    engine = Engine(flow)
    calm = [told(engine.batch(batch.tasks, batch.now), engine, small) for batch in batches]

    def seen(at: int, got: Any, cluster: Engine) -> None:
        for found, want in zip(told(got, cluster, small), calm[at], strict=True):
            assert found == want, f"batch {at} of {len(batches)}"

    crashes = disturbed(flow, batches, seed, folder, seen)
    return sum(len(panes) for panes, _, _ in calm), crashes


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(14, 104, step=4))
def test_pipelines(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panes, crashes = 0, 0
    for seed in range(first, first + 4):
        more = agree(seed, tmp_path / str(seed), monkeypatch)
        panes, crashes = panes + more[0], crashes + more[1]
    assert panes > 0
    assert crashes > 0


def in_parts(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Check that steps give the same panes in parts, over many chunks; the number of chunks that this adds."""
    r = random.Random(seed)
    flow = draw_flow(r)
    while any(stage.grouping.granularity == "record" for stage in flow.stages[1:]):
        flow = draw_flow(r)  # such a stage would see the panes of a step in the order of their parts
    batches, found = draw_batches(r, flow), []
    chunks = 0
    for bounds in ((1 << 28, 1 << 29), (r.choice([1, 2_000]), r.choice([1_000, 4_000]))):
        bounded(monkeypatch, *bounds)
        engine, out = Engine(flow), []
        for batch in batches:
            panes, counts = engine.batch(batch.tasks, batch.now)
            rows = [{name: in_any_order(value) for name, value in row.items()} for row in panes.to_pylist()]
            numbers = [{name: n for name, n in stage.items() if name in COUNTED} for stage in counts]
            chunks += sum(stage["chunks"] for stage in counts if stage) * (1 if found else -1)
            out.append((sorted(map(repr, rows)), numbers))
        found.append(out)
    assert found[0] == found[1]
    return chunks


COUNTED = {*shard_rows.COUNTS, *shard_rows.CLOCKS} - {"chunks", "state_bytes"}
COUNTED = {name for name in COUNTED if not name.endswith("_us")}


def in_any_order(value: Any) -> Any:
    """Rows of one bundle come in the order of their parts into a list of a second stage."""
    return sorted(value, key=repr) if isinstance(value, list) else value


@pytest.mark.soak
def test_many_steps_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(in_parts(seed, monkeypatch) for seed in range(300, 400)) > 1_000


@pytest.mark.soak
@pytest.mark.parametrize("first", range(5, 105, 10))
def test_a_hundred_pipelines(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 10):
        agree(seed, tmp_path / str(seed), monkeypatch)


def chunks_by_number(patch: pytest.MonkeyPatch) -> None:
    """A file of a thrown-away attempt has the name of another attempt's."""
    entry = chunk_log.Entry
    patch.setattr(chunk_log, "Entry", lambda id, name, *rest: entry(id, str(id), *rest))


def any_stamp(patch: pytest.MonkeyPatch) -> None:
    """Rows that are dead in one attempt are dead in all."""
    known = chunkcache.ChunkCache.chunk
    patch.setattr(
        chunkcache.ChunkCache,
        "chunk",
        lambda self, name, stamp: known(self, name, stamp) or self._held[name].chunk if name in self._held else None,
    )


def any_name(patch: pytest.MonkeyPatch) -> None:
    """A file is taken for what it is called."""
    trailer = filecache._trailer
    patch.setattr(filecache, "_trailer", lambda name, size, check: trailer("", size, check))


def no_check(patch: pytest.MonkeyPatch) -> None:
    """A file is taken for whole."""
    patch.setattr(filecache, "zlib", type("Zlib", (), {"crc32": staticmethod(lambda data, value=0: 0)}))


def half_done(patch: pytest.MonkeyPatch) -> None:
    """The work of a task before its crash stays done."""
    patch.setattr(Cluster, "given", lambda self, stage, shard: self.store.setdefault((stage, shard), Handle()))


@pytest.mark.soak
@pytest.mark.parametrize("broken", [chunks_by_number, any_stamp, any_name, no_check, half_done])
def test_what_is_broken_is_found(
    broken: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    for seed in range(20):
        try:
            agree(seed, tmp_path / str(seed), monkeypatch)
        except Exception:  # a wrong result, or a state that cannot be read
            return
    pytest.fail("nobody noticed")

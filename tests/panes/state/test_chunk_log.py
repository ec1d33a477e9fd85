"""States through the log and its caches against states that never left memory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import share

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.state import host_files
from uncombine.panes.state.cache import ChunkCache
from uncombine.panes.state.chunk_log import LoadedState, load, save
from uncombine.panes.state.codec import pack_places, unpack_places
from uncombine.panes.state.manifest import bytes_of, extra_of
from uncombine.panes.state.operator_state import OperatorState
from uncombine.panes.state.store import Store

SECOND = 1_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.string(), "x": pa.int64(), "d": pa.int64()})


class Log(dict[int, bytes]):
    """A key-value store that counts, and that fails at the call it is told to."""

    written = read = calls = 0
    fails_at = -1

    def _called(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise ConnectionError("the store is gone")

    def get(self, id: int) -> bytes | None:  # type: ignore[override]
        self._called()
        value = super().get(id)
        self.read += len(value or b"")
        return value

    def put(self, id: int, value: bytes) -> None:
        self._called()
        self.written += len(value)
        self[id] = value

    def remove(self, id: int) -> None:
        self._called()
        del self[id]

    def copied(self) -> Log:
        return Log(self)


class Third(uc.UserTrigger):
    """Fires at every third row, counts in a state of its own, and has timers that were due before they were set."""

    def on_element(self, element: Any, window: Any, ctx: uc.TriggerContext) -> None:
        ctx.state["seen"] = ctx.state.get("seen", 0) + 1
        ctx.state["last"] = str(element["x"])
        ctx.set_timer("missed", ctx.processing_time - 1)
        if ctx.state["seen"] % 3 == 0:
            ctx.fire()

    def on_merge(self, sources: Any, ctx: uc.TriggerContext) -> None:
        ctx.state["seen"] = sum(source.state.get("seen", 0) for source in sources)


LATENESS = {"allowed_lateness": "5 seconds", "by": "k"}
EARLY = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
GROUPINGS: dict[str, dict[str, Any]] = {
    "fixed": {"window": uc.Fixed("4 seconds"), **LATENESS},
    "early, retracting": {"window": uc.Fixed("4 seconds"), "trigger": EARLY, "mode": "retracting", **LATENESS},
    "sliding, every row": {"window": uc.Sliding("6 seconds", "2 seconds"), "trigger": uc.Always(), **LATENESS},
    "sessions": {"window": uc.Sessions("2 seconds"), "trigger": EARLY, **LATENESS},
    "sessions of changes": {"window": uc.Sessions("2 seconds"), "mode": "retracting", "diff": "d", **LATENESS},
    "a user's trigger": {"window": uc.Sessions("2 seconds"), "trigger": uc.Repeatedly(Third()), **LATENESS},
    "processing time": {
        "window": uc.Fixed("4 seconds"),
        "trigger": uc.Repeatedly(uc.FirstOf(uc.AfterDelay("3 seconds"), uc.AfterWatermark())),
        **LATENESS,
    },
    "percentiles": {
        "window": uc.Fixed("4 seconds"),
        "trigger": uc.Repeatedly(uc.FirstOf(uc.WatermarkPercentile(50), uc.AfterWatermark())),
        **LATENESS,
    },
    "no keys": {"window": uc.Global(), "trigger": uc.Repeatedly(uc.AfterCount(2)), "by": ()},
    "no end": {"window": uc.Global(), "trigger": uc.Repeatedly(uc.AfterCount(2)), "by": "k"},
}
OPERATORS = {
    name: Operator(Grouping({"n": uc.Count(), "s": uc.Sum("x"), "m": uc.Median("x")}, **options), SCHEMA)
    for name, options in GROUPINGS.items()
}
ROW = st.tuples(
    st.integers(0, 12 * SECOND),
    st.sampled_from([None, *(f"k{i}" for i in range(12))]),
    st.integers(-9, 9),
    st.sampled_from([1, 1, -1]),
)
# Small batches on top of large ones give chunks that are not joined at once.
ROWS = st.one_of(st.just([]), st.lists(ROW, max_size=2), st.lists(ROW, min_size=15, max_size=25))
HOW = st.sampled_from(["no cache", "on", "on", "other process", "other host", "files gone", "after a failure"])
BATCH = st.tuples(ROWS, st.integers(0, 3 * SECOND), st.integers(0, 3 * SECOND), HOW, st.booleans())
BATCHES = st.lists(BATCH, min_size=1, max_size=12)


def bundle(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def same_store(found: Store, expected: Store) -> None:
    assert [(c.count, len(c.alive), c.least, c.exact) for c in found.chunks] == [
        (c.count, len(c.alive), c.least, c.exact) for c in expected.chunks
    ]
    for a, b in zip(found.chunks, expected.chunks, strict=True):
        assert a.table.equals(b.table)
        assert a.wake.keys() == b.wake.keys()
        for x, y in [(a.hashes, b.hashes), (a.alive, b.alive), *((a.wake[n], b.wake[n]) for n in b.wake)]:
            assert np.array_equal(x, y)
        for x, y in zip(a.index.arrays(), b.index.arrays(), strict=True):
            assert np.array_equal(x, y)


def same_state(found: OperatorState, expected: OperatorState) -> None:
    same_store(found.windows, expected.windows)
    assert (found.atoms is None) == (expected.atoms is None)
    if found.atoms is not None and expected.atoms is not None:
        same_store(found.atoms, expected.atoms)
    if found.deposits is not None and expected.deposits is not None:
        same_store(found.deposits, expected.deposits)
    for name in ("watermark", "output_watermark", "processing_time", "percentiles", "counts"):
        assert getattr(found, name) == getattr(expected, name)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def numbered(prefix: str) -> Callable[[], str]:
    numbers = count()
    return lambda: f"{prefix}{next(numbers)}".encode().hex().zfill(32)


class Run:
    """An operator whose state goes through a log after each step, with caches that come and go."""

    def __init__(self, operator: Operator, directory: Path) -> None:
        self.operator = operator
        self.directory = directory
        self.log = Log()
        self.manifest: bytes | None = None
        self.cache = self.new_cache()

    def new_cache(self, host: str = "") -> ChunkCache:
        return ChunkCache.shared(directory=self.directory / f"host{host}")

    def load(self) -> LoadedState:
        return load(self.manifest, self.log, self.operator, self.cache)

    def step(self, rows: pa.Table, how: str, names: Callable[[], str], **times: Any) -> pa.Table:
        if how == "no cache":
            self.cache = ChunkCache(0)
        elif how in ("other process", "other host"):
            self.cache = self.new_cache(how)
        elif how == "files gone":
            shutil.rmtree(self.directory, ignore_errors=True)
        elif how == "after a failure":
            self.fail(rows, times)
        loaded = self.load()
        stepped = self.operator.step(loaded.state, rows, **times)
        self.manifest = save(stepped.state, loaded, self.log, b"any\nbytes", names)
        return stepped.panes

    def fail(self, rows: pa.Table, times: dict[str, Any]) -> None:
        """An attempt that saved other bytes under the same numbers, and was then given up."""
        loaded = self.load()
        log = self.log.copied()
        later = {**times, "watermark": times["watermark"] + SECOND}
        save(self.operator.step(loaded.state, rows.slice(1), **later).state, loaded, log)


@pytest.mark.parametrize("name", share(OPERATORS))
@settings(max_examples=settings.default.max_examples // 4)
@given(batches=BATCHES)
def test_a_state_that_is_stored_after_each_step_is_the_one_that_never_was(
    home: Path, name: str, batches: list[Any]
) -> None:
    operator = OPERATORS[name]
    run, calm = Run(operator, Path(tempfile.mkdtemp(dir=home))), Run(operator, home)
    calm.cache = ChunkCache()
    state, watermark, now = operator.initial(), 0, 0
    names, calm_names = numbered("n"), numbered("n")
    for rows, event, processing, how, move in batches:
        watermark, now = watermark + (event if move else 0), now + processing
        table = bundle(rows)
        times = {"watermark": watermark, "processing_time": now, "percentiles": {50: watermark + SECOND}}
        expected = operator.step(state, table, **times)
        state = expected.state
        assert run.step(table, how, names, **times).equals(expected.panes)
        same_state(run.load().state, state)
        assert run.manifest is not None
        assert run.load().extra == extra_of(run.manifest) == b"any\nbytes"
        # The same bytes, whatever the caches did.
        calm.step(table, "on", calm_names, **times)
        assert run.log == calm.log
        assert run.manifest == calm.manifest


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["early, retracting", "sessions of changes"])
def test_a_store_that_fails_at_any_call_leaves_what_was_before(name: str, tmp_path: Path) -> None:
    operator, rng = OPERATORS[name], np.random.default_rng(3)
    run = Run(operator, tmp_path)
    failures = 0
    for batch in range(14):
        rows = bundle([(int(t), f"k{t % 7}", 1, 1) for t in rng.integers(batch * SECOND, (batch + 4) * SECOND, 12)])
        loaded = run.load()
        state = operator.step(loaded.state, rows, watermark=batch * SECOND).state
        at = 1
        while True:
            broken = run.log.copied()
            broken.fails_at = at
            try:
                save(state, loaded, broken)
            except ConnectionError:
                failures += 1
                same_state(run.load().state, loaded.state)
                same_state(load(run.manifest, run.log, operator).state, loaded.state)
                if run.log.items() <= broken.items():
                    # Nothing was removed yet: even without a way back the old state is there.
                    same_state(load(run.manifest, broken, operator).state, loaded.state)
                at += 1
                continue
            break
        run.manifest = save(state, loaded, run.log)
        same_state(run.load().state, state)
    assert failures > 20


def many(keys: np.ndarray, times: np.ndarray) -> pa.Table:
    names = pa.array([f"k{key:07d}" for key in keys])
    ones = pa.array(np.ones(len(keys), np.int64))
    return pa.table([pa.array(times).cast(SCHEMA.field("ts").type), names, ones, ones], schema=SCHEMA)


def touching(held: int, touched: int, batches: int) -> tuple[Run, int]:
    """A state of so many windows after some batches that touch a few, and the bytes written by these batches."""
    rng = np.random.default_rng(held)
    run = Run(OPERATORS["fixed"], Path("unused"))
    run.cache = ChunkCache()
    run.step(many(np.arange(held), np.zeros(held, np.int64)), "on", numbered("a"), watermark=0)
    before = run.log.written
    names = numbered("b")
    for _ in range(batches):
        run.log.read = 0
        keys = rng.choice(held, touched, replace=False)
        run.step(many(keys, np.zeros(touched, np.int64)), "on", names, watermark=0)
    return run, run.log.written - before


def test_a_batch_writes_what_it_touched_and_not_what_is_held() -> None:
    _, few = touching(5_000, 100, 12)
    run, more = touching(50_000, 100, 12)
    assert more < 2 * few
    assert more < sum(map(len, run.log.values()))
    assert run.log.read < 2_000
    assert run.manifest is not None
    assert bytes_of(run.manifest) == sum(map(len, run.log.values()))


@pytest.mark.weekly
def test_deaths_are_joined_as_they_pile_up() -> None:
    run, _ = touching(50_000, 100, 100)
    loaded = run.load()
    largest = max((part for part, _ in loaded.stored.values()), key=lambda part: part.rows.count)
    assert sum(entry.count for entry in largest.deaths) == largest.rows.count - largest.alive > 8_000
    assert len(largest.deaths) <= 4
    assert len(run.log) <= 20
    same_state(load(run.manifest, run.log, run.operator).state, loaded.state)


def test_rows_that_expire_write_nothing() -> None:
    operator = Operator(Grouping({"n": uc.Count()}, uc.Fixed("4 seconds"), by="k"), SCHEMA)
    run = Run(operator, Path("unused"))
    times = np.repeat([0, 4 * SECOND, 8 * SECOND], 400)
    run.step(many(np.arange(1200), times), "no cache", numbered("a"), watermark=0)
    before = run.log.written
    for second, held in [(4, 800), (8, 400), (12, 0)]:
        panes = run.step(SCHEMA.empty_table(), "no cache", numbered(f"b{second}"), watermark=second * SECOND)
        assert panes.num_rows == 400
        assert len(run.load().state.windows) == held
        assert run.log.written == before
        assert len(run.log) == (1 if held else 0)


@given(st.sets(st.integers(0, 5_000)), st.integers(0, 200_000))
def test_places_come_back(places: set[int], gap: int) -> None:
    found = np.array(sorted(places), np.int64)
    found[len(found) // 2 :] += gap
    rows = int(found.max(initial=0)) + 1
    assert np.array_equal(unpack_places(pack_places(found, rows), len(found), rows), found)
    # None of the gaps, all of the rest: better kept as bits.
    dense = np.flatnonzero(np.isin(np.arange(rows), found, invert=True))
    assert np.array_equal(unpack_places(pack_places(dense, rows), len(dense), rows), dense)


def test_places_are_as_small_as_bits_or_distances() -> None:
    chance = np.random.default_rng(1).random(100_000)
    assert len(pack_places(np.flatnonzero(chance < 0.5), 100_000)) < 1.01 * 100_000 / 8
    assert len(pack_places(np.flatnonzero(chance < 0.001), 100_000)) < 250


def test_other_states_are_refused() -> None:
    run = Run(OPERATORS["sessions"], Path("unused"))
    run.cache = ChunkCache(0)
    run.step(bundle([(1, "a", 1, 1)]), "on", numbered("a"), watermark=0)
    manifest, log = run.manifest, run.log
    assert manifest is not None
    with pytest.raises(StateMismatch, match="nothing under number 0"):
        load(manifest, Log(), run.operator)
    with pytest.raises(StateMismatch, match="something else under number 0"):
        load(manifest, Log({0: log[0][:-1] + b"?"}), run.operator)
    with pytest.raises(StateMismatch, match="another kind of window"):
        load(manifest, log, OPERATORS["sessions of changes"])
    with pytest.raises(StateMismatch, match=r"columns \['num.*start from a new checkpoint"):
        load(manifest, log, OPERATORS["a user's trigger"])
    kept = ChunkCache()
    load(manifest, log, run.operator, kept)
    with pytest.raises(StateMismatch, match=r"columns \['num.*start from a new checkpoint"):
        load(manifest, log, OPERATORS["a user's trigger"], kept)
    head = json.loads(manifest.partition(b"\n")[0])
    with pytest.raises(StateMismatch, match="format 99"):
        load(json.dumps({**head, "version": 99}).encode() + b"\n", log, run.operator)
    head["windows"][0]["alive"] = 7
    with pytest.raises(StateMismatch, match="has 7 as alive, where a whole number from 0 to 1 belongs"):
        load(json.dumps(head).encode() + b"\n", log, run.operator)


def test_a_worker_that_goes_on_reads_nothing_and_another_of_the_host_little(tmp_path: Path) -> None:
    run = Run(OPERATORS["fixed"], tmp_path)
    for i, new in enumerate([50, 5_000, 500, 50]):
        run.step(many(np.arange(new), np.zeros(new, np.int64)), "on", numbered(f"a{i}x"), watermark=0)
    for cache, read in [(run.cache, False), (run.new_cache(), False), (run.new_cache("elsewhere"), True)]:
        run.cache, run.log.read = cache, 0
        run.load()
        assert (run.log.read > 0) == read
    assert len(list((tmp_path / "host").iterdir())) == len(run.log) > 1


def test_the_least_used_chunks_are_forgotten_first() -> None:
    run = Run(OPERATORS["fixed"], Path("unused"))
    run.cache = ChunkCache()
    run.step(many(np.arange(100), np.zeros(100, np.int64)), "on", numbered("a"), watermark=0)
    (chunk,) = run.load().state.windows.chunks
    size = run.cache.held_bytes
    cache = ChunkCache(memory=3 * size)
    for name in "abc":
        cache.keep(name, "s", cache.add(name, chunk))
    assert cache.chunk("a", "s") is chunk
    assert cache.chunk("a", "t") is None
    cache.add("d", chunk)
    assert [name for name in "abcd" if cache.rows(name)] == ["a", "c", "d"]
    assert cache.held_bytes == 3 * size
    for name in "acd":
        cache.forget(name)
    assert cache.held_bytes == 0


def test_a_large_chunk_takes_no_heap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_files, "LARGE", 1_000_000)
    run = Run(OPERATORS["fixed"], tmp_path)
    run.step(many(np.arange(50_000), np.zeros(50_000, np.int64)), "on", numbered("a"), watermark=0)
    assert run.cache.mapped_bytes > 5_000_000
    run.cache = run.new_cache()
    before = pa.total_allocated_bytes()
    loaded = run.load()
    assert pa.total_allocated_bytes() - before < 10_000
    assert loaded.state.windows.chunks[0].table.nbytes > 5_000_000
    assert run.cache.held_bytes < 100_000


def damaged(folder: Path, how: str) -> None:
    """All files changed in place, as another process may do it that has them open or knows their names."""
    for path in folder.iterdir():
        size = path.stat().st_size
        if how == "truncated":
            os.truncate(path, 0)
        else:
            with open(path, "r+b") as file:
                file.seek(size // 8)
                file.write(b"\7" * (size * 3 // 4))


@pytest.mark.weekly
@pytest.mark.parametrize("large", [False, True], ids=["heap", "file"])
@pytest.mark.parametrize("how", ["truncated", "overwritten"])
def test_files_changed_in_place_change_nothing(
    how: str, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches, during one, and before another worker of the host reads them."""
    monkeypatch.setattr(host_files, "LARGE", 1_000 if large else 1 << 40)
    operator, count = OPERATORS["early, retracting"], 20_000
    run, calm = Run(operator, tmp_path), Run(operator, Path("unused"))
    calm.cache = ChunkCache(0)
    for batch in range(6):
        keys = np.arange(0, count, batch + 1)
        rows, times = many(keys, np.full(len(keys), batch * SECOND)), {"watermark": batch * SECOND}
        if batch == 4:
            run.cache = run.new_cache()
        loaded = run.load()
        if batch % 2:
            damaged(tmp_path / "host", how)
        stepped = operator.step(loaded.state, rows, **times)
        run.manifest = save(stepped.state, loaded, run.log)
        if batch % 2 == 0:
            damaged(tmp_path / "host", how)
        assert stepped.panes.equals(calm.step(rows, "on", numbered(f"c{batch}x"), **times))
        same_state(run.load().state, calm.load().state)


def test_what_another_process_has_replaced_is_not_held_on_to(tmp_path: Path) -> None:
    """Spark gives a shard now to one worker, now to another."""
    run = Run(OPERATORS["fixed"], tmp_path)
    here, there = run.new_cache(), run.new_cache()
    for i in range(40):
        run.cache = (here, there)[i % 2]
        run.step(many(np.arange(1_000), np.zeros(1_000, np.int64)), "on", numbered(f"b{i}x"), watermark=0)
    run.cache = fresh = run.new_cache()
    run.load()
    for run.cache in (here, there):
        run.load()
        assert run.cache.held_bytes == fresh.held_bytes > 0


def test_no_directory_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    run = Run(OPERATORS["fixed"], tmp_path / "file")
    for _ in range(2):
        run.step(bundle([(1, "a", 1, 1)]), "on", numbered("a"), watermark=0)
    assert len(run.load().state.windows) == 1

"""Large contents of windows as deposits: the same panes to the last bit, and no more written than rows touch."""

from __future__ import annotations

import random
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reference.byrule.agree import disagreements
from reference.transcripts import transcript
from seeds import share
from stored_deposits import DEPOSITS, SCHEMA, Chunks, deposits_grouping, deposits_rows, stored_log

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.panes.grouping import contents
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.state.chunk_log import load, save
from uncombine.panes.state.manifest import require_version

COMBINERS = {
    "n": uc.Count(),
    "mean": uc.Mean("x"),
    "median": uc.Median("x"),
    "distinct": uc.CountDistinct("k"),
    "mode": uc.Mode("x"),
    "all": uc.CollectList("x"),
    "best": uc.TopK("x", 2),
    "last": uc.Max("k"),
}
CHEAP = {
    **COMBINERS,
    "median": uc.Median("x", retractable=False),
    "distinct": uc.CountDistinct("k", retractable=False),
    "best": uc.TopK("x", 2, retractable=False),
    "last": uc.Max("k", retractable=False),
    "whose": uc.ArgMax("k", by="x", retractable=False),
}


SECOND = 1_000_000
LATENESS = {"allowed_lateness": "5 seconds", "by": "k"}
EARLY = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
WAITING = uc.AfterCount(10**9)


@dataclass(frozen=True, repr=False)
class LargeMerges(uc.UserTrigger):
    """Fires when windows merge whose contents differ, and at each third row."""

    def on_element(self, row: Any, window: Any, ctx: Any) -> None:
        ctx.state["n"] = seen = ctx.state.get("n", 0) + 1
        if seen % 3 == 0:
            ctx.fire()

    def on_merge(self, sources: Any, ctx: Any) -> None:
        ctx.state["n"] = sum(source.state.get("n", 0) for source in sources)
        if any(source.value("median") != ctx.value("median") for source in sources):
            ctx.fire()


GROUPINGS: dict[str, dict[str, Any]] = {
    "fixed": {"window": uc.Fixed("4 seconds"), **LATENESS},
    "early": {"window": uc.Fixed("4 seconds"), "trigger": EARLY, "mode": "retracting", **LATENESS},
    "discarding": {"window": uc.Fixed("4 seconds"), "trigger": EARLY, "mode": "discarding", **LATENESS},
    "sliding": {"window": uc.Sliding("6 seconds", "2.5 seconds"), "trigger": uc.Always(), **LATENESS},
    "sessions": {"window": uc.Sessions("2 seconds"), "trigger": EARLY, **LATENESS},
    "sessions of changes": {"window": uc.Sessions("2 seconds"), "mode": "retracting", "diff": "d", **LATENESS},
    "a result": {
        "window": uc.Sessions("1 second"),
        "trigger": uc.Repeatedly(uc.OnResult(uc.col("median") > 0)),
        **LATENESS,
    },
    "a value in a merge": {"window": uc.Sessions("1 second"), "trigger": uc.Repeatedly(LargeMerges()), **LATENESS},
    "no keys": {"window": uc.Global(), "trigger": uc.Repeatedly(uc.AfterCount(5)), "by": ()},
    "one by one": {"window": uc.Sessions("2 seconds"), "granularity": "record", **LATENESS},
}


class Log(Chunks):
    """A key-value store that counts."""

    written = 0

    def put(self, id: int, value: bytes) -> None:  # type: ignore[override]
        self.written += len(value)
        self[id] = value


def bundle(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every window that has anything has deposits."""
    monkeypatch.setattr(contents, "DEPOSIT_BYTES", 1)


@pytest.mark.weekly
@pytest.mark.usefixtures("tiny")
def test_transcripts_give_the_panes_of_the_rules() -> None:
    assert list(disagreements(0, 15, transcript)) == []
    assert list(disagreements(200, 215)) == []


def drawn(r: random.Random, retracts: bool) -> list[tuple[Any, ...]]:
    keys = [None, "", "a", "b" * 40, "c" * 300]
    diffs = [1, 1, -1] if retracts else [1]
    return [
        (r.randrange(12 * SECOND), r.choice(keys), r.randint(-9, 9), r.choice(diffs)) for _ in range(r.randrange(12))
    ]


@pytest.mark.weekly
@pytest.mark.parametrize("name", share(GROUPINGS))
def test_deposits_change_no_pane(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_pane_changes(name, range(3), monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("name", GROUPINGS)
def test_deposits_change_no_pane_of_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_pane_changes(name, range(100, 200), monkeypatch)


def no_pane_changes(name: str, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a log after each step, against the same operator that keeps all contents in its windows."""
    for seed in seeds:
        r, options = random.Random(seed), {**GROUPINGS[name], "allow_finish": True}
        retracts = r.random() < 0.5
        if retracts := name == "sessions of changes" or (retracts and name != "discarding"):
            options |= {"diff": "d", "mode": "retracting"}
        operator = Operator(Grouping(COMBINERS if retracts else CHEAP, **options), SCHEMA)
        log, manifest, state = Log(), None, operator.initial()
        watermark = now = most = 0
        least = (1, 400, 40)[seed % 3]
        for _ in range(8):
            rows, watermark, now = bundle(drawn(r, retracts)), watermark + r.randrange(2 * SECOND), now + SECOND
            times: dict[str, Any] = {"watermark": watermark, "processing_time": now}
            monkeypatch.setattr(contents, "DEPOSIT_BYTES", 1 << 40)
            whole = operator.step(state, rows, **times)
            monkeypatch.setattr(contents, "DEPOSIT_BYTES", least)
            loaded = load(manifest, log, operator)
            divided = operator.step(loaded.state, rows, **times)
            manifest, state = save(divided.state, loaded, log), whole.state
            assert divided.panes.equals(whole.panes), seed
            most = max(most, len(divided.state.deposits or ()))
        assert most > 0 or retracts or least > 40, "no deposit was tried"
        loaded = load(manifest, log, operator)
        ended = operator.step(loaded.state, bundle([]), watermark=uc.timestamp("9999-01-01"), processing_time=now)
        whole = operator.step(state, bundle([]), watermark=uc.timestamp("9999-01-01"), processing_time=now)
        assert ended.panes.equals(whole.panes), seed
        if name != "no keys":
            assert all(len(store) == 0 for store in ended.state.stores.values() if store is not None)


def written_by(grouping: Grouping, bundles: list[list[tuple[Any, ...]]], cells: list[int]) -> list[int]:
    """The bytes that each bundle writes; `cells` gets the number of rows of its chunks that are new."""
    operator, log, manifest = Operator(grouping, SCHEMA), Log(), None
    sizes = []
    for rows in bundles:
        before = log.written
        loaded = load(manifest, log, operator)
        manifest = save(operator.step(loaded.state, bundle(rows), watermark=0).state, loaded, log)
        sizes.append(log.written - before)
        cells.append(len(log))
    return sizes


FIRES = uc.Repeatedly(uc.AfterCount(1))


@pytest.mark.weekly
@pytest.mark.parametrize("window", share([uc.Fixed("1 hour"), uc.Sessions("1 hour"), uc.Global()]))
@pytest.mark.parametrize("trigger", [None, FIRES], ids=["waits", "fires"])
def test_a_few_rows_more_write_a_few_bytes(window: uc.Window, trigger: Any) -> None:
    """Of a multiset of 60,000 values; it was written whole for every row that came to it."""
    if trigger is None and window == uc.Global():
        trigger = uc.Repeatedly(WAITING)
    many = [(i, "k", i * 7919 % 1_000_003, 1) for i in range(60_000)]
    few = [[(i, "k", i, 1), (i, "k", i + 1, 1)] for i in range(20)]
    chunks: list[int] = []
    grouping = Grouping({"m": uc.Median("x")}, window, trigger, by="k", mode="accumulating")
    first, *more = written_by(grouping, [many, *few], chunks)
    assert first > 120_000
    assert max(more) < 6_000
    assert max(chunks) < 8


@pytest.mark.weekly
def test_a_multiset_that_grows_is_written_a_few_times() -> None:
    """Deposits are joined when they have grown by a fourth: each value is written about log(n) times, and not n."""
    size = 2_500
    bundles = [[(i, "k", (i * size + j) * 7919 % 1_000_003, 1) for j in range(size)] for i in range(60)]
    grouping = Grouping({"m": uc.Median("x")}, uc.Sessions("1 hour"), by="k", mode="accumulating")
    chunks: list[int] = []
    sizes = written_by(grouping, bundles, chunks)
    assert sum(sizes) < 12 * 60 * sizes[0]  # 30 times it would be if each batch wrote all
    assert max(chunks) < 24


def test_a_long_text_is_not_written_with_its_neighbours() -> None:
    """Neither as a value, when its window gets rows, nor as a key, when other keys do."""
    r = random.Random(1)
    long = "".join(r.choices("abcdefgh", k=1_000_000))
    few = [[(0, f"k{i % 5}", i, 1)] for i in range(12)]
    for grouping in (
        Grouping({"m": uc.Max("k")}, uc.Fixed("1 hour"), mode="accumulating"),
        Grouping({"m": uc.Max("k", retractable=False)}, uc.Fixed("1 hour"), mode="accumulating"),
        Grouping({"n": uc.Count()}, uc.Fixed("1 hour"), by="k", mode="accumulating"),
    ):
        first, *more = written_by(grouping, [[(0, long, 0, 1)], *few], [])
        assert first > 200_000
        assert max(more) < 6_000


def test_the_format_is_the_old_one_without_deposits(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version refuses a state with deposits, which it would lose, and goes on with any other."""
    operator = Operator(Grouping({"m": uc.Median("x")}, uc.Fixed("1 hour")), SCHEMA)
    log, manifest = Log(), None
    loaded = load(manifest, log, operator)
    state = operator.step(loaded.state, bundle([(0, "k", 1, 1)]), watermark=0).state
    manifest = save(state, loaded, log)
    assert manifest.startswith(b'{"version":2,')
    assert b"deposits" not in manifest
    monkeypatch.setattr(contents, "DEPOSIT_BYTES", 1)
    loaded = load(manifest, log, operator)
    divided = save(operator.step(loaded.state, bundle([(0, "k", 1, 1)]), watermark=0).state, loaded, log)
    assert divided.startswith(b'{"version":3,')
    require_version(divided)
    other = Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 hour")), SCHEMA)
    with pytest.raises(StateMismatch, match="another kind of window or input"):
        load(divided, log, other)


def test_a_state_with_deposits_that_was_stored_goes_on(tmp_path: Path) -> None:
    """The file was written when format 3 began."""
    with zipfile.ZipFile(DEPOSITS) as archive:
        archive.extractall(tmp_path)
    log = Log({int(path.name): path.read_bytes() for path in tmp_path.iterdir() if path.name.isdigit()})
    operator = Operator(deposits_grouping(), SCHEMA)
    loaded = load((tmp_path / "manifest").read_bytes(), log, operator)
    assert loaded.state.deposits is not None
    assert len(loaded.state.deposits) > 0
    again, _ = stored_log()
    assert {name: len(value) for name, value in again.items()}.keys() == log.keys()
    panes = operator.step(loaded.state, deposits_rows(99), watermark=uc.timestamp("2100-01-01")).panes
    values = np.concatenate([np.asarray(deposits_rows(i)["x"]) for i in (0, 1, 2, 99)])
    assert panes.select(["m", "n"]).to_pylist() == [{"m": float(np.median(values)), "n": len(values)}]

"""Properties for any input, order, cut, watermark and trigger."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from opened import run_script
from pipelines import Stage, pipeline
from reference.shards import in_parcels
from seeds import seeds

import uncombine as uc
from uncombine.panes.grouping import bundle, compiled

MINUTE = 60_000_000
WINDOWS: list[Any] = [
    uc.Fixed("1 minute"),
    uc.Sliding("2 minutes", "30 seconds"),
    uc.Sessions("20 seconds"),
    uc.Global(),
    uc.Calendar("day"),
]
TRIGGERS: list[Any] = [
    None,
    uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1)),
    uc.Repeatedly(uc.AfterCount(3)),
    uc.Repeatedly(uc.FirstOf(uc.AfterCount(4), uc.AfterWatermark())),
    uc.AfterWatermark(early=uc.Repeatedly(uc.AtPeriod("10 seconds", domain="event")), late=uc.AfterCount(2)),
    uc.AfterWatermark(early=uc.AfterDelay("5 seconds"), late=uc.AfterCount(1)),
]
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.string(), "x": pa.int64(), "id": pa.int64(), "d": pa.int64()})
COMBINERS = {"total": uc.Sum("x"), "best": uc.Max("x"), "middle": uc.Median("x")}


def data(rng: random.Random, count: int = 40) -> list[dict[str, Any]]:
    return [
        {"ts": rng.randrange(5 * MINUTE), "k": rng.choice("abc"), "x": rng.randint(-3, 9), "id": i}
        for i in range(count)
    ]


def cut(rng: random.Random, rows: list[dict[str, Any]], lag: int) -> list[Any]:
    """The rows in some order and some bundles, with a watermark that is `lag` less than the greatest time so far.

    Some bundles are of one key. Both clocks move with the rows of a bundle, or after them.
    """
    script: list[Any] = []
    top, now = 0, 5 * MINUTE
    while rows:
        key, alone = rows[0]["k"], rng.random() < 0.5
        part = [row for row in rows[:12] if not alone or row["k"] == key][: rng.randint(1, 6)]
        rows = [row for row in rows if not any(row is other for other in part)]
        top, now = max(top, *(row["ts"] for row in part)), now + rng.choice([0, 1, 5, 60]) * 1_000_000
        mark = uc.Watermark(max(0, top - lag))
        script += [uc.Elements(part, now, [mark])] if rng.random() < 0.5 else [uc.Elements(part, now), mark]
    return [*script, uc.Watermark(None)]


def run(script: list[Any], seed: int, **options: Any) -> tuple[list[pa.Table], int]:
    """The panes of the local runner, and those of shards as workers run them; and how many windows both still hold."""
    given = {name: value for name, value in options.items() if not isinstance(value, uc.Combiner)}
    combiners = {name: value for name, value in options.items() if name not in given}
    local = run_script(script, schema=SCHEMA, **options)
    shards = in_parcels(script, SCHEMA, given, combiners, random.Random(seed), 1 + seed % 3)
    assert local.counts()["dropped"] == shards.counts.dropped == 0
    return [local, shards.table], local.counts()["held"] + shards.held + shards.atoms


def left(result: pa.Table) -> Counter[Any]:
    """The rows that remain after retractions, by key, window and values."""
    found: Counter[Any] = Counter()
    for row in result.to_pylist():
        window = row["window"] and (row["window"]["start"], row["window"]["end"])
        found[(row.get("k"), window, *(row[name] for name in COMBINERS))] += row["diff"]
    return Counter({value: n for value, n in found.items() if n})


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(30))
def test_what_retractions_leave_is_the_result_over_all_rows(seed: int) -> None:
    rng = random.Random(seed)
    window, trigger = WINDOWS[seed % 5], TRIGGERS[seed // 5 % 6]
    rows = data(rng)
    options: dict[str, Any] = {"window": window, "by": "k", **COMBINERS}
    final = run_script([uc.Elements(rows), uc.Watermark(None)], **options)
    shuffled = rng.sample(rows, len(rows))
    retracting = {**options, "trigger": trigger, "mode": "retracting", "allowed_lateness": "1 hour"}
    results, held = run(cut(rng, shuffled, lag=MINUTE), seed, **retracting)
    assert [left(result) for result in results] == [left(final)] * 2
    assert held == 0


def test_fixed_windows_against_pandas() -> None:
    rows = data(random.Random(99), 300)
    result = run_script([uc.Elements(rows), uc.Watermark(None)], window=uc.Fixed("1 minute"), by="k", **COMBINERS)
    frame = pd.DataFrame(rows)
    frame["start"] = frame["ts"] // MINUTE * MINUTE
    grouped = frame.groupby(["k", "start"])["x"].agg(["sum", "max", "median"])
    got = {
        (r["k"], uc.timestamp(r["window"]["start"])): (r["total"], r["best"], r["middle"]) for r in result.to_pylist()
    }
    assert got == {key: (int(s), int(m), float(d)) for key, s, m, d in grouped.itertuples()}


@pytest.mark.parametrize("seed", seeds(10))
def test_sessions_against_a_walk_through_sorted_times(seed: int) -> None:
    rows = data(random.Random(seed), 60)
    result = run_script([uc.Elements(rows), uc.Watermark(None)], window=uc.Sessions("5 seconds"), by="k", **COMBINERS)
    expected: dict[Any, int] = {}
    for key in "abc":
        burst: list[dict[str, Any]] = []
        for row in [*sorted((r for r in rows if r["k"] == key), key=lambda r: r["ts"]), None]:
            if burst and (row is None or row["ts"] >= burst[-1]["ts"] + 5_000_000):
                bounds = burst[0]["ts"], burst[-1]["ts"] + 5_000_000
                expected[(key, *bounds)] = sum(r["x"] for r in burst)
                burst = []
            if row is not None:
                burst.append(row)
    got = {
        (r["k"], uc.timestamp(r["window"]["start"]), uc.timestamp(r["window"]["end"])): r["total"]
        for r in result.to_pylist()
    }
    assert got == expected


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(20))
def test_a_second_stage_over_the_changes_is_the_second_stage_over_the_result(seed: int) -> None:
    rng = random.Random(seed)
    first: dict[str, Any] = {
        "by": "k",
        "mode": "retracting",
        "allowed_lateness": "1 hour",
        "n": uc.Count(),
        "s": uc.Sum("x"),
    }
    trigger = TRIGGERS[1 + seed % 4]
    windows = uc.Fixed("1 minute") if seed % 2 else uc.Sessions("15 seconds")
    second: dict[str, Any] = {"time": "event_time", "diff": "diff", "mode": "retracting", "by": "n"}
    second |= {"sizes": uc.Count(), "best": uc.Max("s")}
    rows = data(rng)

    def stages(**settings: Any) -> list[Any]:
        later = Stage(uc.Global(), **second)
        return [Stage(windows, **first, **settings), later]

    def remains(result: pa.Table) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for row in result.to_pylist():
            found[(row["n"], row["sizes"], row["best"])] += row["diff"]
        return Counter({value: n for value, n in found.items() if n})

    at_once = pipeline(stages(), [uc.Elements(rows), uc.Watermark(None)])
    in_parts = pipeline(stages(trigger=trigger), cut(rng, rng.sample(rows, len(rows)), lag=30_000_000))
    assert remains(in_parts) == remains(at_once)


def by_size(times: np.ndarray) -> tuple[None, np.ndarray, np.ndarray]:
    """Windows that may share an instant without becoming one: a third of a minute and more, the odd seconds longer."""
    start = times - times % 20_000_000
    return None, start, start + 30_000_000 + times // 1_000_000 % 2 * 20_000_000


def same_start(code: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Windows that begin together become one."""
    return np.unique(np.stack([code, start]), axis=1, return_inverse=True)[1].ravel()


# Every kind of window meets every trigger in 15 seeds.
@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(15, 90))
@pytest.mark.parametrize("collisions", [False, True])
def test_sessions_over_a_changelog_end_as_over_the_rows_that_are_left(
    seed: int, collisions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever clocks pass while rows of other keys come, and whether or not the hashes of keys are told apart."""
    if collisions:
        for module in (bundle, compiled):
            monkeypatch.setattr(module, "key_hashes", lambda keys, count, start=None: np.zeros(count, np.uint64))
    rng = random.Random(seed)
    rows = data(rng, 30)
    gone = {row["id"] for row in rng.sample(rows, 12)}
    changes = [{**row, "d": 1} for row in rows] + [{**row, "d": -1} for row in rows if row["id"] in gone]
    if seed % 3:
        rng.shuffle(changes)  # a retraction may come before its row
    windows = [uc.Sessions("20 seconds"), uc.Sessions("3 seconds"), uc.Custom(by_size, same_start)]
    options: dict[str, Any] = {"window": windows[seed % 3], "by": "k", **COMBINERS}
    results, held = run(
        cut(rng, changes, lag=rng.choice([30_000_000, MINUTE, 5 * MINUTE])),
        seed,
        **options,
        trigger=TRIGGERS[1 + seed % 5],
        mode="retracting",
        diff="d",
        allowed_lateness="1 hour",
    )
    kept = [{**row, "d": 1} for row in rows if row["id"] not in gone]
    final = run_script([uc.Elements(kept), uc.Watermark(None)], **options)
    assert [left(result) for result in results] == [left(final)] * 2
    assert held == 0


def test_discarded_panes_add_up_to_the_accumulated_one() -> None:
    rng = random.Random(4)
    rows = data(rng)
    script = cut(rng, rows, lag=MINUTE)
    options: dict[str, Any] = {
        "window": uc.Fixed("1 minute"),
        "by": "k",
        "trigger": TRIGGERS[1],
        "allowed_lateness": "1 hour",
    }
    result = run_script(script, **options, mode="discarding", total=uc.Sum("x")).to_pylist()
    total: Counter[Any] = Counter()
    for row in result:
        total[(row["k"], row["window"]["start"])] += row["total"] or 0
    final = (
        uc.flow([uc.Elements(rows), uc.Watermark(None)])
        .window(uc.Fixed("1 minute"))
        .combine(by="k", total=uc.Sum("x"))
        .run()
    )
    assert total == Counter({(r["k"], r["window"]["start"]): r["total"] for r in final.to_pylist()})


def test_keys_of_every_type_are_kept_apart() -> None:
    kinds = {
        "i": [1, 1, None, 2],
        "f": [0.0, -0.0, None, float("nan")],
        "s": ["a", "a", None, "b"],
        "b": [True, True, None, False],
    }
    for name, values in kinds.items():
        rows = pa.table({"ts": pa.array([0, 1, 2, 3], pa.timestamp("us")), name: values, "x": [1, 2, 4, 8]})
        parts = [rows.slice(i, 1) for i in range(4)]
        script = [*(uc.Elements(part) for part in parts), uc.Watermark(None)]
        result = uc.flow(script).window(uc.Sessions("1 minute")).combine(by=name, total=uc.Sum("x")).run()
        assert sorted(result["total"].to_pylist()) == [3, 4, 8]

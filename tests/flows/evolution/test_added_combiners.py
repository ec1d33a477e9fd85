"""A combiner that is added without a history is null for windows that began before, and right for all later ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from row_steps import SCHEMA, SECOND, START
from seeds import seeds

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.windows.times import MIN_TIME

COMBINERS = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "most": uc.Max("x"),
    "middle": uc.Median("x"),
    "ids": uc.CountDistinct("id"),
    "mean": uc.Mean("x"),
    "set": uc.CollectSet("x"),
    "spread": uc.Variance("x"),
}
WINDOWS = ["1 minute", "5 minutes", "sessions 40 seconds", uc.Sliding("2 minutes", "1 minute")]
TRIGGERS = ["each row", "early every 2 rows, late every 1 row", None]


def flow(names: list[str], window: Any, trigger: str | None = "each row") -> uc.Flow:
    windows = uc.flow(SCHEMA, watermark="30 seconds", diff="w").window(
        window, trigger, mode="retracting", allowed_lateness="10 days"
    )
    return windows.combine(by="k", **{name: COMBINERS[name] for name in names})


def drawn(r: random.Random, entries: int, now: int, rows: list[dict[str, Any]]) -> tuple[list[Any], int]:
    """A script from a time on, and its end. Rows that were added are retracted later."""
    script = []
    for _ in range(entries):
        now += r.choice([1, 20, 90]) * SECOND
        bundle = []
        for _ in range(r.randrange(1, 5)):
            row = {"ts": now - r.randrange(100) * SECOND, "k": r.choice(["p", "q"]), "id": r.randrange(3), "w": 1}
            row |= {"x": r.choice([None, *range(50)]), "seen": now}
            if rows and r.random() < 0.3:
                row = {**rows.pop(r.randrange(len(rows))), "w": -1}
            else:
                rows.append(row)
            bundle.append(row)
        script.append(uc.Elements(pa.Table.from_pylist(bundle, SCHEMA), at=now))
    return script, now


def began(row: dict[str, Any]) -> int:
    return int(row["window"]["start"].timestamp() * 1_000_000)


def left(parts: Sequence[pa.Table], since: Mapping[str, int], known: Mapping[str, set[str]]) -> Counter[str]:
    """The rows that are left of changelogs: null where a combiner lacks rows, or was not known when a row was shown."""
    rows: Counter[str] = Counter()
    for part in parts:
        for row in part.to_pylist():
            names = [name for name in known[place(row)] if began(row) >= since.get(name, MIN_TIME)]
            rows[f"{place(row)} {[(name, row.get(name) if name in names else None) for name in COMBINERS]}"] += row[
                "diff"
            ]
    return Counter({row: count for row, count in rows.items() if count})


def place(row: dict[str, Any]) -> str:
    return f"{row['k']} {row['window']}"


@pytest.mark.parametrize("seed", seeds(150, 3_000))
def test_windows_that_began_later_are_whole(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    names = r.sample(sorted(COMBINERS), r.randrange(2, 7))
    window, trigger = r.choice(WINDOWS), r.choice(TRIGGERS)
    cuts = sorted(r.sample(range(1, len(names)), r.randrange(1, min(3, len(names)))))
    flows = [flow(names[:cut], window, trigger) for cut in [*cuts, len(names)]]
    rows: list[dict[str, Any]] = []
    now, script, shown, seed_of = START, list[Any](), list[pa.Table](), None
    for number, one in enumerate(flows):
        if shown:
            assert seed_of is not None
            seed_of = uc.evolve(seed_of, one, to=tmp_path / f"new {number}").seed
        part, now = drawn(r, r.randrange(1, 8), now, rows)
        script += part
        result = one.run(part, start=seed_of)
        shown.append(result.to_arrow())
        seed_of = result.seed(tmp_path / f"old {number}")
    since = seed_of.steps[0].pieces[0].since if seed_of is not None else {}
    assert since.keys() <= set(names[cuts[0] :])
    for row in shown[-1].to_pylist():
        short = [name for name, time in since.items() if began(row) < time]
        assert all(row[name] is None for name in short)
        assert (row["pane"]["since"] is not None) == bool(short)
    whole = flow(names, window, trigger).run(script).to_arrow()
    known = {place(row): set(part.column_names) for part in shown for row in part.to_pylist() if row["diff"] > 0}
    assert left(shown, since, known) == left([whole], since, known)


def test_a_combiner_of_parts_that_are_stored_is_whole_at_once(tmp_path: Path) -> None:
    before = flow(["mean"], "1 minute")
    rows = pa.Table.from_pylist(
        [{"ts": START, "k": "p", "id": 1, "x": x, "w": 1, "seen": START} for x in (3, 5)], SCHEMA
    )
    seed = before.run([uc.Elements(rows, at=START)]).seed(tmp_path / "old")
    change = uc.evolve(seed, flow(["mean", "total"], "1 minute"), to=tmp_path / "new")
    assert "total= is made of what is stored" in str(change)
    more = uc.Elements(rows.slice(0, 1), at=START)
    result = flow(["mean", "total"], "1 minute").run([more, uc.Watermark(None)], start=change.seed)
    assert [(row["total"], row["diff"]) for row in result.to_pylist()] == [(None, -1), (11, 1)]
    assert {row["pane"]["since"] for row in result.to_pylist()} == {None}


@pytest.mark.parametrize("window", ["global"])
def test_windows_that_never_end_need_a_history(window: Any, tmp_path: Path) -> None:
    before = flow(["n"], window)
    seed = before.run(drawn(random.Random(1), 2, START, [])[0]).seed(tmp_path / "old")
    with pytest.raises(StateMismatch, match="give history="):
        uc.evolve(seed, flow(["n", "most"], window), to=tmp_path / "new")


def test_a_step_before_the_last_needs_a_history(tmp_path: Path) -> None:
    def days(*names: str) -> uc.Flow:
        first = flow(list(names), "1 minute")
        return first.window("1 day", "each row", "retracting").combine(all=uc.Sum("n"))

    seed = days("n").run(drawn(random.Random(1), 2, START, [])[0]).seed(tmp_path / "old")
    with pytest.raises(StateMismatch, match="give history="):
        uc.evolve(seed, days("n", "most"), to=tmp_path / "new")


def test_another_combiner_under_the_same_name_needs_a_history(tmp_path: Path) -> None:
    before = flow(["n"], "1 minute")
    seed = before.run(drawn(random.Random(1), 2, START, [])[0]).seed(tmp_path / "old")
    changed = uc.flow(SCHEMA, watermark="30 seconds", diff="w").window(
        "1 minute", "each row", mode="retracting", allowed_lateness="10 days"
    )
    with pytest.raises(StateMismatch, match="give history="):
        uc.evolve(seed, changed.combine(by="k", n=uc.Sum("x")), to=tmp_path / "new")

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
        if row["diff"] > 0:  # what was shown before the change is retracted as it was
            assert (row["pane"]["since"] is not None) == bool(short)
    whole = flow(names, window, trigger).run(script).to_arrow()
    known = {place(row): set(part.column_names) for part in shown for row in part.to_pylist() if row["diff"] > 0}
    assert left(shown, since, known) == left([whole], since, known)


ROWS = pa.Table.from_pylist(
    [{"ts": START + at * SECOND, "k": "p", "id": 1, "x": x, "w": 1, "seen": START} for at, x in ((0, 3), (1, 5))],
    SCHEMA,
)


@pytest.mark.parametrize("window", ["1 minute", "global", "sessions 40 seconds"])
def test_a_combiner_of_parts_that_are_stored_is_whole_at_once(window: str, tmp_path: Path) -> None:
    seed = flow(["mean"], window).run([uc.Elements(ROWS, at=START)]).seed(tmp_path / "old")
    now = flow(["mean", "total"], window)
    change = uc.evolve(seed, now, to=tmp_path / "new")
    assert "total= is made of what is stored" in str(change)
    alone = now.run([], start=change.seed).to_pylist()
    assert [(row["total"], row["mean"], row["diff"]) for row in alone] == [(None, 4, -1), (8, 4, 1)], "no new rows"
    result = now.run([uc.Elements(ROWS.slice(0, 1), at=START), uc.Watermark(None)], start=change.seed).to_pylist()
    assert [(row["total"], row["diff"]) for row in result] == [(None, -1), (8, 1), (8, -1), (11, 1)]
    assert {row["pane"]["since"] for row in result} == {None}


def test_a_window_with_rows_that_were_not_shown_is_corrected_by_its_next_pane(tmp_path: Path) -> None:
    trigger = "early every 3 rows"
    shown = [uc.Elements(pa.concat_tables([ROWS, ROWS.slice(0, 1)]), at=START), uc.Elements(ROWS.slice(1), at=START)]
    seed = flow(["mean"], "1 minute", trigger).run(shown).seed(tmp_path / "old")
    now = flow(["mean", "total"], "1 minute", trigger)
    change = uc.evolve(seed, now, to=tmp_path / "new")
    assert change.corrections == 0, "the pane that is shown is not of the rows that are stored"
    result = now.run([uc.Watermark(None)], start=change.seed).to_pylist()
    assert [(row["total"], row["diff"]) for row in result] == [(None, -1), (16, 1)]


def test_large_contents_are_those_of_a_new_combiner_too(tmp_path: Path) -> None:
    def texts(**more: uc.Combiner) -> uc.Flow:
        rows = uc.flow(pa.schema({"ts": SCHEMA.field("ts").type, "text": pa.string()}), watermark="30 seconds")
        minutes = rows.window("1 minute", "each row", mode="retracting")
        return minutes.combine(set=uc.CollectSet("text"), **more)

    long = [{"ts": START, "text": f"{number} " + "x" * 300} for number in range(400)]
    entries = [uc.Elements(long[place : place + 100]) for place in range(0, 400, 100)]
    seed = texts().run(entries).seed(tmp_path / "old")
    assert any(file.store == "deposits" for file in seed.steps[0].files)
    now = texts(many=uc.CountDistinct("text"))
    change = uc.evolve(seed, now, to=tmp_path / "new")
    assert "many= is made of what is stored" in str(change)
    assert [(row["many"], row["diff"]) for row in now.run([], start=change.seed).to_pylist()] == [(None, -1), (400, 1)]


@pytest.mark.parametrize("seed", seeds(20, 300))
def test_a_history_makes_a_combiner_whole_that_was_added_without_one(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    names = r.sample(sorted(COMBINERS), r.randrange(2, 5))
    window, trigger = r.choice(WINDOWS), r.choice(TRIGGERS)
    first, now = flow(names[:1], window, trigger), flow(names, window, trigger)
    rows: list[dict[str, Any]] = []
    (a, then), shown = drawn(r, r.randrange(1, 6), START, rows), list[pa.Table]()
    result = first.run(a)
    shown.append(result.to_arrow())
    change = uc.evolve(result.seed(tmp_path / "a"), now, to=tmp_path / "b")
    b, _ = drawn(r, r.randrange(1, 6), then, rows)
    result = now.run(b, start=change.seed)
    shown.append(result.to_arrow())
    later = now
    if r.random() < 0.5:
        later = flow([*names[1:], names[0]], window, r.choice(TRIGGERS))
    seen = result.seed(tmp_path / "c")
    history = pa.concat_tables([entry.rows for entry in [*a, *b]])
    change = uc.evolve(seen, later, history=history, to=tmp_path / "d")
    marks = set(seen.steps[0].pieces[0].since)
    if marks:
        assert change.plan.computed, str(change)
        assert f"{min(marks)}= was added without a history" in str(change)
    shown.append(later.run([uc.Watermark(None)], start=change.seed).to_arrow())
    whole = later.run([*a, *b, uc.Watermark(None)]).to_arrow()
    every = {place(row): set(names) for part in [*shown, whole] for row in part.to_pylist()}
    assert left(shown, {}, every) == left([whole], {}, every)


def test_a_history_for_panes_that_cannot_be_corrected_is_refused(tmp_path: Path) -> None:
    def minutes(**combiners: uc.Combiner) -> uc.Flow:
        rows = uc.flow(SCHEMA.remove(5), watermark="30 seconds")
        return rows.window("1 minute", "each row", mode="accumulating").combine(by="k", **combiners)

    rows = [uc.Elements(ROWS.drop_columns("w"), at=START)]
    seed = minutes(n=uc.Count()).run(rows).seed(tmp_path / "a")
    now = minutes(n=uc.Count(), most=uc.Max("x"))
    change = uc.evolve(seed, now, to=tmp_path / "b")
    seen = now.run([], start=change.seed).seed(tmp_path / "c")
    with pytest.raises(StateMismatch, match="mode='accumulating' can show a window several times"):
        uc.evolve(seen, now, history=ROWS, to=tmp_path / "d")
    assert uc.evolve(seen, now, to=tmp_path / "d").plan.steps[0].fate == "kept"


@pytest.mark.parametrize("window", ["global"])
def test_windows_that_never_end_need_a_history(window: Any, tmp_path: Path) -> None:
    before = flow(["n"], window)
    seed = before.run(drawn(random.Random(1), 2, START, [])[0]).seed(tmp_path / "old")
    with pytest.raises(StateMismatch, match="a new result for ever: give history="):
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


def test_a_session_loses_a_row_from_before_the_change(tmp_path: Path) -> None:
    """The new combiner lacks the row, and has its retraction."""
    both = pa.Table.from_pylist(
        [{"ts": START + at * SECOND, "k": "p", "id": 1, "x": 3, "w": 1, "seen": START} for at in (0, 30)], SCHEMA
    )
    gone = both.slice(0, 1).set_column(SCHEMA.get_field_index("w"), SCHEMA.field("w"), [[-1]])
    window = "sessions 40 seconds"
    seed = flow(["mean"], window).run([uc.Elements(both, at=START)]).seed(tmp_path / "old")
    change = uc.evolve(seed, flow(["mean", "set"], window), to=tmp_path / "new")
    shown = flow(["mean", "set"], window).run([uc.Elements(gone, at=START)], start=change.seed).to_pylist()
    assert [(began(row) - START) // SECOND for row in shown if row["diff"] > 0] == [30]

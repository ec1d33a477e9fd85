"""A filter on the key that is added to a flow over changes, without a history."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from row_steps import SECOND
from seeds import seeds

import uncombine as uc
from uncombine.errors import StateMismatch

SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "shop": pa.int64(), "x": pa.int64(), "diff": pa.int64()},
)
CHANGES = uc.flow(SCHEMA, watermark="30 seconds", diff="diff")
LATE = {"allowed_lateness": "10 days"}
COMBINERS: dict[str, uc.Combiner] = {
    "n": uc.Count(), "total": uc.Sum("x"), "most": uc.Max("x"), "all": uc.CollectList("x"),
}  # fmt: skip
CONDITIONS = [
    uc.col("user") != "bob",
    ~uc.col("user").isin(["bob", "eve"]),
    (uc.col("user") != "bob") & (uc.col("shop") > 1),
    uc.col("user").is_null() | (uc.col("user") == "ada"),
]


def drawn(r: random.Random, count: int) -> list[dict[str, Any]]:
    """The changes of a table: rows come, and rows that came leave."""
    out, there = list[dict[str, Any]](), list[dict[str, Any]]()
    for place in range(count):
        if there and r.random() < 0.4:
            out.append({**there.pop(r.randrange(len(there))), "diff": -1})
            continue
        user = r.choice(["ada", "bob", "eve", None])
        there.append({"ts": place * 20 * SECOND, "user": user, "shop": r.randint(1, 3), "x": r.randint(-3, 9)})
        out.append({**there[-1], "diff": 1})
    return out


def left(*tables: pa.Table) -> Counter[str]:
    """The panes that are left, without those that are retracted."""
    counts: Counter[str] = Counter()
    for table in tables:
        for row in table.to_pylist():
            what = {name: value for name, value in row.items() if name not in ("diff", "pane", "event_time", "step")}
            what = {name: sorted(value) if isinstance(value, list) else value for name, value in what.items()}
            counts[repr(sorted(what.items()))] += row["diff"]
    return Counter({row: count for row, count in counts.items() if count})


def flows(r: random.Random, condition: uc.Expr) -> tuple[uc.Flow, uc.Flow]:
    """A flow, and the flow with one filter more."""
    window = r.choice(["1 minute", "sessions 40 seconds", uc.Sliding("2 minutes", "1 minute"), "global"])
    trigger = r.choice(["each row", "early every 2 rows, late every 1 row"])
    names = r.sample(sorted(COMBINERS), r.randint(1, 3))
    first, then = r.random() < 0.5, r.random() < 0.5

    def flow(*conditions: uc.Expr) -> uc.Flow:
        rows = CHANGES.where(uc.col("x") > 0) if first else CHANGES
        for one in conditions:
            rows = rows.where(one)
        rows = rows.with_columns(x=uc.col("x") * 2) if then else rows
        windows = rows.window(window, trigger, "retracting", **LATE)
        return windows.combine(by=("shop", "user"), **{name: COMBINERS[name] for name in names})

    return flow(), flow(condition)


@pytest.mark.parametrize("seed", seeds(40, 2_000))
def test_a_filter_leaves_what_it_would_have_left_from_the_start(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    before, after = flows(r, r.choice(CONDITIONS))
    rows = drawn(r, r.randint(10, 60))
    cut = r.randrange(1, len(rows))
    first = before.run([uc.Elements(rows[place : min(cut, place + 7)]) for place in range(0, cut, 7)])
    change = uc.evolve(first.seed(f"{tmp_path}/before"), after, to=f"{tmp_path}/after")
    assert [step.fate for step in change.plan.steps] == ["converted"]
    rest = [uc.Elements(rows[cut:]), uc.Watermark(None)]
    found = after.run(rest, start=change.seed)
    assert left(first.panes, found.panes) == left(after.run([uc.Elements(rows), uc.Watermark(None)]).panes)


def test_a_deletion_that_follows_brings_nobody_back(tmp_path: Path) -> None:
    """A person is filtered out, and the source then deletes the person's rows, as a database does."""
    row = {"ts": 0, "user": "bob", "shop": 1, "x": 5, "diff": 1}
    windows = {"window": "1 day", "trigger": "each row", "mode": "retracting", **LATE}
    sums = CHANGES.window(**windows).combine(by="user", total=uc.Sum("x"))
    without = CHANGES.where(uc.col("user") != "bob").window(**windows).combine(by="user", total=uc.Sum("x"))
    first = sums.run([uc.Elements([row, {**row, "user": "ada"}])])
    change = uc.evolve(first.seed(f"{tmp_path}/a"), without, to=f"{tmp_path}/b")
    assert "the keys for which it is not true leave the state" in str(change)
    then = without.run([uc.Elements([{**row, "diff": -1}]), uc.Watermark(None)], start=change.seed)
    assert [(one["user"], one["total"], one["diff"]) for one in then.to_pylist()] == [("bob", 5, -1)]


def windowed(rows: uc.Flow, mode: Any = "retracting") -> uc.Flow:
    return rows.window("1 day", "each row", mode, **LATE).combine(by="user", total=uc.Sum("x"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (windowed(CHANGES), windowed(CHANGES.where(uc.col("x") > 1))),
        (windowed(CHANGES), windowed(CHANGES.where(uc.col("user") != "bob").with_columns(user=uc.coalesce("all")))),
        (windowed(CHANGES.where(uc.col("user") != "eve")), windowed(CHANGES.where(uc.col("user") != "bob"))),
        (windowed(CHANGES), windowed(CHANGES.where(lambda table: table["user"].is_valid()))),
        (
            windowed(CHANGES).window("1 day", "each row", "retracting").combine(n=uc.Count()),
            windowed(CHANGES.where(uc.col("user") != "bob"))
            .window("1 day", "each row", "retracting")
            .combine(n=uc.Count()),
        ),
    ],
)
def test_other_changes_need_a_history(before: uc.Flow, after: uc.Flow, tmp_path: Path) -> None:
    row = {"ts": 0, "user": "bob", "shop": 1, "x": 5, "diff": 1}
    seed = before.run([uc.Elements([row])]).seed(f"{tmp_path}/a")
    with pytest.raises(StateMismatch, match="give history="):
        uc.evolve(seed, after, to=f"{tmp_path}/b")

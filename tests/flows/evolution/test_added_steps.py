"""A grouping that is added at the end begins with what the step before it has shown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from evolved_rows import drawn, left
from row_steps import SCHEMA
from seeds import seeds

import uncombine as uc
from uncombine.errors import StateMismatch

ROWS = uc.flow(SCHEMA, watermark="30 seconds")


def added(first: uc.Flow, r: random.Random) -> uc.Flow:
    days = first.filter(uc.col("n") > r.randint(0, 1)) if r.random() < 0.3 else first
    then = days.window(r.choice(["1 day", "global", "5 minutes"]), "each row", "retracting", allowed_lateness="10 days")
    return then.combine(by=r.choice(["k", []]), rows=uc.Count(), all=uc.Sum("n"), most=uc.Max("total"))


@pytest.mark.parametrize("seed", seeds(100, 2_000))
def test_a_flow_with_an_added_step_leaves_what_it_would_have_left(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    window = r.choice(["1 minute", "sessions 40 seconds", uc.Sliding("2 minutes", "1 minute")])
    trigger = r.choice(["each row", "early every 2 rows, late every 1 row", "early every 30 seconds, late each row"])
    first = ROWS.window(window, trigger, "retracting", allowed_lateness="10 days")
    first = first.combine(by=("k", "id"), n=uc.Count(), total=uc.Sum("x"))
    now = added(first, r)
    rows, more = drawn(r, r.randint(1, 30)), drawn(r, r.randint(1, 10))
    before = first.run([uc.Elements(rows[place : place + 7]) for place in range(0, len(rows), 7)])
    change = uc.evolve(before.seed(tmp_path / "old"), now, to=tmp_path / "new")
    assert [one.fate for one in change.plan.steps][-1] == "begun"
    after = now.run([uc.Elements(more), uc.Watermark(None)], start=change.seed)
    whole = now.run([uc.Elements(rows), uc.Elements(more), uc.Watermark(None)])
    assert left(after) == left(whole)


def test_a_step_after_one_that_does_not_retract_needs_a_history(tmp_path: Path) -> None:
    first = ROWS.window("1 minute").combine(by="k", n=uc.Count(), total=uc.Sum("x"))
    seed = first.run([uc.Elements(drawn(random.Random(1), 5))]).seed(tmp_path / "old")
    with pytest.raises(StateMismatch):
        uc.evolve(seed, added(first, random.Random(1)), to=tmp_path / "new")


def test_a_step_over_several_needs_a_history(tmp_path: Path) -> None:
    def counts(name: str) -> uc.Flow:
        rows = uc.flow(SCHEMA, watermark="30 seconds", name=name)
        minutes = rows.window("1 minute", "each row", "retracting", allowed_lateness="10 days")
        return minutes.combine(by="k", n=uc.Count(), total=uc.Sum("x"))

    both = uc.union(a=counts("a"), b=counts("b"))
    rows = drawn(random.Random(1), 9)
    seed = both.run([uc.Elements(rows, input="a"), uc.Elements(rows, input="b")]).seed(tmp_path / "old")
    with pytest.raises(StateMismatch):
        uc.evolve(seed, added(both, random.Random(1)), to=tmp_path / "new")

"""Random changes of random flows: what a restart does not refuse gives the panes of the changed flow from the start."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
import random_changes
from engine import Engine
from flow_changes import SCHEMA
from seeds import seeds
from streams import START, in_order, rows_flow

import uncombine as uc
from uncombine.errors import StateMismatch, UncombineError


def source(**settings: Any) -> uc.Flow:
    return rows_flow(SCHEMA, watermark="10 seconds", **settings)


def panes_of(engine: Engine, batch: pa.Table) -> list[dict[str, Any]]:
    panes, _ = engine.batch(batch, now=START // 1000)
    return in_order(panes.append_column("step", pa.array([0] * panes.num_rows)))


def restarted(seed: int) -> str:
    """The outcome of a change; raises if a restart that is not refused gives other panes than the flow would."""
    rng = random.Random(seed)
    before = random_changes.drawn(rng)
    after, batches = random_changes.changed(before, seed, rng), random_changes.batches(rng)
    try:
        first, changed = (random_changes.made(choices, source) for choices in (before, after))
    except UncombineError:  # a flow that is refused when it is built
        return "refused when it was built"
    old, whole = Engine(first), Engine(changed)
    seen: list[dict[str, Any]] = []
    for batch in batches[:2]:
        seen += panes_of(old, batch)
        whole.batch(batch, now=START // 1000)
    new = Engine(changed, restored=old.snapshot())
    try:
        shown = [panes_of(new, batch) for batch in batches[2:]]
    except StateMismatch:
        return "refused"
    assert not overdrawn([*seen, *(row for rows in shown for row in rows)]), (before, after)
    if random_changes.filters(before) != random_changes.filters(after):
        return "went on after another filter"
    assert shown == [panes_of(whole, batch) for batch in batches[2:]], (before, after)
    return "went on unchanged" if before == after else "went on"


def overdrawn(panes: list[dict[str, Any]]) -> list[str]:
    """The rows that are retracted more often than they were shown."""
    net: Counter[str] = Counter()
    for row in panes:
        net[repr({name: value for name, value in row.items() if name not in ("diff", "pane", "step")})] += row["diff"]
    return [row for row, count in net.items() if count < 0]


def run(seeds: range) -> None:
    outcomes = [restarted(seed) for seed in seeds]
    for outcome in ("refused", "went on after another filter", "went on unchanged", "went on"):
        assert outcome in outcomes


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(110, 324, step=27))
def test_a_restart_is_refused_or_right(first: int) -> None:
    outcomes = {restarted(seed) for seed in range(first, first + 27)}
    assert {"refused", "went on"} & outcomes


@pytest.mark.full
def test_a_restart_comes_to_each_of_its_ends() -> None:
    run(range(300))


@pytest.mark.soak
def test_many_restarts_are_refused_or_right() -> None:
    run(range(1000, 6_000))

"""The as-of operator over random changelogs: all directions, stored and loaded state, holds, against a double loop."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest
from asof_scripts import DIRECTIONS, AsofOracle, random_asof
from join_scripts import Case, Script, shown

from uncombine.panes.join_asof.join_asof import JoinAsof
from uncombine.panes.join_asof.operator import JoinAsofOperator
from uncombine.panes.state.chunk_log import load, save
from uncombine.windows.times import MAX_TIME

EMITS = ("at_once", "final")


class Log(dict[int, bytes]):
    put, remove = dict.__setitem__, dict.__delitem__


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    assert isinstance(case.join, JoinAsof)
    operator = JoinAsofOperator(case.join, case.schema("left"), case.schema("right"))
    oracle, log, manifest, state = AsofOracle(case), Log(), None, operator.initial()
    out: Counter[tuple[Any, ...]] = Counter()
    rows = 0
    for bundle, watermark in Script(case, random).steps(steps):
        promised = operator.hold(state)
        loaded = load(manifest, log, operator)
        tables = [case.table(side, bundle[side]) for side in ("left", "right")]
        stepped = operator.step(loaded.state if stored else state, tables, watermark)
        state = stepped.state
        if stored:
            manifest = save(state, loaded, log)
        found = shown(case, stepped.panes)
        oracle.take(bundle, watermark)
        rows += len(found)
        assert stepped.panes.schema == operator.output_schema
        assert all(diff for _, diff in found)
        assert not {row for row, diff in found if diff > 0} & {row for row, diff in found if diff < 0}
        order = [(diff > 0, row[-1]) for row, diff in found]
        assert order == sorted(order)
        assert all(row[-1] >= promised for row, _ in found), (promised, found)
        if case.join.final:
            assert all(diff > 0 for _, diff in found)
        for row, diff in found:
            out[row] += diff
        assert {row: n for row, n in out.items() if n} == dict(oracle.expected()), (case.join, watermark)
        assert state.counts.dropped == oracle.late
    assert operator.count_entries(state) == 0
    assert operator.hold(state) == MAX_TIME
    return rows


@pytest.mark.parametrize(("direction", "emit"), list(product(DIRECTIONS, EMITS)))
def test_random_scripts(direction: str, emit: str) -> None:
    random, rows = Random(f"{direction} {emit}"), 0
    for i in range(12):
        case = random_asof(random, direction, emit, diff=i % 4 > 0)
        rows += run(case, random, steps=12, stored=i % 3 == 0)
    assert rows > 3


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_many_random_scripts(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        case = random_asof(random, random.choice(DIRECTIONS), random.choice(EMITS), random.random() < 0.7)
        run(case, random, steps=random.choice([6, 30]), stored=random.random() < 0.3)

"""The join operator over random changelogs: all kinds of join, stored and loaded state, holds, against plain Python."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from join_scripts import Case, Oracle, Script, random_case, shown

from uncombine.panes.join.operator import JoinOperator
from uncombine.panes.state.chunk_log import load, save
from uncombine.windows.times import MAX_TIME

KINDS = [
    *((how, "at_once") for how in ("inner", "left", "right", "full", "semi", "anti")),
    *((how, "final") for how in ("left", "right", "full", "anti")),
]


class Log(dict[int, bytes]):
    put, remove = dict.__setitem__, dict.__delitem__


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    operator = JoinOperator(case.join, case.schema("left"), case.schema("right"))
    oracle, log, manifest, state = Oracle(case), Log(), None, operator.initial()
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
        if case.join.left_diff is None and (case.join.final or case.join.how == "inner"):
            assert all(diff > 0 for _, diff in found)
        for row, diff in found:
            out[row] += diff
        expected = oracle.expected()
        assert {row: n for row, n in out.items() if n} == dict(expected), watermark
        assert state.counts.dropped == oracle.late
    assert operator.count_entries(state) == 0
    assert operator.hold(state) == MAX_TIME
    return rows


@pytest.mark.parametrize("windowed", [False, True], ids=["within", "window"])
@pytest.mark.parametrize(("how", "unmatched"), KINDS, ids=lambda given: str(given))
def test_random_scripts(how: str, unmatched: str, windowed: bool) -> None:
    random, rows = Random(f"{how} {unmatched} {windowed}"), 0
    for i in range(6):
        case = random_case(random, how, unmatched, windowed, diff=i % 4 > 0)
        rows += run(case, random, steps=12, stored=i % 3 == 0)
    assert rows > 3


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_many_random_scripts(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        how, unmatched = random.choice(KINDS)
        case = random_case(random, how, unmatched, random.random() < 0.5, random.random() < 0.7)
        run(case, random, steps=random.choice([6, 30]), stored=random.random() < 0.3)

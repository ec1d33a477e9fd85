"""The join operator over random changelogs: all kinds of join, stored and loaded state, holds, against plain Python."""

from __future__ import annotations

from random import Random

import pytest
from join_scripts import Case, Oracle, compare, random_case

from uncombine.panes.join.operator import JoinOperator

KINDS = [
    *((how, "at_once") for how in ("inner", "left", "right", "full", "semi", "anti")),
    *((how, "final") for how in ("left", "right", "full", "anti")),
]


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    operator = JoinOperator(case.join, case.schema("left"), case.schema("right"))
    corrects = case.join.left_diff is not None or not (case.join.final or case.join.how == "inner")
    return compare(Oracle(case), operator, random, steps, stored, corrects)


@pytest.mark.weekly
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

"""The join of rows that are kept for a time, over random changelogs, against plain Python; and wrong lengths."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from join_scripts import Case, compare
from table_scripts import KEPT, KeptOracle, random_kept

from uncombine.errors import InvalidArgument
from uncombine.panes.join.kept import KeptJoin
from uncombine.panes.join.operator import JoinOperator


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    operator = JoinOperator(case.join, case.schema("left"), case.schema("right"))
    corrects = case.join.left_diff is not None or not (case.join.final or case.join.how == "inner")
    return compare(KeptOracle(case), operator, random, steps, stored, corrects)


@pytest.mark.parametrize(("how", "unmatched"), KEPT, ids=lambda given: str(given))
def test_rule_101_random_scripts(how: str, unmatched: str) -> None:
    random, rows = Random(f"{how} {unmatched}"), 0
    for i in range(8):
        case = random_kept(random, how, unmatched, diff=i % 4 > 0)
        rows += run(case, random, steps=14, stored=i % 3 == 0)
    assert rows > 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_many_random_scripts(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        case = random_kept(random, *random.choice(KEPT), random.random() < 0.7)
        run(case, random, steps=random.choice([6, 30]), stored=random.random() < 0.3)

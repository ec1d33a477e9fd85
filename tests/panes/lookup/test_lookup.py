"""The lookup operator over random changelogs: stored and loaded state, holds, retractions, against plain Python."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from join_scripts import Case, compare
from table_scripts import LOOKUPS, LookupOracle, random_lookup

from uncombine.panes.lookup.lookup import Lookup
from uncombine.panes.lookup.operator import LookupOperator


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    assert isinstance(case.join, Lookup)
    operator = LookupOperator(case.join, case.schema("left"), case.schema("right"))
    return compare(LookupOracle(case), operator, random, steps, stored, case.join.left_diff is not None)


@pytest.mark.parametrize(("how", "left", "right"), list(product(LOOKUPS, [False, True], [False, True])))
def test_rule_99_random_scripts(how: str, left: bool, right: bool) -> None:
    random, rows = Random(f"{how} {left} {right}"), 0
    for i in range(12):
        rows += run(random_lookup(random, how, left, right), random, steps=20, stored=i % 3 == 0)
    assert rows > 50


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_many_random_scripts(seed: int) -> None:
    random = Random(seed)
    for _ in range(30):
        case = random_lookup(random, random.choice(LOOKUPS), random.random() < 0.7, random.random() < 0.7)
        run(case, random, steps=random.choice([6, 40]), stored=random.random() < 0.3)

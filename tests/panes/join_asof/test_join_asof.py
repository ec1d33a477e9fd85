"""The as-of operator over random changelogs: all directions, stored and loaded state, holds, against a double loop."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from random import Random

import pyarrow as pa
import pytest
from asof_scripts import DIRECTIONS, AsofOracle, random_asof
from join_scripts import Case, compare

import uncombine as uc
from uncombine.panes.join_asof.join_asof import JoinAsof
from uncombine.panes.join_asof.operator import JoinAsofOperator

EMITS = ("at_once", "final")


def run(case: Case, random: Random, steps: int, stored: bool) -> int:
    """Compare each step with the oracle; gives the number of rows of output."""
    assert isinstance(case.join, JoinAsof)
    operator = JoinAsofOperator(case.join, case.schema("left"), case.schema("right"))
    corrects = not case.join.final
    return compare(AsofOracle(case), operator, random, steps, stored, corrects)


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


def test_the_row_before_one_of_the_same_time_stays() -> None:
    columns = pa.schema({"ts": pa.timestamp("s", "UTC"), "k": pa.string(), "v": pa.int64()})
    left, right = (uc.flow(columns, watermark="0 seconds", name=name) for name in ("l", "r"))
    left = left.select("ts", "k")
    joined = left.join_asof(right, by="k", direction="nearest", allow_exact=False)
    at = [datetime(2024, 5, 1, 12, 0, second, tzinfo=UTC) for second in range(60)]

    def given(name: str, *seconds: int) -> uc.Elements:
        return uc.Elements([{"ts": at[second], "k": "a", "v": second} for second in seconds], input=name)

    script = [given("l", 10), given("r", 4, 10)]
    script += [uc.Watermark(at[12], input="l"), uc.Watermark(at[12], input="r"), given("r", 18)]
    shown = joined.run(script).to_pylist()
    assert [(row["v"], row["diff"]) for row in shown][-1] == (4, 1)
    assert sum(row["diff"] for row in shown) == 1

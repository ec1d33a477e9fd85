"""Streams whose tasks draw whether they combine their rows give the panes and counts of those that always do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from combining import drawn_combining
from engine import Engine
from finals import COMBINERS, SCHEMA, WINDOWS, rows
from seeds import seeds
from streams import START, in_order, rows_flow

import uncombine as uc
from uncombine.sparkops.routes.shard_rows import COUNTS

TRIGGERS = (
    None,
    uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(1)),
    uc.Repeatedly(uc.FirstOf(uc.AfterCount(5), uc.AfterDelay("3 seconds"))),
)
SAME = [name for name in COUNTS if name.startswith(("rows", "panes", "windows")) and name != "rows_uncombined"]


def played(seed: int) -> tuple[list[str], list[Any], int]:
    """The panes of some batches, the counts of each that do not depend on the choice, and the rows sent one by one."""
    r = random.Random(seed)
    window = r.choice([w for w in WINDOWS if not w.merging])
    options: dict[str, Any] = {
        "trigger": r.choice(TRIGGERS[: 1 if window == uc.Global() else 3]),
        "mode": r.choice(["discarding", "accumulating", "retracting"]),
        "timestamp": r.choice(["end_of_window", "latest"]),
        "allowed_lateness": "1 minute",
    }
    changelog = options["mode"] == "retracting" and r.random() < 0.5
    if window == uc.Global():
        options["trigger"] = uc.Repeatedly(uc.AfterCount(2))
    flow = rows_flow(SCHEMA, "ts", uc.BoundedLag("100 seconds"), r.choice([1, 3]), diff="d" if changelog else None)
    flow = flow.window(window, **options).combine(by=r.choice(["k", ("j", "k")]), **COMBINERS)
    engine, panes, counts, alone = Engine(flow, seed), [], [], 0
    for i in range(5):
        given, numbers = engine.batch(rows(40, seed + i, changelog), START // 1000 + 4000 * i)
        panes.append(given.append_column("step", pa.array(np.full(given.num_rows, i))))
        counts.append([numbers[0].get(name, 0) for name in SAME])
        alone += numbers[0].get("rows_uncombined", 0)
    return list(map(repr, in_order(pa.concat_tables(panes)))), counts, alone  # NaN equals NaN as text


def agree(first: int, last: int) -> None:
    alone = 0
    for seed in range(first, last):
        want, counted, none = played(seed)
        with drawn_combining(seed):
            panes, counts, some = played(seed)
        assert (panes, counts, none) == (want, counted, 0), seed
        alone += some
    assert alone > 20


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(50, 299, step=13))
def test_panes_do_not_depend_on_where_rows_are_combined(first: int) -> None:
    agree(first, first + 13)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_panes_of_many_flows_do_not_depend_on_where_rows_are_combined(first: int) -> None:
    agree(first, first + 100)

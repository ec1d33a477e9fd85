"""The lateness of rows, against plain Python over the ends of their windows."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.state.lateness import BOUNDS, Lateness
from uncombine.windows.times import MAX_TIME, MIN_TIME

SECOND = 1_000_000


def by_hand(ends: list[int], watermark: int) -> Lateness:
    """The same, row by row."""
    rows, micros = [0] * (len(BOUNDS) + 1), 0
    for end in ends:
        if end <= watermark:
            rows[sum(watermark - end > bound * SECOND for bound in BOUNDS)] += 1
            micros += watermark - end
    return Lateness(tuple(rows), micros // SECOND)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_counted_by_how_late_they_are(seed: int) -> None:
    draw = random.Random(seed)
    watermark = draw.randrange(10**15)
    near = [watermark - bound * SECOND + away for bound in (0, *BOUNDS) for away in (-1, 0, 1)]
    ends = [*near, *(watermark - draw.randrange(-10, 10 ** draw.randrange(1, 13)) for _ in range(50))]
    found = Lateness.of(np.array(ends), np.ones(len(ends), np.int64), watermark)
    want = by_hand(ends, watermark)
    assert found.rows == want.rows
    assert abs(found.seconds - want.seconds) <= 1


def test_nothing_is_late_before_and_after_all_time() -> None:
    for watermark in (MIN_TIME, MAX_TIME):
        assert Lateness.of(np.array([MIN_TIME + 1]), np.array([1]), watermark) == Lateness()
    far = Lateness.of(np.array([MIN_TIME + 1]), np.array([2]), MAX_TIME - 1)
    assert far.rows == (0,) * len(BOUNDS) + (2,)
    assert far.seconds > 0


@pytest.mark.parametrize("seed", range(8))
def test_a_grouping_tells_the_lateness_of_its_rows(seed: int) -> None:
    """Rows that are dropped and those that are still taken in, against the watermark from before each bundle."""
    draw = random.Random(seed)
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
    lateness = draw.choice([0, 90, 10**6])
    grouping = Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), by=("k",), allowed_lateness=uc.span(f"{lateness} s"))
    operator = Operator(grouping, schema)
    state, watermark = operator.initial(), None
    for _ in range(5):
        times = [draw.randrange(10_000) * SECOND for _ in range(draw.randrange(40))]
        bundle = pa.table({"ts": times, "k": [draw.randrange(3) for _ in times]}).cast(schema)
        ends = [(time // (60 * SECOND) + 1) * 60 * SECOND for time in times]
        want = Lateness() if watermark is None else by_hand(ends, watermark)
        now = max(draw.randrange(10_000) * SECOND, watermark or 0)
        before = state.counts.dropped
        result = operator.step(state, bundle, watermark=now)
        assert result.lateness == want
        assert result.state.counts.dropped - before <= sum(want.rows)
        state, watermark = result.state, now

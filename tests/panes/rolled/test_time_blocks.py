"""Blocks of time: a look-up finds all rows that a row sees, and all that see it."""

from __future__ import annotations

import numpy as np
import pytest

from uncombine.lookbacks.lookback import LookBack
from uncombine.panes.rolled.time_blocks import TimeBlocks
from uncombine.panes.state.hashes import upper_half


@pytest.mark.parametrize("micros", [1, 2, 7, 3_600_000_000])
def test_blocks_within_a_look_back_are_near(micros: int) -> None:
    rng = np.random.default_rng(micros)
    lookback = LookBack(micros=micros, closed="both", coarse=3)
    blocks = TimeBlocks.of([LookBack(micros=1), lookback])
    keys = rng.integers(0, 2**63, 200).astype(np.uint64)
    times = rng.integers(-5 * micros, 5 * micros, 200)
    for key, time in zip(keys, times, strict=True):
        one = np.array([key]), np.array([time])
        ages = np.arange(lookback.longest) if micros < 10 else rng.integers(0, lookback.longest, 50)
        for others, options in ((time - ages, {"after": False}), (time + ages, {"before": False})):
            there = upper_half(blocks.hashes(np.repeat(key, len(ages)), others))
            assert np.isin(there, blocks.near(*one, **options)).all()
            assert len(blocks.near(*one, **options)) <= 3


def test_a_number_of_rows_or_all_that_came_before_is_one_block() -> None:
    for lookback in (LookBack(rows=3), LookBack()):
        blocks = TimeBlocks.of([LookBack(micros=5), lookback])
        keys = np.array([3, 3], np.uint64)
        assert blocks.hashes(keys, np.array([0, 10**15])).tolist() == [3, 3]
        assert len(blocks.near(keys, np.array([0, 10**15]))) == 1

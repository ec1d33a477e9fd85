"""Ranges of matches, also where key and time do not fit into one number of 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from uncombine.panes.join.ranges import Layout, RowOrder
from uncombine.windows.times import FIRST, LAST


@pytest.mark.parametrize("scale", [1, 10**12], ids=["narrow", "wide"])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (-3, 2), (4, 9), (-9, -4), (-(2**62), 2**62)])
def test_ranges_have_the_rows_within_the_bounds(scale: int, low: int, high: int) -> None:
    rng = np.random.default_rng(abs(low) + scale % 7)
    codes = [rng.integers(0, 5, 60) for _ in range(2)]
    times = [rng.integers(-20, 20, 60) * scale for _ in range(2)]
    low, high = (max(min(bound * scale, 2**62), -(2**62)) for bound in (low, high))
    layout = Layout.of(5 if scale == 1 else 2**40, (times[0], times[1]))
    assert (layout.instants is None) == (scale == 1)
    right = RowOrder.of(layout, codes[1], times[1])
    able = rng.random(60) < 0.9
    ranges = right.matches(layout, codes[0], times[0], low, high, able)
    found = set(zip(*(side.tolist() for side in ranges.pairs(np.arange(60), right.order)), strict=True))
    apart = times[1][None, :] - times[0][:, None]
    match = (codes[0][:, None] == codes[1][None, :]) & (low <= apart) & (apart <= high) & able[:, None]
    assert found == set(zip(*(side.tolist() for side in np.nonzero(match)), strict=True))
    chosen = rng.random(60) < 0.5
    assert ranges.any(chosen[right.order]).tolist() == (match & chosen).any(axis=1).tolist()


def test_the_times_of_all_years_have_numbers() -> None:
    times = np.array([FIRST, 0, LAST])
    layout = Layout.of(10**6, (times, times[:0]))
    numbers = layout.numbers(np.array([0, 0, 0]), times)
    assert (np.diff(numbers) > 0).all()
    assert layout.numbers(np.array([1]), times[:1], -(2**62))[0] > numbers[-1]

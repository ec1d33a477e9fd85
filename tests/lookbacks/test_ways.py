"""The ways to accumulators of ranges, each against a loop: halves, running sums, ranks, different values, pieces."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.states.exact_sum import exact_sum
from uncombine.lookbacks import halves, sorted_rows
from uncombine.lookbacks.different import count_different
from uncombine.lookbacks.exact_digits import exact_sums
from uncombine.lookbacks.halves import fold
from uncombine.lookbacks.pieces import Tree
from uncombine.lookbacks.ranked import RankedKeys
from uncombine.lookbacks.running import lane_sums
from uncombine.lookbacks.sorted_rows import Ranges, SortedRows


def ranges_of(draw: random.Random, rows: int) -> Ranges:
    """Ranges that never go back, some of them empty."""
    count = draw.randrange(1, 3 * rows + 2)
    ends = sorted(draw.randrange(rows + 1) for _ in range(count))
    reach = draw.choice([1, 3, rows + 1])
    starts = np.maximum.accumulate([max(end - draw.randrange(reach + 1), 0) for end in ends])
    return Ranges(low=np.minimum(starts, ends), high=np.array(ends))


def pairs(ranges: Ranges) -> list[tuple[int, int]]:
    return list(zip(ranges.low.tolist(), ranges.high.tolist(), strict=True))


@pytest.mark.parametrize("seed", seeds(40))
def test_halves(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(halves, "_BLOCK", draw.choice([1, 20, halves._BLOCK]))
    monkeypatch.setattr(halves, "_DENSE", draw.choice([0, halves._DENSE]))
    values = np.array([draw.randrange(100) for _ in range(draw.choice([1, 2, 17, 200]))])
    ranges = ranges_of(draw, len(values))
    assert fold(values, ranges, np.maximum, -1).tolist() == [max(values[a:b], default=-1) for a, b in pairs(ranges)]
    floats = values * 1e-3
    sums = fold(floats, ranges, np.add, 0.0)
    np.testing.assert_allclose(sums, [floats[a:b].sum() for a, b in pairs(ranges)], rtol=1e-13)


def test_a_value_outside_of_a_range_has_no_effect() -> None:
    values = np.array([1e300, 0.1, np.inf, 0.2, 0.3, np.nan])
    ranges = Ranges(low=np.array([1, 3, 3]), high=np.array([2, 4, 5]))
    assert fold(values, ranges, np.add, 0.0).tolist() == [0.1, 0.2, 0.5]


@pytest.mark.parametrize("seed", seeds(40))
def test_values_outside_of_many_ranges_have_no_effect(seed: int) -> None:
    draw = random.Random(seed)
    values = np.array([draw.choice([0.1, 0.7, 3.0]) for _ in range(400)])
    ranges = ranges_of(draw, len(values))
    clean = fold(values, ranges, np.add, 0.0)
    values[[draw.randrange(400) for _ in range(9)]] = draw.choice([np.inf, np.nan, 1e300])
    for found, before, (a, b) in zip(fold(values, ranges, np.add, 0.0), clean, pairs(ranges), strict=True):
        if (values[a:b] <= 3.0).all():
            assert found == before


@pytest.mark.parametrize("seed", seeds(80))
def test_exact_sums(seed: int) -> None:
    draw = random.Random(seed)
    low = draw.randrange(-1080, 1000)
    high = min(low + draw.choice([1, 30, 90, 250]), 1021)
    kept = sorted(draw.sample(range(60), draw.randrange(1, 60)))
    values = [math.ldexp(draw.uniform(-1, 1), draw.randrange(low, high)) * draw.choice([0, 1, 1, 1]) for _ in kept]
    parts = [draw.choice([0.0, math.ldexp(1.0, low)]) for _ in kept]
    over = exact_sums([np.array(values), np.array(parts)], np.array(kept), 60)
    if over is None:
        assert not any(values + parts) or high - low == 250
        return
    ranges = ranges_of(draw, 60)
    expected = [
        math.fsum(x for row, *both in zip(kept, values, parts, strict=True) if a <= row < b for x in both)
        for a, b in pairs(ranges)
    ]
    assert exact_sum(over(ranges)).tolist() == expected


@pytest.mark.parametrize("seed", seeds(40))
def test_wide_sums(seed: int) -> None:
    draw = random.Random(seed)
    bits = draw.choice([3, 40, 63, 126])
    numbers = [draw.randrange(-(2**bits), 2**bits) for _ in range(30)]
    ranges = ranges_of(draw, len(numbers))
    words = [np.array([(n >> shift) % 2**64 for n in numbers], np.uint64).view(np.int64) for shift in (0, 64, 128)]
    lanes = lane_sums(words, ranges)
    found = [sum(int(lane[i]) % 2**64 << 64 * k for k, lane in enumerate(lanes)) for i in range(len(ranges))]
    assert found == [sum(numbers[a:b]) % 2**192 for a, b in pairs(ranges)]


@pytest.mark.parametrize("seed", seeds(40))
def test_ranks(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.choice([0, 1, 2, 30]) for _ in range(draw.randrange(1, 6))]
    bounds = np.append(0, np.cumsum(sizes))
    values = np.array([draw.randrange(10) for _ in range(bounds[-1])], np.int64)
    found: list[tuple[int, int, int, int]] = []
    for key, size in enumerate(sizes):
        for _ in range(20 if size else 0):
            low = draw.randrange(size)
            high = draw.randrange(low + 1, size + 1)
            found.append((key, bounds[key] + low, bounds[key] + high, draw.randrange(high - low)))
    if found:
        keys, low, high, rank = map(np.array, zip(*found, strict=True))
        places = RankedKeys(values, bounds).places(Ranges(low=low, high=high), keys, rank)
        assert values[places].tolist() == [sorted(values[a:b])[k] for _, a, b, k in found]


@pytest.mark.parametrize("seed", seeds(40))
def test_different_values(seed: int) -> None:
    draw = random.Random(seed)
    values = np.array([draw.randrange(6) for _ in range(draw.choice([1, 2, 50]))])
    ranges = ranges_of(draw, len(values))
    assert count_different(Groups(values, 6), ranges).tolist() == [len(set(values[a:b])) for a, b in pairs(ranges)]


@pytest.mark.parametrize("seed", seeds(40))
def test_pieces(seed: int) -> None:
    draw = random.Random(seed)
    values = [draw.randrange(6) for _ in range(draw.choice([1, 2, 50]))]
    ranges = ranges_of(draw, len(values))
    fn = uc.CollectList("x").bind(pa.schema({"x": pa.int64()}))
    rows = fn.add(Groups(np.arange(len(values)), len(values)), pa.array(values))
    found = fn.extract(Tree(fn, rows, max(int(ranges.sizes.max()), 1)).over(ranges)).to_pylist()
    assert [sorted(one or []) for one in found] == [sorted(values[a:b]) for a, b in pairs(ranges)]


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("far", [1, 10**12])
def test_rows_in_order(seed: int, far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where key and time do not fit into one number."""
    draw = random.Random(seed)
    codes = np.array([draw.randrange(5) for _ in range(60)])
    times = np.array([draw.randrange(-9, 9) * far * 10**5 for _ in range(60)])
    if draw.random() < 0.5:
        times.sort()
    rows = SortedRows.of(Groups(codes, 5), times)
    wanted = sorted(range(60), key=lambda i: (codes[i], times[i], i))
    assert rows.order.tolist() == wanted
    instants = np.array([draw.randrange(-11, 11) * far * 10**5 + draw.choice([0, 1]) for _ in range(60)])
    keys = np.sort([draw.randrange(5) for _ in range(60)])
    found = rows.first_at(keys, instants).tolist()
    assert found == [
        sum((codes[i], times[i]) < (key, at) for i in range(60)) for key, at in zip(keys, instants, strict=True)
    ]
    bounds = np.searchsorted(keys, np.arange(6))
    for long in (0, 1 << 40):
        monkeypatch.setattr(sorted_rows, "_LONG", long)
        assert rows.first_in_runs(bounds, instants).tolist() == found

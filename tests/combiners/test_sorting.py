"""Sorting inside groups against numpy's lexsort of everything."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from uncombine.combiners.rows import sorting
from uncombine.combiners.rows.groups import Groups, stable_order
from uncombine.combiners.rows.sorting import argsort_in_groups, blocks, sort_in_groups

RNG = np.random.default_rng(7)
SHAPES = {
    "empty": np.zeros(0, np.int64),
    "one group": np.zeros(50, np.int64),
    "singles": RNG.permutation(40),
    "gaps": RNG.choice([3, 7, 39], 30),
    "even": RNG.integers(0, 40, 2_000),
    "large and small": np.where(RNG.random(70_000) < 0.5, 0, RNG.integers(0, 40, 70_000)),
    "in order": np.sort(RNG.integers(0, 40, 500)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("span", [3, 2**62])
def test_rows_sorted_by_group_and_key(name: str, span: int) -> None:
    codes = SHAPES[name]
    keys = np.random.default_rng(span).integers(-span, span, len(codes))
    groups = Groups(codes, 40)
    expected = np.lexsort((keys, codes))
    assert np.array_equal(sort_in_groups(groups, keys), keys[expected])
    order, ordered = argsort_in_groups(groups, keys)
    assert np.array_equal(ordered, keys[expected])
    assert np.array_equal(keys[order], ordered)
    assert np.array_equal(codes[order], codes[expected])
    assert np.array_equal(np.sort(order), np.arange(len(codes)))


@pytest.mark.parametrize("bits", [0, 1, 20, 31, *range(44, 65)])
def test_keys_of_so_many_bits(bits: int) -> None:
    for count, kind, in_runs, close in product([1, 2, 40, 64, 65], [np.int64, np.int32], [False, True], [False, True]):
        sorted_as_numpy_does(bits, count, kind, in_runs, close)


def sorted_as_numpy_does(bits: int, count: int, kind: type, in_runs: bool, close: bool) -> None:
    """The least key is the least number of the type; its ends, and those of the groups, are in it.

    `close` keys differ from their neighbours in the lowest bits alone.
    """
    bits, low = min(bits, np.iinfo(kind).bits), int(np.iinfo(kind).min)
    r = random.Random(bits)
    top = 2**bits - 1
    drawn = [r.choice([0, top // 2, top]) ^ r.randrange(4) if close else r.randrange(2**bits) for _ in range(60)]
    keys = np.array([low, low + top, *(low + min(key, top) for key in drawn)], kind)
    codes = np.array([count - 1, 0, *(r.randrange(count) for _ in range(60))])
    expected = np.lexsort((keys, codes))
    keys.flags.writeable = codes.flags.writeable = False
    groups = Groups(codes, count)
    if in_runs:
        codes = np.unique(codes, return_inverse=True)[1]
        groups = Groups.of_runs(np.argsort(codes, kind="stable"), np.bincount(codes))
    found = sort_in_groups(groups, keys)
    order, ordered = argsort_in_groups(groups, keys)
    case = (count, kind, in_runs, close)
    assert found.dtype == ordered.dtype == kind, case
    assert found.tolist() == ordered.tolist() == keys[order].tolist() == keys[expected].tolist(), case
    assert codes[order].tolist() == codes[expected].tolist(), case


@pytest.mark.parametrize(("low", "at_once"), [(1 << 40, True), (4, False)], ids=["few alike", "all alike"])
def test_bits_of_keys_are_left_out_where_few_rows_differ_in_them(
    low: int, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = np.random.default_rng(3)
    rows = 1 << 12
    keys, codes = r.integers(0, low, rows), r.integers(0, 1 << 10, rows)
    keys[0], codes[0] = 2**46 - 1, 0  # 46 bits, and 10 of the group and 12 of the row
    expected = np.lexsort((keys, codes))
    if at_once:
        monkeypatch.setattr(sorting, "blocks", None)
    else:
        monkeypatch.setattr(np, "lexsort", None)
    _, ordered = argsort_in_groups(Groups(codes, 1 << 10), keys)
    assert ordered.tolist() == keys[expected].tolist()


@pytest.mark.parametrize("count", [1, 2, 40, 4_096, 4_097, 5_000, 2**24 + 3, 2**48, 2**49, 2**50, 2**62])
def test_stable_order(count: int) -> None:
    """Codes and rows are packed if they fit 63 bits, and many rows of few codes are counted."""
    for rows, kind in product([0, 1, 2, 3, 5_000, 8_192, 8_193, 2**14], [np.int64, np.int32]):
        most = min(count, np.iinfo(kind).max)
        codes = np.random.default_rng(rows).integers(0, min(most, 10**6), rows).astype(kind)
        codes[1::2] = most - 1 - codes[1::2]
        assert np.array_equal(stable_order(codes, count), np.argsort(codes, kind="stable")), (rows, kind)


@pytest.mark.parametrize("smallest", [1, 2])
def test_blocks_hold_every_group_once(smallest: int) -> None:
    sizes = np.array([3, 0, 1, 3, 100_000, 1, 3])
    starts = np.cumsum(sizes) - sizes
    seen = []
    for size, groups, firsts in blocks(sizes, smallest):
        assert (sizes[groups] == size).all()
        assert np.array_equal(firsts, starts[groups])
        seen += groups.tolist()
    assert sorted(seen) == np.flatnonzero(sizes >= smallest).tolist()

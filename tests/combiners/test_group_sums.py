"""Sums by group against Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.combiners.rows import group_sums
from uncombine.combiners.rows.group_sums import negate_lanes, run_sums, sum_int64, sum_lanes, sum_weights
from uncombine.combiners.rows.groups import Groups

INTS = st.sampled_from([0, 1, -1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 123456789012345])
WEIGHTS = st.sampled_from([1, -1, 2, -3, 2**40, -(2**62), 0])


def whole(lanes: list[np.ndarray], group: int) -> int:
    """A wide integer back from its lanes."""
    words = [int(lane[group]) for lane in lanes]
    return sum((word & (2**64 - 1)) << (64 * i) for i, word in enumerate(words[:-1])) + (
        words[-1] << (64 * (len(words) - 1))
    )


@given(st.lists(st.tuples(st.integers(0, 2), INTS, WEIGHTS), max_size=30), st.sampled_from([None, "unit", "any"]))
def test_wide_sums_are_exact(rows: list[tuple[int, int, int]], weighing: str | None) -> None:
    groups = Groups(np.array([g for g, _, _ in rows], np.int64), 3)
    values = np.array([x for _, x, _ in rows], np.int64)
    weights = {None: None, "unit": [1 if w > 0 else -1 for *_, w in rows], "any": [w for *_, w in rows]}[weighing]
    lanes = sum_lanes(groups, [values], 3, None if weights is None else np.array(weights, np.int64))
    for group in range(3):
        factors = [1] * len(rows) if weights is None else weights
        assert whole(lanes, group) == sum(x * w for (g, x, _), w in zip(rows, factors, strict=True) if g == group)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2**64 - 1)), max_size=20))
def test_unsigned_values_have_no_sign(rows: list[tuple[int, int]]) -> None:
    groups = Groups(np.array([g for g, _ in rows], np.int64), 2)
    lanes = sum_lanes(groups, [np.array([x for _, x in rows], np.uint64)], 2)
    assert [whole(lanes, g) for g in (0, 1)] == [sum(x for h, x in rows if h == g) for g in (0, 1)]


@given(st.lists(st.integers(-(2**190), 2**190), min_size=1, max_size=9))
def test_negation_goes_across_lanes(numbers: list[int]) -> None:
    lanes = [np.array([((n >> (64 * i)) & (2**64 - 1)) for n in numbers], np.uint64).view(np.int64) for i in range(3)]
    assert [whole(negate_lanes(lanes), i) for i in range(len(numbers))] == [-n for n in numbers]


@pytest.mark.parametrize("near", [0.0, group_sums._NEAR])
@given(rows=st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**127), 2**127 - 1), WEIGHTS), max_size=20))
def test_numbers_of_two_lanes_go_either_way(near: float, rows: list[tuple[int, int, int]]) -> None:
    groups = Groups(np.array([g for g, *_ in rows], np.int64), 3)
    lanes = [np.array([(x >> shift) & (2**64 - 1) for _, x, _ in rows], np.uint64).view(np.int64) for shift in (0, 64)]
    for weights in ([1] * len(rows), [w for *_, w in rows]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(group_sums, "_NEAR", near)
            sums = sum_lanes(groups, lanes, 4, np.array(weights, np.int64))
        for group in range(3):
            assert whole(sums, group) == sum(x * w for (g, x, _), w in zip(rows, weights, strict=True) if g == group)


def test_sums_that_float_sums_cannot_tell_are_summed_by_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    values, groups = np.full(100, 2**62), Groups(np.arange(100) % 3, 3)
    expected = [34 * 2**62, 33 * 2**62, 33 * 2**62]
    assert [whole(sum_lanes(groups, [values], 2), g) for g in range(3)] == expected
    monkeypatch.setattr(group_sums, "_NEAR", 0.0)
    assert [whole(sum_lanes(groups, [values], 2), g) for g in range(3)] == expected


def test_counts_of_weights() -> None:
    groups: Any = Groups(np.array([0, 0, 2]), 3)
    assert sum_weights(groups, None).tolist() == [2, 0, 1]
    assert sum_weights(groups, np.array([5, -5, -1])).tolist() == [0, 0, -1]
    assert sum_int64(groups, np.array([2**62, 1, 2**60 + 1])).tolist() == [2**62 + 1, 0, 2**60 + 1]


def test_groups_keep_the_sums_of_one_array_of_weights() -> None:
    groups = Groups(np.array([1, 0, 1]), 2)
    first, second = np.array([1, 2, -3]), np.array([5, 5, 5])
    for weights, sums in ((first, [2, -2]), (second, [5, 10]), (first, [2, -2])):
        assert sum_weights(groups, weights).tolist() == sums
        assert sum_weights(groups, weights) is sum_weights(groups, weights)


@pytest.mark.parametrize("several", [0.0, 0.05, 0.5, 0.74, 0.76, 0.99, 1.0])
def test_sums_of_runs_short_and_long(several: float) -> None:
    """Runs of one value nearly all, and long ones; sums wrap as those of numpy do."""
    rng = np.random.default_rng(1)
    fresh = rng.random(2000) >= several
    fresh[0] = True
    values = rng.choice([-1, 1, 3, 2**62, -(2**63)], 2000)
    starts = np.flatnonzero(fresh)
    expected = [int(sum(map(int, part))) for part in np.split(values, starts[1:])]
    assert run_sums(values, starts).tolist() == [(total + 2**63) % 2**64 - 2**63 for total in expected]
    assert run_sums(values[:0], starts[:0]).tolist() == []

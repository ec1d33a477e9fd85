"""Sessions and the union of intervals, against overlap taken literally: pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.windows import MAX_TIME, MIN_TIME, Hulls, union_intervals

Interval = tuple[int, int, int]


def int64(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def union(intervals: list[Interval]) -> Hulls:
    codes, starts, ends = (int64([interval[i] for interval in intervals]) for i in range(3))
    return union_intervals(codes, starts, ends)


def listed(merged: Hulls) -> list[Interval]:
    return list(zip(merged.code.tolist(), merged.start.tolist(), merged.end.tolist(), strict=True))


def hull_of_each(intervals: list[Interval]) -> list[Interval]:
    """For each interval the hull of all joined to it, by spreading over pairs that share an instant."""
    hulls = []
    for place in range(len(intervals)):
        joined, todo = {place}, [place]
        while todo:
            code, start, end = intervals[todo.pop()]
            for other, (code_2, start_2, end_2) in enumerate(intervals):
                if other not in joined and code == code_2 and start < end_2 and start_2 < end:
                    joined.add(other)
                    todo.append(other)
        members = [intervals[i] for i in joined]
        hulls.append((members[0][0], min(m[1] for m in members), max(m[2] for m in members)))
    return hulls


@st.composite
def interval_lists(draw: st.DrawFn) -> list[Interval]:
    """Crowded or scattered over all of time, or crowded around points that are very far apart."""
    codes = st.sampled_from(draw(st.sampled_from([[0], [0, 1, 2], [5, 70_000, 2**40, 2**62]])))
    spread = draw(st.sampled_from([12, 10**6, 2**61, 2**62]))
    around = draw(st.sampled_from([[0], [-spread, 0, spread], [MIN_TIME + spread, MAX_TIME - 4 * spread // 3]]))
    near = draw(st.sampled_from([6, spread]))
    longest = draw(st.sampled_from([3, 8, max(spread // 3, 1)]))
    starts = st.builds(lambda base, by: base + by, st.sampled_from(around), st.integers(-near, near))
    one = st.builds(
        lambda code, start, length: (code, start, min(start + length, MAX_TIME)),
        codes,
        starts.filter(lambda start: MIN_TIME <= start < MAX_TIME),
        st.integers(1, longest),
    )
    return draw(st.lists(one, max_size=20))


@given(interval_lists())
def test_rule_05_overlapping_windows_of_a_key_merge(intervals: list[Interval]) -> None:
    merged = union(intervals)
    out = listed(merged)
    assert out == sorted(set(out))
    assert [out[window] for window in merged.window_id] == hull_of_each(intervals)
    assert set(merged.window_id.tolist()) == set(range(len(out)))


@given(interval_lists(), st.integers(0, 20))
def test_rule_05_merging_is_independent_of_the_cut(intervals: list[Interval], cut: int) -> None:
    at_once = listed(union(intervals))
    assert listed(union(listed(union(intervals[:cut])) + intervals[cut:])) == at_once
    assert listed(union(intervals[::-1])) == at_once


def test_rule_05_windows_that_only_touch_stay_apart() -> None:
    assert listed(union([(0, 0, 10), (0, 10, 20), (0, 20, 30)])) == [(0, 0, 10), (0, 10, 20), (0, 20, 30)]
    assert listed(union([(0, 0, 10), (0, 9, 20)])) == [(0, 0, 20)]


def test_rule_05_a_long_window_joins_what_lies_far_apart_within_it() -> None:
    short = [(key, start, start + 1) for key in (0, 1) for start in range(0, 100, 5)]
    assert listed(union([*short, (1, 0, 100)])) == [*((0, s, s + 1) for s in range(0, 100, 5)), (1, 0, 100)]


@pytest.mark.weekly
@pytest.mark.parametrize("spread", [10**6, 2**62])
@pytest.mark.parametrize("keys", [1, 40, 100_000, 2**62])
def test_rule_05_many_windows(keys: int, spread: int) -> None:
    """Enough of them that a code has more than 16 bits, and that code and time do not fit into 64."""
    rng = np.random.default_rng(keys)
    count = 4_000
    codes = rng.choice(rng.integers(0, keys, 100), count)
    starts = rng.integers(-spread, spread, count)
    ends = starts + rng.integers(1, spread * min(keys, 100) // count, count)
    merged = union_intervals(codes, starts, ends)
    expected: list[list[int]] = []
    of_row = np.empty(count, np.int64)
    for row in sorted(range(count), key=lambda i: (codes[i], starts[i])):
        code, start, end = int(codes[row]), int(starts[row]), int(ends[row])
        if expected and expected[-1][0] == code and start < expected[-1][2]:
            expected[-1][2] = max(expected[-1][2], end)
        else:
            expected.append([code, start, end])
        of_row[row] = len(expected) - 1
    assert len(expected) < count
    assert listed(merged) == [tuple(window) for window in expected]
    assert merged.window_id.tolist() == of_row.tolist()


def test_merging_leaves_its_input_alone() -> None:
    columns = int64([1, 0, 1]), int64([5, 0, 4]), int64([9, 3, 6])
    before = [column.tolist() for column in columns]
    union_intervals(*columns)
    assert [column.tolist() for column in columns] == before


GAPS = st.one_of(st.integers(1, 30), st.just(2**63 - 1))


@given(st.lists(st.integers(-60, 60) | st.sampled_from([MIN_TIME + 1, MAX_TIME - 1]), max_size=12), GAPS)
def test_rule_04_a_row_opens_a_window_as_long_as_the_gap(times: list[int], gap: int) -> None:
    assigned = uc.Sessions(uc.Span(gap)).assign(int64(times))
    assert assigned.row is None
    assert assigned.start.tolist() == times
    assert assigned.end.tolist() == [min(time + gap, MAX_TIME) for time in times]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-60, 60)), max_size=15), st.integers(1, 20))
def test_rule_05_a_session_ends_at_the_first_gap(rows: list[tuple[int, int]], gap: int) -> None:
    window = uc.Sessions(uc.Span(gap))
    codes, times = int64([code for code, _ in rows]), int64([time for _, time in rows])
    assigned = window.assign(times)
    expected = []
    for code in sorted({code for code, _ in rows}):
        mine = sorted(time for other, time in rows if other == code)
        first = mine[0]
        for time, following in zip(mine, [*mine[1:], None], strict=True):
            if following is None or following - time >= gap:
                expected.append((code, first, time + gap))
                first = following if following is not None else first
    assert listed(window.merge(codes, assigned.start, assigned.end)) == expected


def test_rule_06_a_session_that_grows_is_a_new_window_that_knows_its_sources() -> None:
    window = uc.Sessions("10 minutes")
    minute = 60_000_000
    before = [(0, 0, 10 * minute), (0, 15 * minute, 25 * minute), (1, 0, 10 * minute)]
    bridge = (0, 8 * minute, 18 * minute)
    codes, starts, ends = (int64([w[i] for w in [*before, bridge]]) for i in range(3))
    merged = window.merge(codes, starts, ends)
    assert listed(merged) == [(0, 0, 25 * minute), (1, 0, 10 * minute)]
    assert merged.window_id.tolist() == [0, 0, 1, 0]


def test_only_sessions_merge() -> None:
    assert uc.Sessions("1 minute").merging
    others = [uc.Global(), uc.Fixed("1 s"), uc.Sliding("1 s", "1 s"), uc.Calendar("day"), uc.Inherit()]
    assert not any(window.merging for window in others)


@pytest.mark.parametrize("gap", ["0 seconds", "-5 minutes"])
def test_the_gap_must_be_positive(gap: str) -> None:
    with pytest.raises(InvalidArgument, match=r"Sessions\(gap\): gap must be longer than zero, but is "):
        uc.Sessions(gap)

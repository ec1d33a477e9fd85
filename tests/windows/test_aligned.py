"""Global, fixed and sliding windows against the rules, a row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.windows import MAX_TIME, MIN_TIME, RowWindows
from uncombine.windows.times import FIRST, LAST

END_OF_INT64 = 2**63 - 1
NEAR = st.integers(0, 200)
TIMES = st.lists(
    st.one_of(
        st.integers(-100, 100),
        st.integers(MIN_TIME + 1, MAX_TIME - 1),
        NEAR.map(lambda by: MIN_TIME + 1 + by),
        NEAR.map(lambda by: MAX_TIME - 1 - by),
    ),
    max_size=12,
)
OF_ROWS = st.lists(
    st.one_of(
        st.integers(-100, 100),
        st.integers(FIRST, LAST),
        NEAR.map(lambda by: FIRST + by),
        NEAR.map(lambda by: LAST - by),
    ),
    max_size=12,
)
"""Times that rows can have: the windows of others have no slices."""
SIZES = st.one_of(st.integers(1, 60), st.sampled_from([60_000_000, 2**40, 2**62 + 1, END_OF_INT64]))
OFFSETS = st.one_of(st.integers(-100, 100), st.sampled_from([-END_OF_INT64, END_OF_INT64, 2**62]))


def int64(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def within_time(start: int, end: int) -> tuple[int, int]:
    return max(start, MIN_TIME), min(end, MAX_TIME)


def by_row(assigned: RowWindows, count: int) -> list[list[tuple[int, int]]]:
    """The windows of each row."""
    rows = range(count) if assigned.row is None else assigned.row.tolist()
    out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for row, start, end in zip(rows, assigned.start.tolist(), assigned.end.tolist(), strict=True):
        out[row].append((start, end))
    return out


@given(TIMES)
def test_rule_01_global_is_all_of_time(times: list[int]) -> None:
    assigned = uc.Global().assign(int64(times))
    assert by_row(assigned, len(times)) == [[(MIN_TIME, MAX_TIME)]] * len(times)
    assert uc.timestamp(-(2**63) + 1) == MIN_TIME
    assert uc.timestamp(2**63 - 1) == MAX_TIME


@given(st.sampled_from([0, 59_999_999, 60_000_000, -1, -60_000_000, -60_000_001]))
def test_rule_01_windows_are_half_open(time: int) -> None:
    assigned = uc.Fixed("1 minute").assign(int64([time]))
    assert assigned.start[0] <= time < assigned.end[0] == assigned.start[0] + 60_000_000


@given(TIMES, SIZES, OFFSETS)
def test_rule_02_fixed(times: list[int], size: int, offset: int) -> None:
    assigned = uc.Fixed(uc.Span(size), uc.Span(offset)).assign(int64(times))
    starts = [time - (time - offset) % size for time in times]
    assert by_row(assigned, len(times)) == [[within_time(start, start + size)] for start in starts]


@given(
    st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 2**64 - 1)), max_size=12),
    SIZES,
    OFFSETS,
)
@example([(0, END_OF_INT64 - 1), (0, 1)], END_OF_INT64, END_OF_INT64 - 1)
def test_rule_02_each_key_has_its_phase(rows: list[tuple[int, int]], size: int, offset: int) -> None:
    window = uc.Fixed(uc.Span(size), uc.Span(offset), per_key_phase=True)
    assert window.needs_key_hash
    times, hashes = int64([time for time, _ in rows]), np.array([key for _, key in rows], np.uint64)
    starts = [time - (time - offset - key % size) % size for time, key in rows]
    expected = [[within_time(start, start + size)] for start in starts]
    assert by_row(window.assign(times, hashes), len(rows)) == expected


def test_rule_02_without_keys_there_is_no_phase() -> None:
    times = int64([5, 65])
    with_phase = uc.Fixed("1 minute", per_key_phase=True).assign(times)
    assert with_phase.start.tolist() == uc.Fixed("1 minute").assign(times).start.tolist()
    assert not uc.Fixed("1 minute").needs_key_hash


def sliding_windows(time: int, size: int, period: int, offset: int) -> list[tuple[int, int]]:
    """Every `s = offset (mod period)` with `s <= time < s + size`, by trying all that may be."""
    first, last = (time - offset - size) // period, (time - offset) // period + 1
    starts = [offset + k * period for k in range(first, last + 1)]
    return [within_time(s, s + size) for s in starts if s <= time < s + size]


SLIDING = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(-50, 50)),
    st.tuples(st.sampled_from([2**62, END_OF_INT64]), st.sampled_from([2**60, 2**62 + 3]), OFFSETS),
    # Lengths of any scale that have nothing in common, with few windows to a time.
    st.tuples(st.integers(0, 40), st.integers(1, 2**40), st.integers(0, 2**40 - 1), st.integers(-(2**40), 2**40)).map(
        lambda drawn: (max(drawn[0] * drawn[1] + drawn[2] % drawn[1], 1), drawn[1], drawn[3])
    ),
)


@given(TIMES, SLIDING)
def test_rule_03_sliding(times: list[int], shape: tuple[int, int, int]) -> None:
    size, period, offset = shape
    assigned = uc.Sliding(uc.Span(size), uc.Span(period), uc.Span(offset)).assign(int64(times))
    assert by_row(assigned, len(times)) == [sliding_windows(time, size, period, offset) for time in times]


@given(OF_ROWS, SLIDING)
@example([FIRST, FIRST + 5, LAST - 5], (END_OF_INT64, 2**61 - 7, 3))
def test_rule_03_slices_make_up_the_windows(times: list[int], shape: tuple[int, int, int]) -> None:
    size, period, offset = shape
    window = uc.Sliding(uc.Span(size), uc.Span(period), uc.Span(offset))
    slices = window.slices.assign(int64(times))
    assert slices.row is None
    within = zip(slices.start.tolist(), times, slices.end.tolist(), strict=True)
    assert all(start <= time < end for start, time, end in within)
    starts, of_row = np.unique(slices.start, return_inverse=True)
    place, number = window.slices.windows(starts)
    windows = by_row(RowWindows(place, *window.slices.bounds(number)), len(starts))
    assert [windows[slice_] for slice_ in of_row] == [sliding_windows(time, size, period, offset) for time in times]


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(-(2**40), 2**40))
def test_rule_03_a_period_has_two_slices_at_most(size: int, period: int, offset: int) -> None:
    slices = uc.Sliding(uc.Span(size), uc.Span(period), uc.Span(offset)).slices
    bounds = {offset % period, (offset + size) % period}
    times = int64([time for bound in bounds for time in (bound - 1, bound)])
    assigned = slices.assign(times)
    spans = sorted({*zip(assigned.start.tolist(), assigned.end.tolist(), strict=True)})
    assert {start % period for start, _ in spans} == bounds == {end % period for _, end in spans}
    assert all(end - start <= period for start, end in spans)


def test_rule_03_times_between_windows_have_none() -> None:
    assigned = uc.Sliding("20 seconds", "1 minute").assign(int64([0, 19_999_999, 20_000_000, 59_999_999]))
    assert assigned.row is not None
    assert assigned.row.tolist() == [0, 1]


def test_rule_03_a_row_is_in_size_over_period_windows() -> None:
    assigned = uc.Sliding("1 hour", "1 minute").assign(int64([1_000_000]))
    assert assigned.start.tolist() == [minute * 60_000_000 for minute in range(-59, 1)]


@given(TIMES, SIZES, OFFSETS)
def test_sliding_by_its_size_is_fixed(times: list[int], size: int, offset: int) -> None:
    sliding = uc.Sliding(uc.Span(size), uc.Span(size), uc.Span(offset)).assign(int64(times))
    fixed = uc.Fixed(uc.Span(size), uc.Span(offset)).assign(int64(times))
    assert by_row(sliding, len(times)) == by_row(fixed, len(times))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: uc.Fixed("0 seconds"), "size must be longer than zero, but is '0 seconds'"),
        (lambda: uc.Fixed("-1 minute"), "size must be longer than zero, but is '-1 minute'"),
        (lambda: uc.Sliding("0 s", "1 minute"), "size must be longer than zero, but is '0 seconds'"),
        (lambda: uc.Sliding("1 minute", "-1 s"), "period must be longer than zero, but is '-1 second'"),
    ],
)
def test_lengths_must_be_positive(make: object, what: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidArgument, match=what):
        make()

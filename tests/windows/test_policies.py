"""The event time of results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncombine.errors import InvalidArgument
from uncombine.windows import MAX_TIME, MIN_TIME, POLICIES, holds, policy, result_times

WINDOWS = st.lists(
    st.tuples(
        st.one_of(st.integers(-50, 50), st.just(MIN_TIME)),
        st.one_of(st.integers(51, 99), st.just(MAX_TIME)),
        st.none() | st.tuples(st.integers(0, 20), st.integers(21, 50)),
    ),
    max_size=8,
)


def expected(name: str, window: tuple[int, int, tuple[int, int] | None], watermark: int) -> int:
    start, end, counted = window
    if name == "watermark":
        return watermark
    if name == "start_of_window":
        return start
    if name == "end_of_window" or counted is None:
        return end - 1
    return counted[0] if name == "earliest" else counted[1]


@given(WINDOWS, st.sampled_from(POLICIES), st.integers(MIN_TIME, MAX_TIME))
def test_rule_36_result_timestamps(
    windows: list[tuple[int, int, tuple[int, int] | None]], name: str, watermark: int
) -> None:
    columns = [
        np.array(values, np.int64)
        for values in (
            [start for start, _, _ in windows],
            [end for _, end, _ in windows],
            [MAX_TIME if counted is None else counted[0] for *_, counted in windows],
            [MIN_TIME if counted is None else counted[1] for *_, counted in windows],
        )
    ]
    times = [expected(name, window, watermark) for window in windows]
    assert result_times(name, *columns, watermark).tolist() == times
    assert result_times(name, *columns, np.full(len(windows), watermark)).tolist() == times
    assert holds(name, *columns).tolist() == ([MAX_TIME] * len(windows) if name == "watermark" else times)


def test_rule_36_the_end_of_all_of_time_is_the_last_instant_before_it() -> None:
    bounds = np.array([MIN_TIME]), np.array([MAX_TIME])
    assert result_times("end_of_window", *bounds, *bounds, 0).tolist() == [MAX_TIME - 1]


def test_names_are_checked() -> None:
    assert [policy(name) for name in POLICIES] == list(POLICIES)
    with pytest.raises(InvalidArgument, match="timestamp= is 'end_of_windows': did you mean 'end_of_window'"):
        policy("end_of_windows")
    with pytest.raises(InvalidArgument, match="timestamp= is 5: known are"):
        policy(5)  # type: ignore[arg-type]

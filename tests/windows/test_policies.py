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


Drawn = tuple[int, int, tuple[int, int] | None]


def expected(name: str, window: Drawn, watermark: int, floor: int | None) -> int:
    start, end, counted = window
    endless = floor is not None and end == MAX_TIME
    last = max(floor, MIN_TIME if counted is None else counted[1]) if endless else end - 1
    if name == "watermark":
        return watermark if MIN_TIME < watermark < MAX_TIME else last
    if name == "start_of_window":
        return last if start == MIN_TIME else start
    if name == "end_of_window" or counted is None:
        return last
    return counted[0] if name == "earliest" else last if endless else counted[1]


CLOCKS = st.one_of(st.integers(MIN_TIME, MAX_TIME), st.integers(0, 60), st.sampled_from([MIN_TIME, MAX_TIME]))


@given(WINDOWS, st.sampled_from(POLICIES), CLOCKS, st.none() | CLOCKS)
def test_rule_36_result_timestamps(windows: list[Drawn], name: str, watermark: int, floor: int | None) -> None:
    columns = [
        np.array(values, np.int64)
        for values in (
            [start for start, _, _ in windows],
            [end for _, end, _ in windows],
            [MAX_TIME if counted is None else counted[0] for *_, counted in windows],
            [MIN_TIME if counted is None else counted[1] for *_, counted in windows],
        )
    ]
    times = [expected(name, window, watermark, floor) for window in windows]
    assert result_times(name, *columns, watermark, floor).tolist() == times
    if floor is None:
        times = [expected(name, window, MAX_TIME, None) for window in windows]
        assert holds(name, *columns).tolist() == ([MAX_TIME] * len(windows) if name == "watermark" else times)


def test_rule_36_a_window_without_an_end_has_the_time_of_its_latest_row() -> None:
    times = {"start": [MIN_TIME] * 2, "end": [MAX_TIME] * 2, "earliest": [3, MAX_TIME], "latest": [5, MIN_TIME]}
    columns = [np.array(values) for values in times.values()]
    for name, found in (
        ("end_of_window", [5, 4]),
        ("start_of_window", [5, 4]),
        ("latest", [5, 4]),
        ("earliest", [3, 4]),
    ):
        assert result_times(name, *columns, watermark=0, floor=4).tolist() == found
        held = holds(name, *columns, floor=4, idle=np.array([False, False]))
        assert held.tolist() == [found[0], MAX_TIME]
        idle = holds(name, *columns, floor=4, idle=np.array([True, True]))
        assert idle.tolist() == [found[0] if name == "earliest" else MAX_TIME, MAX_TIME]


def test_names_are_checked() -> None:
    assert [policy(name) for name in POLICIES] == list(POLICIES)
    with pytest.raises(InvalidArgument, match="timestamp= is 'end_of_windows': did you mean 'end_of_window'"):
        policy("end_of_windows")
    with pytest.raises(InvalidArgument, match="timestamp= is 5: known are"):
        policy(5)  # type: ignore[arg-type]

"""Instants: from what people write and from columns, and back."""

from __future__ import annotations

import calendar
import re
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch
from uncombine.windows import MAX_TIME, MIN_TIME, time_column, time_text, times_of, timestamps

YEAR_1 = -62_135_596_800_000_000
YEAR_10000 = 253_402_300_800_000_000
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def micros(moment: datetime) -> int:
    """By the standard library's own way from a calendar date to seconds."""
    offset = moment.utcoffset() or timedelta(0)
    return (calendar.timegm(moment.timetuple()) - int(offset.total_seconds())) * 1_000_000 + moment.microsecond


@given(st.datetimes(timezones=st.none() | st.just(UTC) | OFFSETS))
def test_datetimes_and_their_texts(moment: datetime) -> None:
    assert uc.timestamp(moment) == micros(moment)
    assert uc.timestamp(moment.isoformat()) == micros(moment)


def test_what_else_is_an_instant() -> None:
    noon = micros(datetime(1969, 7, 20, 12))
    assert uc.timestamp("1969-07-20T12:00:00Z") == noon < 0
    assert uc.timestamp(" 1969-07-20 12:00 ") == noon
    assert uc.timestamp(np.datetime64("1969-07-20T12:00", "m")) == noon
    assert uc.timestamp(pd.Timestamp("1969-07-20T14:00+02:00")) == noon
    assert uc.timestamp("1969-07-20") == uc.timestamp(date(1969, 7, 20)) == noon - 43_200_000_000
    assert uc.timestamp(-5) == uc.timestamp(np.int32(-5)) == -5


@pytest.mark.parametrize("value", [True, 1.5, None, pd.NaT, b"1969-07-20", timedelta(1)])
def test_what_is_no_instant(value: Any) -> None:
    with pytest.raises(TypeMismatch, match="a time must be a datetime, a date, an ISO text or whole microseconds"):
        uc.timestamp(value)


def test_texts_that_are_no_instant() -> None:
    with pytest.raises(InvalidArgument, match="'yesterday' is not an ISO time such as"):
        uc.timestamp("yesterday")


@pytest.mark.parametrize("value", [2**63, -(2**63), np.datetime64("NaT", "us")])
def test_instants_beyond_64_bits(value: Any) -> None:
    with pytest.raises(OutOfRange, match="64 bits of microseconds"):
        uc.timestamp(value)


RAW = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-100, 100),
    st.builds(
        lambda edge, per, by: edge // per + by,
        st.sampled_from([YEAR_1, YEAR_10000]),
        st.sampled_from([1, 1_000, 1_000_000]),
        st.integers(-2, 2),
    ),
)


@given(
    st.lists(RAW, max_size=12),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from([None, "UTC", "Asia/Kathmandu"]),
    st.integers(0, 3),
)
def test_rule_01_columns_of_every_unit_are_microseconds(
    raw: list[int | None], unit: str, zone: str | None, skipped: int
) -> None:
    column = pa.array(raw, pa.int64()).cast(pa.timestamp(unit, zone)).slice(skipped)
    expected = []
    for value in raw[skipped:]:
        time = None if value is None else value // 1_000 if unit == "ns" else value * PER_UNIT[unit]
        expected.append(None if time is None or not YEAR_1 <= time < YEAR_10000 else time)
    for given_column in (column, pa.chunked_array([column.slice(0, 2), column.slice(2)])):
        times, known = time_column(given_column)
        assert times.dtype == np.int64
        assert known.dtype == np.bool_
        assert known.tolist() == [time is not None for time in expected]
        assert times.tolist() == [time or 0 for time in expected]


@given(st.lists(st.none() | st.dates(), max_size=8), st.sampled_from([pa.date32(), pa.date64()]))
def test_dates_are_midnights(dates: list[date | None], kind: pa.DataType) -> None:
    times, known = time_column(pa.array(dates, kind))
    assert known.tolist() == [day is not None for day in dates]
    assert times.tolist() == [0 if day is None else calendar.timegm(day.timetuple()) * 1_000_000 for day in dates]


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.array(["2016-01-20"]), pa.array([1], pa.time64("us"))])
def test_columns_that_hold_no_times(column: pa.Array) -> None:
    with pytest.raises(TypeMismatch, match=re.escape(f"must hold timestamps or dates, but its type is {column.type}")):
        time_column(column)


@given(st.lists(st.integers(YEAR_1, YEAR_10000 - 1), max_size=8))
def test_there_and_back(times: list[int]) -> None:
    column = timestamps(np.array(times, np.int64))
    assert column.type == pa.timestamp("us", "UTC")
    assert [micros(moment) for moment in column.to_pylist()] == times
    assert time_column(column)[0].tolist() == times


def test_the_ends_of_time_can_be_shown() -> None:
    first, last = timestamps(np.array([MIN_TIME, MAX_TIME])).to_pylist()
    assert first == datetime.min.replace(tzinfo=UTC)
    assert last == datetime.max.replace(tzinfo=UTC)


@given(st.datetimes())
def test_texts_for_people_are_iso(moment: datetime) -> None:
    text = time_text(micros(moment))
    assert text.endswith("Z")
    assert datetime.fromisoformat(text[:-1]) == moment


def test_texts_of_what_no_datetime_can_hold() -> None:
    assert time_text(MIN_TIME) == "the beginning of time"
    assert time_text(MAX_TIME) == "the end of time"
    assert time_text(YEAR_10000).startswith("10000-01-01T00:00:00")
    assert time_text(0) == "1970-01-01T00:00:00Z"


def test_columns_of_what_people_write() -> None:
    column = times_of(["1970-01-01T00:00:01Z", 2, None, datetime(1970, 1, 1), pd.NaT])
    assert column.type == pa.timestamp("us", "UTC")
    assert column.cast(pa.int64()).to_pylist() == [1_000_000, 2, None, 0, None]


@pytest.mark.parametrize(
    ("times", "unit"),
    [([1_453_291_226, 1_453_291_299], "seconds"), ([1_453_291_226_000, None], "milliseconds")],
)
def test_whole_numbers_that_land_in_1970_are_told(times: list[int | None], unit: str) -> None:
    with pytest.warns(
        UserWarning, match=rf"so {times[0]} is 1970-01-.* in {unit} \(2016-01-20T12:00:26Z\), multiply by"
    ):
        times_of(times)


@pytest.mark.parametrize(
    "times",
    [
        [0, 60_000_000],
        [1_453_291_226_000_000],
        [1_500_000_000, 2_400_000_000],
        [1_453_291_226, 0],
        [None],
        ["2016-01-20"],
    ],
)
def test_whole_numbers_that_may_be_meant_are_not_told(times: list[int | str | None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        times_of(times)

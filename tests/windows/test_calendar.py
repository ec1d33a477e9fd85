"""Calendar windows against `zoneinfo`, a row at a time, and against days that are known to be odd."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
import uncombine.windows.zones as zones
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.windows import MAX_TIME, MIN_TIME, time_text

SECOND = 1_000_000
HOUR = 3_600 * SECOND
EPOCH = datetime(1970, 1, 1)
ZONES = [
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Toronto",
    "America/Juneau",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Asia/Manila",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Antarctica/Troll",
]
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
ODD = [
    "1867-10-18T20:00:00Z",
    "1919-03-31T04:30:00Z",
    "1944-04-03T00:00:00Z",
    "1994-12-31T10:00:00Z",
    "2006-10-29T02:30:00Z",
    "2011-12-30T10:00:00Z",
    "2018-11-04T03:00:00Z",
    "2022-03-26T22:00:00Z",
    "2024-03-31T01:00:00Z",
    "2024-10-27T01:00:00Z",
    "2050-03-13T07:00:00Z",
    "1883-11-18T17:00:00Z",
]
TIMES = st.one_of(
    st.integers(uc.timestamp("1800-01-01"), uc.timestamp("2150-01-01")),
    st.builds(lambda text, by: uc.timestamp(text) + by, st.sampled_from(ODD), st.integers(-30 * HOUR, 30 * HOUR)),
    st.builds(
        lambda year, month, by: uc.timestamp(datetime(year, month, 1)) + by,
        st.integers(3, 9990),
        st.integers(1, 12),
        st.integers(-30 * HOUR, 30 * HOUR),
    ),
)


def local(second: int, zone: ZoneInfo) -> datetime:
    moment = (EPOCH + timedelta(seconds=second)).replace(tzinfo=UTC)
    return moment.astimezone(zone).replace(tzinfo=None)


def first_instant(day: date, zone: ZoneInfo) -> int:
    """The first second at which clocks show this midnight or, if none does, a later time than it."""
    midnight = (day - EPOCH.date()) // timedelta(seconds=1)
    hours = range(midnight - 27 * 3_600, midnight + 27 * 3_600, 1_800)
    offsets = {int((local(hour, zone) - EPOCH).total_seconds()) - hour for hour in hours}
    shown = [midnight - by for by in offsets if local(midnight - by, zone).isoformat() == f"{day}T00:00:00"]
    if shown:
        return min(shown) * SECOND
    early, late = hours[0], hours[-1]
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (early, middle) if local(middle, zone).date() >= day else (middle, late)
    return late * SECOND


def floor(day: date, unit: str, week_start: str) -> date:
    if unit == "week":
        return day - timedelta(days=(day.weekday() - WEEKDAYS.index(week_start)) % 7)
    month = {"day": day.month, "month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return day if unit == "day" else date(day.year, month, 1)


def next_unit(first: date, unit: str, week_start: str) -> date:
    longest = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[unit]
    return floor(first + timedelta(days=longest), unit, week_start)


def window_of(time: int, unit: str, tz: str, week_start: str) -> tuple[int, int]:
    zone = ZoneInfo(tz)
    first = floor(local(time // SECOND, zone).date(), unit, week_start)
    following = next_unit(first, unit, week_start)
    while first_instant(following, zone) <= time:
        first, following = following, next_unit(following, unit, week_start)
    return first_instant(first, zone), first_instant(following, zone)


@given(
    st.lists(TIMES, min_size=1, max_size=4),
    st.sampled_from(["day", "week", "month", "quarter", "year"]),
    st.sampled_from(ZONES),
    st.sampled_from(WEEKDAYS),
)
def test_calendar_row_by_row(times: list[int], unit: str, tz: str, week_start: str) -> None:
    assigned = uc.Calendar(unit, tz, week_start).assign(np.array(times))
    assert assigned.row is None
    windows = list(zip(assigned.start.tolist(), assigned.end.tolist(), strict=True))
    assert windows == [window_of(time, unit, tz, week_start) for time in times]


def bounds(text: str, unit: str, tz: str, **options: Any) -> tuple[str, str]:
    assigned = uc.Calendar(unit, tz, **options).assign(np.array([uc.timestamp(text)]))
    return time_text(assigned.start[0]), time_text(assigned.end[0])


@pytest.mark.parametrize(
    ("time", "tz", "start", "end"),
    [
        # 23 and 25 hours.
        ("2024-03-31T12:00Z", "Europe/Berlin", "2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"),
        ("2024-10-27T12:00Z", "Europe/Berlin", "2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z"),
        # Half an hour of summer time.
        ("2024-04-07T00:00Z", "Australia/Lord_Howe", "2024-04-06T13:00:00Z", "2024-04-07T13:30:00Z"),
        # Midnight is left out: the day starts with the first instant after it.
        ("2018-11-04T12:00Z", "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"),
        ("1919-03-31T12:00Z", "America/Toronto", "1919-03-31T04:30:00Z", "1919-04-01T04:00:00Z"),
        ("2022-03-27T12:00Z", "Asia/Beirut", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"),
        # A whole date is left out.
        ("2011-12-30T09:59Z", "Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"),
        ("2011-12-30T10:00Z", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
        # At a minute past midnight clocks went back to the day before: the day that had begun goes on.
        ("2006-10-29T02:45Z", "America/St_Johns", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"),
        # No summer time, and an odd offset.
        ("2024-03-31T12:00Z", "Asia/Kathmandu", "2024-03-30T18:15:00Z", "2024-03-31T18:15:00Z"),
        # Before 1970, with double summer time.
        ("1945-06-01T12:00Z", "Europe/Berlin", "1945-05-31T21:00:00Z", "1945-06-01T21:00:00Z"),
        # Past the last change that tables of zones list.
        ("2050-07-04T12:00Z", "America/New_York", "2050-07-04T04:00:00Z", "2050-07-05T04:00:00Z"),
    ],
)
def test_days_that_are_known(time: str, tz: str, start: str, end: str) -> None:
    assert bounds(time, "day", tz) == (start, end)


@pytest.mark.parametrize(
    ("unit", "options", "start", "end"),
    [
        ("week", {}, "2024-02-26", "2024-03-04"),
        ("week", {"week_start": "sunday"}, "2024-02-25", "2024-03-03"),
        ("week", {"week_start": "Thursday"}, "2024-02-29", "2024-03-07"),
        ("month", {}, "2024-02-01", "2024-03-01"),
        ("quarter", {}, "2024-01-01", "2024-04-01"),
        ("year", {}, "2024-01-01", "2025-01-01"),
    ],
)
def test_units_of_a_leap_day(unit: str, options: dict[str, str], start: str, end: str) -> None:
    expected = f"{start}T00:00:00Z", f"{end}T00:00:00Z"
    assert bounds("2024-02-29T23:59:59.999999Z", unit, "UTC", **options) == expected


@given(
    st.lists(st.integers(MIN_TIME + 1, MAX_TIME - 1), min_size=1, max_size=6),
    st.sampled_from(["day", "week", "month", "quarter", "year"]),
    st.sampled_from(ZONES),
)
def test_windows_at_the_ends_of_time_hold_their_rows(times: list[int], unit: str, tz: str) -> None:
    assigned = uc.Calendar(unit, tz).assign(np.array(times))
    assert (assigned.start <= times).all()
    assert (times < assigned.end).all()


def test_the_first_and_last_years() -> None:
    late = uc.Calendar("month").assign(np.array([uc.timestamp(datetime.max), uc.timestamp(datetime.min)]))
    assert late.start.tolist() == [uc.timestamp("9999-12-01"), uc.timestamp("0001-01-01")]
    assert late.end.tolist() == [MAX_TIME, uc.timestamp("0001-02-01")]


def test_many_days_follow_one_another() -> None:
    """A year of a row every 7 hours, in no order: windows without a hole between them."""
    times = np.random.default_rng(0).permutation(
        np.arange(uc.timestamp("2023-12-20"), uc.timestamp("2025-01-10"), 7 * HOUR)
    )
    assigned = uc.Calendar("day", "America/New_York").assign(times)
    windows = sorted(set(zip(assigned.start.tolist(), assigned.end.tolist(), strict=True)))
    assert all(end == start for (_, end), (start, _) in pairwise(windows))
    hours = [(end - start) // HOUR for start, end in windows]
    assert (len(hours), hours.count(23), hours.count(25)) == (388, 1, 1)


def test_a_year_that_has_begun_elsewhere_ends_there_too() -> None:
    expected = "2023-12-31T10:00:00Z", "2024-12-31T10:00:00Z"
    assert bounds("2023-12-31T12:00Z", "year", "Pacific/Kiritimati") == expected


def test_no_rows() -> None:
    assert len(uc.Calendar("day").assign(np.empty(0, np.int64)).start) == 0


def test_words_are_settled() -> None:
    window = uc.Calendar(" Days ", ZoneInfo("Asia/Kathmandu"), "Sunday")
    assert window == uc.Calendar("day", "Asia/Kathmandu", "sunday")
    assert repr(window) == "Calendar('day', tz='Asia/Kathmandu', week_start='sunday')"


@pytest.mark.parametrize(
    ("arguments", "kind", "why"),
    [
        (("fortnight",), InvalidArgument, "unit 'fortnight' is unknown: known are 'day', 'week'"),
        (("mont",), InvalidArgument, "did you mean 'month'"),
        (("1 day",), InvalidArgument, "did you mean 'day'"),
        ((1,), TypeMismatch, "unit must be a text such as 'day', but is 1"),
        (("day", "Europe/Berlim"), InvalidArgument, "tz must be a time zone such as .* but is 'Europe/Berlim'"),
        (("day", "Europe"), InvalidArgument, "tz must be a time zone such as .* but is 'Europe'"),
        (("day", "../etc"), InvalidArgument, "tz must be a time zone"),
        (("day", ""), InvalidArgument, "tz must be a time zone"),
        (("day", None), TypeMismatch, "tz must be the name of a time zone such as 'Europe/Berlin', but is None"),
        (("day", "UTC", "mon"), InvalidArgument, "week_start 'mon' is unknown: did you mean 'monday'"),
        (("day", "UTC", 0), TypeMismatch, "week_start must be a text such as 'monday', but is 0"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        uc.Calendar(*arguments)


def test_a_platform_without_time_zones_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "_exists", lambda name: False)
    with pytest.raises(InvalidArgument, match="Python has no time zones here: install tzdata"):
        uc.Calendar("day", "Europe/Berlin")

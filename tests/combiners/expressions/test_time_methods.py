"""Methods of times against those of Python's datetime, in every unit, in zones, and far from 1970."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncombine as uc
from uncombine import Expr, col
from uncombine.combiners.expressions.missing_methods import OF_TIMES
from uncombine.combiners.expressions.units import count_and_unit, every_of
from uncombine.errors import InvalidArgument, NoSuchStep, OutOfRange, TypeMismatch

T = col("t")
EPOCH = dt.datetime(1970, 1, 1)
SECOND = 1_000_000
PER_SECOND = {"s": 1, "ms": 1_000, "us": SECOND, "ns": 1_000 * SECOND}

TIMES = [
    EPOCH,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1969, 7, 20, 20, 17, 40, 5),
    dt.datetime(1970, 1, 4, 23, 59, 59),
    dt.datetime(1900, 2, 28, 23, 0),
    dt.datetime(1900, 3, 1),
    dt.datetime(2000, 2, 29, 12, 30, 45, 123456),
    dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.datetime(2023, 2, 28, 23, 59, 59, 999999),
    dt.datetime(2020, 12, 31, 1),
    dt.datetime(2021, 1, 1, 1),
    dt.datetime(2021, 1, 3, 23, 59),
    dt.datetime(2016, 1, 3, 0, 0, 0, 1),
    dt.datetime(2262, 4, 1),
    dt.datetime(1678, 1, 1),
]
FAR_TIMES = [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 4, 11, 59), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]

DATES: dict[str, Callable[[dt.datetime], Any]] = {
    "year": lambda t: t.year,
    "quarter": lambda t: (t.month - 1) // 3 + 1,
    "month": lambda t: t.month,
    "week": lambda t: t.isocalendar().week,
    "day": lambda t: t.day,
    "ordinal_day": lambda t: t.timetuple().tm_yday,
    "weekday": lambda t: t.isoweekday(),
    "date": lambda t: t.date(),
}
CLOCKS: dict[str, Callable[[dt.datetime], Any]] = {
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "microsecond": lambda t: t.microsecond,
}
PARTS = DATES | CLOCKS


def units(times: list[dt.datetime | None], unit: str) -> list[int | None]:
    """The times as whole units since 1970, rounded down."""
    micros = [None if t is None else (t - EPOCH) // dt.timedelta(microseconds=1) for t in times]
    return [None if m is None else m * PER_SECOND[unit] // SECOND for m in micros]


def column(times: list[dt.datetime | None], unit: str = "us", zone: str | None = None) -> pa.Array:
    """A column of these times, which are those of UTC if there is a zone."""
    return pa.array(units(times, unit), pa.int64()).cast(pa.timestamp(unit, zone))


def rounded(time: dt.datetime, unit: str) -> dt.datetime:
    """The time in whole units, as Python's datetime, which has microseconds."""
    whole = units([time], unit)[0]
    assert whole is not None
    return EPOCH + dt.timedelta(microseconds=whole * SECOND // PER_SECOND[unit])


def layouts(array: pa.Array) -> list[pa.Array | pa.ChunkedArray]:
    """The same values in each layout of Arrow."""
    return [array, pa.chunked_array([array[:3], array[3:3], array[3:]]), array.dictionary_encode(), array[1:]]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", PER_SECOND)
@pytest.mark.parametrize("part", PARTS)
def test_parts_are_those_of_python(part: str, unit: str, zone: str | None) -> None:
    times = [*TIMES, None, *([] if unit == "ns" else FAR_TIMES)]
    expr: Expr = getattr(T.dt, part)()
    for layout, own in zip(layouts(column(times, unit, zone)), (times, times, times, times[1:]), strict=True):
        table = pa.table({"t": layout})
        expected = [None if t is None else PARTS[part](rounded(t, unit)) for t in own]
        assert expr.evaluate(table).to_pylist() == expected
        assert expr.type(table.schema) == (pa.date32() if part == "date" else pa.int64())
        assert expr.evaluate(table).type == expr.type(table.schema)


IN_ZONES = [
    dt.datetime(2024, 3, 31, 0, 59, 59, 999999), dt.datetime(2024, 3, 31, 1), dt.datetime(2024, 10, 27, 0, 30),
    dt.datetime(2024, 10, 27, 1, 30), dt.datetime(2024, 12, 31, 23, 30), dt.datetime(2018, 11, 4, 3),
    dt.datetime(2018, 11, 4, 2, 59, 59), dt.datetime(2018, 2, 18, 1, 30), dt.datetime(2018, 2, 18, 2, 30),
    dt.datetime(2011, 12, 31, 12), dt.datetime(2011, 12, 30, 9, 59), dt.datetime(2050, 7, 1, 22, 30),
    dt.datetime(2100, 3, 28, 1, 0), dt.datetime(1900, 1, 1, 3, 4),
    dt.datetime(2024, 11, 3, 4, 30), dt.datetime(2024, 11, 3, 5, 30), dt.datetime(1971, 5, 5, 5, 5),
    dt.datetime(2000, 2, 29, 18, 20), None,
]  # fmt: skip
ZONES = ["Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "+05:30"]


def local(time: dt.datetime, zone: str) -> dt.datetime:
    """The time on the clocks of a zone."""
    there = dt.timezone(dt.timedelta(hours=5, minutes=30)) if zone == "+05:30" else ZoneInfo(zone)
    return time.replace(tzinfo=dt.UTC).astimezone(there)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("part", PARTS)
def test_parts_in_a_zone_are_those_of_its_clocks(part: str, zone: str) -> None:
    expected = [None if t is None else PARTS[part](local(t, zone)) for t in IN_ZONES]
    for unit in ("us", "ns"):
        rows = pa.table({"t": column(IN_ZONES, unit, zone), "utc": column(IN_ZONES, unit, "UTC")})
        assert getattr(T.dt, part)().evaluate(rows).to_pylist() == expected
        there = col("utc").dt.convert_time_zone(zone)
        assert getattr(there.dt, part)().evaluate(rows).to_pylist() == expected
        assert there.type(rows.schema) == pa.timestamp(unit, zone)
        naive = pa.table({"t": column(IN_ZONES, unit)})
        assert T.dt.convert_time_zone(zone).evaluate(naive).equals(pa.chunked_array([rows["t"].combine_chunks()]))


def test_parts_of_dates_and_of_times_of_day() -> None:
    days = [t.date() for t in [*TIMES, *FAR_TIMES]] + [None]
    for kind in (pa.date32(), pa.date64()):
        rows = pa.table({"t": pa.array(days, kind)})
        for part, oracle in DATES.items():
            expected = [None if d is None else oracle(dt.datetime(d.year, d.month, d.day)) for d in days]
            assert getattr(T.dt, part)().evaluate(rows).to_pylist() == expected, (part, kind)
    clocks = [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(12, 30, 45, 5), None]
    rows = pa.table({"t": pa.array(clocks, pa.time64("us"))})
    for part, oracle in CLOCKS.items():
        expected = [None if c is None else oracle(dt.datetime.combine(EPOCH, c)) for c in clocks]
        assert getattr(T.dt, part)().evaluate(rows).to_pylist() == expected
    assert T.dt.hour().evaluate(pa.table({"t": pa.array([dt.time(7)], pa.time32("s"))})).to_pylist() == [7]
    assert T.dt.year().evaluate(pa.table({"t": pa.nulls(2)})).to_pylist() == [None, None]


def test_a_value_and_no_rows() -> None:
    no_rows = pa.table({"t": pa.chunked_array([], pa.timestamp("ns", "Europe/Berlin"))})
    for expr in (T.dt.hour(), T.dt.date(), T.dt.truncate("1 hour"), T.dt.truncate("1 month"), T - T):
        assert expr.evaluate(no_rows).type == expr.type(no_rows.schema)
    fixed = uc.coalesce(dt.datetime(2024, 5, 1, 12, 34, tzinfo=dt.UTC))
    rows = pa.table({"n": [1, 2]})
    assert fixed.dt.hour().evaluate(rows).to_pylist() == [12, 12]
    assert fixed.dt.truncate("1 hour").evaluate(rows).cast(pa.int64()).to_pylist() == [1714564800 * SECOND] * 2
    there = fixed.dt.convert_time_zone("Europe/Berlin").dt.truncate("1 day")
    assert there.evaluate(rows).cast(pa.int64()).to_pylist() == [1714514400 * SECOND] * 2


FIXED = {"1 second": 1, "15 minutes": 900, "1 hour": 3_600, "7 hours": 25_200, "1 day": 86_400, "5 days": 432_000}


def begin(time: dt.datetime, every: str) -> dt.datetime:
    """The beginning of the unit that a time is in, by Python."""
    day = dt.datetime(time.year, time.month, time.day)
    match every:
        case "1 week":
            return day - dt.timedelta(days=day.weekday())
        case "2 weeks":
            monday = dt.datetime(1969, 12, 29)
            return monday + (time - monday) // dt.timedelta(weeks=2) * dt.timedelta(weeks=2)
        case "1 month":
            return day.replace(day=1)
        case "1 quarter" | "3 months":
            return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
        case "6 months" | "2 quarters":
            return day.replace(day=1, month=(day.month - 1) // 6 * 6 + 1)
        case "1 year":
            return day.replace(day=1, month=1)
    return EPOCH + (time - EPOCH) // dt.timedelta(seconds=FIXED[every]) * dt.timedelta(seconds=FIXED[every])


EVERY = [*FIXED, "1 week", "2 weeks", "1 month", "1 quarter", "3 months", "6 months", "2 quarters", "1 year"]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", PER_SECOND)
@pytest.mark.parametrize("every", EVERY)
def test_truncated_times_are_those_of_python(every: str, unit: str, zone: str | None) -> None:
    after = dt.datetime(1, 2, 1)  # a unit may begin before the first year of Python
    times = [*TIMES, None, *([] if unit == "ns" else [after, *FAR_TIMES[1:]])]
    for layout, own in zip(layouts(column(times, unit, zone)), (times, times, times, times[1:]), strict=True):
        table = pa.table({"t": layout})
        expected = column([None if t is None else begin(t, every) for t in own], unit, zone)
        result = T.dt.truncate(every).evaluate(table)
        assert result.to_pylist() == expected.to_pylist()
        assert result.type == T.dt.truncate(every).type(table.schema) == expected.type


@example(0, "15 minutes")
@example(-1, "7 hours")
@given(st.integers(-(2**50), 2**50), st.sampled_from(EVERY))
def test_truncated_times_are_the_starts_of_windows(micros: int, every: str) -> None:
    """Windows count from 1970 too, except weeks, which are those of the calendar."""
    result = T.dt.truncate(every).evaluate(pa.table({"t": pa.array([micros]).cast(pa.timestamp("us", "UTC"))}))
    count, unit = count_and_unit(every)
    if unit in ("week", "month", "quarter", "year"):
        if count > 1:
            return
        window: uc.windows.Window = uc.Calendar(unit)
    else:
        window = uc.Fixed(every)
    assert result.cast(pa.int64()).to_pylist() == window.assign(np.array([micros])).start.tolist()


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("zone", ZONES[:-1])
def test_units_of_the_calendar_in_a_zone_begin_as_windows_do(unit: str, zone: str) -> None:
    """A date begins after midnight where the clocks skip midnight, as in Brazil in November 2018."""
    times = [t for t in IN_ZONES if t is not None]
    hours = [EPOCH + dt.timedelta(days=365 * 48 + 300, hours=7 * i) for i in range(60)]
    whole = column([*times, *hours], "us", zone)
    starts = uc.Calendar(unit, zone).assign(np.asarray(whole.cast(pa.int64()))).start
    result = T.dt.truncate(f"1 {unit}").evaluate(pa.table({"t": whole}))
    assert result.cast(pa.int64()).to_pylist() == starts.tolist()


def test_clocks_that_change() -> None:
    """Arrow's own function raises for these."""
    utc = [
        "2024-10-27T00:37",
        "2024-10-27T01:00",
        "2024-10-27T01:37",
        "2024-10-27T02:05",
        "2024-03-31T00:59",
        "2024-03-31T01:10",
    ]
    rows = pa.table({"t": pa.array(pd.to_datetime(utc)).cast(pa.timestamp("us", "Europe/Berlin"))})
    for every, starts in {
        "15 minutes": ["00:30", "01:00", "01:30", "02:00", "00:45", "01:00"],
        "1 hour": ["00:00", "01:00", "01:00", "02:00", "00:00", "01:00"],
        "2 hours": ["00:00", "01:00", "01:00", "01:00", "23:00", "01:00"],
    }.items():
        expected = [f"{stamp[:11]}{start}" for stamp, start in zip(utc, starts, strict=True)]
        expected = [stamp.replace("31T23", "30T23") for stamp in expected]
        result = T.dt.truncate(every).evaluate(rows).cast(pa.timestamp("us")).to_pylist()
        assert result == [dt.datetime.fromisoformat(stamp) for stamp in expected], every
    with pytest.raises(pa.ArrowInvalid, match="ambiguous"):
        pc.floor_temporal(rows["t"], multiple=1, unit="hour")


@pytest.mark.parametrize("zone", ZONES[:-1])
@given(st.integers(1_500_000_000, 1_730_000_000), st.sampled_from([15, 30, 60]))
def test_truncated_times_in_a_zone_are_not_after_the_time_and_on_its_clock(
    zone: str, second: int, minutes: int
) -> None:
    rows = pa.table({"t": pa.array([second]).cast(pa.timestamp("s", zone))})
    start = T.dt.truncate(f"{minutes} minutes").evaluate(rows).cast(pa.int64()).to_pylist()[0]
    assert 0 <= second - start < 60 * minutes
    clock = dt.datetime.fromtimestamp(start, ZoneInfo(zone))
    assert (clock.minute % minutes, clock.second) == (0, 0)


def test_truncated_dates() -> None:
    days = [t.date() for t in TIMES]
    for kind in (pa.date32(), pa.date64()):
        rows = pa.table({"t": pa.array([*days, None], kind)})
        for every in ("1 day", "5 days", "1 week", "1 month", "1 quarter", "1 year"):
            expected = [begin(dt.datetime(d.year, d.month, d.day), every).date() for d in days]
            assert T.dt.truncate(every).evaluate(rows).to_pylist() == [*expected, None], (every, kind)
        assert T.dt.truncate("1 hour").evaluate(rows).to_pylist() == [*days, None]


@pytest.mark.parametrize("unit", PER_SECOND)
@pytest.mark.parametrize(("method", "seconds"), [("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)])
def test_lengths_in_units(method: str, seconds: int, unit: str) -> None:
    whole = [0, 1, -1, 86_400 * 400 + 5, -(2**53) - 1, 2**53 + 1, 2**63 - 1, -(2**63), None]
    expected = [None if w is None else w / (seconds * PER_SECOND[unit]) for w in whole]
    array = pa.array(whole, pa.int64()).cast(pa.duration(unit))
    for values, own in zip(layouts(array), (expected, expected, expected, expected[1:]), strict=True):
        table = pa.table({"t": values})
        expr: Expr = getattr(T.dt, f"total_{method}")()
        assert expr.evaluate(table).to_pylist() == own
        assert expr.type(table.schema) == pa.float64()
    assert T.dt.total_seconds().evaluate(pa.table({"t": pa.nulls(1)})).to_pylist() == [None]


@pytest.mark.parametrize("unit", PER_SECOND)
def test_times_too_far_away_are_an_error_and_not_another_year(unit: str) -> None:
    """Arrow's calendar wraps around for them without an error."""
    for value in (2**63 - 1, -(2**63)):
        for zone in (None, "UTC", "Europe/Berlin"):
            rows = pa.table({"t": pa.array([0, None, value]).cast(pa.timestamp(unit, zone))})
            for expr in (T.dt.year(), T.dt.hour(), T.dt.date(), T.dt.truncate("1 day"), T.dt.truncate("1 month")):
                with pytest.raises(OutOfRange, match=r"failed on the data: a time is too far from 1970"):
                    expr.evaluate(rows)
    with pytest.raises(OutOfRange, match="too far from 1970"):
        T.dt.year().evaluate(pa.table({"t": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}))
    near = pa.table({"t": pa.array([2**62]).cast(pa.timestamp("ns"))})
    assert T.dt.hour().evaluate(near).to_pylist() == [(EPOCH + dt.timedelta(microseconds=2**62 // 1_000)).hour]


def test_times_in_a_zone_are_those_of_the_years_1_to_9999() -> None:
    """Only these years have rules of zones in Python."""
    for year in (10_000, 0):
        second = (year - 1970) * 31_556_952
        rows = pa.table({"t": pa.array([second]).cast(pa.timestamp("s", "Europe/Berlin"))})
        for expr in (T.dt.hour(), T.dt.truncate("1 day")):
            with pytest.raises(OutOfRange, match="a time in a zone is outside the years 1 to 9999"):
                expr.evaluate(rows)
        assert len(T.dt.hour().evaluate(rows.cast(pa.schema({"t": pa.timestamp("s", "UTC")})))) == 1
    last = pa.table({"t": column([dt.datetime(9999, 12, 31, 12)], "us", "Europe/Berlin")})
    assert T.dt.truncate("1 year").evaluate(last).cast(pa.int64()).to_pylist() == [253370761200 * SECOND]
    with pytest.raises(TypeMismatch, match="there is no time zone 'Mars'"):
        T.dt.hour().type(pa.schema({"t": pa.timestamp("us", "Mars")}))


SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "gap": pa.duration("us"), "day": pa.date32(), "clock": pa.time64("us")}
    | {"s": pa.string(), "n": pa.int64(), "slow": pa.timestamp("s", "UTC")}
)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (col("s").dt.year(), "it takes times, as"),
        (col("n").dt.hour(), "it takes times, as"),
        (col("n").dt.truncate("1 hour"), "it takes times, as"),
        (col("gap").dt.hour(), "it takes times; a duration has total_seconds() and arithmetic"),
        (col("gap").dt.truncate("1 hour"), "it takes times; a duration has"),
        (col("day").dt.hour(), "it takes times, and a date has no clock"),
        (col("clock").dt.year(), "it takes times with a date"),
        (col("day").dt.convert_time_zone("UTC"), "it takes times, and a date has no clock"),
        (col("ts").dt.total_seconds(), "it takes durations, such as the difference of two times"),
        (col("slow").dt.truncate("1500 ms"), "1500 milliseconds are no whole number of its units"),
        (col("day").dt.truncate("30 hours"), "30 hours are no whole number of its units"),
    ],
    ids=repr,
)
def test_a_wrong_type_is_an_error_before_any_row(wrong: Expr, says: str) -> None:
    for refused in (lambda: wrong.type(SCHEMA), lambda: uc.flow(SCHEMA).with_columns(x=wrong)):
        with pytest.raises(TypeMismatch) as error:
            refused()
        assert f": {says}" in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("15 minutes", "15 minutes"), ("1h", "1 hour"), ("hour", "1 hour"), ("60 min", "1 hour"), ("24 h", "1 day"),
        ("1 hour 30 minutes", "90 minutes"), ("0.5 s", "500 milliseconds"), ("1500 ns", "1500 nanoseconds"),
        ("week", "1 week"), ("2 Weeks", "2 weeks"), ("7 days", "7 days"), ("1 week 1 day", "8 days"),
        ("month", "1 month"), ("3 months", "3 months"), ("quarter", "1 quarter"), ("1 year", "1 year"),
        (dt.timedelta(minutes=90), "90 minutes"), (dt.timedelta(weeks=1), "7 days"),
        (dt.timedelta(microseconds=1), "1 microsecond"),
    ],
)  # fmt: skip
def test_units_are_read_and_print_in_one_way(value: Any, text: str) -> None:
    assert every_of(value) == every_of(text) == text
    assert repr(T.dt.truncate(value)) == f"col('t').dt.truncate({text!r})"


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: T.dt.truncate("soon"), "has the unknown unit 'soon'"),
        (lambda: T.dt.truncate("5 mintes"), "did you mean 'minute'?"),
        (lambda: T.dt.truncate("5m"), "may be minutes or months"),
        (lambda: T.dt.truncate(""), "truncate() takes a unit such as '15 minutes'"),
        (lambda: T.dt.truncate("-1 hour"), "truncate() takes a unit such as '15 minutes'"),
        (lambda: T.dt.truncate("1 hour!"), "truncate() takes a unit such as '15 minutes'"),
        (lambda: T.dt.truncate(5), "truncate() takes a unit such as '15 minutes'"),
        (lambda: T.dt.truncate("0 s"), "from one to 100 years"),
        (lambda: T.dt.truncate("200000 weeks"), "from one to 100 years"),
        (lambda: T.dt.truncate("0.5 ns"), "whole nanoseconds"),
        (lambda: T.dt.truncate(dt.timedelta(-1)), "from one to 100 years"),
        (lambda: T.dt.truncate("5 months"), "months of which a year has a whole number"),
        (lambda: T.dt.truncate("1 month 1 day"), "months of which a year has a whole number"),
        (lambda: T.dt.truncate("10 years"), "months of which a year has a whole number"),
        (lambda: T.dt.replace_time_zone("Mars"), "there is no time zone 'Mars'"),
        (lambda: T.dt.convert_time_zone("Mars"), "there is no time zone 'Mars'"),
        (lambda: T.dt.convert_time_zone(""), "must have a character"),
        (lambda: T.dt.convert_time_zone(2), "must be a text, but is 2"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_when_it_is_built(build: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        build()
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_other_libraries_get_ours() -> None:
    with pytest.raises(NoSuchStep, match=r"^x\.dt has no floor: write x\.dt\.truncate\('1 hour'\)$"):
        T.dt.floor
    assert [name for name in OF_TIMES if hasattr(T.dt, name)] == []


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "+02:30", "UTC"])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_clocks_are_those_of_python(zone: str, unit: str) -> None:
    there = dt.timezone(dt.timedelta(hours=2, minutes=30)) if zone[0] == "+" else ZoneInfo(zone)
    local = [dt.datetime(2011, 12, 28) + dt.timedelta(minutes=17 * n) for n in range(400)]
    local += [
        dt.datetime(2024, month, 31 if month == 3 else 27) + dt.timedelta(minutes=7 * n)
        for month in (3, 10)
        for n in range(60)
    ]
    first = [time.replace(tzinfo=there).astimezone(dt.UTC) for time in local]
    shown = [at.astimezone(there).replace(tzinfo=None) for at in first]
    expected = [at if seen == time else None for at, seen, time in zip(first, shown, local, strict=True)]
    for naive in (pa.timestamp(unit), pa.timestamp(unit, "UTC")):
        rows = pa.table({"t": pa.array([*local, None], pa.timestamp("us")).cast(naive)})
        found = T.dt.replace_time_zone(zone).evaluate(rows)
        assert found.type == pa.timestamp(unit, zone)
        assert found.cast(pa.timestamp("us", "UTC")).to_pylist() == [*expected, None]
    assert T.dt.convert_time_zone("Asia/Tokyo").dt.replace_time_zone("UTC").dt.hour().evaluate(
        pa.table({"t": [dt.datetime(2024, 1, 1, 12)]})
    ).to_pylist() == [21]


def test_a_wall_clock_is_an_event_time() -> None:
    at = col("t").cast_time("%d.%m.%Y %H:%M").dt.replace_time_zone("Europe/Berlin")
    rows = [{"t": "30.06.2024 12:00"}, {"t": "31.03.2024 02:30"}]
    run = uc.flow(rows, time=at).window("1 hour").combine(n=uc.Count()).run()
    assert [row["window"]["start"].astimezone(dt.UTC).hour for row in run.to_pylist()] == [10]
    assert run.counts()["bad"] == 1
    for name in ("tz_localize", "to_utc"):
        with pytest.raises(NoSuchStep, match=r"x\.dt\.replace_time_zone\('Europe/Berlin'\)"):
            getattr(T.dt, name)

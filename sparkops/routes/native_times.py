"""Methods and arithmetic of times as columns of Spark, where both have the same values.

Spark reads clocks and calendars in the time zone of the session, and adds a day there as the next day of its calendar.
So all is computed from microseconds and from days since 1970. Guarded by
tests/sparkops/routes/test_native_expressions.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ...combiners.expressions.units import FIXED, count_and_unit

if TYPE_CHECKING:
    from pyspark.sql import Column

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MONDAY = -3 * _DAY
"""The Monday before 1970, from which weeks are counted."""

_OF_DATES: Mapping[str, Callable[[Column], Column]] = {
    "dt.year": F.year,
    "dt.quarter": F.quarter,
    "dt.month": F.month,
    "dt.week": F.weekofyear,
    "dt.day": F.dayofmonth,
    "dt.ordinal_day": F.dayofyear,
    "dt.weekday": lambda date: F.weekday(date) + F.lit(1),
}
_OF_CLOCKS = {
    "dt.hour": (3_600 * _SECOND, _DAY),
    "dt.minute": (60 * _SECOND, 3_600 * _SECOND),
    "dt.second": (_SECOND, 60 * _SECOND),
    "dt.microsecond": (1, _SECOND),
}
"""The microseconds of a unit, and of the unit that has a whole number of it."""


def date_method(op: str, date: Column, every: str = "") -> Column | None:
    """Spark's column for a method of dates; None if its values could be others."""
    if op == "dt.date":
        return date
    if op == "dt.truncate":
        count, unit = count_and_unit(every)
        return F.trunc(date, unit) if count == 1 and unit in ("week", "month", "quarter", "year") else None
    return _OF_DATES[op](date).cast("bigint") if op in _OF_DATES else None


def time_method(op: str, time: Column, every: str = "") -> Column | None:
    """Spark's column for a method of times in UTC; None if its values could be others."""
    micros = F.unix_micros(time)
    if op in _OF_CLOCKS:
        size, whole = _OF_CLOCKS[op]
        return _floor(F.pmod(micros, _long(whole)), size)
    if op == "dt.truncate" and every.split()[1].removesuffix("s") in FIXED:
        count, unit = count_and_unit(every)
        size, rest = divmod(count * FIXED[unit], 1_000)
        if rest or not size:
            return None
        origin = _MONDAY if unit == "week" else 0
        return F.timestamp_micros(micros - F.pmod(micros - _long(origin), _long(size)))
    date = date_method(op, F.date_from_unix_date(_floor(micros, _DAY).cast("int")), every)
    if date is None or op != "dt.truncate":
        return date
    return F.timestamp_micros(F.unix_date(date).cast("bigint") * _long(_DAY))


def arithmetic(op: str, sides: Sequence[str]) -> Callable[..., Column] | None:
    """Spark's operation for one on times, lengths and whole numbers; None if there is none that is equal."""
    return _ARITHMETIC.get((op, *sides))


def _between(later: Column, earlier: Column) -> Column:
    return F.lit(timedelta(microseconds=1)) * (F.unix_micros(later) - F.unix_micros(earlier))


def _moved(time: Column, length: Column, sign: int = 1) -> Column:
    return F.timestamp_micros(F.unix_micros(time) + _long(sign) * _micros(length))


_ARITHMETIC: Mapping[tuple[str, ...], Callable[..., Column]] = {
    ("-", "time", "time"): _between,
    ("+", "time", "length"): _moved,
    ("+", "length", "time"): lambda length, time: _moved(time, length),
    ("-", "time", "length"): lambda time, length: _moved(time, length, -1),
    ("+", "length", "length"): operator.add,
    ("-", "length", "length"): operator.sub,
    ("*", "length", "number"): lambda length, number: length * number.cast("bigint"),
    ("*", "number", "length"): lambda number, length: length * number.cast("bigint"),
    ("neg", "length"): operator.neg,
    ("abs", "length"): F.abs,
}


def _micros(length: Column) -> Column:
    """The microseconds of a length of time, of which Spark tells the parts."""
    total = F.extract(F.lit("DAY"), length).cast("bigint")
    for part, size in (("HOUR", 24), ("MINUTE", 60)):
        total = total * _long(size) + F.extract(F.lit(part), length).cast("bigint")
    # A second has six decimals, and Spark gives the part of it that is no whole minute.
    rest = (F.extract(F.lit("SECOND"), length) * F.lit(_SECOND)).cast("bigint")
    return total * _long(60 * _SECOND) + rest


def _floor(micros: Column, size: int) -> Column:
    """Whole units in so many microseconds, rounded down."""
    return F.call_function("div", micros - F.pmod(micros, _long(size)), _long(size))


def _long(number: int) -> Column:
    return F.lit(number).cast("bigint")

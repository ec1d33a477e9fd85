"""Units of time by which a time is truncated: so many microseconds to weeks, or months to years of the calendar.

Guarded by tests/combiners/expressions/test_time_methods.py.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from ...errors import InvalidArgument, nearest

FIXED = {
    "week": 604_800_000_000_000,
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}
"""The nanoseconds of each unit of a fixed length."""

CALENDAR: dict[str, tuple[int, ...]] = {"month": (1, 2, 3, 4, 6), "quarter": (1, 2), "year": (1,)}
"""The units of the calendar, and so many of them as have a whole number in a year."""

_SHORT = {"d": "day", "h": "hour", "min": "minute", "sec": "second", "s": "second"}
_SHORT |= {"ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_PART = re.compile(r"[\s,]*(?:(\d{1,18}(?:\.\d{1,9})?)\s*)?([a-z]+)")
_LONGEST = 36_500 * FIXED["day"]
_FORM = "a unit such as '15 minutes', '1 day', '1 week' or '1 month', or a timedelta"


def every_of(value: str | timedelta) -> str:
    """A unit as text, so many of the longest unit of which it is a whole number.

    >>> every_of("1 hour 30 minutes"), every_of("month"), every_of(timedelta(hours=2))
    ('90 minutes', '1 month', '2 hours')
    """
    if isinstance(value, timedelta):
        count, unit = _fixed(Fraction(value // timedelta(microseconds=1)) * 1_000, value, weeks=False)
    elif isinstance(value, str):
        count, unit = _read(value)
    else:
        raise InvalidArgument(f"truncate() takes {_FORM}, but was given {value!r}")
    return f"{count} {unit}{'' if count == 1 else 's'}"


def count_and_unit(every: str) -> tuple[int, str]:
    """The number and the unit of a text of `every_of`.

    >>> count_and_unit("15 minutes")
    (15, 'minute')
    """
    count, unit = every.split()
    return int(count), unit.removesuffix("s")


def _read(text: str) -> tuple[int, str]:
    words, at = text.strip().lower(), 0
    parts: list[tuple[Fraction, str]] = []
    while len(words) <= 200 and (part := _PART.match(words, at)):
        parts.append((Fraction(part[1] or 1), _unit(part[2], text)))
        at = part.end()
    if not parts or words[at:].strip():
        raise InvalidArgument(f"truncate() takes {_FORM}, but was given {text!r}")
    if any(unit in CALENDAR for _, unit in parts):
        return _of_calendar(parts, text)
    return _fixed(sum((count * FIXED[unit] for count, unit in parts), Fraction(0)), text, parts[0][1] == "week")


def _unit(word: str, text: str) -> str:
    unit = _SHORT.get(word) or word.removesuffix("s")
    if unit == "m":
        raise InvalidArgument(f"{text!r} has the unit 'm', which may be minutes or months: write 'min' or 'month'")
    if unit not in FIXED and unit not in CALENDAR:
        raise InvalidArgument(f"{text!r} has the unknown unit {word!r}: {nearest(unit, (*FIXED, *CALENDAR))}")
    return unit


def _of_calendar(parts: list[tuple[Fraction, str]], text: str) -> tuple[int, str]:
    (count, unit), *others = parts
    if others or unit not in CALENDAR or count not in CALENDAR[unit]:
        counts = "; ".join(f"{', '.join(map(str, counts))} {unit}" for unit, counts in CALENDAR.items())
        raise InvalidArgument(f"truncate() takes months of which a year has a whole number ({counts}), not {text!r}")
    return int(count), unit


def _fixed(length: Fraction, value: object, weeks: bool) -> tuple[int, str]:
    """The length in nanoseconds as so many of the longest unit; days are weeks only if they were written so."""
    if length.denominator != 1 or not 0 < length <= _LONGEST:
        raise InvalidArgument(f"truncate() takes whole nanoseconds, from one to 100 years, but was given {value!r}")
    whole = int(length)
    unit = next(unit for unit, size in FIXED.items() if whole % size == 0 and (weeks or unit != "week"))
    return whole // FIXED[unit], unit

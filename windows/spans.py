"""Lengths of time: whole microseconds that print as people write them, such as '1 hour 30 minutes'."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

import numpy as np

from ..errors import InvalidArgument, OutOfRange, TypeMismatch, nearest
from .texts import require_short

UNITS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SHORT = {"d": "day", "h": "hour", "min": "minute", "sec": "second", "s": "second"}
_SHORT |= {"ms": "millisecond", "us": "microsecond"}
_OF_NUMPY = {
    "W": "week",
    "D": "day",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "ms": "millisecond",
    "us": "microsecond",
}
_UNEQUAL = ("month", "quarter", "year")
_PART = re.compile(r"[\s,]*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)")
_LONGEST = 2**63 - 1


class Span(int):
    """A length of time in whole microseconds, with a text and a repr that `span` reads back.

    It is an `int`, so that it can be added to arrays of times. The result of arithmetic is a plain `int`.

    >>> from uncombine.windows import Span, span
    >>> Span(90_000_000)
    '1 minute 30 seconds'
    >>> span(str(Span(90_000_000))) == Span(90_000_000) == 90_000_000
    True
    """

    __slots__ = ()

    def __str__(self) -> str:
        left, sign, parts = abs(int(self)), "-" if self < 0 else "", []
        for unit, size in UNITS.items():
            if unit == "week":
                continue
            count, left = divmod(left, size)
            if count:
                parts.append(f"{sign}{count} {unit}{'' if count == 1 else 's'}")
        return " ".join(parts) or "0 seconds"

    def __repr__(self) -> str:
        return repr(str(self))

    def to_timedelta(self) -> timedelta:
        """The length as a `timedelta` of Python, as which it stands in expressions.

        >>> from uncombine.windows import span
        >>> span("90 s").to_timedelta()
        datetime.timedelta(seconds=90)
        """
        return timedelta(microseconds=int(self))


Length = str | timedelta | Span | np.timedelta64
"""The types that are accepted as a length of time."""

ZERO = Span(0)
"""No time at all."""


def span(value: Length) -> Span:
    """A length of time from a text such as "30 minutes", a `timedelta` of Python or NumPy, or a Span.

    Units are microseconds to weeks, written out or as us, ms, s, min, h, d. Several parts are added up. A number
    without a unit is refused, because a reader cannot know its unit.

    Parameters
    ----------
    value
        The text, `timedelta`, `numpy.timedelta64` or Span.

    Returns
    -------
    Span
        The length in whole microseconds.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from uncombine.windows import span
    >>> span("1 hour 30 minutes") == span(timedelta(minutes=90))
    True
    >>> span("0.25 s")
    '250 milliseconds'
    """
    if isinstance(value, Span):
        return _checked(int(value), value)
    if isinstance(value, timedelta):
        return _checked(value // timedelta(microseconds=1), value)
    if isinstance(value, np.timedelta64):
        return _checked(_of_numpy(value), value)
    if isinstance(value, str):
        return _checked(_read(value), value)
    raise TypeMismatch(
        f"a length of time must be a text with a unit such as '30 minutes', or a timedelta, but is {value!r}"
    )


def positive(value: Length, owner: str, name: str) -> Span:
    """A length of time that must be longer than zero; the error names the owner and its argument."""
    length = span(value)
    if length <= 0:
        raise InvalidArgument(f"{owner}({name}): {name} must be longer than zero, but is {length!r}")
    return length


def _checked(micros: int, value: object) -> Span:
    if abs(micros) > _LONGEST:
        raise OutOfRange(f"the length of time {value!r} does not fit into 64 bits of microseconds (292,000 years)")
    return Span(micros)


def _of_numpy(value: np.timedelta64) -> int:
    unit, count = np.datetime_data(value.dtype)
    if np.isnat(value) or unit not in (*_OF_NUMPY, "ns"):
        raise InvalidArgument(
            f"{value!r} is not a length of time: give it a unit from nanoseconds to weeks, such as "
            "np.timedelta64(30, 'm')"
        )
    length = int(value.astype(np.int64)) * count
    return length // 1000 if unit == "ns" else length * UNITS[_OF_NUMPY[unit]]


def _read(text: str) -> int:
    require_short(text, "a length of time", "write it shorter, or as a timedelta")
    words = text.strip().lower().removeprefix("interval ")
    total, at = Fraction(0), 0
    while part := _PART.match(words, at):
        total += Fraction(part[1]) * _size(part[2], text)
        at = part.end()
    if at == 0 or words[at:].strip():
        raise InvalidArgument(f"{text!r} is not a length of time: write a number and a unit, such as '30 minutes'")
    return round(total)


def _size(unit: str, text: str) -> int:
    name = _SHORT.get(unit) or unit.removesuffix("s")
    if name in _UNEQUAL:
        raise InvalidArgument(
            f"{text!r} is not a length of time, because {name}s differ in length: use Calendar({name!r})"
        )
    if unit == "m":
        raise InvalidArgument(f"{text!r} has the unit 'm', which may be minutes or months: write 'min' or 'minutes'")
    if name not in UNITS:
        raise InvalidArgument(f"{text!r} has the unknown unit {unit!r}: {nearest(name, UNITS)}")
    return UNITS[name]

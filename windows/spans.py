"""Lengths of time: whole microseconds that print as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

from ..errors import InvalidArgument

UNITS = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_PART = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)")


class Span(int):
    """A length of time in microseconds, with a repr that `span` reads back.

    >>> from uncombine.windows import span
    >>> span("90 seconds")
    '1 minute 30 seconds'
    >>> int(span("90 seconds"))
    90000000
    """

    __slots__ = ()

    def __repr__(self) -> str:
        left, parts = abs(int(self)), []
        for unit, size in UNITS.items():
            if unit == "week":
                continue
            count, left = divmod(left, size)
            if count:
                parts.append(f"{'-' if self < 0 else ''}{count} {unit}{'s' if count != 1 else ''}")
        return repr(" ".join(parts) or "0 seconds")

    __str__ = __repr__


def span(value: str | timedelta | Span) -> Span:
    """A length of time from a text such as "30 minutes", a `timedelta`, or a Span.

    >>> from datetime import timedelta
    >>> span("1 hour 30 minutes") == span(timedelta(minutes=90))
    True
    """
    if isinstance(value, Span):
        return value
    if isinstance(value, timedelta):
        return Span(value.days * UNITS["day"] + value.seconds * UNITS["second"] + value.microseconds)
    if isinstance(value, str):
        return _read(value)
    raise InvalidArgument(f"a length of time is a text such as '30 minutes' or a timedelta, not {value!r}")


def _read(text: str) -> Span:
    words = text.removeprefix("interval ").strip()
    total, at = 0.0, 0
    exact = 0
    for part in _PART.finditer(words):
        unit = part[2].lower().removesuffix("s") if part[2].lower() not in ("s", "ms", "us") else part[2].lower()
        unit = {"h": "hour", "min": "minute", "m": "minute", "sec": "second", "s": "second", "d": "day"}.get(unit, unit)
        unit = {"ms": "millisecond", "us": "microsecond"}.get(unit, unit)
        if words[at : part.start()].strip(" ,") or unit not in UNITS:
            break
        if "." in part[1]:
            total += float(part[1]) * UNITS[unit]
        else:
            exact += int(part[1]) * UNITS[unit]
        at = part.end()
    if at == 0 or words[at:].strip():
        raise InvalidArgument(
            f"{text!r} is no length of time: write a number and a unit from microseconds to weeks, as in '30 minutes'"
        )
    return Span(exact + round(total))


def positive(value: str | timedelta | Span, what: str) -> Span:
    """A length of time that must be longer than nothing."""
    length = span(value)
    if length <= 0:
        raise InvalidArgument(f"{what} is {length!r}, and it must be longer than nothing")
    return length

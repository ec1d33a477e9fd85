"""Time zones: their names, and the instant at which each date starts in a zone.

`tests/windows/test_calendar.py` guards it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from ..errors import InvalidArgument, TypeMismatch

_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1)


def zone(tz: str | ZoneInfo) -> str:
    """The name of a time zone, checked against the time zone database."""
    name = tz.key if isinstance(tz, ZoneInfo) else tz
    if not isinstance(name, str):
        raise TypeMismatch(f"Calendar(tz): tz must be the name of a time zone such as 'Europe/Berlin', but is {tz!r}")
    if not _exists(name):
        if not _exists("Europe/London"):
            raise InvalidArgument(
                f"Calendar(tz): tz {name!r} cannot be looked up, because Python has no time zones here: install tzdata"
            )
        raise InvalidArgument(f"Calendar(tz): tz must be a time zone such as 'Europe/Berlin' or 'UTC', but is {name!r}")
    return name


def _exists(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=1024)
def day_starts(tz: str, year: int) -> np.ndarray:
    """The first instant of each date of a year in a zone, microseconds UTC.

    A date that the zone left out starts with the next date. This is a loop over dates, because only `zoneinfo`
    knows the rules of zones for all years: Arrow's kernels stop at the last change in their list, in 2037 or
    earlier.
    """
    info = ZoneInfo(tz)
    january = date(year, 1, 1).toordinal()
    count = 366 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 365
    days = (datetime.fromordinal(january + day) for day in range(count))
    return np.array([_first_instant(midnight, info) for midnight in days]) * 1_000_000


def _first_instant(midnight: datetime, info: ZoneInfo) -> int:
    """The instant at which the clocks of a zone first show this local time or a later one, in seconds since 1970."""
    local = (midnight - _EPOCH) // _SECOND
    before = _offset(midnight.replace(tzinfo=info))
    after = _offset(midnight.replace(tzinfo=info, fold=1))
    if after <= before:
        return local - before
    # The clocks skip this time. They jump between these two instants, when the later offset begins.
    early, late = local - after, local - before
    while late - early > 1:
        middle = (early + late) // 2
        instant = datetime.fromtimestamp(middle, UTC)
        early, late = (early, middle) if _offset(instant.astimezone(info)) == after else (middle, late)
    return late


def _offset(moment: datetime) -> int:
    """The offset of a zone from UTC in seconds, positive to the east."""
    offset = moment.utcoffset()
    assert offset is not None
    return offset // _SECOND

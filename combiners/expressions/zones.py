"""The clocks of time zones, by the rules of Python's `zoneinfo`, as windows have them.

Arrow's own rules of a zone end with the last change in a list, in 2037 or earlier.

Guarded by tests/combiners/expressions/test_time_methods.py.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_LAST = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) + _DAY - 1


def is_zone(name: str) -> bool:
    """True for a name whose rules are known; offsets such as +02:00 have none."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def offset_at(seconds: np.ndarray, zone: str) -> np.ndarray:
    """The seconds by which the clocks of a zone are ahead of UTC, at instants in seconds since 1970.

    >>> offset_at(np.array([1711846799, 1711846800]), "Europe/Berlin")
    array([3600, 7200])
    """
    if len(seconds) == 0:
        return seconds
    if seconds.min() < _FIRST or seconds.max() > _LAST:
        raise pa.ArrowInvalid("a time in a zone is outside the years 1 to 9999")
    # Python's datetime knows no offset within a day of its ends: that of a day before or after stands for it.
    # Python's datetime has no day before its first one or after its last one: a day near them stands for these.
    days = np.clip(seconds // _DAY, _FIRST // _DAY + 2, _LAST // _DAY - 2)
    first_day = days.min()
    present = np.bincount(days - first_day) > 0
    # A loop over the days that rows have, which are few beside the rows: only `zoneinfo` knows the rules.
    table = np.array([_offsets(zone, int(day)) for day in first_day + np.flatnonzero(present)]).T
    before, after, change = table[:, (np.cumsum(present) - 1)[days - first_day]]
    return np.where(seconds < change, before, after)


def instants_of(local: np.ndarray, zone: str) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last instant, in seconds, at which the clocks of a zone show a time.

    Of a time that they skip both are the instant at which they skip it.
    """
    before, after = _offset_near(local - _DAY, zone), _offset_near(local + _DAY, zone)
    one, other = local - before, local - after
    shown, shown_too = _offset_near(one, zone) == before, _offset_near(other, zone) == after
    first = np.where(shown, one, other)
    last = np.where(shown_too, other, one)
    skipped = np.flatnonzero(~shown & ~shown_too)
    for place in skipped:  # few times are in the hour of a year that is skipped
        first[place] = last[place] = _change(zone, int(other[place]), int(one[place]))
    return first, last


def _offset_near(seconds: np.ndarray, zone: str) -> np.ndarray:
    return offset_at(np.clip(seconds, _FIRST, _LAST), zone)


def _change(zone: str, early: int, late: int) -> int:
    """The second between two instants in which an offset of a zone begins."""
    offset = _offset(zone, early)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (middle, late) if _offset(zone, middle) == offset else (early, middle)
    return late


@lru_cache(maxsize=1 << 16)
def _offsets(zone: str, day: int) -> tuple[int, int, int]:
    """The offsets at the beginning and at the end of a day of UTC, and the second in which the later one begins."""
    early, late = day * _DAY, (day + 1) * _DAY
    before, after = _offset(zone, early), _offset(zone, late)
    return before, after, late if before == after else _change(zone, early, late)


def _offset(zone: str, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)

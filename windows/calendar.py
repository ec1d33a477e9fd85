"""Days, weeks, months, quarters and years of a time zone's calendar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch, nearest
from .times import FIRST, LAST, MAX_TIME, MIN_TIME
from .window import RowWindows, Window, settle
from .zones import day_starts, zone

UNITS = ("day", "week", "month", "quarter", "year")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, init=False, repr=False)
class Calendar(Window):
    """Calendar days, weeks, months, quarters or years of a time zone.

    A unit starts at the first instant of its first date. A day has 23 or 25 hours where the clocks change, and
    starts after midnight where the clocks skip midnight. Where the clocks go back over midnight, the date that
    has begun goes on. The zone's rules are those of Python's `zoneinfo`.

    Parameters
    ----------
    unit
        "day", "week", "month", "quarter" or "year".
    tz
        The name of the time zone, such as "Europe/Berlin".
    week_start
        The first day of a week, such as "sunday".

    Examples
    --------
    >>> import numpy as np
    >>> from uncombine.windows import Calendar, timestamp
    >>> noon = np.array([timestamp("2024-03-31T12:00:00Z")])
    >>> spring = Calendar("day", "Europe/Berlin").assign(noon)
    >>> (spring.end - spring.start) // 3_600_000_000
    array([23])
    """

    unit: str
    tz: str = "UTC"
    week_start: str = "monday"

    def __init__(self, unit: str, tz: str | ZoneInfo = "UTC", week_start: str = "monday") -> None:
        settle(
            self,
            unit=_word(unit, "unit", UNITS, plural=True),
            tz=zone(tz),
            week_start=_word(week_start, "week_start", WEEKDAYS),
        )

    @property
    def stride(self) -> int:
        """The size of a unit, with months of 30 days."""
        days = {"day": 1, "week": 7} | {unit: 30 * months for unit, months in _MONTHS.items()}
        return days[self.unit] * 86_400_000_000

    def first_start(self, after: int) -> int:
        """The start of the unit that contains the instant."""
        return int(self.assign(np.array([after])).start[0]) if FIRST <= after <= LAST else after

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None, rows: pa.Table | None = None) -> RowWindows:
        """One window for each row."""
        if len(times) == 0:
            return RowWindows(None, times, times)
        weekday = WEEKDAYS.index(self.week_start)
        # One turn for each calendar year of the rows; the starts of a year are cached.
        starts = [unit_starts(self.unit, self.tz, weekday, int(year)) for year in _years(times)]
        bounds = np.concatenate([[MIN_TIME], *starts, [MAX_TIME]])
        place = np.searchsorted(bounds, times, side="right")
        return RowWindows.numbered(place, lambda number: (bounds[number - 1], bounds[number]))


@lru_cache(maxsize=2048)
def unit_starts(unit: str, tz: str, weekday: int, year: int) -> np.ndarray:
    """The start of each unit whose first date is in this year of the zone's calendar, in order.

    Two starts are equal if the zone left out all dates between them.
    """
    january, next_january = np.datetime64(year - 1970, "Y"), np.datetime64(year - 1969, "Y")
    dates = np.arange(january, next_january, dtype="datetime64[D]")
    starts = day_starts(tz, year)
    if unit == "week":
        # The epoch, day 0, was a Thursday, three days after a Monday.
        starts = starts[(dates.astype(np.int64) + 3) % 7 == weekday]
    elif unit != "day":
        firsts = np.arange(january, next_january, np.timedelta64(_MONTHS[unit], "M"), dtype="datetime64[M]")
        starts = starts[np.searchsorted(dates, firsts.astype("datetime64[D]"))]
    return starts


def _years(times: np.ndarray) -> np.ndarray:
    """The years, in order, that hold the bounds of the windows of all these times in any zone's calendar."""
    ends = _year_of(np.array([times.min(), times.max()]))
    near = np.arange(ends[0], ends[1] + 1)
    if len(near) > len(times):
        near = np.unique(_year_of(times))
    # The year of a zone may be one before or after that of UTC, and the end of a year is the start of the next.
    years = np.unique(near[:, None] + np.arange(-1, 3))
    return years[(years >= MINYEAR) & (years <= MAXYEAR)]


def _year_of(times: np.ndarray) -> np.ndarray:
    return np.clip(times, FIRST, LAST).view("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970


def _word(value: object, name: str, choices: tuple[str, ...], plural: bool = False) -> str:
    if not isinstance(value, str):
        raise TypeMismatch(f"Calendar({name}): {name} must be a text such as {choices[0]!r}, but is {value!r}")
    word = value.strip().lower()
    word = word.removesuffix("s") if plural else word
    if word not in choices:
        raise InvalidArgument(f"Calendar({name}): {name} {value!r} is unknown: {nearest(word, choices)}")
    return word

"""Days, weeks, months, quarters and years of a time zone's calendar."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument, nearest
from .times import timestamps
from .window import Assigned, Window

_UNITS = ("day", "week", "month", "quarter", "year")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, repr=False)
class Calendar(Window):
    """Calendar days, weeks, months, quarters or years as they are lived in a time zone.

    A day starts at the first instant of its date, so it has 23 or 25 hours where the clocks change.

    >>> import numpy as np
    >>> from uncombine.windows import Calendar, timestamp
    >>> spring = Calendar("day", "Europe/Berlin").assign(np.array([timestamp("2024-03-31T12:00:00Z")]))
    >>> (spring.end - spring.start) // 3_600_000_000
    array([23])
    """

    unit: str
    tz: str = "UTC"
    week_start: str = "monday"

    def __post_init__(self) -> None:
        unit = str(self.unit).lower().removesuffix("s")
        if unit not in _UNITS:
            raise InvalidArgument(f"the unit of Calendar is {self.unit!r}: {nearest(unit, _UNITS)}")
        if str(self.week_start).lower() not in _WEEKDAYS:
            raise InvalidArgument(f"week_start= is {self.week_start!r}: {nearest(str(self.week_start), _WEEKDAYS)}")
        try:
            ZoneInfo(self.tz)
        except Exception:
            raise InvalidArgument(f"tz= is {self.tz!r}, which is no time zone such as 'Europe/Berlin'") from None
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "week_start", self.week_start.lower())

    def assign(self, times: np.ndarray, key_hash: np.ndarray | None = None) -> Assigned:
        if len(times) == 0:
            return Assigned(None, times, times)
        local = pc.local_timestamp(timestamps(times).cast(pa.timestamp("us", self.tz)))
        days = np.asarray(local.view(pa.int64())) // 86_400_000_000
        first, last = self._bounds(days)
        # A bound is looked up once for each calendar unit at hand, not for each row.
        bounds, number = np.unique(np.concatenate([first, last]), return_inverse=True)
        instants = self._instants(bounds)
        start, end = np.split(instants[number], 2)
        return Assigned(None, start, end)

    def _bounds(self, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first date of each date's unit and of the next, as days since the epoch."""
        if self.unit == "day":
            return days, days + 1
        if self.unit == "week":
            # The epoch was a Thursday, three days after a Monday.
            shift = _WEEKDAYS.index(self.week_start)
            first = days - np.mod(days + 3 - shift, 7)
            return first, first + 7
        months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        size = {"month": 1, "quarter": 3, "year": 12}[self.unit]
        first = months - np.mod(months, size)
        return tuple(  # type: ignore[return-value]
            m.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for m in (first, first + size)
        )

    def _instants(self, days: np.ndarray) -> np.ndarray:
        """The first instant of each date in the zone: local midnight, or what follows where the clocks skip it."""
        midnight = pa.array(days * 86_400_000_000).cast(pa.timestamp("us"))
        there = pc.assume_timezone(midnight, self.tz, ambiguous="earliest", nonexistent="latest")
        return np.asarray(there.view(pa.int64()))

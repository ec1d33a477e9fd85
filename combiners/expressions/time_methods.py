"""Methods of times, dates and durations, which an expression has under `x.dt`.

Times with a time zone are read by the clocks and the calendar there, all others by those of UTC. Null stays null.
"""

from __future__ import annotations

from datetime import timedelta

from ...errors import InvalidArgument
from .methods import E, Methods, require_text
from .missing_methods import OF_TIMES
from .units import every_of
from .zones import is_zone


class TimeMethods(Methods[E]):
    """Methods of times, such as `x.dt.hour()`.

    >>> import datetime as dt, pyarrow as pa, uncombine as uc
    >>> rows = pa.table({"ts": [dt.datetime(2024, 5, 1, 12, 34, 56), None]})
    >>> uc.col("ts").dt.hour().evaluate(rows).to_pylist()
    [12, None]
    >>> uc.col("ts").dt.truncate("15 minutes").evaluate(rows).to_pylist()
    [datetime.datetime(2024, 5, 1, 12, 30), None]
    """

    _name = "dt"
    _advice = OF_TIMES

    def year(self) -> E:
        """The year."""
        return self._of("year")

    def quarter(self) -> E:
        """The quarter of the year, from 1 to 4."""
        return self._of("quarter")

    def month(self) -> E:
        """The month of the year, from 1 to 12."""
        return self._of("month")

    def week(self) -> E:
        """The week of the year by ISO 8601, from 1 to 53."""
        return self._of("week")

    def day(self) -> E:
        """The day of the month, from 1 to 31."""
        return self._of("day")

    def ordinal_day(self) -> E:
        """The day of the year, from 1 to 366."""
        return self._of("ordinal_day")

    def weekday(self) -> E:
        """The day of the week by ISO 8601, from 1 for Monday to 7 for Sunday."""
        return self._of("weekday")

    def hour(self) -> E:
        """The hour of the day, from 0 to 23."""
        return self._of("hour")

    def minute(self) -> E:
        """The minute of the hour, from 0 to 59."""
        return self._of("minute")

    def second(self) -> E:
        """The second of the minute, from 0 to 59."""
        return self._of("second")

    def microsecond(self) -> E:
        """The microsecond of the second, from 0 to 999,999."""
        return self._of("microsecond")

    def date(self) -> E:
        """The date."""
        return self._of("date")

    def truncate(self, every: str | timedelta) -> E:
        """The beginning of the unit that the time is in: "15 minutes", "1 hour", "1 day", "1 week", "1 month".

        Units of a fixed length are counted from 1970, as windows are, and weeks from a Monday. Where the clocks go
        back, an hour that comes twice begins twice.
        """
        return self._of("truncate", every_of(every))

    def convert_time_zone(self, time_zone: str) -> E:
        """The same time by the clocks of another zone, such as "Europe/Berlin"; one without a zone counts as UTC."""
        return self._of("convert_time_zone", _zone(time_zone, "convert_time_zone"))

    def replace_time_zone(self, time_zone: str) -> E:
        """The instant at which the clocks of a zone, such as "Europe/Berlin", show the time that is shown here.

        A time that they show twice, where they go back, is the first of the two instants. A time that they skip, where
        they go forward, is null, and so no event time.

        >>> import pyarrow as pa, uncombine as uc
        >>> texts = pa.table({"t": ["30.06.2024 12:00", "31.03.2024 02:30"]})
        >>> times = uc.col("t").cast_time("%d.%m.%Y %H:%M").dt.replace_time_zone("Europe/Berlin")
        >>> times.dt.convert_time_zone("UTC").cast("string").evaluate(texts).to_pylist()
        ['2024-06-30 10:00:00.000000Z', None]
        """
        return self._of("replace_time_zone", _zone(time_zone, "replace_time_zone"))

    def total_days(self) -> E:
        """The days of a duration, as a float."""
        return self._of("total_days")

    def total_hours(self) -> E:
        """The hours of a duration, as a float."""
        return self._of("total_hours")

    def total_minutes(self) -> E:
        """The minutes of a duration, as a float."""
        return self._of("total_minutes")

    def total_seconds(self) -> E:
        """The seconds of a duration, as a float."""
        return self._of("total_seconds")


def _zone(name: str, method: str) -> str:
    """The name of a time zone; raises if there is none of that name."""
    zone = require_text(name, f"the time zone of {method}()", empty=False)
    if not is_zone(zone):
        raise InvalidArgument(
            f"there is no time zone {zone!r}: write a name such as 'Europe/Berlin', or an offset such as '+02:00'"
        )
    return zone

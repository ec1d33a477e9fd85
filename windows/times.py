"""Instants as int64 microseconds UTC, read from texts, datetimes and Arrow columns, and written back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, OutOfRange, TypeMismatch

MIN_TIME = -(2**63) + 1
"""The beginning of time: before every row, and where watermarks start."""
MAX_TIME = 2**63 - 1
"""The end of time: after every row; only a final watermark reaches it."""
NEVER = MAX_TIME
"""The deadline of a timer that is not set."""

FIRST = -62_135_596_800_000_000
"""The first instant of the year 1; the times of rows lie in the years that Python's datetime and SQL can show."""
LAST = 253_402_300_799_999_999
"""The last instant of the year 9999."""

UTC_MICROS = pa.timestamp("us", "UTC")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CENTURY = (946_684_800, 4_102_444_800)
"""The years 2000 to 2099, in seconds since 1970."""
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def timestamp(value: datetime | date | str | int | np.datetime64 | np.integer[Any]) -> int:
    """Microseconds since 1970 UTC from a datetime, a date, an ISO text, or microseconds.

    A time without a time zone is taken as UTC.

    Parameters
    ----------
    value
        The datetime, date, text or number.

    Returns
    -------
    int
        Microseconds since 1970-01-01T00:00:00Z.

    Examples
    --------
    >>> from uncombine.windows import timestamp
    >>> timestamp("1970-01-01T00:00:01Z")
    1000000
    >>> timestamp("2016-01-20T12:00:00") == timestamp("2016-01-20T13:00:00+01:00")
    True
    """
    if isinstance(value, str):
        value = _read(value)
    if isinstance(value, np.datetime64):
        micros = int(value.astype("datetime64[us]").astype(np.int64))
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        micros = int(value)
    elif isinstance(value, date) and value == value:  # pandas' NaT is a date that is unlike itself
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        micros = since // timedelta(microseconds=1)
    else:
        raise TypeMismatch(
            f"a time must be a datetime, a date, an ISO text or whole microseconds since 1970, but is {value!r}"
        )
    if not MIN_TIME <= micros <= MAX_TIME:
        raise OutOfRange(f"the time {value!r} is missing or does not fit into 64 bits of microseconds since 1970")
    return micros


def time_column(column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds of a timestamp or date column, and a mask of the times that are present and in the years 1 to 9999.

    A column without a time zone is taken as UTC. Where the mask is false, the value is 0.

    >>> import pyarrow as pa
    >>> from uncombine.windows import time_column
    >>> time_column(pa.array([1, None], pa.timestamp("ms")))
    (array([1000,    0]), array([ True, False]))
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_date32(column.type):
        column = column.cast(pa.timestamp("s"))
    elif pa.types.is_date64(column.type):
        column = column.view(pa.timestamp("ms"))
    if not pa.types.is_timestamp(column.type):
        raise TypeMismatch(f"a time column must hold timestamps or dates, but its type is {column.type}: cast it first")
    valid = np.ones(len(column), np.bool_)
    if column.null_count:
        valid = np.array(column.is_valid())
        column = column.fill_null(0)
    values = np.asarray(column.view(pa.int64()))
    factor = _PER_UNIT.get(column.type.unit, 1)
    if column.type.unit == "ns":
        values = values // 1_000
    low, high = -(-FIRST // factor), LAST // factor
    if len(values) and not low <= int(values.min()) <= int(values.max()) <= high:
        valid &= (values >= low) & (values <= high)
        values = np.where(valid, values, 0)
    return values if factor == 1 else values * factor, valid


def timestamps(times: np.ndarray) -> pa.Array:
    """Microseconds as an Arrow column; times outside the years 1 to 9999 become the first or last instant of these.

    >>> import numpy as np
    >>> from uncombine.windows import timestamps
    >>> timestamps(np.array([0, 2**63 - 1])).cast("string").to_pylist()
    ['1970-01-01 00:00:00.000000Z', '9999-12-31 23:59:59.999999Z']
    """
    return pa.array(np.clip(times, FIRST, LAST), pa.int64()).view(UTC_MICROS)


def times_of(values: Iterable[Any]) -> pa.Array:
    """A timestamp column of values that `timestamp` reads; None gives null.

    >>> from uncombine.windows.times import times_of
    >>> times_of(["2016-01-20T12:00:26Z", None]).null_count
    1
    """
    values = list(values)
    warn_of_units([value for value in values if type(value) is int])
    micros = [None if value is None or value != value else timestamp(value) for value in values]
    return pa.array(micros, pa.int64()).view(UTC_MICROS)


def warn_of_units(times: Sequence[int]) -> None:
    """Warn if whole numbers are times of 1970, as microseconds, and times of this century as seconds or milliseconds.

    Whole seconds of 1970 are taken as meant: a test counts from 0, and no clock gives numbers that are all so round.
    """
    for unit, factor in (("seconds", 1), ("milliseconds", 1_000)):
        first, after = (seconds * factor for seconds in _CENTURY)
        if times and first <= min(times) and max(times) < after and any(time % 1_000_000 for time in times):
            as_meant = time_text(times[0] * (1_000_000 // factor))
            warnings.warn(
                f"whole numbers are times in microseconds since 1970, so {times[0]} is {time_text(times[0])}: if it is "
                f"in {unit} ({as_meant}), multiply by {1_000_000 // factor:_}, or give datetimes",
                stacklevel=3,
            )
            return


def time_text(time: int) -> str:
    """An instant as ISO text, or an end of time by name.

    >>> from uncombine.windows import time_text
    >>> time_text(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    >>> time_text(2**63 - 1)
    'the end of time'
    """
    if time <= MIN_TIME:
        return "the beginning of time"
    if time >= MAX_TIME:
        return "the end of time"
    return str(np.datetime64(int(time), "us")).removesuffix(".000000") + "Z"


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArgument(f"{text!r} is not an ISO time such as '2016-01-20T12:00:00Z'") from None

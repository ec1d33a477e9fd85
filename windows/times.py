"""Instants as int64 microseconds UTC: from what people write, from Arrow columns, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgument, TypeMismatch

MIN_TIME = -(2**63) + 1
"""The beginning of time."""
MAX_TIME = 2**63 - 1
"""The end of time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_135_596_800_000_000
_LAST = 253_402_300_799_999_999
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def timestamp(value: datetime | str | int) -> int:
    """Microseconds from a datetime (without a zone: UTC), an ISO text, or microseconds.

    >>> timestamp("2016-01-20T12:00:00Z") == timestamp("2016-01-20T13:00:00+01:00")
    True
    """
    if isinstance(value, bool) or not isinstance(value, datetime | str | int | np.integer):
        raise InvalidArgument(f"a time is a datetime, an ISO text or whole microseconds, not {value!r}")
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidArgument(f"{value!r} is no ISO time such as '2016-01-20T12:00:00Z'") from None
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    return since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds


def time_column(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds of a timestamp or date column, and where they are known and in range.

    >>> import pyarrow as pa
    >>> time_column(pa.array([1, None], pa.timestamp("ms")))
    (array([1000,    0]), array([ True, False]))
    """
    kind = column.type
    valid = np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), np.bool_)
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms"))
        kind = column.type
    if not pa.types.is_timestamp(kind):
        raise TypeMismatch(f"a time column must be a timestamp or a date, not {kind}: cast it first")
    values = np.asarray(column.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    if kind.unit == "ns":
        return values // 1000, valid
    factor = _PER_UNIT[kind.unit]
    if factor > 1:
        fits = np.abs(values) < MAX_TIME // factor
        if not fits.all():
            valid = valid & fits
            values = np.where(fits, values, 0)
        values = values * factor
    ends = (values > MIN_TIME) & (values < MAX_TIME)
    return values, valid if ends.all() else valid & ends


def timestamps(times: np.ndarray) -> pa.Array:
    """Microseconds as an Arrow timestamp column; beyond the years 1 to 9999 stands the first or last such instant.

    >>> import numpy as np
    >>> timestamps(np.array([0, 2**63 - 1])).cast("string").to_pylist()
    ['1970-01-01 00:00:00.000000Z', '9999-12-31 23:59:59.999999Z']
    """
    return pa.array(np.clip(times, _FIRST, _LAST)).cast(pa.timestamp("us", "UTC"))


def time_text(time: int) -> str:
    """An instant for people."""
    if time <= MIN_TIME:
        return "the beginning of time"
    if time >= MAX_TIME:
        return "the end of time"
    return str(timestamps(np.array([time])).cast(pa.string())[0].as_py())


def times_of(values: Any) -> pa.Array:
    """A timestamp column of what people write."""
    return pc.cast(pa.array([None if v is None else timestamp(v) for v in values], pa.int64()), pa.timestamp("us", "UTC"))

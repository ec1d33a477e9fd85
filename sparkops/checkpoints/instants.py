"""Times of a checkpoint, in microseconds, as those of Python and of Arrow.

Guarded by tests/sparkops/checkpoints/test_contents.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from ...windows.times import MAX_TIME, MIN_TIME


def timestamps_of(times: Sequence[int]) -> pa.Array:
    """Microseconds as timestamps; the beginning and the end of time are null."""
    values = [None if time in (MIN_TIME, MAX_TIME) else time for time in times]
    return pa.array(values, pa.int64()).cast(pa.timestamp("us", "UTC"))


def instant_of(time: int) -> datetime | None:
    """Microseconds as a datetime; None for the beginning and the end of time."""
    return (
        None
        if time <= MIN_TIME or time >= MAX_TIME
        else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    )


def text_of(time: datetime) -> str:
    """A time in words, to the second.

    >>> text_of(datetime(2024, 5, 1, 12))
    '2024-05-01 12:00:00'
    """
    return f"{time:%Y-%m-%d %H:%M:%S}"


__all__ = ["instant_of", "text_of", "timestamps_of"]

"""The windows of one row, and which windows of a key become one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import uncombine as uc

MIN_TIME = -(2**63) + 1
MAX_TIME = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000


def windows_of(window: Any, t: int) -> list[tuple[int, int]]:
    """The windows that a row of this time is in, by start."""
    match window:
        case uc.Global():
            return [(MIN_TIME, MAX_TIME)]
        case uc.Fixed():
            start = t - (t - int(window.offset)) % int(window.size)
            return [(start, start + int(window.size))]
        case uc.Sliding():
            size, period, offset = int(window.size), int(window.period), int(window.offset)
            found = []
            start = t - (t - offset) % period
            while start + size > t:
                found.append((start, start + size))
                start -= period
            return sorted(found)
        case uc.Sessions():
            return [(t, t + int(window.gap))]
        case uc.Calendar(unit="day", tz="UTC"):
            start = t - t % DAY
            return [(start, start + DAY)]
        case uc.Calendar(unit="month", tz="UTC"):
            first = (EPOCH + timedelta(microseconds=t)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            after = (first + timedelta(days=32)).replace(day=1)
            return [((first - EPOCH) // timedelta(microseconds=1), (after - EPOCH) // timedelta(microseconds=1))]
    raise NotImplementedError(repr(window))


def united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The hulls of overlapping spans; what only touches stays apart."""
    hulls: list[list[int]] = []
    for start, end in sorted(spans):
        if hulls and start < hulls[-1][1]:
            hulls[-1][1] = max(hulls[-1][1], end)
        else:
            hulls.append([start, end])
    return [(start, end) for start, end in hulls]


def first_start(window: Any, after: int) -> int:
    """The start of the first window that has not ended at an instant; the instant itself if there is none."""
    match window:
        case uc.Sessions():
            return after + 1 - int(window.gap)
        case uc.Sliding():
            size, period, offset = int(window.size), int(window.period), int(window.offset)
            return offset + ((after - size - offset) // period + 1) * period
        case uc.Fixed() | uc.Calendar():
            return windows_of(window, after)[0][0]
    return after

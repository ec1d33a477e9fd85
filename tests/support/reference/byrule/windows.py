"""The windows of a row, and the windows of a key that become one. A window is a pair (start, end)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from .times import EPOCH, MAX_TIME, MIN_TIME, micros, plus

Window = tuple[int, int]
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def assign(window: Any, t: int, row: dict[str, Any]) -> list[Window]:
    """The windows of one row of time t; for windows that merge, those that the row opens."""
    match type(window).__name__:
        case "Global":  # rule 1
            return [(MIN_TIME, MAX_TIME)]
        case "Fixed":  # rule 2
            size = int(window.size)
            start = t - (t - int(window.offset)) % size
            return [(start, plus(start, size))]
        case "Sliding":  # rule 3
            size, period, offset = int(window.size), int(window.period), int(window.offset)
            last = t - (t - offset) % period
            starts = range(last, t - size, -period)
            return sorted((start, plus(start, size)) for start in starts)
        case "Sessions" if window.columns:  # rule 4, with the gap of these tests: five seconds for each x
            return [] if row["x"] is None or row["x"] <= 0 else [(t, plus(t, row["x"] * 5_000_000))]
        case "Sessions":  # rule 4
            return [(t, plus(t, window.gap))]
        case "Calendar":
            return [_calendar(window, t)]
        case "Inherit":
            held = row["window"]
            if held is None:
                return [(MIN_TIME, MAX_TIME)]
            if held["start"] is None or held["end"] is None or held["end"] <= held["start"]:
                return []
            return [(micros(held["start"]), micros(held["end"]))]
        case "Custom":
            seen = (
                [pa.table({name: pa.array([row[name]], pa.int64()) for name in window.columns})]
                if window.columns
                else []
            )
            _, starts, ends = window.assign_rows(np.array([t]), *seen)
            return [(int(s), int(e)) for s, e in zip(starts, ends, strict=True)]
        case name:
            raise TypeError(name)


def merges(window: Any) -> bool:
    """True if windows of a key can become one."""
    return type(window).__name__ == "Sessions" or getattr(window, "merge_windows", None) is not None


def components(window: Any, windows: Sequence[Window]) -> list[list[Window]]:
    """rule 5: the windows of one key, in the groups that become one."""
    ordered = sorted(set(windows))
    merge = getattr(window, "merge_windows", "overlap")
    if callable(merge) and ordered:
        numbers = merge(np.zeros(len(ordered), int), *(np.array(bound) for bound in zip(*ordered, strict=True)))
        by_number: dict[int, list[Window]] = {}
        for number, one in zip(numbers, ordered, strict=True):
            by_number.setdefault(int(number), []).append(one)
        return sorted(by_number.values(), key=hull)
    groups: list[list[Window]] = []
    for one in ordered:
        # Windows that only touch share no instant.
        if groups and one[0] < hull(groups[-1])[1]:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def hull(windows: Sequence[Window]) -> Window:
    """The least window that covers all of these."""
    return min(start for start, _ in windows), max(end for _, end in windows)


def united(windows: Sequence[Window]) -> list[Window]:
    """Windows of one key that become one where they overlap."""
    return [hull(group) for group in components(None, windows)]


def _calendar(window: Any, t: int) -> Window:
    """The unit whose first date is the last to have begun."""
    zone = ZoneInfo(window.tz)
    today = (EPOCH + timedelta(microseconds=t)).astimezone(zone).date()
    first = _first_date(window, today)
    beyond = {"day": 1, "week": 7, "month": 31, "quarter": 95, "year": 366}[window.unit]
    following = _first_date(window, first + timedelta(days=beyond))
    return _midnight(first, zone), _midnight(following, zone)


def _first_date(window: Any, today: date) -> date:
    match window.unit:
        case "day":
            return today
        case "week":
            return today - timedelta(days=(today.weekday() - WEEKDAYS.index(window.week_start)) % 7)
        case "month":
            return today.replace(day=1)
        case "quarter":
            return today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1)
        case _:
            return today.replace(month=1, day=1)


def _midnight(day: date, zone: ZoneInfo) -> int:
    return micros(datetime.combine(day, time(), zone))

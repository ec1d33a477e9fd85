"""Instants as whole microseconds UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

# rules 1, 7: the beginning and the end of time.
MIN_TIME = -(2**63) + 1
MAX_TIME = 2**63 - 1
# The first and the last instant that can be shown.
FIRST_YEAR, LAST_YEAR = -62_135_596_800_000_000, 253_402_300_799_999_999
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(value: Any) -> int:
    """An instant given as microseconds, a datetime or an ISO text (without a zone: UTC); None is the end of time."""
    if value is None:
        return MAX_TIME
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    return int(value)


def plus(time: int, length: int) -> int:
    """Time does not go on beyond its end (D1)."""
    return min(time + int(length), MAX_TIME)


def aligned_after(time: int, period: int, origin: int) -> int:
    """rule 20: the first aligned instant strictly after a time."""
    return plus(time, period - (time - origin) % period)

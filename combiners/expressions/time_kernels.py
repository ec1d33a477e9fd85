"""The operations of times and dates, computed on Arrow arrays and scalars.

Guarded by tests/combiners/expressions/test_time_methods.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from .lengths import total_of
from .operands import filled, time_operand
from .units import FIXED, count_and_unit
from .zones import instants_of, is_zone, offset_at

_SIZES = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""The nanoseconds of each unit of Arrow."""

_FURTHEST = 32_000 * 31_556_952 * 1_000_000_000
"""Arrow counts years in 16 bits: so many nanoseconds from 1970 are safe."""


def _calendar(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value: kernel(_local(_in_range(time_operand(value))))


def _clock(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value: kernel(_local(_in_range(time_operand(value, dates=False, clocks=True))))


def _in_range(value: Any) -> Any:
    """The times; raises if one is so far away that Arrow's calendar wraps around there without an error."""
    kind = value.type
    if pt.is_time(kind):
        return value
    whole = value.cast(pa.int32() if pt.is_date32(kind) else pa.int64())
    most = min(_FURTHEST // _size(kind), 2**63 - 2 * FIXED["day"])  # the clocks of a zone differ by a day at most
    ends = [whole.as_py()] if isinstance(whole, pa.Scalar) else pc.min_max(whole).as_py().values()
    if any(end is not None and abs(end) > most for end in ends):
        raise pa.ArrowInvalid("a time is too far from 1970 for Arrow's calendar")
    return value


def _size(kind: pa.DataType) -> int:
    """The nanoseconds of a unit of a type."""
    if pt.is_date(kind):
        return FIXED["day"] if pt.is_date32(kind) else FIXED["millisecond"]
    return _SIZES[kind.unit]


def _microsecond(value: Any) -> Any:
    return pc.add(pc.multiply(pc.millisecond(value), 1_000), pc.microsecond(value))


def _convert_time_zone(value: Any, zone: str) -> Any:
    times = time_operand(value, dates=False)
    return times.cast(pa.timestamp(times.type.unit, zone))


def replace_time_zone(value: Any, zone: str) -> Any:
    """The instants at which the clocks of a zone show the times that are shown here: the first of two, null for none.

    >>> march = pa.array(["2024-03-31T01:30:00", "2024-03-31T02:30:00"]).cast(pa.timestamp("us"))
    >>> replace_time_zone(march, "Europe/Berlin").cast(pa.timestamp("us", "UTC")).cast("string").to_pylist()
    ['2024-03-31 00:30:00.000000Z', None]
    """
    local = _local(_in_range(time_operand(value, dates=False)))
    whole, some, per_second = _seconds(local, zone)
    seconds, rest = np.divmod(np.atleast_1d(whole), per_second)
    first, _ = instants_of(seconds, zone)
    some = np.atleast_1d(some) & (first + offset_at(first, zone) == seconds)
    return _like(local, first * per_second + rest, some, pa.timestamp(local.type.unit, zone))


def _local(times: Any) -> Any:
    """The times on the clocks of their zone, without a zone."""
    zone = times.type.tz if pt.is_timestamp(times.type) else None
    if zone is None or zone == "UTC":
        return times
    whole, some, per_second = _seconds(times, zone)
    offset = offset_at(np.atleast_1d(whole // per_second), zone)
    return _like(times, np.atleast_1d(whole) + offset * per_second, some, pa.timestamp(times.type.unit))


def _seconds(times: Any, zone: str) -> tuple[np.ndarray, np.ndarray, int]:
    """The times as whole numbers, a mask of those that are not null, and the number of units in a second."""
    if not is_zone(zone):
        raise pa.ArrowTypeError(f"there is no time zone {zone!r}")
    return *filled(times.cast(pa.int64()), pa.int64()), FIXED["second"] // _SIZES[times.type.unit]


def _like(times: Any, whole: np.ndarray, some: np.ndarray, kind: pa.DataType) -> Any:
    """Whole numbers as times; a scalar if the times before are one."""
    array = pa.array(whole, pa.int64(), mask=~np.atleast_1d(some)).cast(kind)
    return array[0] if isinstance(times, pa.Scalar) else array


def _truncate(value: Any, every: str) -> Any:
    """The beginning of the unit in which each time is, by the clocks of its zone.

    Where the clocks go back, the later of two instants counts that is not after the time; for days and longer units it
    is the first one. Where they skip the beginning, it is the instant at which they do.
    """
    times = _in_range(time_operand(value))
    count, unit = count_and_unit(every)
    _require_shown(times.type, count, unit, every)
    local = _local(times)
    begin = _not_after(pc.floor_temporal(local, multiple=count, unit=unit), local)
    zone = times.type.tz if pt.is_timestamp(times.type) else None
    if begin.type == times.type or zone is None:
        return begin
    whole, some, per_second = _seconds(begin, zone)
    whole = np.atleast_1d(whole)
    first, last = (each * per_second + whole % per_second for each in instants_of(whole // per_second, zone))
    if unit in FIXED and FIXED[unit] < FIXED["day"]:
        first = np.where(last <= filled(times.cast(pa.int64()), pa.int64())[0], last, first)
    return _like(times, first, some, times.type)


def _not_after(begin: Any, times: Any) -> Any:
    wrong = pc.greater(begin, times)
    if wrong.as_py() if isinstance(wrong, pa.Scalar) else pc.any(wrong).as_py():
        raise pa.ArrowInvalid("the beginning of a unit is before the first time of its type")
    return begin


def _require_shown(kind: pa.DataType, count: int, unit: str, every: str) -> None:
    """Raise if a type cannot show the beginnings of a unit."""
    size = count * FIXED.get(unit, FIXED["day"])
    own = FIXED["day"] if pt.is_date(kind) else _size(kind)
    if size % own and own % size:
        raise pa.ArrowTypeError(f"{every} are no whole number of its units")


TIME_KERNELS: dict[str, Callable[..., Any]] = {
    "dt.year": _calendar(pc.year),
    "dt.quarter": _calendar(pc.quarter),
    "dt.month": _calendar(pc.month),
    "dt.week": _calendar(pc.iso_week),
    "dt.day": _calendar(pc.day),
    "dt.ordinal_day": _calendar(pc.day_of_year),
    "dt.weekday": _calendar(lambda value: pc.day_of_week(value, count_from_zero=False)),
    "dt.hour": _clock(pc.hour),
    "dt.minute": _clock(pc.minute),
    "dt.second": _clock(pc.second),
    "dt.microsecond": _clock(_microsecond),
    "dt.date": _calendar(lambda value: value.cast(pa.date32())),
    "dt.truncate": _truncate,
    "dt.convert_time_zone": _convert_time_zone,
    "dt.replace_time_zone": replace_time_zone,
    **{f"dt.total_{unit}s": total_of(FIXED[unit]) for unit in ("day", "hour", "minute", "second")},
}

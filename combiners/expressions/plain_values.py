"""Plain values in expressions: what a column can hold, and what people write instead.

Guarded by tests/combiners/expressions/test_conditions.py and tests/combiners/test_expressions.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument
from .kernels import scalar_of
from .zones import zone_info


@runtime_checkable
class LengthOfTime(Protocol):
    """A length of time such as `uc.span("5 minutes")`, which is an int and stands for a `timedelta`."""

    def to_timedelta(self) -> timedelta:
        """The length as a `timedelta`."""


def plain_value(value: Any) -> Any:
    """A value as a plain Python value; raises if an Arrow column cannot hold it."""
    if isinstance(value, LengthOfTime):
        value = value.to_timedelta()
    try:
        hash(value)
        scalar = None if _is_missing(value) else scalar_of(value)
    except (ValueError, pa.ArrowNotImplementedError, TypeError):
        scalar = None
    except OverflowError:
        raise InvalidArgument(f"{value!r} does not fit into 64 bits: write it as a Decimal or a float") from None
    if scalar is None:
        raise InvalidArgument(f"{_shown(value)} is neither an expression nor a plain value: {_instead(value)}")
    # The repr of a scalar of NumPy, Arrow or pandas does not evaluate back everywhere.
    plain = scalar.as_py() if isinstance(value, np.generic | pa.Scalar) else value
    if getattr(plain, "nanosecond", 0) or getattr(plain, "nanoseconds", 0):
        raise InvalidArgument(
            f"{value!r} has nanoseconds, which a time of Python has not: write a number with its type, such as "
            "coalesce(5).cast(pa.duration('ns'))"
        )
    if isinstance(plain, datetime | timedelta) and type(plain) not in (datetime, timedelta):
        plain = pa.scalar(plain).as_py()  # the times of pandas are times of Python with nanoseconds
    if isinstance(plain, datetime) and not isinstance(plain.tzinfo, ZoneInfo | timezone | None):
        plain = plain.astimezone(zone_info(scalar.type.tz))
    return plain


def _instead(value: object) -> str:
    """The remedy for a value that no column can hold."""
    if _is_missing(value):
        return "write None for null, and x.is_null() to find it"
    if isinstance(value, Decimal):
        return "write a float"
    several = ", or isin([...]) for one of several values" if isinstance(value, Iterable) else ""
    return f"write a column as col('name'){several}"


def _is_missing(value: Any) -> bool:
    """True for the values with which NumPy and pandas mean null."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NaTType", "NAType") and of_pandas(value)


def of_pandas(value: object) -> bool:
    """True for an object of a class of pandas."""
    return type(value).__module__.partition(".")[0] == "pandas"


def _shown(value: object) -> str:
    """A value for a message: in one line, and not all of a long one."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."


__all__ = ["of_pandas", "plain_value"]

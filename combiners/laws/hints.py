"""Hints about the cause of two results that differ: rounding, or a whole number that was too large for its type.

Guarded by tests/combiners/test_laws_own.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from .compare import near, numbers_in
from .examples import Row

_ROUNDING = "rounding may cause this: sums of floats depend on their order. If so, give tolerance=1e-9"
_OVERFLOW = (
    "an int64 may have overflowed, and NumPy then goes on with a wrong number. If so, compute in float64 or decimals, "
    "or by pc.multiply_checked and pc.add_checked, whose errors break no law"
)

_PART = 1e-3
"""Two results that differ by a smaller part of them may be the same but for rounding."""

_CANCELLED = 1e-12
"""A difference that is a smaller part of all numbers added may be the rounding of numbers that cancelled."""


def hint(
    left: Any,
    right: Any,
    magnitudes: Sequence[float],
    rows: Iterable[Row],
    kinds: Iterable[pa.DataType],
    rounds: bool,
) -> str:
    """The sentence about a likely cause; empty if there is none. `rounds=False` says that rounding is allowed for.

    >>> rows = [(0, 1, (0.1,))]
    >>> hint([0.30000000000000004], [0.3], [0.1, 0.1], rows, [pa.float64()], True)[:24]
    'rounding may cause this:'
    >>> hint([0.0], [3.0], [1.0, 2.0], rows, [pa.float64()], True)
    ''
    >>> hint([0.0], [2.0**53], [2.0**53], [(0, 2**31, (2**53,))], [pa.int64()], True)[:28]
    'an int64 may have overflowed'
    """
    largest = max(magnitudes, default=0.0)
    if near(left, right, _CANCELLED * largest, _PART):
        return _ROUNDING if rounds else ""
    whole = any(pa.types.is_integer(kind) for kind in kinds)
    return _OVERFLOW if whole and any(map(_beyond, rows)) else ""


def _beyond(row: Row) -> bool:
    """True if the product of a row's weight and numbers, or the square of one, is beyond int64."""
    _, weight, values = row
    numbers = [number for number in numbers_in(values) if math.isfinite(number)]
    largest = max(numbers, default=0.0)
    return abs(weight) * max(math.prod(max(number, 1.0) for number in numbers), largest * largest) >= 2.0**63

"""Tolerances: bounds for the error of a result in floating point, as functions or as a part of the numbers.

Guarded by tests/combiners/test_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import InvalidArgument

Tolerance: TypeAlias = Callable[[Sequence[float], int], float]
"""The greatest error of a result, given the magnitudes of the inputs and their count."""


@dataclass(frozen=True)
class RelativeTolerance:
    """A bound that is a part of the sum of the magnitudes; the law kit also allows this part of a result.

    >>> RelativeTolerance(1e-9)([1e9, 2e9], 2)
    3.0
    """

    part: float

    def __call__(self, magnitudes: Sequence[float], count: int) -> float:
        return self.part * sum(magnitudes)


def tolerance_of(value: Tolerance | float | None, who: str) -> Tolerance | None:
    """The tolerance that a user gave as a function or as a number.

    >>> tolerance_of(1e-9, "from_scalar")
    RelativeTolerance(part=1e-09)
    >>> tolerance_of(2, "from_scalar")
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: tolerance= of from_scalar takes a number from 0 to 1 such as 1e-9, ... given 2
    """
    if value is None or callable(value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1:
        return RelativeTolerance(float(value)) if value else None
    raise InvalidArgument(
        f"tolerance= of {who} takes a number from 0 to 1 such as 1e-9, which is a part of the numbers, or a function "
        f"tolerance(magnitudes, count), but was given {value!r}"
    )


__all__ = ["RelativeTolerance", "Tolerance", "tolerance_of"]

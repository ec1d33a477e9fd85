"""The options of a comparison, checked before anything is read.

Guarded by tests/test_comparing.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...combiners.column_names import key_names
from ...errors import InvalidArgument, require_column
from .common_types import SIDES

DIFFERENCE = "difference"
"""The column that says in which way a row differs."""

WEIGHT = "diff"
"""The column of a difference of whole rows with the number of rows: that of the new side less that of the old one."""


@dataclass(frozen=True)
class ComparisonOptions:
    """The options of a comparison.

    >>> ComparisonOptions.of("k", None, None, 10).keys
    ('k',)
    """

    keys: tuple[str, ...] = ()
    """The columns that identify a row; without them rows are whole rows."""
    diff: str | None = None
    """The weight column that the user named."""
    tolerance: float = 0.0
    examples: int = 10

    @classmethod
    def of(cls, keys: Any, diff: Any, tolerance: Any, examples: Any) -> ComparisonOptions:
        """The options that a user gave; raises for a value that is not allowed."""
        several = () if keys is None else tuple(key_names(keys, "keys="))
        if keys is not None and not several:
            raise InvalidArgument("keys= must name at least one column, but is empty: leave it out to compare rows")
        if len(set(several)) < len(several):
            raise InvalidArgument(f"keys= names a column twice: {', '.join(map(repr, several))}: name each once")
        if diff is not None and not isinstance(diff, str):
            raise InvalidArgument(f"diff= takes the name of a weight column, but was given {diff!r}")
        if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
            raise InvalidArgument(f"examples= must be a whole number of at least 0, but is {examples!r}")
        return cls(keys=several, diff=diff, tolerance=_tolerance(tolerance, several), examples=examples)

    def settled(self, schema: pa.Schema) -> ComparisonOptions:
        """The options for these columns; raises if they do not fit."""
        for name in self.keys:
            require_column(name, schema.names, "keys=")
        names = self.result_names(schema.names)
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(f"the difference would have two columns {name!r}: rename that of the tables")
        return self

    def values(self, names: Sequence[str]) -> list[str]:
        """The columns that are no keys; none if rows are whole rows."""
        return [name for name in names if name not in self.keys] if self.keys else []

    def result_names(self, names: Sequence[str]) -> list[str]:
        """The columns of the difference of tables with these columns."""
        if not self.keys:
            return [DIFFERENCE, *names, WEIGHT]
        return [DIFFERENCE, *self.keys, *(f"{name}_{side}" for name in self.values(names) for side in SIDES)]


def _tolerance(tolerance: Any, keys: Sequence[str]) -> float:
    if tolerance is None:
        return 0.0
    number = not isinstance(tolerance, bool) and isinstance(tolerance, int | float)
    if not number or not math.isfinite(tolerance) or not 0 <= tolerance < 1:
        raise InvalidArgument(f"tolerance= must be a number from 0 to less than 1, but is {tolerance!r}")
    if tolerance and not keys:
        raise InvalidArgument(
            "tolerance= needs keys=, because rows of nearly the same floats are told apart by nothing else: name the "
            "columns that identify a row"
        )
    return float(tolerance)


__all__ = ["DIFFERENCE", "WEIGHT", "ComparisonOptions"]

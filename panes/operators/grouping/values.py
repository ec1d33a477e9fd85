"""The results of combiners for windows in hand, as the triggers of users ask for them.

Guarded by tests/panes/test_user_triggers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ....combiners.algebra import Accumulators
from ....combiners.rows.group_sums import sum_counts
from ....combiners.rows.groups import Groups
from ....errors import InvalidArgument, nearest
from .compiled import Compiled
from .windows_in_hand import InHand

Values: TypeAlias = Callable[[str, np.ndarray], list[Any]]
"""A function that gives the results of a combiner for windows at some places, None for those without a value."""


def values_of(compiled: Compiled, windows: InHand) -> Values:
    """The results of the windows in hand."""
    return _values(compiled, windows.acc, windows.num["weight"])


def merged_values(compiled: Compiled, windows: InHand, old: np.ndarray, new: np.ndarray) -> Values:
    """The results of the windows that come of pairs (old window, new window), over the contents of the old ones.

    Contents are merged when the first result is asked for.
    """

    @cache
    def merged() -> tuple[np.ndarray, Values]:
        reached, codes = np.unique(new, return_inverse=True)
        groups, at = Groups(codes, len(reached)), pa.array(old)
        acc = compiled.plan.merge(groups, tuple(a.take(at) for a in windows.acc))
        return reached, _values(compiled, acc, sum_counts(groups, windows.num["weight"][old]))

    def values(name: str, places: np.ndarray) -> list[Any]:
        reached, of_reached = merged()
        return of_reached(name, np.searchsorted(reached, places))

    return values


def _values(compiled: Compiled, acc: Accumulators, weight: np.ndarray) -> Values:
    def values(name: str, places: np.ndarray) -> list[Any]:
        plan, grouping = compiled.plan, compiled.grouping
        if name not in plan.compiled:
            raise InvalidArgument(
                f"ctx.value({name!r}) names no combiner of the grouping: {nearest(name, plan.compiled)}"
            )
        found: list[Any] = plan.extract_one(name, acc, pa.array(places)).to_pylist()
        if grouping.changelog and grouping.retracting:
            empty = weight[places] == 0
            found = [None if gone else value for gone, value in zip(empty.tolist(), found, strict=True)]
        return found

    return values


__all__ = ["Values", "merged_values", "values_of"]

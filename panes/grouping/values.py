"""The results of combiners for windows in hand, as the triggers of users ask for them.

Guarded by tests/panes/grouping/test_user_triggers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...combiners.algebra import Accumulators
from ...combiners.rows.group_sums import extreme, sum_counts
from ...combiners.rows.groups import Groups
from ...errors import InvalidArgument, nearest
from ...windows.times import MAX_TIME
from .compiled import CompiledGrouping
from .contents import contents
from .loaded_windows import LoadedWindows

Values: TypeAlias = Callable[[str, np.ndarray], list[Any]]
"""A function that gives the results of a combiner for windows at some places, None for those without a value."""


def values_of(compiled: CompiledGrouping, windows: LoadedWindows) -> Values:
    """The results of the windows in hand, also of those that have contents put aside."""

    def accumulators(places: np.ndarray) -> tuple[Accumulators, pa.Array]:
        if windows.deposits is None:
            return windows.acc, pa.array(places)
        return contents(compiled, windows, places), pa.array(np.arange(len(places)))

    return _values(compiled, accumulators, windows.num["weight"], windows.num["start"])


def merged_values(compiled: CompiledGrouping, windows: LoadedWindows, old: np.ndarray, new: np.ndarray) -> Values:
    """The results of the windows that come of pairs (old window, new window), over the contents of the old ones.

    Contents are merged when the first result is asked for.
    """

    @cache
    def merged() -> tuple[np.ndarray, Values]:
        reached, codes = np.unique(new, return_inverse=True)
        groups = Groups(codes, len(reached))
        once, of_pairs = np.unique(old, return_inverse=True)
        whole = contents(compiled, windows, once)
        acc = compiled.plan.merge(groups, tuple(column.take(pa.array(of_pairs)) for column in whole))
        weight = sum_counts(groups, windows.num["weight"][old])
        start = extreme(groups, windows.num["start"][old], MAX_TIME, np.minimum)
        return reached, _values(compiled, lambda places: (acc, pa.array(places)), weight, start)

    def values(name: str, places: np.ndarray) -> list[Any]:
        reached, of_reached = merged()
        return of_reached(name, np.searchsorted(reached, places))

    return values


def _values(
    compiled: CompiledGrouping,
    accumulators: Callable[[np.ndarray], tuple[Accumulators, pa.Array]],
    weight: np.ndarray,
    start: np.ndarray,
) -> Values:
    """The results over accumulators, which are given for windows at some places, with their places among them."""

    def values(name: str, places: np.ndarray) -> list[Any]:
        plan, grouping = compiled.plan, compiled.grouping
        if name not in plan.compiled:
            raise InvalidArgument(
                f"ctx.value({name!r}) names no combiner of the grouping: {nearest(name, plan.compiled)}"
            )
        results: list[Any] = plan.extract_one(name, *accumulators(places)).to_pylist()
        gone = compiled.lacks(name, start[places])
        if grouping.changelog and grouping.retracting:
            gone = gone | (weight[places] == 0)
        return [None if no else value for no, value in zip(gone.tolist(), results, strict=True)]

    return values


__all__ = ["Values", "merged_values", "values_of"]

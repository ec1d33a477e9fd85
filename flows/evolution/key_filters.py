"""Filters on the key of a grouping that were added to a flow: its state goes on without the rows of other keys.

The idea: a row with a key that the filter lets through is in the contents of that key alone, and a row that it does not
let through is in contents that leave as a whole. So nothing has to be read again, not even over rows that can be
retracted: a retraction that comes later meets either the row that it retracts, or the filter.

Guarded by tests/flows/evolution/test_key_filters.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from operator import and_
from typing import Any

from ...combiners.expressions.expr import Expr
from ...panes.grouping.stage import GroupingStage
from ...panes.transforms import Where
from ..fingerprint.flow import Fingerprint, said
from ..graph import Step

_CHANGE_NOTHING = ("where", "sample", "select", "drop")
"""The transforms that leave out rows or columns and change none."""


def are_left(columns: Collection[str], transforms: Any) -> bool:
    """True if transforms, as a fingerprint has them, leave these columns as they are."""
    return isinstance(transforms, list) and all(
        one["is"] in _CHANGE_NOTHING or (one["is"] == "with_columns" and not set(columns) & set(one["what"]))
        for one in transforms
    )


def added_filter(step: Step, old: Fingerprint, made_by: Fingerprint) -> Expr | None:
    """The condition on the key that filters which were added before a grouping make; None if more is different.

    The grouping must retract what it has shown, for what was shown of other keys is retracted.
    """
    stage, ways = step.stage, [one.get("steps", ()) for one in (old, made_by)]
    if not isinstance(stage, GroupingStage) or not stage.grouping.retracting or any(len(way) != 1 for way in ways):
        return None
    added = _added(ways[0][0], ways[1][0])
    wheres = [one for one in step.feeds[0].transforms if isinstance(one, Where) and isinstance(one.predicate, Expr)]
    conditions = list[Expr]()
    for place in added or ():
        text = ways[1][0][place]["what"].get("predicate")  # or the content of a function
        condition = next((one.predicate for one in wheres if said(one.predicate) == text), None)
        if not isinstance(condition, Expr) or not set(condition.columns) <= set(stage.grouping.by):
            return None
        if not are_left(condition.columns, ways[1][0][place + 1 :]):
            return None
        conditions.append(condition)
    return reduce(and_, conditions) if conditions else None


def _added(was: Sequence[Any], here: Sequence[Any]) -> list[int] | None:
    """The places of the filters by which some transforms are more than others; None if these are others."""
    added, before = list[int](), 0
    for place, one in enumerate(here):
        if before < len(was) and [was[before]["is"], was[before]["what"]] == [one["is"], one["what"]]:
            before += 1
        elif one["is"] == Where.word:
            added.append(place)
        else:
            return None
    return added if before == len(was) else None


__all__ = ["added_filter", "are_left"]

"""The columns of the sides of a comparison, known before a row is read, and the options that fit both.

Guarded by tests/test_comparing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from ...errors import UnknownColumn, nearest
from ...panes.grouping.grouping import DIFF
from ...panes.grouping.pane_columns import WINDOW
from ..layout import is_pane
from .common_types import common_schema
from .options import ComparisonOptions

_WINDOW = "window"
_OF_PANES = frozenset({"pane", "timing", "processing_time", "step"})
_ENDS = tuple(f"{_WINDOW}_{field.name}" for field in WINDOW)


@dataclass(frozen=True, kw_only=True)
class ComparedSide:
    """A side of a comparison: its columns, and which of them has weights."""

    schema: pa.Schema
    weight: str | None = None
    """The column of weights; None if each row stands for one."""
    is_flow: bool = False
    """True for a flow or its result, which know the column of their weights."""
    splits_window: bool = False
    """True if both ends of the window are compared as two columns."""
    about_panes: frozenset[str] = frozenset()
    """The columns that tell of a pane and are not compared."""

    @property
    def columns(self) -> pa.Schema:
        """The columns that are compared."""
        fields = list[pa.Field]()
        for field in self.schema:
            if field.name == _WINDOW and self.splits_window:
                fields += [pa.field(name, part.type) for name, part in zip(_ENDS, field.type, strict=True)]
            elif field.name != self.weight and field.name not in self.about_panes:
                fields.append(field)
        return pa.schema(fields)


Side = TypeVar("Side", bound=ComparedSide)


def weight_name(schema: pa.Schema, diff: str | None) -> str | None:
    """The column of a table that has its weights: the one that the user named, or whole numbers in `diff`.

    >>> weight_name(pa.schema({"n": pa.int64(), "diff": pa.int64()}), None)
    'diff'
    """
    if diff is not None:
        return diff if diff in schema.names else None
    places = schema.get_all_field_indices(DIFF)
    return DIFF if len(places) == 1 and pa.types.is_integer(schema.field(places[0]).type) else None


def aligned(
    sides: Sequence[Side], options: ComparisonOptions, most_digits: int
) -> tuple[list[Side], pa.Schema, ComparisonOptions]:
    """Both sides and the options, so that they fit, and the columns in the types of both; raises if they do not fit.

    A window is two columns if the other side has it so, as a live table does.
    """
    old, new = sides
    if options.diff is not None and not any(side.is_flow or side.weight for side in sides):
        raise UnknownColumn(
            f"diff= names {options.diff!r}, which neither side has: {nearest(options.diff, old.schema.names)}",
            options.diff,
        )
    old, new = _without_panes(old, new), _without_panes(new, old)
    old, new = _split(old, new.schema.names), _split(new, old.schema.names)
    if old.splits_window or new.splits_window:
        keys = [part for name in options.keys for part in (_ENDS if name == _WINDOW else (name,))]
        options = replace(options, keys=tuple(dict.fromkeys(keys)))
    schema = common_schema(old.columns, new.columns, most_digits)
    return [old, new], schema, options.settled(schema)


def _without_panes(side: Side, other: Side) -> Side:
    """The side without what a written result has of its panes, where a flow or another written result is compared."""
    if side.is_flow:
        return side
    if not other.is_flow:
        written = all(any(map(is_pane, one.schema)) for one in (side, other))
        return replace(side, about_panes=frozenset({"pane", "step"})) if written else side
    return replace(side, about_panes=_OF_PANES - set(other.schema.names))


def _split(side: Side, others: Sequence[str]) -> Side:
    """The side, with both ends of its window as two columns if the other one has them so."""
    names = side.schema.names
    if names.count(_WINDOW) != 1 or _WINDOW in others or not set(_ENDS) <= set(others) or set(_ENDS) & set(names):
        return side
    kind = side.schema.field(_WINDOW).type
    if not pa.types.is_struct(kind) or [field.name for field in kind] != [field.name for field in WINDOW]:
        return side
    return replace(side, splits_window=True)


__all__ = ["ComparedSide", "aligned", "weight_name"]

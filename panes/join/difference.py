"""The difference that a bundle makes to a join: pairs, and rows whose having a match changes.

The pairs of a changed left row with any right row, and of an unchanged left row with a changed right row, are all
pairs whose weight changes: by the product of the weights after the bundle less that of the weights before it. Only
pairs inside the bounds are ever made. The number of matches of a row is a difference of running sums, not of pairs.

Guarded by tests/panes/join/test_join.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.groups import unordered_groups
from ...errors import OutOfRange
from ...lookbacks.sorted_rows import Ranges
from .compiled import CompiledJoin, Side
from .loaded_rows import LoadedRows
from .ranges import Layout, RowOrder

_MOST = 2**62


@dataclass(frozen=True)
class Keys:
    """The keys of all rows in hand, left before right, with a code for each that equal keys share."""

    columns: list[pa.Array]
    codes: np.ndarray
    count: int
    firsts: np.ndarray
    """The first row of each code."""
    non_null: np.ndarray | None
    """False where the key has a null; None if no key has."""

    @classmethod
    def of(cls, left: LoadedRows, right: LoadedRows, windowed: bool) -> Keys:
        """Number the keys of both sides together; if `windowed`, the last key is a window."""
        pairs = zip(left.keys, right.keys, strict=True)
        columns = [pa.concat_arrays([a, b]) for a, b in pairs]
        parts = _told_apart(columns, windowed)
        groups, firsts = unordered_groups(parts, len(left) + len(right))
        valid = [np.asarray(column.is_valid()) for column in (*columns, *parts) if column.null_count]
        return cls(
            columns=columns,
            codes=groups.codes,
            count=groups.count,
            firsts=firsts,
            non_null=np.logical_and.reduce(valid) if valid else None,
        )


def _told_apart(columns: list[pa.Array], windowed: bool) -> list[pa.Array]:
    """Columns that tell keys apart. Windows of one size are told apart by their starts."""
    if not windowed:
        return columns
    *others, windows = columns
    bounds = dict(zip([field.name for field in windows.type], windows.flatten(), strict=True))
    start, end = bounds.pop("start"), bounds.pop("end")
    if bounds or start.null_count or end.null_count or start.type != end.type:
        return [*others, start, end, *bounds.values()]
    sizes = np.asarray(end.view(pa.int64())) - np.asarray(start.view(pa.int64()))
    return [*others, start] if len(sizes) == 0 or bool((sizes == sizes[0]).all()) else [*others, start, end]


@dataclass(frozen=True)
class Difference:
    """Rows of output by the numbers of their rows in hand; -1 where a side is missing."""

    left: np.ndarray
    right: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def none(cls) -> Difference:
        """No rows."""
        nothing = np.empty(0, np.int64)
        return cls(left=nothing, right=nothing, weights=nothing)

    @classmethod
    def of_one(cls, name: str, rows: np.ndarray, weights: np.ndarray) -> Difference:
        """Rows of one side alone."""
        missing = np.full(len(rows), -1)
        return (
            cls(left=rows, right=missing, weights=weights)
            if name == "left"
            else cls(left=missing, right=rows, weights=weights)
        )

    def take(self, places: np.ndarray) -> Difference:
        """The rows at these places."""
        return Difference(left=self.left[places], right=self.right[places], weights=self.weights[places])

    @classmethod
    def joined(cls, parts: list[Difference]) -> Difference:
        """All rows of some differences whose weight is not zero."""
        nonzero = [part if part.weights.all() else part.take(np.flatnonzero(part.weights)) for part in parts]
        nonzero = [part for part in nonzero if len(part)] or [cls.none()]
        if len(nonzero) == 1:
            return nonzero[0]
        columns = [(part.left, part.right, part.weights) for part in nonzero]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


@dataclass(frozen=True)
class _Party:
    """One side with its rows in order."""

    side: Side
    hand: LoadedRows
    codes: np.ndarray
    non_null: np.ndarray | None
    layout: Layout
    ordered: RowOrder

    def asks(self, other: RowOrder, chosen: np.ndarray) -> tuple[np.ndarray, Ranges]:
        """The rows where the mask is true, in order, and the matches of each."""
        rows = self.ordered.order
        if not chosen.all():
            rows = rows[chosen.take(rows, mode="clip")]
        codes, times = (values.take(rows, mode="clip") for values in (self.codes, self.hand.times))
        able = None if self.non_null is None else self.non_null[rows]
        return rows, other.matches(self.layout, codes, times, self.side.low, self.side.high, able)


def difference(compiled: CompiledJoin, left: LoadedRows, right: LoadedRows, keys: Keys) -> Difference:
    """The rows that the step adds to the output of the join, and those that it retracts."""
    join, cut = compiled.join, len(left)
    layout = Layout(keys.count) if join.within is None else Layout.of(keys.count, (left.times, right.times))
    parties = []
    for side, hand, rows in ((compiled.left, left, slice(None, cut)), (compiled.right, right, slice(cut, None))):
        codes = keys.codes[rows]
        non_null = None if keys.non_null is None else keys.non_null[rows]
        parties.append(
            _Party(
                side=side,
                hand=hand,
                codes=codes,
                non_null=non_null,
                layout=layout,
                ordered=RowOrder.of(layout, codes, hand.times),
            )
        )
    parts = _pairs(*parties) if join.pairs else []
    for one, other in (parties, parties[::-1]):
        if one.side.alone and join.final:
            parts.append(_final(one, other))
        elif one.side.counted:
            parts.append(_counted(one, other, matched=join.how == "semi"))
    return Difference.joined(parts)


def _pairs(left: _Party, right: _Party) -> list[Difference]:
    """The pairs whose weight changes."""
    require_products(left.hand, right.hand)
    changed = left.hand.is_changed
    parts = []
    for chosen, others in ((changed, right.ordered), (~changed, right.ordered.where(right.hand.is_changed))):
        if not chosen.any() or not len(others.order):
            continue
        rows, ranges = left.asks(others, chosen)
        asking, partners = ranges.pairs(rows, others.order)
        weights = left.hand.after.take(asking, mode="clip") * right.hand.after.take(partners, mode="clip")
        if left.hand.before.any() and right.hand.before.any():
            weights -= left.hand.before[asking] * right.hand.before[partners]
        parts.append(Difference(left=asking, right=partners, weights=weights))
    return parts


def _counted(one: _Party, other: _Party, matched: bool) -> Difference:
    """Rows of one side that come to have a match, or have none any longer, or change themselves."""
    hand, others = one.hand, other.hand
    chosen = hand.is_changed.copy()
    if others.is_changed.any():
        rows, ranges = one.asks(other.ordered.where(others.is_changed), ~chosen)
        chosen[rows[ranges.sizes > 0]] = True
    rows, ranges = one.asks(other.ordered, chosen)
    shown = []
    for weights, counted in ((hand.before, others.before), (hand.after, others.after)):
        has = ranges.any(counted[other.ordered.order] > 0)
        shown.append(np.where(has == matched, weights[rows], 0))
    return Difference.of_one(one.side.name, rows, shown[1] - shown[0])


def _final(one: _Party, other: _Party) -> Difference:
    """Rows of one side that leave without a match."""
    rows, ranges = one.asks(other.ordered, one.hand.leaves)
    alone = ~ranges.any(other.hand.after[other.ordered.order] > 0)
    return Difference.of_one(one.side.name, rows, np.where(alone, one.hand.after[rows], 0))


def require_products(left: LoadedRows, right: LoadedRows) -> None:
    most = 1.0
    for hand in (left, right):
        most *= max((float(weights.max()) for weights in (hand.before, hand.after) if len(weights)), default=0.0)
    if most >= _MOST:
        raise OutOfRange(
            "the weights of a left and a right row multiply to 2**62 or more, but weights must be below that: use "
            "smaller weights"
        )

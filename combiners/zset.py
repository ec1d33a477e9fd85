"""The Z-set kernel: a sparse map from item to integer weight for each group.

An accumulator is a list of `(item, weight)` in the order of the items, each item once, no weight zero. That form is
canonical: two accumulators are equal exactly if the multisets are, so "taken back" equals "never seen". One kernel
(sort, sum the weights of equal items, drop zeros) serves adding rows and merging accumulators; what a combiner makes
of a Z-set is only its `extract`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, CombineFn, Weights
from .columns import Column
from .groups import Groups
from .ordering import Keys, order_keys
from .sorting import argsort_in_groups, sort_in_groups


@dataclass(frozen=True)
class Items:
    """The items of many Z-sets, one behind the other: group i owns `offsets[i]` to `offsets[i + 1]`."""

    offsets: np.ndarray
    columns: tuple[pa.Array, ...]
    weights: np.ndarray

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def groups(self) -> Groups:
        """The group of each item."""
        sizes = np.diff(self.offsets)
        return Groups(np.repeat(np.arange(self.count), sizes), self.count)

    def present(self) -> Items:
        """Only the items of positive weight: what the multiset holds, debts left out."""
        held = self.weights > 0
        if held.all():
            return self
        running = np.concatenate([[0], np.cumsum(held)])
        mask = pa.array(held)
        return Items(running[self.offsets], tuple(c.filter(mask) for c in self.columns), self.weights[held])

    def take(self, places: np.ndarray, column: int = 0) -> pa.Array:
        """Items at these places of the flat columns; null where a place is negative."""
        missing = places < 0
        return self.columns[column].take(pa.array(places, mask=missing if missing.any() else None))

    def firsts(self) -> np.ndarray:
        """The place of the least item of each group, -1 where it has none."""
        return np.where(np.diff(self.offsets) > 0, self.offsets[:-1], -1)

    def lasts(self) -> np.ndarray:
        """The place of the greatest item of each group, -1 where it has none."""
        return np.where(np.diff(self.offsets) > 0, self.offsets[1:] - 1, -1)

    def sublist(self, column: int = 0) -> pa.Array:
        """One column of the items as a list for each group."""
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), self.columns[column])


@dataclass(frozen=True)
class ZSet(CombineFn):
    """Z-sets over items of one or more columns, ordered by the first column, then the next.

    >>> import pyarrow as pa
    >>> from uncombine.combiners.groups import Groups
    >>> z = ZSet((pa.int64(),))
    >>> import numpy as np
    >>> (held,) = z.add(Groups.single(3), Column(pa.array([5, 7, 5])), weights=np.array([1, 1, -1]))
    >>> held.to_pylist()
    [[{'item': 7, 'weight': 1}]]
    """

    vector = False
    types: tuple[pa.DataType, ...]
    nullable: tuple[bool, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        return ("item", "by", "tie")[: len(self.types)] if len(self.types) <= 3 else tuple(
            f"item{i}" for i in range(len(self.types))
        )

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        parts = [pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)]
        return (pa.field("items", pa.list_(pa.struct([*parts, pa.field("weight", pa.int64())]))),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return self.pack(consolidate(groups, columns, weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        held = self.items(accumulators)
        item_groups = Groups(np.repeat(groups.codes, np.diff(held.offsets)), groups.count)
        return self.pack(consolidate(item_groups, [Column(c) for c in held.columns], held.weights))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        held = self.items(accumulators)
        return self.pack(Items(held.offsets, held.columns, -held.weights))

    def items(self, accumulators: Accumulators) -> Items:
        """The flat items of an accumulator column."""
        lists = accumulators[0]
        offsets = np.asarray(lists.offsets).astype(np.int64)
        *columns, weights = lists.flatten().flatten()
        return Items(offsets - offsets[0], tuple(columns), np.asarray(weights))

    def pack(self, items: Items) -> Accumulators:
        """The accumulator column of flat items."""
        kind = self.fields[0].type
        struct = pa.StructArray.from_arrays([*items.columns, pa.array(items.weights)], fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(items.offsets, pa.int32()), struct, type=kind),)


def consolidate(groups: Groups, columns: tuple[Column, ...] | list[Column], weights: Weights = None) -> Items:
    """Rows as canonical Z-sets: sort by (group, item), sum the weights of equal items, drop zeros."""
    keys = order_keys(columns)
    if weights is None:
        codes, ordered = sort_in_groups(groups, keys)
        starts = _boundaries(codes, ordered)
        summed = np.diff(starts, append=len(codes))
    else:
        order = argsort_in_groups(groups, keys)
        codes, ordered = groups.codes[order], keys.keys[order]
        starts = _boundaries(codes, ordered)
        summed = np.add.reduceat(weights[order], starts) if len(starts) else np.empty(0, np.int64)
        kept = summed != 0
        if not kept.all():
            starts, summed = starts[kept], summed[kept]
    return _items(groups.count, codes[starts], ordered[starts], summed, keys)


def _boundaries(codes: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Where a run of equal (group, item) starts."""
    fresh = np.empty(len(codes), np.bool_)
    fresh[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    fresh[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(fresh)


def _items(count: int, codes: np.ndarray, ordered: np.ndarray, weights: np.ndarray, keys: Keys) -> Items:
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=count), out=offsets[1:])
    return Items(offsets, tuple(keys.decode(ordered)), weights)

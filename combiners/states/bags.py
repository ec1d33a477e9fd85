"""The values at given parts of the sorted values of many multisets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, Capability, CombineFn, Weights
from ..rows.columns import Column
from ..rows.group_sums import may_reach_most, require_counts
from ..rows.groups import Groups
from ..rows.ordering import from_numbers, packed_keys, plain_numbers
from ..rows.sorting import blocks, windows
from .zset import Items, ZSet, consolidate

_SAMPLE = 4096
_NARROW = 64


@dataclass(frozen=True)
class BagFn(CombineFn):
    """Values as they came, sorted only when results are extracted, or Z-sets if that saves memory.

    Nothing can be retracted. An accumulator of rows without weights may hold an item several times, each of weight 1
    and in any order, if nearly all of its items differ. Merged accumulators, and those of rows with weights, are
    Z-sets in canonical form.
    """

    zset: ZSet
    capability = Capability.MONOID
    divisible = True
    label = "bag"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return self.zset.fields

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        if weights is not None or plain_numbers(columns[0].array[:0]) is None or _repeats(groups, columns[0]):
            return self.zset.add(groups, *columns, weights=weights)
        values = columns[0].array.take(pa.array(groups.order))
        bounds = np.append(groups.starts, len(groups))
        return self.zset.pack(Items(offsets=bounds, columns=(values,), weights=np.ones(len(groups), np.int64)))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return self.zset.merge(groups, accumulators)


def _repeats(groups: Groups, column: Column) -> bool:
    """True if the first few groups, or the first large one, hold each item more than twice on average."""
    rows = groups.order[:_SAMPLE]
    return len(rows) > 0 and 2 * len(consolidate(groups.take(rows), [column.take(rows)]).weights) < len(rows)


@dataclass(frozen=True)
class Neighbours:
    """For each group the values on both sides of a place (null for no values), and the part of the way between."""

    lower: pa.Array
    upper: pa.Array
    part: np.ndarray


@dataclass(frozen=True)
class RankedValues:
    """Canonical Z-sets as sorted lists of values that are never written out."""

    items: Items
    counts: np.ndarray
    before: np.ndarray
    ends: np.ndarray | None
    """The number of values up to the end of each item; None if every item has weight 1."""

    @classmethod
    def of(cls, items: Items) -> RankedValues:
        """The values of positive weight."""
        items = items.present()
        weights, bounds = items.weights, items.offsets
        ends: np.ndarray | None = None
        if not (weights == 1).all():
            # Sums that do not fit int64 are rare and must not wrap, so they are computed with Python's integers.
            wide = may_reach_most(weights) and weights.sum(dtype=np.float64) >= 2.0**62
            ends = np.cumsum(weights.astype(object) if wide else weights)
            bounds = np.append(0, ends)[bounds]
            require_counts(np.diff(bounds), np.diff(bounds).astype(np.float64))
        return cls(items=items, counts=np.diff(bounds), before=bounds[:-1], ends=ends)

    def places(self, ranks: np.ndarray) -> np.ndarray:
        """The item that holds the value of this rank, from 0, in each group; -1 for a group without values."""
        # A float of a count above 2**53 may be rounded up to the count itself, which is not a rank.
        wanted = self.before + np.minimum(ranks.astype(np.int64), self.counts - 1)
        places = wanted if self.ends is None else np.searchsorted(self.ends, wanted, side="right")
        return np.where(self.counts > 0, places, -1)

    def neighbours(self, q: float) -> Neighbours:
        """The neighbours of place q (n - 1) of n values."""
        place = (self.counts - 1).astype(np.float64) * q
        low = np.floor(place)
        lower, upper = (self.items.take(self.places(ranks)) for ranks in (low, np.ceil(place)))
        return Neighbours(lower=lower, upper=upper, part=place - low)


def neighbours(bag: BagFn, accumulators: Accumulators, parts: Sequence[float]) -> list[Neighbours]:
    """The neighbours of place q (n - 1) of the n values in each bag, for each q in `parts`."""
    items = bag.zset.items(accumulators)
    if (items.weights == 1).all() and plain_numbers(items.columns[0][:0]) is not None:
        return _selected(items, parts)
    keys = packed_keys([Column(items.columns[0])])[0].keys
    falls = np.flatnonzero(keys[1:] < keys[:-1]) + 1
    if not np.isin(falls, items.offsets).all():
        items = consolidate(items.groups, [Column(items.columns[0])], items.weights)
    ranked = RankedValues.of(items)
    return [ranked.neighbours(q) for q in parts]


def _selected(items: Items, parts: Sequence[float]) -> list[Neighbours]:
    """The neighbours from sorting groups of one size at a time; large groups are only partitioned."""
    values = plain_numbers(items.columns[0])
    assert values is not None
    values = np.ascontiguousarray(values)
    kind = items.columns[0].type
    sizes = np.diff(items.offsets)
    pairs = [(np.zeros(items.count, values.dtype), np.zeros(items.count, values.dtype)) for _ in parts]
    for size, groups, starts in blocks(sizes, 1):
        block = windows(values, size)[starts]
        last = size - 1
        ranks = [(floor(last * q), ceil(last * q)) for q in parts]
        wanted = sorted({rank for pair in ranks for rank in pair})
        if last >= _NARROW and len(wanted) <= 4:
            block.partition(wanted, axis=1)
        else:
            block.sort(axis=1)
        for (lower, upper), (low, high) in zip(pairs, ranks, strict=True):
            lower[groups], upper[groups] = block[:, low], block[:, high]
    some = np.where(sizes > 0, np.arange(items.count), -1)
    out = []
    for q, pair in zip(parts, pairs, strict=True):
        both = Items(offsets=items.offsets, columns=tuple(from_numbers(side, kind) for side in pair), weights=sizes)
        place = (sizes - 1) * q
        out.append(Neighbours(lower=both.take(some, 0), upper=both.take(some, 1), part=place - np.floor(place)))
    return out

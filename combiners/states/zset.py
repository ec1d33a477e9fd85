"""The Z-set kernel: a sparse map from item to integer weight for each group.

An accumulator is a list of `(item, weight)` in the order of the items, each item once, no weight zero. That form is
canonical: two accumulators are equal exactly if the multisets are, so retracted equals never seen. One kernel (sort,
sum the weights of equal items, drop zeros) adds rows and merges accumulators. Combiners on Z-sets differ only in
their `extract`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ...errors import OutOfRange
from ..algebra import Accumulators, CombineFn, Weights
from ..rows.columns import Column
from ..rows.group_sums import may_reach_most, require_counts, run_sums, sum_counts
from ..rows.groups import Groups
from ..rows.ordering import Keys, packed_keys
from ..rows.sorting import argsort_in_groups, refine, run_starts, sort_in_groups

_MOST_COPIES = 2**31
"""The number of values that a column of lists does not hold."""

Places: TypeAlias = np.ndarray | slice


@dataclass(frozen=True)
class Items:
    """The items of many Z-sets, one after the other: group i has those from `offsets[i]` to `offsets[i + 1]`."""

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
        """The items of positive weight: those that the multiset holds."""
        positive = self.weights > 0
        if positive.all():
            return self
        mask = pa.array(positive)
        return Items(
            offsets=running(positive)[self.offsets],
            columns=tuple(c.filter(mask) for c in self.columns),
            weights=self.weights[positive],
        )

    def take(self, places: np.ndarray, column: int = 0) -> pa.Array:
        """Items at these places of the flat columns; null for a negative place."""
        missing = places < 0
        return self.columns[column].take(pa.array(places, mask=missing if missing.any() else None))

    def firsts(self) -> np.ndarray:
        """The place of the least item of each group; -1 for a group without items."""
        return np.where(np.diff(self.offsets) > 0, self.offsets[:-1], -1)

    def lasts(self) -> np.ndarray:
        """The place of the greatest item of each group; -1 for a group without items."""
        return np.where(np.diff(self.offsets) > 0, self.offsets[1:] - 1, -1)

    def sublist(self, column: int = 0) -> pa.Array:
        """One column of the items as a list for each group."""
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), self.columns[column])

    def copies(self, places: np.ndarray, who: object, column: int = 0) -> pa.Array:
        """One column of the items as a list for each group, each item as often as its weight.

        `places` has the places of all items in the order of the lists, group by group. The number of copies is checked
        before memory is asked for them; `who` is the combiner that lists them.
        """
        times = self.weights[places]
        if float(times.sum(dtype=np.float64)) >= _MOST_COPIES:
            raise OutOfRange(
                f"{who!r} would list {sum(times.tolist()):,} values, and a column of lists holds fewer than 2**31: "
                "take fewer groups at a time, or count each value with PerKey(Count(), by=...)"
            )
        bounds = running(times)[self.offsets]
        return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), self.take(np.repeat(places, times), column))


@dataclass(frozen=True)
class ZSet(CombineFn):
    """Z-sets over items of one or more columns, ordered by the first column, then the next.

    >>> import numpy as np, pyarrow as pa
    >>> from uncombine.combiners.rows.groups import Groups
    >>> z = ZSet((pa.int64(),))
    >>> (held,) = z.add(Groups.single(3), Column(pa.array([5, 7, 5])), weights=np.array([1, 1, -1]))
    >>> held.to_pylist()
    [[{'item': 7, 'weight': 1}]]
    """

    types: tuple[pa.DataType, ...]
    names: tuple[str, ...] = ("item",)
    nullable: tuple[bool, ...] = field(default=(), kw_only=True)
    divisible = True

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        parts = [pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)]
        return (pa.field("items", pa.list_(pa.struct([*parts, pa.field("weight", pa.int64())]))),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return self.pack(consolidate(groups, columns, weights))

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        if not (groups.sizes > 1).any():
            return (alone(groups, accumulators[0]),)
        items = self.items(accumulators)
        item_groups = Groups(np.repeat(groups.codes, np.diff(items.offsets)), groups.count)
        return self.pack(consolidate(item_groups, [Column(c) for c in items.columns], items.weights))

    def negate(self, accumulators: Accumulators) -> Accumulators:
        items = self.items(accumulators)
        return self.pack(Items(offsets=items.offsets, columns=items.columns, weights=-items.weights))

    def items(self, accumulators: Accumulators) -> Items:
        """The flat items of an accumulator column."""
        offsets, struct = flat_lists(accumulators[0])
        *columns, weights = struct.flatten()
        return Items(offsets=offsets, columns=tuple(columns), weights=np.asarray(weights))

    def pack(self, items: Items) -> Accumulators:
        """The accumulator column of flat items."""
        kind = self.fields[0].type
        struct = pa.StructArray.from_arrays([*items.columns, pa.array(items.weights)], fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(items.offsets, pa.int32()), struct, type=kind),)


def flat_lists(lists: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """The elements of a list column, one after the other, with offsets that start at 0."""
    offsets = np.asarray(lists.offsets).astype(np.int64)
    return offsets - offsets[0], lists.flatten()


def alone(groups: Groups, lists: pa.Array) -> pa.Array:
    """A list column in the order of the groups, which have one list each at most; empty for a group without one."""
    if np.array_equal(groups.codes, np.arange(groups.count)):
        return lists
    places = np.full(groups.count, len(lists))
    places[groups.codes] = np.arange(len(lists))
    return pa.concat_arrays([lists, pa.array([[]], lists.type)]).take(pa.array(places))


def consolidate(groups: Groups, columns: Sequence[Column], weights: Weights = None, present: bool = False) -> Items:
    """Rows as canonical Z-sets: sort by (group, item), sum the weights of equal items, drop zeros.

    With `present` items of negative weight may be dropped too.
    """
    keys = packed_keys(columns)
    if len(keys) == 1:
        if groups.count * keys[0].span <= 2 * len(groups):
            return _tabulated(groups, keys[0], weights)
        flat = _sort_flat(groups, keys[0], weights, present)
        if flat is not None:
            return flat
    order, ordered = argsort_in_groups(groups, keys[0].keys)
    fresh = run_starts(groups, ordered)
    for more in keys[1:]:
        refine(order, fresh, more.keys.take)
    weighed = None if weights is None else weights[order]

    def values(places: Places) -> list[np.ndarray]:
        rows = order[places]
        return [ordered[places], *(part.keys[rows] for part in keys[1:])]

    return _items(groups, np.flatnonzero(fresh), weighed, keys, values, present)


def _sort_flat(groups: Groups, keys: Keys, weights: Weights, present: bool) -> Items | None:
    """The items from sorting single integers: keys with the weights in their lowest bits; None if bits are too few."""
    least, bits = 0, 0
    if weights is not None and len(weights):
        least = int(weights.min())
        bits = (int(weights.max()) - least).bit_length()
    width = keys.span << bits
    if weights is not None and width >= 2**63:
        return None
    mixed, low = keys.keys, 0
    if weights is not None:
        mixed, low = mixed - keys.low, keys.low
        mixed <<= bits
        mixed += weights
        mixed -= least
    ordered = sort_in_groups(groups, mixed)
    weighed = None
    if weights is not None:
        weighed = np.bitwise_and(ordered, (1 << bits) - 1, out=mixed)
        weighed += least
        ordered >>= bits
    starts = np.flatnonzero(run_starts(groups, ordered))
    ordered += low
    return _items(groups, starts, weighed, [keys], lambda places: [ordered[places]], present)


def _tabulated(groups: Groups, keys: Keys, weights: Weights) -> Items:
    """The items from a table of all pairs of group and key, for few groups and few keys."""
    pairs = groups.codes * keys.span
    pairs += keys.keys
    pairs -= keys.low
    size = groups.count * keys.span
    table = np.bincount(pairs, minlength=size) if weights is None else sum_counts(Groups(pairs, size), weights)
    filled = np.flatnonzero(table)
    offsets = np.searchsorted(filled, np.arange(groups.count + 1) * keys.span)
    present = filled - np.repeat(np.arange(groups.count) * keys.span - keys.low, np.diff(offsets))
    return Items(offsets=offsets, columns=tuple(keys.decode(present)), weights=table[filled])


def _items(
    groups: Groups,
    starts: np.ndarray,
    weighed: Weights,
    keys: Sequence[Keys],
    values: Callable[[Places], list[np.ndarray]],
    present: bool,
) -> Items:
    """The items of weights other than zero, or of positive weights.

    `starts` has the first sorted row of each item, and `values` gives the keys of some sorted rows.
    """
    rows = len(groups)
    offsets = np.append(groups.starts, rows)
    chosen: Places = slice(None)
    if len(starts) == rows:
        weights = np.ones(rows, np.int64) if weighed is None else weighed
    else:
        offsets, chosen = _numbers_below(starts, offsets, rows), starts
        weights = np.diff(starts, append=rows) if weighed is None else run_sums(weighed, starts)
    if weighed is not None and may_reach_most(weighed):
        require_counts(weights, np.add.reduceat(weighed.astype(np.float64), starts))
    places = np.flatnonzero(weights > 0 if present else weights != 0)
    if len(places) < len(weights):
        offsets, chosen = _numbers_below(places, offsets, len(weights)), starts[places]
        weights = weights[places]
    columns = [column for part, some in zip(keys, values(chosen), strict=True) for column in part.decode(some)]
    return Items(offsets=offsets, columns=tuple(columns), weights=weights)


def _numbers_below(places: np.ndarray, bounds: np.ndarray, rows: int) -> np.ndarray:
    """The number of these sorted places below each bound; `rows` is the greatest bound."""
    if 16 * len(bounds) < rows:
        return np.searchsorted(places, bounds)
    marks = np.zeros(rows, np.bool_)
    marks[places] = True
    return running(marks)[bounds]


def running(values: np.ndarray) -> np.ndarray:
    """The sum of the values before each place, and at the end the sum of all."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums

"""The state of approximate distinct counts: buckets, each a register and a rank, with one, two or more values.

A bucket whose weight is positive has values. To count them up to three, each value also has a check, a number below a
prime p, and a bucket adds up, modulo p, the weights times the powers of the checks, from the first to the fourth. These
moments and the weight make a Hankel matrix of three rows. Its rank is the number of different checks, up to three: its
leading minors are sums of products of weights and of squared differences of checks (Prony's method). Moments are sums,
so values can be retracted, and a bucket whose values are all retracted equals a bucket that never had any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, Capability, CombineFn, Weights
from ..rows.columns import Column
from ..rows.group_sums import may_reach_most, require_counts
from ..rows.groups import Groups
from ..rows.hashing import hash_rows
from ..rows.sorting import argsort_in_groups, run_starts, sort_in_groups
from ..states.zset import consolidate, flat_lists, running

RANKS = 64
"""An upper bound of ranks; the number of a bucket is this times its register, plus its rank."""

PRIME = 46_337
"""The greatest prime whose square is an int32, so that the product of four numbers below it is an int64."""

_PRIME = np.uint32(PRIME)
_SHIFT = 16


@dataclass(frozen=True)
class BucketCounts:
    """The buckets with values, in order, the group of each, and its number of values: 1, 2, or 3 for three and more.

    The number is 0 if it is not known, in groups of many buckets.
    """

    groups: Groups
    buckets: np.ndarray
    values: np.ndarray


def most_told_apart(bits: int) -> int:
    """The greatest number of buckets, with 2**bits registers, for which the values of each bucket are counted."""
    return 1 << (bits - 1)


@dataclass(frozen=True)
class BucketWeightsFn(CombineFn):
    """The buckets whose weight or checks are not zero, in order, for 2**bits registers."""

    bits: int
    seed: int = 0
    label = "cells"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        kinds = [("cell", pa.int32()), ("moments", pa.int64()), ("weight", pa.int64())]
        return (pa.field("cells", pa.list_(pa.struct(kinds))),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        marked = Column(pa.array(_marked(*_hashed(columns, self.bits, self.seed))))
        items = consolidate(groups, [marked], weights)
        seen = np.asarray(items.columns[0])
        # 32 bits hold the products and are divided in half the time of 64.
        checks = (seen & ((1 << _SHIFT) - 1)).astype(np.uint32)
        one = bool((items.weights == 1).all())
        moments = [checks if one else checks * (items.weights % PRIME).astype(np.uint32) % _PRIME]
        for _ in range(3):
            moments.append(moments[-1] * checks % _PRIME)
        return self._summed(items.groups, seen >> _SHIFT, items.weights, moments)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        offsets, buckets, moments, weights = self._flat(accumulators)
        by_bucket = Groups(np.repeat(groups.codes, np.diff(offsets)), groups.count)
        order, ordered = argsort_in_groups(by_bucket, buckets)
        codes = np.repeat(np.arange(groups.count), by_bucket.sizes)
        return self._summed(Groups(codes, groups.count), ordered, weights[order], [moment[order] for moment in moments])

    def negate(self, accumulators: Accumulators) -> Accumulators:
        offsets, buckets, moments, weights = self._flat(accumulators)
        return self._pack(offsets, buckets, [(PRIME - moment) % PRIME for moment in moments], -weights)

    def bucket_counts(self, accumulators: Accumulators) -> BucketCounts:
        """The buckets of positive weight."""
        offsets, buckets, (a, b, c, d), weights = self._flat(accumulators)
        w, count = weights % PRIME, len(offsets) - 1
        # The second and the third leading minor of the matrix w a b / a b c / b c d.
        two = (w * b - a * a) % PRIME
        rows = ((b * d - c * c) % PRIME, (a * d - b * c) % PRIME, (a * c - b * b) % PRIME)
        three = (w * rows[0] - a * rows[1] + b * rows[2]) % PRIME
        values = np.where(three != 0, 3, np.where(two != 0, 2, 1))
        present = weights > 0
        groups = Groups(np.repeat(np.arange(count), np.diff(offsets))[present], count)
        return BucketCounts(groups=groups, buckets=buckets[present], values=values[present])

    def _summed(
        self, groups: Groups, buckets: np.ndarray, weights: np.ndarray, moments: Sequence[np.ndarray]
    ) -> Accumulators:
        """Buckets in the order of (group, bucket), with equal buckets added up."""
        fresh = run_starts(groups, buckets)
        starts, offsets = np.flatnonzero(fresh), running(fresh)[np.append(groups.starts, len(fresh))]
        if len(starts) < len(fresh):
            if may_reach_most(weights):
                near = np.add.reduceat(weights.astype(np.float64), starts)
                require_counts(np.add.reduceat(weights, starts), near)
            weights = np.add.reduceat(weights, starts)
            moments = [np.add.reduceat(moment, starts, dtype=np.int64) % PRIME for moment in moments]
        nonzero = np.logical_or.reduce([weights != 0, *moments])
        if not nonzero.all():
            offsets, starts, weights = running(nonzero)[offsets], starts[nonzero], weights[nonzero]
            moments = [moment[nonzero] for moment in moments]
        return self._pack(offsets, buckets[starts], moments, weights)

    def _flat(self, accumulators: Accumulators) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
        offsets, struct = flat_lists(accumulators[0])
        buckets, packed, weights = (np.asarray(part) for part in struct.flatten())
        high, low = np.divmod(packed, PRIME * PRIME)
        return offsets, buckets, [*np.divmod(high, PRIME), *np.divmod(low, PRIME)], weights

    def _pack(
        self, offsets: np.ndarray, buckets: np.ndarray, moments: Sequence[np.ndarray], weights: np.ndarray
    ) -> Accumulators:
        kind = self.fields[0].type
        a, b, c, d = (moment.astype(np.int64) for moment in moments)
        columns = [buckets.astype(np.int32), ((a * PRIME + b) * PRIME + c) * PRIME + d, weights.astype(np.int64)]
        struct = pa.StructArray.from_arrays([pa.array(column) for column in columns], fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=kind),)


@dataclass(frozen=True)
class RegistersFn(CombineFn):
    """The buckets with their least checks, at most three each, or for many buckets the greatest rank of each register.

    Nothing can be retracted. A group with many buckets never returns to the form for few.
    """

    bits: int
    seed: int = 0
    capability = Capability.MONOID
    label = "registers"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("few", pa.list_(pa.int64())), pa.field("ranks", pa.list_(pa.int32())))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        buckets, checks = _hashed(columns, self.bits, self.seed)
        if weights is not None and not weights.all():
            mask = weights != 0
            groups, buckets, checks = groups.take(mask), buckets[mask], checks[mask]
        # Only a group of many rows can have many buckets; to count the buckets is faster than to sort the checks too.
        large = (groups.sizes > most_told_apart(self.bits))[groups.codes]
        if not large.any():
            return self._pack(groups, _marked(buckets, checks), groups.take(large), buckets[:0])
        some = groups if large.all() else groups.take(large)
        ordered = sort_in_groups(some, buckets if large.all() else buckets[large])
        by_group = Groups(np.repeat(np.arange(some.count), some.sizes), some.count)
        fresh = run_starts(by_group, ordered)
        many = np.bincount(by_group.codes[fresh], minlength=some.count) > most_told_apart(self.bits)
        ours = many[by_group.codes]
        rest = np.flatnonzero(~many[groups.codes])
        return self._pack(groups.take(rest), _marked(buckets[rest], checks[rest]), by_group.take(ours), ordered[ours])

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        (few_offsets, few), (offsets, ranks) = (flat_lists(column) for column in accumulators)
        codes = np.repeat(groups.codes, np.diff(few_offsets))
        marked = np.asarray(few)
        many = np.bincount(groups.codes, np.diff(offsets) > 0, minlength=groups.count) > 0
        # If one side has many buckets, the buckets of the other side join them without their checks.
        joins = many[codes]
        all_codes = np.concatenate([np.repeat(groups.codes, np.diff(offsets)), codes[joins]])
        buckets = np.concatenate([np.asarray(ranks), (marked[joins] >> _SHIFT).astype(np.int32)])
        wide = Groups(all_codes, groups.count)
        by_group = Groups(np.repeat(np.arange(groups.count), wide.sizes), groups.count)
        return self._pack(Groups(codes[~joins], groups.count), marked[~joins], by_group, sort_in_groups(wide, buckets))

    def bucket_counts(self, accumulators: Accumulators) -> BucketCounts:
        """The buckets with values; of many buckets only the greatest of each register, with an unknown number."""
        (few_offsets, few), (offsets, ranks) = (flat_lists(column) for column in accumulators)
        count = len(offsets) - 1
        codes, buckets = np.repeat(np.arange(count), np.diff(few_offsets)), np.asarray(few) >> _SHIFT
        fresh = run_starts(Groups(codes, count), buckets)
        values = np.diff(np.flatnonzero(fresh), append=len(fresh))
        wide = np.repeat(np.arange(count), np.diff(offsets))
        both = Groups(np.concatenate([codes[fresh], wide]), count)
        # No group has both, so a stable order keeps the order of the buckets of each group.
        order = both.order
        every = np.concatenate([buckets[fresh], np.asarray(ranks)])[order]
        seen = np.concatenate([values, np.zeros(len(wide), np.int64)])[order]
        return BucketCounts(groups=Groups(both.codes[order], count), buckets=every, values=seen)

    def _pack(self, groups: Groups, marked: np.ndarray, wide: Groups, buckets: np.ndarray) -> Accumulators:
        """Accumulators from buckets with checks, for groups of few buckets, and from sorted buckets for the others."""
        ordered = sort_in_groups(groups, marked)
        codes = np.repeat(np.arange(groups.count), groups.sizes)
        ordered, codes = _distinct(codes, ordered)
        fresh = run_starts(Groups(codes, groups.count), ordered >> _SHIFT)
        count = np.bincount(codes[fresh], minlength=groups.count)
        late = (count > most_told_apart(self.bits))[codes]
        if late.any():
            buckets = np.concatenate([buckets, (ordered[late] >> _SHIFT).astype(np.int32)])
            both = Groups(np.concatenate([wide.codes, codes[late]]), groups.count)
            wide, buckets = Groups(both.codes[both.order], groups.count), buckets[both.order]
            ordered, codes, fresh = ordered[~late], codes[~late], fresh[~late]
        # The first check of a bucket and the two after it.
        first_three = fresh.copy()
        first_three[1:] |= fresh[:-1]
        first_three[2:] |= fresh[:-2]
        wide_groups, ranks = greatest(wide, buckets)
        few = np.bincount(codes[first_three], minlength=groups.count)
        return (
            pa.ListArray.from_arrays(
                pa.array(np.append(0, np.cumsum(few)), pa.int32()), pa.array(ordered[first_three])
            ),
            pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(wide_groups.sizes)), pa.int32()), pa.array(ranks)),
        )


def greatest(groups: Groups, buckets: np.ndarray) -> tuple[Groups, np.ndarray]:
    """The last bucket of each register, of buckets in the order of (group, register, rank)."""
    last = np.ones(len(buckets), np.bool_)
    last[:-1] = (buckets[1:] // RANKS != buckets[:-1] // RANKS) | (groups.codes[1:] != groups.codes[:-1])
    return groups.take(last), buckets[last]


def _hashed(columns: Sequence[Column], bits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The bucket and the check of each row."""
    hashes = hash_rows(columns, seed)
    register = (hashes >> np.uint64(64 - bits)).astype(np.int32)
    # The rank is the place of the lowest bit set; one more bit after the last makes sure that a bit is set.
    rest = hashes | np.uint64(1 << (64 - bits))
    lowest = rest & (~rest + np.uint64(1))
    rank = np.frexp(lowest.astype(np.float64))[1]
    mixed = hashes ^ (hashes >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    checks = (mixed >> np.uint64(32)).astype(np.uint32) % _PRIME
    return register * RANKS + rank.astype(np.int32), checks


def _marked(buckets: np.ndarray, checks: np.ndarray) -> np.ndarray:
    return (buckets.astype(np.int64) << _SHIFT) | checks


def _distinct(codes: np.ndarray, ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values in the order of (group, value), and their groups."""
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]) | (codes[1:] != codes[:-1])
    return (ordered, codes) if fresh.all() else (ordered[fresh], codes[fresh])

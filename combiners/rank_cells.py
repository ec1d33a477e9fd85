"""What distinct counts keep: which cells, each a register and a rank, saw values, and whether one, two or more.

A cell's weight says that it saw values. To tell how many, each value has a check besides, a number below a prime p,
and a cell adds up, modulo p, the weights times the powers of the checks, from the first to the fourth. These moments
and the weight make a Hankel matrix of three rows, whose rank is the number of different checks up to three: its leading
minors are sums of products of weights and of squared differences of checks (Prony's method). Moments are sums, so
values can be taken back, and a cell from which all were taken is as one that never saw any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .algebra import Accumulators, Capability, CombineFn, Weights
from .columns import Column
from .groups import Groups
from .hashing import hash_rows
from .segments import may_reach_most, require_counts
from .sorting import argsort_in_groups, run_starts, sort_in_groups
from .zset import consolidate, flat_lists, running

RANKS = 64
"""Ranks are below this; a cell is written as so many times its register plus its rank."""

PRIME = 46_337
"""The greatest of which the square is an int32, so that four numbers below it are an int64."""

_PRIME = np.uint32(PRIME)
_SHIFT = 16


@dataclass(frozen=True)
class Seen:
    """What groups saw: the cells, in order, with the group of each, and how many values it saw: 1, 2, or 3 for more.

    It is 0 where that is not known, in groups of many cells.
    """

    groups: Groups
    cells: np.ndarray
    values: np.ndarray


def most_told_apart(bits: int) -> int:
    """Up to how many cells of 2**bits registers the values of a cell are told apart."""
    return 1 << (bits - 1)


@dataclass(frozen=True)
class CellWeightsFn(CombineFn):
    """The cells with a weight or checks that are not zero, in order; 2**bits registers."""

    bits: int
    seed: int = 0
    label = "cells"
    vector = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        kinds = [("cell", pa.int32()), ("moments", pa.int64()), ("weight", pa.int64())]
        return (pa.field("cells", pa.list_(pa.struct(kinds))),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        marked = Column(pa.array(_marked(*_hashed(columns, self.bits, self.seed))))
        items = consolidate(groups, [marked], weights)
        seen = np.asarray(items.columns[0])
        # In 32 bits, which hold the products and are divided in half the time.
        checks = (seen & ((1 << _SHIFT) - 1)).astype(np.uint32)
        one = bool((items.weights == 1).all())
        moments = [checks if one else checks * (items.weights % PRIME).astype(np.uint32) % _PRIME]
        for _ in range(3):
            moments.append(moments[-1] * checks % _PRIME)
        return self._summed(items.groups, seen >> _SHIFT, items.weights, moments)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        offsets, cells, moments, weights = self._flat(accumulators)
        by_cell = Groups(np.repeat(groups.codes, np.diff(offsets)), groups.count)
        order, ordered = argsort_in_groups(by_cell, cells)
        codes = np.repeat(np.arange(groups.count), by_cell.sizes)
        return self._summed(Groups(codes, groups.count), ordered, weights[order], [moment[order] for moment in moments])

    def negate(self, accumulators: Accumulators) -> Accumulators:
        offsets, cells, moments, weights = self._flat(accumulators)
        return self._pack(offsets, cells, [(PRIME - moment) % PRIME for moment in moments], -weights)

    def seen(self, accumulators: Accumulators) -> Seen:
        """What is there: cells of positive weight."""
        offsets, cells, (a, b, c, d), weights = self._flat(accumulators)
        w, count = weights % PRIME, len(offsets) - 1
        # The second and the third leading minor of the matrix w a b / a b c / b c d.
        two = (w * b - a * a) % PRIME
        rows = ((b * d - c * c) % PRIME, (a * d - b * c) % PRIME, (a * c - b * b) % PRIME)
        three = (w * rows[0] - a * rows[1] + b * rows[2]) % PRIME
        values = np.where(three != 0, 3, np.where(two != 0, 2, 1))
        present = weights > 0
        groups = Groups(np.repeat(np.arange(count), np.diff(offsets))[present], count)
        return Seen(groups, cells[present], values[present])

    def _summed(
        self, groups: Groups, cells: np.ndarray, weights: np.ndarray, moments: Sequence[np.ndarray]
    ) -> Accumulators:
        """Cells in the order of (group, cell), equal ones added up."""
        fresh = run_starts(groups, cells)
        starts, offsets = np.flatnonzero(fresh), running(fresh)[np.append(groups.starts, len(fresh))]
        if len(starts) < len(fresh):
            if may_reach_most(weights):
                near = np.add.reduceat(weights.astype(np.float64), starts)
                require_counts(np.add.reduceat(weights, starts), near)
            weights = np.add.reduceat(weights, starts)
            moments = [np.add.reduceat(moment, starts, dtype=np.int64) % PRIME for moment in moments]
        held = np.logical_or.reduce([weights != 0, *moments])
        if not held.all():
            offsets, starts, weights = running(held)[offsets], starts[held], weights[held]
            moments = [moment[held] for moment in moments]
        return self._pack(offsets, cells[starts], moments, weights)

    def _flat(self, accumulators: Accumulators) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
        offsets, struct = flat_lists(accumulators[0])
        cells, packed, weights = (np.asarray(part) for part in struct.flatten())
        high, low = np.divmod(packed, PRIME * PRIME)
        return offsets, cells, [*np.divmod(high, PRIME), *np.divmod(low, PRIME)], weights

    def _pack(
        self, offsets: np.ndarray, cells: np.ndarray, moments: Sequence[np.ndarray], weights: np.ndarray
    ) -> Accumulators:
        kind = self.fields[0].type
        a, b, c, d = (moment.astype(np.int64) for moment in moments)
        columns = [cells.astype(np.int32), ((a * PRIME + b) * PRIME + c) * PRIME + d, weights.astype(np.int64)]
        struct = pa.StructArray.from_arrays([pa.array(column) for column in columns], fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=kind),)


@dataclass(frozen=True)
class RegistersFn(CombineFn):
    """Of few cells each with the least checks seen, at most three; of many the greatest rank of each register.

    No way back: what was seen is seen, and few cells become many for good.
    """

    bits: int
    seed: int = 0
    capability = Capability.MONOID
    label = "registers"
    vector = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("few", pa.list_(pa.int64())), pa.field("ranks", pa.list_(pa.int32())))

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        cells, checks = _hashed(columns, self.bits, self.seed)
        if weights is not None and not weights.all():
            held = weights != 0
            groups, cells, checks = groups.take(held), cells[held], checks[held]
        # Only a group of many rows can have many cells; to count them takes less than to sort checks, too.
        large = (groups.sizes > most_told_apart(self.bits))[groups.codes]
        if not large.any():
            return self._pack(groups, _marked(cells, checks), groups.take(large), cells[:0])
        some = groups if large.all() else groups.take(large)
        ordered = sort_in_groups(some, cells if large.all() else cells[large])
        by_group = Groups(np.repeat(np.arange(some.count), some.sizes), some.count)
        fresh = run_starts(by_group, ordered)
        many = np.bincount(by_group.codes[fresh], minlength=some.count) > most_told_apart(self.bits)
        ours = many[by_group.codes]
        rest = np.flatnonzero(~many[groups.codes])
        return self._pack(groups.take(rest), _marked(cells[rest], checks[rest]), by_group.take(ours), ordered[ours])

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        (few_offsets, few), (offsets, ranks) = (flat_lists(column) for column in accumulators)
        codes = np.repeat(groups.codes, np.diff(few_offsets))
        marked = np.asarray(few)
        many = np.bincount(groups.codes, np.diff(offsets) > 0, minlength=groups.count) > 0
        # Where one side has many cells, those of the other are cells like others.
        joins = many[codes]
        all_codes = np.concatenate([np.repeat(groups.codes, np.diff(offsets)), codes[joins]])
        cells = np.concatenate([np.asarray(ranks), (marked[joins] >> _SHIFT).astype(np.int32)])
        wide = Groups(all_codes, groups.count)
        by_group = Groups(np.repeat(np.arange(groups.count), wide.sizes), groups.count)
        return self._pack(Groups(codes[~joins], groups.count), marked[~joins], by_group, sort_in_groups(wide, cells))

    def seen(self, accumulators: Accumulators) -> Seen:
        """What was seen; of many cells only the greatest of each register, and not of how many values they are."""
        (few_offsets, few), (offsets, ranks) = (flat_lists(column) for column in accumulators)
        count = len(offsets) - 1
        codes, cells = np.repeat(np.arange(count), np.diff(few_offsets)), np.asarray(few) >> _SHIFT
        fresh = run_starts(Groups(codes, count), cells)
        values = np.diff(np.flatnonzero(fresh), append=len(fresh))
        wide = np.repeat(np.arange(count), np.diff(offsets))
        both = Groups(np.concatenate([codes[fresh], wide]), count)
        # No group has both, so that a stable order leaves the cells of each in theirs.
        order = both.order
        every = np.concatenate([cells[fresh], np.asarray(ranks)])[order]
        seen = np.concatenate([values, np.zeros(len(wide), np.int64)])[order]
        return Seen(Groups(both.codes[order], count), every, seen)

    def _pack(self, groups: Groups, marked: np.ndarray, wide: Groups, cells: np.ndarray) -> Accumulators:
        """Cells with checks, of groups that have few so far, and cells in order of those that have many."""
        ordered = sort_in_groups(groups, marked)
        codes = np.repeat(np.arange(groups.count), groups.sizes)
        ordered, codes = _distinct(codes, ordered)
        fresh = run_starts(Groups(codes, groups.count), ordered >> _SHIFT)
        count = np.bincount(codes[fresh], minlength=groups.count)
        late = (count > most_told_apart(self.bits))[codes]
        if late.any():
            cells = np.concatenate([cells, (ordered[late] >> _SHIFT).astype(np.int32)])
            both = Groups(np.concatenate([wide.codes, codes[late]]), groups.count)
            wide, cells = Groups(both.codes[both.order], groups.count), cells[both.order]
            ordered, codes, fresh = ordered[~late], codes[~late], fresh[~late]
        # The first of a cell and the two behind it.
        kept = fresh.copy()
        kept[1:] |= fresh[:-1]
        kept[2:] |= fresh[:-2]
        held, ranks = greatest(wide, cells)
        few = np.bincount(codes[kept], minlength=groups.count)
        return (
            pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(few)), pa.int32()), pa.array(ordered[kept])),
            pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(held.sizes)), pa.int32()), pa.array(ranks)),
        )


def greatest(groups: Groups, cells: np.ndarray) -> tuple[Groups, np.ndarray]:
    """Of cells in the order of (group, register, rank) the last of each register."""
    last = np.ones(len(cells), np.bool_)
    last[:-1] = (cells[1:] // RANKS != cells[:-1] // RANKS) | (groups.codes[1:] != groups.codes[:-1])
    return groups.take(last), cells[last]


def _hashed(columns: Sequence[Column], bits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row its cell and its check."""
    hashes = hash_rows(columns, seed)
    register = (hashes >> np.uint64(64 - bits)).astype(np.int32)
    # The rank is the place of the lowest bit set; one bit behind the last makes sure that there is one.
    rest = hashes | np.uint64(1 << (64 - bits))
    lowest = rest & (~rest + np.uint64(1))
    rank = np.frexp(lowest.astype(np.float64))[1]
    mixed = hashes ^ (hashes >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    checks = (mixed >> np.uint64(32)).astype(np.uint32) % _PRIME
    return register * RANKS + rank.astype(np.int32), checks


def _marked(cells: np.ndarray, checks: np.ndarray) -> np.ndarray:
    return (cells.astype(np.int64) << _SHIFT) | checks


def _distinct(codes: np.ndarray, ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values in the order of (group, value), each once, and their groups."""
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]) | (codes[1:] != codes[:-1])
    return (ordered, codes) if fresh.all() else (ordered[fresh], codes[fresh])

"""The most frequent values, approximately, in a state of bounded size from which values can be retracted.

The sketch is linear in the weights of the values, so sketches add up and values can be retracted. It is Count-Min of
Cormode and Muthukrishnan ("An improved data stream summary: the count-min sketch and its applications", J. Algorithms
55, 2005). A sketch has some rows of counters, called buckets here. In each row the hash of a value chooses one bucket,
and the weight of the value is added there. No value is kept. To find the heavy values, each bucket also adds up, for
each bit of a value, the weights of the values in which that bit is set ("What's hot and what's not: tracking most
frequent items dynamically", the same authors, ACM TODS 30, 2005). A value that weighs more than all others in its
bucket can be read from those sums, bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument
from ..algebra import Accumulators, Capability, CombineFn, Weights
from ..combiner import Combiner
from ..compiled import CompiledCombiner
from ..input_types import Input, expression, input_type, refuse
from ..parts import Part
from ..rows.columns import Column
from ..rows.group_sums import sum_counts
from ..rows.groups import Groups
from ..rows.hashing import hash_rows, require_seed
from ..states.zset import Items, consolidate, flat_lists
from .heavy_hitters_bits import bits_of, cut, from_bits, has_bits

_ROOM = 1 << 22
_FACTOR = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Buckets:
    """The sums of some buckets; the key of a bucket is its group times the buckets of a group, plus its number.

    Buckets are in the order of their keys. Bucket i has `sizes[i]` sums, without zeros at the end: first the sum of the
    weights, then for each bit the sum of the weights of the values in which it is set.
    """

    keys: np.ndarray
    sizes: np.ndarray
    sums: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """The place at which the sums of each bucket start."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def totals(self) -> np.ndarray:
        """The sum of the weights in each bucket."""
        return self.sums[self.starts]

    def matrix(self, chosen: np.ndarray) -> np.ndarray:
        """The sums of some buckets as the rows of a matrix."""
        sizes = self.sizes[chosen]
        column = np.arange(int(sizes.max(initial=1)))
        mask = column < sizes[:, None]
        return np.where(mask, self.sums[np.minimum(self.starts[chosen][:, None] + column, len(self.sums) - 1)], 0)

    @classmethod
    def trimmed(cls, keys: np.ndarray, matrix: np.ndarray) -> Buckets:
        """Buckets from a matrix, without zeros at the end and without buckets of zeros only."""
        filled = matrix != 0
        sizes = matrix.shape[1] - filled[:, ::-1].argmax(axis=1)
        sizes[~filled.any(axis=1)] = 0
        mask = np.arange(matrix.shape[1]) < sizes[:, None]
        return cls(keys=keys[sizes > 0], sizes=sizes[sizes > 0], sums=matrix[mask])

    @classmethod
    def joined(cls, parts: Sequence[Buckets]) -> Buckets:
        """Buckets one after the other."""
        keys, sizes, sums = ([getattr(part, name) for part in parts] for name in ("keys", "sizes", "sums"))
        none = np.empty(0, np.int64)
        return cls(*(np.concatenate([none, *arrays]) for arrays in (keys, sizes, sums)))

    def summed(self) -> Buckets:
        """The buckets with those of equal keys added up, in the order of the keys."""
        if (np.diff(self.keys) > 0).all():
            return self
        keys, numbers = np.unique(self.keys, return_inverse=True)
        width = int(self.sizes.max(initial=1))
        order = Groups(numbers, len(keys)).order
        bounds = np.append(0, np.cumsum(np.bincount(numbers, minlength=len(keys))))
        starts = self.starts
        parts = []
        step = max(_ROOM // width, 1)
        # A loop over blocks of buckets, so that the matrix stays bounded.
        for first in range(0, len(keys), step):
            last = min(first + step, len(keys))
            mine = order[bounds[first] : bounds[last]]
            sizes = self.sizes[mine]
            before = np.cumsum(sizes) - sizes
            places = np.arange(int(sizes.sum())) - np.repeat(before, sizes)
            rows = np.repeat(numbers[mine] - first, sizes)
            sums = self.sums[places + np.repeat(starts[mine], sizes)]
            matrix = sum_counts(Groups(rows * width + places, (last - first) * width), sums)
            parts.append(Buckets.trimmed(keys[first:last], matrix.reshape(-1, width)))
        return Buckets.joined(parts)


@dataclass(frozen=True)
class BucketsFn(CombineFn):
    """For each group the buckets that are not empty, of `rows` times `width` buckets of sums."""

    kind: pa.DataType
    rows: int
    width: int
    length: int
    seed: int = 0
    label = "cells"

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        bucket = pa.struct([pa.field("cell", pa.int32()), pa.field("sums", pa.list_(pa.int64()))])
        return (pa.field("cells", pa.list_(bucket)),)

    @property
    def size(self) -> int:
        """The number of buckets of a group."""
        return self.rows * self.width

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        items = consolidate(groups, [Column(cut(columns[0].array, self.length))], weights)
        codes, values = items.groups.codes, items.columns[0]
        parts: list[Buckets] = []
        first, step = 0, _ROOM // 128
        # A loop over blocks of different values, because their bits take memory; a group is cut only if it must be.
        while first < len(values):
            last = int(items.offsets[np.searchsorted(items.offsets, first + step, side="right") - 1])
            last = last if last > first else min(first + step, len(values))
            block = slice(first, last)
            parts.append(self._buckets(codes[block], values[block], items.weights[block]))
            first = last
        return self.pack(Buckets.joined(parts).summed(), groups.count)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return self.pack(self.buckets(accumulators, groups.codes).summed(), groups.count)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        buckets = self.buckets(accumulators)
        return self.pack(Buckets(keys=buckets.keys, sizes=buckets.sizes, sums=-buckets.sums), len(accumulators[0]))

    def places(self, values: pa.Array) -> np.ndarray:
        """The bucket of each value in each row of buckets; the result has one row for each of these."""
        hashes = hash_rows([Column(values)], self.seed)
        out = np.empty((self.rows, len(values)), np.int64)
        for row in range(self.rows):
            mixed = (hashes ^ np.uint64(row * _FACTOR % 2**64)) * np.uint64(_FACTOR)
            mixed ^= mixed >> np.uint64(32)
            mixed *= np.uint64(_FACTOR)
            out[row] = row * self.width + (((mixed >> np.uint64(32)) * np.uint64(self.width)) >> np.uint64(32)).astype(
                np.int64
            )
        return out

    def buckets(self, accumulators: Accumulators, codes: np.ndarray | None = None) -> Buckets:
        """The buckets of an accumulator column, with these groups (None: each accumulator is a group)."""
        offsets, struct = flat_lists(accumulators[0])
        bucket, lists = struct.flatten()
        bounds, sums = flat_lists(lists)
        codes = np.arange(len(offsets) - 1) if codes is None else codes
        keys = np.repeat(codes, np.diff(offsets)) * self.size + np.asarray(bucket)
        return Buckets(keys=keys, sizes=np.diff(bounds), sums=np.asarray(sums))

    def pack(self, buckets: Buckets, count: int) -> Accumulators:
        """The accumulator column of buckets."""
        kind = self.fields[0].type
        inner = np.append(0, np.cumsum(buckets.sizes))
        offsets = np.searchsorted(buckets.keys, np.arange(count + 1) * self.size)
        sums = pa.ListArray.from_arrays(pa.array(inner, pa.int32()), pa.array(buckets.sums))
        bucket = pa.array((buckets.keys % self.size).astype(np.int32))
        struct = pa.StructArray.from_arrays([bucket, sums], fields=list(kind.value_type))
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=kind),)

    def heavy(self, accumulators: Accumulators, share: float) -> Items:
        """The values with at least this share of a group's weight, by estimate, and their estimated weights."""
        buckets, count = self.buckets(accumulators), len(accumulators[0])
        totals, owners = buckets.totals, buckets.keys // self.size
        top = buckets.keys % self.size < self.width
        whole = sum_counts(Groups(owners[top], count), totals[top])
        least = np.maximum(np.ceil(whole * share), 1.0)
        codes, values = self._read(buckets, np.flatnonzero(totals >= least[owners]), owners)
        items = consolidate(Groups(codes, count), [Column(values)])
        codes, places = items.groups.codes, self.places(items.columns[0])
        weights = np.full(len(codes), np.iinfo(np.int64).max)
        for row in places:
            at = np.minimum(np.searchsorted(buckets.keys, codes * self.size + row), max(len(buckets.keys) - 1, 0))
            there = buckets.keys[at] == codes * self.size + row
            weights = np.minimum(weights, np.where(there, totals[at], 0))
        weights[weights < least[codes]] = 0
        return Items(offsets=items.offsets, columns=items.columns, weights=weights).present()

    def _buckets(self, codes: np.ndarray, values: pa.Array, weights: np.ndarray) -> Buckets:
        """The buckets of different values."""
        keys, numbers = np.unique(codes * self.size + self.places(values), return_inverse=True)
        numbers = numbers.reshape(self.rows, len(values))
        bits = bits_of(values)
        width = bits.shape[1] + 1
        if len(keys) * width > 4 * _ROOM and len(values) > 1:
            half = len(values) // 2
            parts = (slice(0, half), slice(half, None))
            return Buckets.joined([self._buckets(codes[p], values[p], weights[p]) for p in parts]).summed()
        matrix = np.zeros((len(keys), width), np.int64)
        # A loop over the bits of values; column 0 is the weights themselves.
        for column in range(width):
            chosen = np.arange(len(values)) if column == 0 else np.flatnonzero(bits[:, column - 1])
            if len(chosen):
                buckets = Groups(numbers[:, chosen].ravel(), len(keys))
                matrix[:, column] = sum_counts(buckets, np.tile(weights[chosen], self.rows))
        return Buckets.trimmed(keys, matrix)

    def _read(self, buckets: Buckets, chosen: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, pa.Array]:
        """The groups and values read from the sums of some buckets, if the hash of the value chooses that bucket."""
        codes, values = [np.empty(0, np.int64)], [pa.array([], self.kind)]
        step = max(_ROOM // int(buckets.sizes.max(initial=1)), 1)
        for first in range(0, len(chosen), step):
            block = chosen[first : first + step]
            matrix = buckets.matrix(block)
            bits = (2 * matrix[:, 1:] > matrix[:, :1]).astype(np.uint8)
            candidates, right = from_bits(bits, self.kind)
            block = block[right]
            belongs = (self.places(candidates) == buckets.keys[block] % self.size).any(axis=0)
            codes.append(owners[block][belongs])
            values.append(candidates.filter(pa.array(belongs)))
        return np.concatenate(codes), pa.concat_arrays(values)


@dataclass(frozen=True, repr=False)
class HeavyHitters(Combiner):
    """The k most frequent values with their approximate counts, most frequent first, from a state of bounded size.

    Law: the result is a function of sums of weights, and those add up. Capability GROUP. If N rows have a value, then
    for each value, with a probability of at least `confidence`:

    * a value that came at least `error * N` times is found,
    * the count of a found value is not below the exact count, and at most `error * N` above it.

    The promises hold for rows that nobody chose against the `seed`. If somebody may choose values that share buckets,
    pass a secret seed, such as `secrets.randbits(62)`, and keep it: accumulators of different seeds do not merge. The
    promises also need that no value was retracted more often than it came. Values with an estimated count below
    `error * N` are left out, so the list has at most 1 / `error` values, and often fewer than k. Of equally frequent
    values the least comes first. Text and binary values with the same first `length` bytes count as one value, and
    the result has these bytes only. The state has ln(1 / (1 - confidence)) * e / error buckets, 1,360 by default, each
    with a sum for each bit of a value; a small number of values uses few buckets. With up to some 50 different values
    in a key the counts are nearly always exact, which is no promise; `Mode` and `PerKey` are exact. Null is ignored.
    NaN is one value, and -0.0 equals 0.0. No values give an empty list. The module names the sources.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"page": ["/a", "/b", "/a", "/c", "/b", "/a"]})
    >>> uc.aggregate(t, top=uc.HeavyHitters("page", 2)).to_pylist()
    [{'top': [{'item': '/a', 'count': 3}, {'item': '/b', 'count': 2}]}]
    """

    input: Input
    k: int
    error: float = 0.01
    confidence: float = 0.99
    length: int = 64
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        require_seed(self.seed, "HeavyHitters")
        for name, number, most in (("k", self.k, 2**31), ("length", self.length, 1024)):
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise InvalidArgument(
                    f"HeavyHitters({name}): {name} must be a whole number from 1 to {most}, but is {number!r}"
                )
        for name, value, low, high in (
            ("error", self.error, 1e-5, 0.5),
            ("confidence", self.confidence, 0.5, 1 - 1e-9),
        ):
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidArgument(
                    f"HeavyHitters({name}): {name} must be a number from {low} to {high}, but is {value!r}"
                )

    @property
    def capability(self) -> Capability:
        return Capability.GROUP

    def compile(self, schema: pa.Schema) -> CompiledCombiner:
        kind = input_type(self.input, schema, self)
        if not has_bits(kind):
            raise refuse(self, self.input, kind, "numbers, times, booleans, text and binary values")
        rows, width = math.ceil(-math.log(1 - self.confidence)), math.ceil(math.e / self.error)
        fn = BucketsFn(kind=kind, rows=rows, width=width, length=self.length, seed=self.seed)
        output = pa.list_(pa.struct([pa.field("item", kind), pa.field("count", pa.int64())]))

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            items = fn.heavy(parts[0], self.error)
            codes = items.groups.codes
            order = np.lexsort((-items.weights, codes))
            rank = np.arange(len(order)) - items.offsets[codes]
            order = order[rank < self.k]
            sizes = np.minimum(np.diff(items.offsets), self.k)
            columns = [items.columns[0].take(pa.array(order)), pa.array(items.weights[order])]
            struct = pa.StructArray.from_arrays(columns, fields=list(output.value_type))
            return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(sizes)), pa.int32()), struct, type=output)

        return CompiledCombiner(parts=(Part(fn, (expression(self.input),)),), finish=finish, output=output)

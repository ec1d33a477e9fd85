"""Approximately how many different values, in a state of bounded size.

The sketch is HyperLogLog of Flajolet, Fusy, Gandouet and Meunier ("HyperLogLog: the analysis of a
near-optimal cardinality estimation algorithm", AofA 2007): some bits of a value's hash choose one of m
registers, the others give a rank that is k with probability 2**-k, and a register is the greatest rank
seen. A greatest rank cannot be taken back, so the retractable form counts how often each (register, rank)
came: a Z-set of at most 64 m items, whose greatest present ranks are the registers. The estimate from the
registers, which needs neither tables nor thresholds, is that of Ertl ("New cardinality estimation
algorithms for HyperLogLog sketches", arXiv:1702.01284, algorithm 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .algebra import Accumulators, Capability, CombineFn, Weights
from .columns import Column
from .combiner import Combiner, Input, Lowered, Part, expression, input_type
from .distinct import as_inputs, inputs_of
from .groups import Groups
from .hashing import hash_rows, require_hash
from .sorting import sort_in_groups
from .zset import ZSet, flat_lists

_RANKS = 64
_LEAST_ERROR = 0.0021
_ZSET = ZSet((pa.int32(),), ("rank",))


@dataclass(frozen=True)
class RankCountsFn(CombineFn):
    """Z-sets of (register, rank), written as 64 times the register plus the rank; 2**bits registers."""

    bits: int
    label = "ranks"
    vector = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return _ZSET.fields

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        return _ZSET.add(groups, Column(pa.array(_ranks(columns, self.bits))), weights=weights)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        return _ZSET.merge(groups, accumulators)

    def negate(self, accumulators: Accumulators) -> Accumulators:
        return _ZSET.negate(accumulators)

    def registers(self, accumulators: Accumulators) -> tuple[Groups, np.ndarray]:
        """The greatest ranks that are there, in the form of the Z-set."""
        held = _ZSET.items(accumulators).present()
        return _greatest(held.groups, np.asarray(held.columns[0]))


@dataclass(frozen=True)
class RegistersFn(CombineFn):
    """Only the greatest rank of each register that saw a value: no way back."""

    bits: int
    capability = Capability.MONOID
    label = "registers"
    vector = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field("ranks", pa.list_(pa.int32())),)

    def add(self, groups: Groups, *columns: Column, weights: Weights = None) -> Accumulators:
        ranks = _ranks(columns, self.bits)
        if weights is not None and not weights.all():
            held = weights != 0
            groups, ranks = groups.take(held), ranks[held]
        return self._pack(groups, ranks)

    def merge(self, groups: Groups, accumulators: Accumulators) -> Accumulators:
        offsets, ranks = flat_lists(accumulators[0])
        return self._pack(Groups(np.repeat(groups.codes, np.diff(offsets)), groups.count), np.asarray(ranks))

    def registers(self, accumulators: Accumulators) -> tuple[Groups, np.ndarray]:
        """The ranks, flat, with the group of each."""
        offsets, ranks = flat_lists(accumulators[0])
        count = len(offsets) - 1
        return Groups(np.repeat(np.arange(count), np.diff(offsets)), count), np.asarray(ranks)

    def _pack(self, groups: Groups, ranks: np.ndarray) -> Accumulators:
        by_group = Groups(np.repeat(np.arange(groups.count), groups.sizes), groups.count)
        held, ranks = _greatest(by_group, sort_in_groups(groups, ranks))
        offsets = np.append(0, np.cumsum(held.sizes))
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ranks)),)


@dataclass(frozen=True, repr=False)
class ApproxCountDistinct(Combiner):
    """About how many different values a column has, or how many different rows some columns have.

    Law: it is a function of the counts of (register, rank), and those add up. The standard error of the
    result, relative to the exact number, is at most `error`: two results of three are that close, 19 of 20
    within twice that; with fewer values than registers it is about half of that. The registers are the
    least power of two that is at least (1.04 / error) squared and 128, so 4,096 for the default.
    With `retractable=True` (the default) a Z-set of (register, rank), of n values about m log2(n / m)
    items: GROUP. With `retractable=False` one number for each register: MONOID, with the same results. Null
    is ignored, and so is a row with a null in any of several columns; NaN is one value, -0.0 equals 0.0. No
    values give 0. See this module for the sources.

    >>> import pyarrow as pa, uncombine as uc
    >>> t = pa.table({"x": list(range(1000)) * 2})
    >>> uc.aggregate(t, n=uc.ApproxCountDistinct("x"), rough=uc.ApproxCountDistinct("x", 0.09)).to_pylist()
    [{'n': 1005, 'rough': 966}]
    """

    input: Input | Sequence[Input]
    error: float = 0.02
    retractable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", as_inputs(self.input, self))
        error = self.error
        if isinstance(error, bool) or not isinstance(error, int | float) or not _LEAST_ERROR <= error < 1:
            raise InvalidArgument(f"error is at least {_LEAST_ERROR} and below 1, and {error!r} is not")

    @property
    def bits(self) -> int:
        """The logarithm of the number of registers."""
        # With fewer than 128 registers the estimate is worse than its formula.
        return max(math.ceil(2 * math.log2(1.04 / self.error)), 7)

    @property
    def capability(self) -> Capability:
        return Capability.GROUP if self.retractable else Capability.MONOID

    def append_only(self) -> Combiner:
        return replace(self, retractable=False)

    def of(self, *inputs: Input) -> Combiner:
        return replace(self, input=inputs)

    def lower(self, schema: pa.Schema) -> Lowered:
        given = inputs_of(self.input)
        for one in given:
            require_hash(input_type(one, schema, self), self, one)
        bits = self.bits
        fn = RankCountsFn(bits) if self.retractable else RegistersFn(bits)

        def finish(parts: Sequence[Accumulators]) -> pa.Array:
            return pa.array(np.rint(estimates(*fn.registers(parts[0]), bits)).astype(np.int64))

        return Lowered((Part(fn, tuple(expression(one) for one in given)),), finish, pa.int64())


def estimates(groups: Groups, ranks: np.ndarray, bits: int) -> np.ndarray:
    """How many values filled the registers of each group, from the registers that saw one."""
    size, top = 1 << bits, 65 - bits
    counts = np.bincount(groups.codes * (top + 1) + ranks % _RANKS, minlength=groups.count * (top + 1))
    counts = counts.reshape(groups.count, top + 1).astype(np.float64)
    unseen = size - counts.sum(axis=1)
    total = size * _tau(1.0 - counts[:, top] / size)
    for rank in range(top - 1, 0, -1):
        total = 0.5 * (total + counts[:, rank])
    total += size * _sigma(unseen / size)
    return size * (size / (2.0 * math.log(2.0))) / total


def _sigma(x: np.ndarray) -> np.ndarray:
    """The sum x + x**2 + 2 x**4 + 4 x**8 + ...; infinite at 1."""
    whole = x == 1.0
    power = np.where(whole, 0.0, x)
    total, factor = power.copy(), 1.0
    while True:
        power = power * power
        step = power * factor
        if not (total + step != total).any():
            return np.where(whole, np.inf, total)
        total += step
        factor *= 2.0


def _tau(x: np.ndarray) -> np.ndarray:
    """A third of 1 - x - (1 - x**(1/2))**2 / 2 - (1 - x**(1/4))**2 / 4 - ...; zero at 0 and 1."""
    root = np.where(x == 0.0, 1.0, x)
    total, factor = 1.0 - root, 1.0
    while True:
        root = np.sqrt(root)
        factor *= 0.5
        step = (1.0 - root) ** 2 * factor
        if not (total - step != total).any():
            return total / 3.0
        total -= step


def _ranks(columns: Sequence[Column], bits: int) -> np.ndarray:
    """For each row 64 times its register plus its rank."""
    hashes = hash_rows(columns)
    register = (hashes >> np.uint64(64 - bits)).astype(np.int32)
    # The rank is the place of the lowest bit set; one bit behind the last makes sure that there is one.
    rest = hashes | np.uint64(1 << (64 - bits))
    lowest = rest & (~rest + np.uint64(1))
    rank = np.frexp(lowest.astype(np.float64))[1]
    return register * _RANKS + rank.astype(np.int32)


def _greatest(groups: Groups, ranks: np.ndarray) -> tuple[Groups, np.ndarray]:
    """Of ranks in the order of (group, register, rank) the last of each register."""
    last = np.ones(len(ranks), np.bool_)
    last[:-1] = (ranks[1:] // _RANKS != ranks[:-1] // _RANKS) | (groups.codes[1:] != groups.codes[:-1])
    return groups.take(last), ranks[last]

"""Wrong columnar combiners, bare or made with `from_columns`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import uncombine as uc

from . import CANCELLATIVE, DOUBLE, LONG, MONOID, TEXT, Given
from .columnar import MaxFn, TotalFn
from .wrong_weights import (
    ByteWeights,
    FirstColumnWeighed,
    HeavyRetractionsLost,
    NarrowWeights,
    NoRetractions,
    NoWeights,
    SignOfWeights,
)

SMALL = st.integers(-100, 100)


def raw(array: pa.Array) -> np.ndarray:
    """The memory of an int64 array from its beginning, wherever the array begins."""
    return np.frombuffer(array.buffers()[1], np.int64)


class WholeRuns(TotalFn):
    """A merge of so many accumulators of the same groups in the same order, and of nothing else."""

    def merge(self, groups, accumulators):
        if not len(groups):
            return self.zeros(groups.count)
        if len(groups) % groups.count:
            return super().merge(groups, accumulators)
        return tuple(pa.array(np.asarray(a).reshape(-1, groups.count).sum(0)) for a in accumulators)

    def zeros(self, count):
        return tuple(pa.array(np.zeros(count, np.int64)) for _ in self.fields)


class SortedGroups(TotalFn):
    """Adds up runs of one code, as if each group were one run."""

    def merge(self, groups, accumulators):
        codes = groups.codes
        starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(codes) else codes
        out = np.zeros((2, groups.count), np.int64)
        for into, a in zip(out, accumulators, strict=True):
            into[codes[starts]] = np.add.reduceat(np.asarray(a), starts) if len(codes) else 0
        return (
            tuple(map(pa.array, out)) if groups.count < 4 and _repeats(codes) else super().merge(groups, accumulators)
        )


def _repeats(codes):
    return len(codes) > 1 and bool((codes[1:] == codes[:-1]).any())


class NoGroupEmpty(TotalFn):
    """`reduceat` over the starts of groups, which gives a neighbour's value for an empty group."""

    def sums(self, codes, values, count):
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes, minlength=count)
        starts = np.cumsum(sizes) - sizes
        if not len(codes):
            return np.zeros(count, np.int64)
        return np.add.reduceat(np.asarray(values)[order], np.minimum(starts, len(codes) - 1))


class ShortResult(TotalFn):
    """Forgets the empty groups at the end."""

    def sums(self, codes, values, count):
        out = super().sums(codes, values, count)
        return out[: codes.max() + 1] if len(codes) else out


class ByteCodes(TotalFn):
    def sums(self, codes, values, count):
        return super().sums(codes.astype(np.uint8), values, max(count, 256))[:count]


class ShortCodes(TotalFn):
    def sums(self, codes, values, count):
        return super().sums(codes.astype(np.uint16), values, max(count, 2**16))[:count]


class OffsetLost(TotalFn):
    def merge(self, groups, accumulators):
        held = [raw(a)[: len(a)] for a in accumulators]
        return tuple(pa.array(self.sums(groups.codes, values, groups.count)) for values in held)


class OffsetOfColumnLost(TotalFn):
    def weighed(self, columns, weights):
        return raw(columns[0].array)[: len(weights)] * weights, weights


class OffsetLostInExtract(TotalFn):
    def extract(self, accumulators):
        return pa.Array.from_buffers(LONG, len(accumulators[0]), [None, accumulators[0].buffers()[1]])


class FloatSums(TotalFn):
    def sums(self, codes, values, count):
        with np.errstate(invalid="ignore"):
            return np.bincount(codes, values, count).astype(np.int64)


class NarrowSums(TotalFn):
    fields = (pa.field("total", pa.int32()), pa.field("n", pa.int32()))

    def sums(self, codes, values, count):
        return super().sums(codes, values, count).astype(np.int32)

    def extract(self, accumulators):
        return super().extract(accumulators).cast(LONG)


class Running(TotalFn):
    """Differences of a running sum over all rows, whatever their groups."""

    def sums(self, codes, values, count):
        out = np.zeros(count, np.int64)
        running = np.cumsum(values)
        last = np.r_[codes[1:] != codes[:-1], True] if len(codes) else np.zeros(0, np.bool_)
        out[codes[last]] = np.diff(running[last], prepend=0) if len(codes) else 0
        return out


class Shares(TotalFn):
    """Its result is a share of the total of all groups at hand."""

    def extract(self, accumulators):
        total = np.asarray(accumulators[0]).astype(np.float64)
        return pa.array(total / max(abs(total).sum(), 1.0))


class LargestAside(TotalFn):
    """Values are counted from the least of their batch."""

    def weighed(self, columns, weights):
        values = columns[0].values
        return (values - (values.min() if len(values) > 5 else 0)) * weights, weights


class WritesWeights(TotalFn):
    def weighed(self, columns, weights):
        weights *= columns[0].values
        return weights, np.sign(weights)


class WritesAccumulators(TotalFn):
    def merge(self, groups, accumulators):
        merged = super().merge(groups, accumulators)
        memory = accumulators[1].buffers()[1]
        ctypes.memset(memory.address, 0, memory.size)
        return merged


class WritesCodes(TotalFn):
    def add(self, groups, *columns, weights=None):
        groups.codes.sort()
        return super().add(groups, *columns, weights=weights)


class RemembersRows(TotalFn):
    """Keeps in itself what it gave, and merges that."""

    def __init__(self):
        self.added = {}

    def add(self, groups, *columns, weights=None):
        added = super().add(groups, *columns, weights=weights)
        self.added.update((t, t) for t in added[0].to_pylist())
        return added

    def extract(self, accumulators):
        return pa.array([self.added.get(t, 0) + (t - self.added.get(t, t)) for t in accumulators[0].to_pylist()], LONG)


class LastOfThree(TotalFn):
    """Forgets every accumulator of a group after the third."""

    def merge(self, groups, accumulators):
        seen: dict[int, int] = {}
        kept = []
        for i, code in enumerate(groups.codes.tolist()):
            seen[code] = seen.get(code, 0) + 1
            if seen[code] <= 3:
                kept.append(i)
        return super().merge(
            groups.take(np.array(kept, np.int64)), tuple(a.take(pa.array(kept, LONG)) for a in accumulators)
        )


class OtherWay(TotalFn):
    """The size of the difference."""

    def uncombine(self, accumulators, others):
        pairs = zip(map(np.asarray, accumulators), map(np.asarray, others), strict=True)
        return tuple(pa.array(np.maximum(a, b) - np.minimum(a, b)) for a, b in pairs)


class NegatesFirst(TotalFn):
    def negate(self, accumulators):
        return pa.array(-np.asarray(accumulators[0])), accumulators[1]


class FloatsInPlace(TotalFn):
    """A count as a float, whose negative zero is not zero."""

    fields = (pa.field("total", LONG), pa.field("n", DOUBLE))

    def add(self, groups, *columns, weights=None):
        total, n = super().add(groups, *columns, weights=weights)
        return total, n.cast(DOUBLE)

    def merge(self, groups, accumulators):
        n = np.full(groups.count, -0.0)
        np.add.at(n, groups.codes, np.asarray(accumulators[1]))
        return super().merge(groups, (accumulators[0], accumulators[1].cast(LONG)))[0], pa.array(n)

    def negate(self, accumulators):
        return tuple(pa.array(-np.asarray(a)) for a in accumulators)


class WrongType(TotalFn):
    def merge(self, groups, accumulators):
        return tuple(a.cast(DOUBLE) for a in super().merge(groups, accumulators))


class LeastOfNone(MaxFn):
    def best(self, codes, values, count):
        return super().best(codes, np.maximum(values, values.min()), count)


class LastRow(MaxFn):
    """numpy's assignment keeps the last of several."""

    def best(self, codes, values, count):
        out, seen = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        out[codes] = values
        seen[codes] = True
        return pa.array(out), pa.array(seen)


class FromZero(MaxFn):
    least = 0


class ThroughFloats(MaxFn):
    def best(self, codes, values, count):
        return super().best(codes, values.astype(np.float64).astype(np.int64), count)


class InShortFloats(MaxFn):
    fields = (pa.field("max", pa.float32()), pa.field("seen", pa.bool_()))
    least, number = -np.inf, np.float32

    def extract(self, accumulators):
        return pc.if_else(accumulators[1], accumulators[0].cast(DOUBLE), None)


class NaNInTheWay(MaxFn):
    """Compares with >, which NaN never wins nor loses."""

    fields = (pa.field("max", DOUBLE), pa.field("seen", pa.bool_()))

    def best(self, codes, values, count):
        out, seen = [0.0] * count, [False] * count
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            if not seen[code] or value > out[code]:
                out[code], seen[code] = value, True
        return pa.array(out, from_pandas=False), pa.array(seen)


class ZerosByTheirSign(NaNInTheWay):
    """Tells -0.0 from 0.0, as bits do."""

    def best(self, codes, values, count):
        order = np.argsort(np.signbit(values) * -1.0, kind="stable")
        return super().best(codes[order], np.nan_to_num(np.copysign(1.0, values[order])), count)


class Seconds(MaxFn):
    def add(self, groups, *columns, weights=None):
        here = np.ones(len(groups), np.bool_) if weights is None else weights > 0
        return self.best(groups.codes[here], columns[0].values[here] // 1_000_000, groups.count)

    def extract(self, accumulators):
        times = pa.array(np.asarray(accumulators[0]) * 1_000_000).cast(pa.timestamp("us"))
        return pc.if_else(accumulators[1], times, None)


class Prefix(uc.CombineFn):
    """The least text, by its first eight characters."""

    capability = MONOID
    fields = (pa.field("least", TEXT),)

    def add(self, groups, *columns, weights=None):
        values = pc.utf8_slice_codeunits(columns[0].array, 0, 8)
        return self.merge(groups, (values if weights is None else pc.if_else(pa.array(weights > 0), values, None),))

    def merge(self, groups, accumulators):
        held: list[Any] = [None] * groups.count
        for code, text in zip(groups.codes.tolist(), accumulators[0].to_pylist(), strict=True):
            held[code] = min((t for t in (held[code], text) if t is not None), default=None)
        return (pa.array(held, TEXT),)

    def extract(self, accumulators):
        return accumulators[0]


def made(fn: uc.CombineFn, output: pa.DataType = LONG, **named: Any) -> Given:
    return uc.from_columns(type(fn).__name__, fn, output=output)("x"), {"values": SMALL, **named}


def bare(fn: uc.CombineFn, **named: Any) -> Given:
    return fn, {"values": SMALL, **named}


class HalvedMean(TotalFn):
    """Its merge weighs both sides alike."""

    capability = CANCELLATIVE

    def merge(self, groups, accumulators):
        total, n = super().merge(groups, accumulators)
        return total, pc.divide(n, 2) if groups.count > 3 else n


WRONG: dict[str, Given] = {
    "whole runs": made(WholeRuns()),
    "whole runs, bare": bare(WholeRuns()),
    "groups in one run each": made(SortedGroups()),
    "no group is empty": bare(NoGroupEmpty()),
    "empty groups at the end": made(ShortResult()),
    "codes of one byte": made(ByteCodes()),
    "codes of two bytes": bare(ShortCodes()),
    "the offset of accumulators": made(OffsetLost()),
    "the offset of a column": bare(OffsetOfColumnLost()),
    "the offset in extract": bare(OffsetLostInExtract()),
    "sums in floats": made(FloatSums()),
    "sums in floats, of large numbers": bare(FloatSums(), values=LONG),
    "sums in four bytes": made(NarrowSums(), values=LONG, expected=sum),
    "no weights": bare(NoWeights()),
    "the sign of weights": made(SignOfWeights()),
    "retractions of one row only": made(HeavyRetractionsLost()),
    "weights of four bytes": made(NarrowWeights()),
    "weights of one byte": bare(ByteWeights()),
    "no retractions": made(NoRetractions()),
    "weights on the first of two columns": bare(FirstColumnWeighed(), values=(SMALL, SMALL)),
    "a running sum": made(Running()),
    "a share of all groups": made(Shares(), DOUBLE),
    "counted from the least of a batch": made(LargestAside()),
    "writes into weights": bare(WritesWeights()),
    "writes into accumulators": bare(WritesAccumulators()),
    "writes into codes": made(WritesCodes()),
    "remembers rows": made(RemembersRows()),
    "three accumulators a group": bare(LastOfThree()),
    "a difference without a sign": made(OtherWay()),
    "half of it negated": bare(NegatesFirst()),
    "negative zero": bare(FloatsInPlace()),
    "another type": made(WrongType()),
    "the least of no rows": bare(LeastOfNone()),
    "the last row": made(LastRow()),
    "greatest, from zero": made(FromZero(), expected=max),
    "greatest, through floats": bare(ThroughFloats(), values=LONG, expected=max),
    "greatest, in short floats": bare(InShortFloats(), values=LONG, expected=max),
    "NaN in the way": bare(NaNInTheWay(), values=DOUBLE),
    "zeros by their sign": bare(ZerosByTheirSign(), values=DOUBLE),
    "times cut to seconds": bare(Seconds(), values=pa.timestamp("us"), expected=max),
    "the first eight characters": bare(Prefix(), values=TEXT, expected=min),
    "a count that is halved": bare(HalvedMean()),
}

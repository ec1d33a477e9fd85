"""Right combiners of many kinds, none of which the law kit may flag."""

from __future__ import annotations

import hashlib
import math
import statistics
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.laws import typed

from . import CANCELLATIVE, DOUBLE, FLAG, GROUP, LONG, MONOID, TEXT, Given, itself, scalar, struct
from .columnar import MaxFn, TotalFn
from .wrong_scalars import (
    LONGS,
    MODE,
    PAIR,
    TEXTS,
    bag,
    best,
    counted,
    extreme,
    float_sum,
    long_sum,
    plus,
    welford,
)

FLOATS = st.floats(-1e6, 1e6)
SMALL, WORDS = st.integers(-100, 100), st.sampled_from(["", "a", "b", "ab", "a,b", "long"])
x, y = uc.col("x"), uc.col("y")


def one(make: Any, **named: Any) -> Given:
    return make("x"), {"values": SMALL, **named}


def two(make: Any, **named: Any) -> Given:
    return make("x", "y"), {"values": (SMALL, SMALL), **named}


def sums(m: Any, n: int) -> float:
    """The bound of a plain float sum."""
    return n * 2.0**-52 * math.fsum(m)


def entries(s: Any, t: Any, sign: int = 1) -> Any:
    pairs = counted([(u["item"], u["n"]) for u in s], [(u["item"], sign * u["n"]) for u in t])
    return [{"item": item, "n": n} for item, n in pairs if n]


def digest(value: int) -> int:
    return int.from_bytes(hashlib.sha256(str(value).encode()).digest()[:7], "big")


def registers(s: list[int], value: int) -> list[int]:
    place, rest = digest(value) % 16, digest(value) // 16
    rank = (rest & -rest).bit_length()
    return [max(held, rank) if i == place else held for i, held in enumerate(s)]


class Adder:
    """Functions as methods of an object."""

    def __init__(self, step: int) -> None:
        self.step = step

    def create(self) -> int:
        return 0

    def add(self, s: int, value: int) -> int:
        return s + self.step * value

    def merge(self, s: int, t: int) -> int:
        return s + t


adder = Adder(3)
by_time = partial(best, pick=lambda s, t: max(s, t, key=lambda u: (u["y"], u["x"])))


class FloatTotalFn(uc.CombineFn):
    """A fast sum, with its bound."""

    capability = CANCELLATIVE
    fields = (pa.field("sum", DOUBLE),)

    def add(self, groups, *columns, weights=None):
        return self.merge(groups, (pa.array(columns[0].values * (1 if weights is None else weights)),))

    def merge(self, groups, accumulators):
        return (pa.array(np.bincount(groups.codes, np.asarray(accumulators[0]), groups.count).astype(np.float64)),)

    def negate(self, accumulators):
        return (pa.array(-np.asarray(accumulators[0])),)

    def extract(self, accumulators):
        return accumulators[0]

    def tolerance(self, magnitudes, count):
        return sums(magnitudes, count)


class BitsFn(uc.CombineFn):
    """A set of 64 values as bits."""

    capability = MONOID
    fields = (pa.field("bits", pa.uint64()),)

    def add(self, groups, *columns, weights=None):
        bits = np.uint64(1) << (columns[0].values % 64).astype(np.uint64)
        return self.merge(groups, (pa.array(bits if weights is None else np.where(weights > 0, bits, np.uint64(0))),))

    def merge(self, groups, accumulators):
        out = np.zeros(groups.count, np.uint64)
        np.bitwise_or.at(out, groups.codes, np.asarray(accumulators[0]))
        return (pa.array(out),)

    def extract(self, accumulators):
        return pa.array([bin(bits).count("1") for bits in accumulators[0].to_pylist()], LONG)


class BinsFn(TotalFn):
    """Counts of three bins in a list of fixed size."""

    fields = (pa.field("bins", pa.list_(LONG, 3)),)

    def add(self, groups, *columns, weights=None):
        weights = np.ones(len(groups), np.int64) if weights is None else weights
        out = np.zeros((groups.count, 3), np.int64)
        np.add.at(out, (groups.codes, np.digitize(columns[0].values, [0, 10])), weights)
        return (self.packed(out),)

    def packed(self, out):
        return pa.FixedSizeListArray.from_arrays(pa.array(out.ravel()), 3)

    def rows(self, accumulators):
        return np.asarray(accumulators[0].flatten()).reshape(-1, 3)

    def merge(self, groups, accumulators):
        out = np.zeros((groups.count, 3), np.int64)
        np.add.at(out, groups.codes, self.rows(accumulators))
        return (self.packed(out),)

    def negate(self, accumulators):
        return (self.packed(-self.rows(accumulators)),)

    def extract(self, accumulators):
        return accumulators[0].cast(LONGS)


class ListFn(uc.CombineFn):
    """All values as a sorted list, each as often as it weighs."""

    capability = MONOID
    fields = (pa.field("values", LONGS),)

    def add(self, groups, *columns, weights=None):
        times = np.ones(len(groups), np.int64) if weights is None else weights
        return self.lists(np.repeat(groups.codes, times), np.repeat(columns[0].values, times), groups.count)

    def lists(self, codes, values, count):
        order = np.lexsort((values, codes))
        offsets = np.append(0, np.cumsum(np.bincount(codes, minlength=count)))
        return (pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values[order], LONG)),)

    def merge(self, groups, accumulators):
        lengths = np.asarray(pc.list_value_length(accumulators[0])).astype(np.int64)
        return self.lists(np.repeat(groups.codes, lengths), np.asarray(accumulators[0].flatten()), groups.count)

    def extract(self, accumulators):
        return accumulators[0]


Mean = scalar(
    "Mean", lambda: {"sum": 0, "n": 0}, lambda s, v: plus(s, {"sum": v, "n": 1}), plus,
    lambda s: s["sum"] / s["n"] if s["n"] else None, PAIR, DOUBLE, lambda s, t: plus(s, t, -1), capability=GROUP,
)  # fmt: skip
FloatMean = scalar(
    "FloatMean", lambda: {"sum": 0.0, "n": 0}, lambda s, v: plus(s, {"sum": float(v), "n": 1}), plus,
    lambda s: s["sum"] / s["n"] if s["n"] else None, struct(sum=DOUBLE, n=LONG), DOUBLE,
    lambda s, t: plus(s, t, -1), tolerance=sums,
)  # fmt: skip
Total = uc.from_columns("Total", TotalFn(), output=LONG)
MOMENTS = struct(n=LONG, s=LONG, q=LONG)


def spread(s: Any) -> Any:
    return float(Fraction(s["n"] * s["q"] - s["s"] ** 2, s["n"] ** 2)) if s["n"] else None


RIGHT: dict[str, Given] = {
    "mean of whole numbers": one(Mean, expected=statistics.fmean),
    "mean of any whole numbers": one(Mean, values=LONG),
    "mean of floats": one(FloatMean, values=FLOATS, expected=statistics.fmean),
    "mean of whole numbers, in floats": one(scalar(
        "Mean", lambda: {"sum": 0.0, "n": 0}, lambda s, v: plus(s, {"sum": v, "n": 1}), plus,
        lambda s: s["sum"] / s["n"] if s["n"] else 0.0, struct(sum=DOUBLE, n=LONG), DOUBLE,
        lambda s, t: plus(s, t, -1),
    ), expected=statistics.fmean),
    "sum of floats": one(float_sum("Sum", tolerance=sums), values=FLOATS, expected=sum),
    "sum of any whole numbers": one(long_sum("Sum"), values=LONG, expected=sum),
    "sum of one byte": one(long_sum("Sum"), values=pa.int8()),
    "sum of a vector": one(scalar(
        "Powers", lambda: [0, 0, 0], lambda s, v: [s[0] + 1, s[1] + v, s[2] + v * v],
        lambda s, t: [a + b for a, b in zip(s, t, strict=True)], itself, LONGS, LONGS,
        lambda s, t: [a - b for a, b in zip(s, t, strict=True)], capability=GROUP,
    ), expected=lambda vs: [len(vs), sum(vs), sum(v * v for v in vs)]),
    "a Z-set": one(scalar(
        "Counts", list, lambda s, v: entries(s, [{"item": v, "n": 1}]), entries, itself, MODE, MODE,
        lambda s, t: entries(s, t, -1), capability=GROUP,
    ), values=st.integers(0, 9)),
    "a bag": one(bag("Bag"), expected=len),
    "a median": one(bag(
        "Median", extract=lambda s: statistics.median(s) if s else None, output=DOUBLE
    ), expected=statistics.median),
    "a map of counts": one(scalar(
        "Counts", list, lambda s, v: counted(s, [(v, 1)]), counted, itself, pa.map_(LONG, LONG), pa.map_(LONG, LONG)
    ), values=st.integers(0, 9)),
    "greatest by another column": two(scalar(
        "Latest", lambda: None, lambda s, a, b: by_time(s, {"x": a, "y": b}), by_time, lambda s: s and s["x"],
        struct(x=LONG, y=LONG), LONG,
    ), expected=lambda a, b: max(zip(b, a, strict=True))[1]),
    "maximum": one(extreme("Max"), expected=max),
    "maximum of any whole numbers": one(extreme("Max"), values=LONG, expected=max),
    "minimum of texts": one(extreme("Min", min, state=TEXT, output=TEXT), values=TEXT, expected=min),
    "latest time": one(
        extreme("Latest", state=pa.timestamp("us", "UTC"), output=pa.timestamp("us", "UTC")),
        values=pa.timestamp("us", "UTC"), expected=max,
    ),
    "from the first to the last": one(scalar(
        "Span", lambda: None, lambda s, v: best(s, [v, v], lambda s, t: [min(s[0], t[0]), max(s[1], t[1])]),
        lambda s, t: best(s, t, lambda s, t: [min(s[0], t[0]), max(s[1], t[1])]), lambda s: s and s[1] - s[0],
        pa.list_(pa.timestamp("us")), pa.duration("us"),
    ), values=pa.timestamp("us")),
    "total duration": one(scalar(
        "Duration", lambda: 0, lambda s, v: s + v // (v.resolution), lambda s, t: s + t, itself, LONG, LONG,
        lambda s, t: s - t, capability=GROUP,
    ), values=pa.duration("us")),
    "texts joined in order": one(scalar(
        "Joined", list, lambda s, v: sorted([*s, v]), lambda s, t: sorted(s + t), "|".join, TEXTS, TEXT
    ), values=WORDS, expected=lambda vs: "|".join(sorted(vs))),
    "longest text": one(extreme(
        "Longest", lambda s, t: max(s, t, key=lambda u: (len(u), u)), state=TEXT, output=TEXT
    ), values=WORDS),
    "distinct texts": one(
        bag("Distinct", add=lambda s, v: sorted({*s, v}), merge=lambda s, t: sorted({*s, *t}), state=TEXTS),
        values=TEXT, expected=lambda vs: len(set(vs)),
    ),
    "geometric mean": one(scalar(
        "Geometric", lambda: {"log": 0.0, "n": 0}, lambda s, v: plus(s, {"log": math.log(v), "n": 1}), plus,
        lambda s: math.exp(s["log"] / s["n"]) if s["n"] else None, struct(log=DOUBLE, n=LONG), DOUBLE,
        lambda s, t: plus(s, t, -1), tolerance=lambda m, n: 1e-12 * n * max(m, default=0.0),
    ), values=st.floats(0.5, 1e6), expected=statistics.geometric_mean),
    "decimals": one(
        long_sum("Sum", create=lambda: Decimal("0.00"), state=pa.decimal128(38, 2), output=pa.decimal128(38, 2)),
        values=pa.decimal128(10, 2), expected=sum,
    ),
    "any decimals": one(
        long_sum("Sum", create=lambda: Decimal("0.00"), state=pa.decimal128(38, 2), output=pa.decimal128(38, 2)),
        values=typed(pa.decimal128(9, 2), st.decimals("-9999999.99", "9999999.99", places=2)), expected=sum,
    ),
    "variance by running means": one(welford("Variance"), expected=statistics.pvariance),
    "exact variance": one(scalar(
        "Variance", lambda: {"n": 0, "s": 0, "q": 0}, lambda s, v: plus(s, {"n": 1, "s": v, "q": v * v}), plus, spread,
        MOMENTS, DOUBLE, lambda s, t: plus(s, t, -1), capability=GROUP,
    ), expected=statistics.pvariance),
    "covariance": two(scalar(
        "Covariance", lambda: {"n": 0, "x": 0, "y": 0, "p": 0},
        lambda s, a, b: plus(s, {"n": 1, "x": a, "y": b, "p": a * b}), plus,
        lambda s: float(Fraction(s["n"] * s["p"] - s["x"] * s["y"], s["n"] * (s["n"] - 1))) if s["n"] > 1 else None,
        struct(n=LONG, x=LONG, y=LONG, p=LONG), DOUBLE, lambda s, t: plus(s, t, -1), capability=GROUP,
    ), expected=statistics.covariance),
    "weighted mean": two(scalar(
        "Weighted", lambda: {"p": 0, "w": 0}, lambda s, v, w: plus(s, {"p": v * w, "w": w}), plus,
        lambda s: s["p"] / s["w"] if s["w"] else None, struct(p=LONG, w=LONG), DOUBLE, lambda s, t: plus(s, t, -1),
        capability=GROUP,
    ), expected=lambda a, w: sum(map(int.__mul__, a, w)) / sum(w)),
    "parity": one(long_sum(
        "Parity", add=lambda s, v: s ^ (v & 1), merge=lambda s, t: s ^ t, uncombine=lambda s, t: s ^ t
    ), expected=lambda vs: sum(vs) % 2),
    "bits set": one(long_sum(
        "Or", add=lambda s, v: s | v, merge=lambda s, t: s | t, uncombine=None, capability=None
    ), values=st.integers(0, 2**40)),
    "all of them": one(scalar(
        "All", lambda: {"n": 0, "true": 0}, lambda s, v: plus(s, {"n": 1, "true": int(v)}), plus,
        lambda s: s["n"] == s["true"] if s["n"] else None, struct(n=LONG, true=LONG), FLAG, lambda s, t: plus(s, t, -1),
        capability=GROUP,
    ), values=FLAG, expected=all),
    "the three greatest": one(scalar(
        "Top", list, lambda s, v: sorted([*s, v])[-3:], lambda s, t: sorted(s + t)[-3:], itself, LONGS, LONGS
    ), expected=lambda vs: sorted(vs)[-3:]),
    "a sample by hash": one(scalar(
        "Sample", list, lambda s, v: sorted({*s, v}, key=digest)[:2], lambda s, t: sorted({*s, *t}, key=digest)[:2],
        itself, LONGS, LONGS,
    )),
    "a sketch of registers": one(scalar(
        "Registers", lambda: [0] * 16, registers, lambda s, t: list(map(max, s, t)), sum, LONGS, LONG
    )),
    "a product": one(long_sum(
        "Product", create=lambda: 1, add=lambda s, v: s * v, merge=lambda s, t: s * t, uncombine=None, capability=None
    ), values=st.integers(-5, 5), expected=math.prod),
    "a product modulo a prime": one(long_sum(
        "Product", create=lambda: 1, add=lambda s, v: s * v % 97, merge=lambda s, t: s * t % 97,
        uncombine=lambda s, t: s * pow(t, -1, 97) % 97,
    ), values=st.integers(1, 96)),
    "methods of an object": one(scalar(
        "Tripled", adder.create, adder.add, adder.merge, partial(int.__add__, 0), LONG, LONG
    ), expected=lambda vs: 3 * sum(vs)),
    "a state that is changed in place": one(bag(
        "List", add=lambda s, v: (s.append(v), s.sort(), s)[-1], merge=lambda s, t: (s.extend(t), s.sort(), s)[-1]
    ), expected=len),
    "bytes of a set": one(scalar(
        "Seen", lambda: bytes(4), lambda s, v: bytes(b | (1 << v % 8) * (i == v // 8 % 4) for i, b in enumerate(s)),
        lambda s, t: bytes(a | b for a, b in zip(s, t, strict=True)), lambda s: sum(bin(b).count("1") for b in s),
        pa.binary(), LONG,
    ), values=st.integers(0, 31), expected=lambda vs: len(set(vs))),
    "columnar sum": one(Total, expected=sum),
    "columnar sum, bare": (TotalFn(), {"values": LONG}),
    "columnar maximum": one(uc.from_columns("Max", MaxFn(), output=LONG), values=LONG, expected=max),
    "columnar sum of floats": (uc.from_columns("Sum", FloatTotalFn(), output=DOUBLE)("x"), {"values": FLOATS}),
    "columnar bits": (BitsFn(), {"values": st.integers(0, 63), "expected": lambda vs: len(set(vs))}),
    "columnar bins": (BinsFn(), {"values": SMALL}),
    "columnar lists": (uc.from_columns("List", ListFn(), output=LONGS)("x"), {"values": SMALL, "expected": sorted}),
    "a quotient": (uc.Sum("x") / uc.Count("x"), {"values": DOUBLE, "expected": statistics.fmean}),
    "a quotient, filtered": ((Mean("x") / FloatMean(x + 1)).where(x > 0), {"values": SMALL}),
    "filtered": (Mean("x").where(y > 0), {"values": (SMALL, SMALL)}),
    "mapped": (FloatMean("x").map(pc.negate), {"values": FLOATS, "expected": lambda vs: -statistics.fmean(vs)}),
    "of an expression": (uc.Sum("x").of(x * y), {"values": (SMALL, SMALL)}),
    "for each key": (uc.PerKey(FloatMean("x"), "k"), {"values": (FLOATS, WORDS)}),
    "a struct": (uc.Struct(a=Mean("x"), b=FloatMean("x"), c=Total("x")), {"values": SMALL}),
}  # fmt: skip

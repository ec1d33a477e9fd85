"""Wrong combiners made with `from_scalar`."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from uncombine.combiners.laws import typed

from . import DOUBLE, FLAG, GROUP, LONG, TEXT, Given, itself, scalar, struct

SMALL, WORDS = st.integers(-100, 100), st.sampled_from(["", "a", "b", "ab", "a,b", "long"])
MEAN, PAIR = struct(mean=DOUBLE, n=LONG), struct(sum=LONG, n=LONG)
LONGS, TEXTS = pa.list_(LONG), pa.list_(TEXT)
calls = itertools.count(1)
shared: list[int] = []


def one(make: Any, **named: Any) -> Given:
    return make("x"), {"values": SMALL, **named}


def two(make: Any, **named: Any) -> Given:
    return make("x", "y"), {"values": (SMALL, SMALL), **named}


def plus(s: Any, t: Any, sign: int = 1) -> Any:
    return {key: s[key] + sign * t[key] for key in s}


def mean_merge(s: Any, t: Any) -> Any:
    n = s["n"] + t["n"]
    return {"mean": (s["mean"] * s["n"] + t["mean"] * t["n"]) / n if n else 0.0, "n": n}


def mean_of_means(name: str, **more: Any) -> Any:
    return scalar(
        name, lambda: None, lambda s, x: float(x) if s is None else (s + x) / 2,
        lambda s, t: (t if s is None else s) if s is None or t is None else (s + t) / 2, itself, DOUBLE, DOUBLE, **more,
    )  # fmt: skip


def float_sum(name: str, **more: Any) -> Any:
    more = {"uncombine": lambda s, t: s - t, **more}
    return scalar(
        name,
        lambda: 0.0,
        lambda s, x: s + float(x),
        lambda s, t: s + t,
        itself,
        more.pop("state", DOUBLE),
        DOUBLE,
        **more,
    )


def long_sum(name: str, **more: Any) -> Any:
    given: dict[str, Any] = {
        "create": lambda: 0, "add": lambda s, x: s + x, "merge": lambda s, t: s + t, "extract": itself,
        "state": LONG, "output": LONG, "uncombine": lambda s, t: s - t, "capability": GROUP,
    }  # fmt: skip
    return scalar(name, **{**given, **more})


def bag(name: str, **more: Any) -> Any:
    given: dict[str, Any] = {
        "create": list, "add": lambda s, x: sorted([*s, x]), "merge": lambda s, t: sorted(s + t), "extract": len,
        "state": LONGS, "output": LONG,
    }  # fmt: skip
    return scalar(name, **{**given, **more})


def removed(s: list[Any], t: list[Any]) -> list[Any]:
    left = list(s)
    for value in t:
        if value in left:
            left.remove(value)
    return left


def best(s: Any, t: Any, pick: Any = max) -> Any:
    return (t if s is None else s) if s is None or t is None else pick(s, t)


def extreme(name: str, pick: Any = max, **more: Any) -> Any:
    given: dict[str, Any] = {
        "create": lambda: None, "add": lambda s, x: best(s, x, pick), "merge": lambda s, t: best(s, t, pick),
        "extract": itself, "state": LONG, "output": LONG,
    }  # fmt: skip
    return scalar(name, **{**given, **more})


def welford(name: str, guarded: bool = True, crossed: bool = True) -> Any:
    def merge(s: Any, t: Any, cross: bool = crossed) -> Any:
        n = s["n"] + t["n"]
        if guarded and not n:
            return s
        delta = t["mean"] - s["mean"]
        return {
            "n": n,
            "mean": s["mean"] + delta * t["n"] / n,
            "m2": s["m2"] + t["m2"] + (delta**2 * s["n"] * t["n"] / n if cross else 0.0),
        }

    return scalar(
        name, lambda: {"n": 0, "mean": 0.0, "m2": 0.0},
        lambda s, x: merge(s, {"n": 1, "mean": float(x), "m2": 0.0}, True), merge,
        lambda s: s["m2"] / s["n"] if s["n"] else None, struct(n=LONG, mean=DOUBLE, m2=DOUBLE), DOUBLE,
        tolerance=lambda m, n: 1e-9 * n * (1 + max(m, default=0.0)) ** 2,
    )  # fmt: skip


def forgetful(s: int, x: int) -> int:
    return s if next(calls) % 60 == 0 else s + x


def into_shared(s: list[int], x: int) -> list[int]:
    s.append(x)
    return s


def counted(s: Any, t: Any) -> Any:
    out = dict(s)
    for key, n in t:
        out[key] = out.get(key, 0) + n
    return sorted(out.items())


def tolerant(bound: Any) -> Any:
    return mean_of_means("MeanOfMeans", tolerance=bound)


def unknown(m: Any, n: int) -> float:
    raise KeyError("no such bound")


MODE = pa.list_(pa.struct([("item", LONG), ("n", LONG)]))

WRONG: dict[str, Given] = {
    # Order
    "mean of means": one(mean_of_means("MeanOfMeans")),
    "last": one(scalar("Last", lambda: None, lambda s, x: x, lambda s, t: s if t is None else t, itself, LONG, LONG)),
    "first": one(scalar(
        "First", lambda: None, lambda s, x: x if s is None else s, lambda s, t: t if s is None else s, itself,
        LONG, LONG,
    )),
    "moving average": one(scalar(
        "Moving", lambda: 0.0, lambda s, x: 0.9 * s + 0.1 * x, lambda s, t: 0.5 * (s + t), itself, DOUBLE, DOUBLE
    )),
    "joined as it comes": one(
        scalar("Joined", str, lambda s, x: s + x, lambda s, t: s + t, itself, TEXT, TEXT), values=WORDS
    ),
    "longest, ties as they come": one(extreme(
        "Longest", lambda s, t: t if len(t) > len(s) else s, state=TEXT, output=TEXT
    ), values=WORDS),
    "a set as it comes": one(scalar(
        "Set", list, lambda s, x: s if x in s else [*s, x], lambda s, t: s + [x for x in t if x not in s],
        itself, LONGS, LONGS,
    )),
    "the first ten": one(scalar(
        "Ten", list, lambda s, x: [*s, x][:10], lambda s, t: (s + t)[:10], lambda s: sum(s), LONGS, LONG
    )),
    "greatest by another column, ties as they come": two(scalar(
        "Best", lambda: None, lambda s, x, y: best(s, {"x": x, "y": y}, lambda s, t: t if t["y"] > s["y"] else s),
        lambda s, t: best(s, t, lambda s, t: t if t["y"] > s["y"] else s), lambda s: s and s["x"],
        struct(x=LONG, y=LONG), LONG,
    )),
    "a sum that stops at 100": one(scalar(
        "Capped", lambda: 0, lambda s, x: min(s + x, 100), lambda s, t: min(s + t, 100), itself, LONG, LONG
    )),
    "least of NaN and numbers": one(
        extreme("Least", min, state=DOUBLE, output=DOUBLE), values=st.sampled_from([1.0, 2.0, math.nan])
    ),
    # Special values
    "zero is taken for nothing": one(scalar(
        "Max", lambda: None, lambda s, x: max(s, x) if s else x, lambda s, t: max(s, t) if s and t else s or t,
        itself, LONG, LONG,
    )),
    "counts of distinct values are added": one(scalar(
        "Distinct", list, lambda s, x: sorted({*s, x}), lambda s, t: sorted({*s, *t}) + [0] * (len(s) == len(t) > 1),
        len, LONGS, LONG,
    )),
    "the distinct values of two are as many as both": one(scalar(
        "Distinct", lambda: {"last": None, "n": 0}, lambda s, x: {"last": x, "n": s["n"] + (s["last"] != x)},
        lambda s, t: {"last": t["last"], "n": s["n"] + t["n"]}, lambda s: s["n"], struct(last=LONG, n=LONG), LONG,
    )),
    "the median of medians": one(scalar(
        "Median", lambda: None, lambda s, x: float(x) if s is None else statistics.median([s, x]),
        lambda s, t: best(s, t, lambda s, t: statistics.median([s, t])), itself, DOUBLE, DOUBLE,
    )),
    "the winner and its count": one(scalar(
        "Mode", lambda: {"item": None, "n": 0},
        lambda s, x: {"item": x, "n": s["n"] + 1 if s["item"] == x else max(s["n"], 1)},
        lambda s, t: max(s, t, key=lambda u: (u["n"], u["item"] or 0)), lambda s: s["item"],
        struct(item=LONG, n=LONG), LONG,
    ), values=st.integers(0, 3)),
    "variance without the means' distance": one(welford("Variance", crossed=False)),
    "covariance of parts added up": two(scalar(
        "Covariance", lambda: {"n": 0, "x": 0, "y": 0, "c": 0.0},
        lambda s, x, y: {
            "n": s["n"] + 1, "x": s["x"] + x, "y": s["y"] + y,
            "c": s["c"] + (x - s["x"] / max(s["n"], 1)) * (y - s["y"] / max(s["n"], 1)),
        },
        plus, lambda s: s["c"] / s["n"] if s["n"] else None, struct(n=LONG, x=LONG, y=LONG, c=DOUBLE), DOUBLE,
    )),
    "a weighted mean as its mean": two(scalar(
        "Weighted", lambda: {"mean": 0.0, "w": 0}, lambda s, x, w: {
            "mean": (s["mean"] * s["w"] + x * w) / (s["w"] + w) if s["w"] + w else 0.0, "w": s["w"] + w},
        lambda s, t: {
            "mean": (s["mean"] * s["w"] + t["mean"] * t["w"]) / (s["w"] + t["w"]) if s["w"] + t["w"] else 0.0,
            "w": s["w"] + t["w"]},
        lambda s: s["mean"], struct(mean=DOUBLE, w=LONG), DOUBLE, tolerance=lambda m, n: 1e-9 * sum(m),
    ), values=(SMALL, st.integers(-2, 2))),
    # Only where there is much
    "a list that is thinned out": one(bag(
        "Thinned", merge=lambda s, t: sorted(s + t)[:: 2 if len(s) + len(t) > 20 else 1], output=LONG
    )),
    "a merge that is full after 30": one(long_sum(
        "Full", create=lambda: {"sum": 0, "n": 0}, add=lambda s, x: plus(s, {"sum": x, "n": 1}),
        merge=lambda s, t: s if s["n"] > 30 else plus(s, t), extract=lambda s: s["sum"], state=PAIR, uncombine=None,
        capability=None,
    )),
    "the greatest of the least forty": one(
        bag("Max", merge=lambda s, t: sorted(s + t)[:40], extract=lambda s: s[-1] if s else None), expected=max
    ),
    # Retraction
    "a mean that is retracted": one(scalar(
        "Mean", lambda: {"mean": 0.0, "n": 0}, lambda s, x: mean_merge(s, {"mean": float(x), "n": 1}), mean_merge,
        lambda s: s["mean"], MEAN, DOUBLE, lambda s, t: mean_merge(s, {"mean": t["mean"], "n": -t["n"]}),
        tolerance=lambda m, n: 1e-9 * sum(m),
    )),
    "a maximum that stays": one(extreme("Max", uncombine=lambda s, t: s)),
    "a range that shrinks": one(scalar(
        "Range", lambda: None, lambda s, x: best(s, [x, x], lambda s, t: [min(s[0], t[0]), max(s[1], t[1])]),
        lambda s, t: best(s, t, lambda s, t: [min(s[0], t[0]), max(s[1], t[1])]), lambda s: s and s[1] - s[0],
        LONGS, LONG, lambda s, t: None if s == t else s,
    )),
    "a count that stops at zero": one(long_sum(
        "Count", add=lambda s, x: s + 1, uncombine=lambda s, t: max(0, s - t)
    )),
    "a retraction of the size only": one(long_sum("Sum", uncombine=lambda s, t: s - abs(t))),
    "nothing left where the other is greater": one(long_sum(
        "Sum", uncombine=lambda s, t: s - t if abs(t) <= abs(s) else 0
    )),
    "the three greatest, retracted": one(scalar(
        "Top", list, lambda s, x: sorted([*s, x])[-3:], lambda s, t: sorted(s + t)[-3:], itself, LONGS, LONGS, removed
    )),
    "a bag that loses all copies": one(bag("Bag", uncombine=lambda s, t: [x for x in s if x not in t])),
    "a bag in no order": one(bag(
        "Bag", add=lambda s, x: [*s, x], merge=lambda s, t: s + t, extract=itself, output=LONGS, uncombine=removed,
        capability=GROUP,
    )),
    "a product that is divided": one(long_sum(
        "Product", create=lambda: 1, add=lambda s, x: s * x, merge=lambda s, t: s * t, uncombine=lambda s, t: s // t,
        capability=None,
    ), values=st.integers(-3, 3)),
    "a product that forgets its zeros": one(long_sum(
        "Product", create=lambda: 1, add=lambda s, x: s * x, merge=lambda s, t: s * t,
        uncombine=lambda s, t: s // t if t else s, capability=None,
    ), values=st.integers(-3, 3)),
    "bits that are cleared": one(long_sum(
        "Or", add=lambda s, x: s | x, merge=lambda s, t: s | t, uncombine=lambda s, t: s & ~t, capability=None
    ), values=st.integers(0, 7)),
    "all of them, retracted": one(scalar(
        "All", lambda: True, lambda s, x: s and x, lambda s, t: s and t, itself, FLAG, FLAG, lambda s, t: s
    ), values=st.booleans()),
    "counts of zero kept": one(scalar(
        "Counts", list, lambda s, x: [{"item": k, "n": n} for k, n in counted(
            [(u["item"], u["n"]) for u in s], [(x, 1)])],
        lambda s, t: [{"item": k, "n": n} for k, n in counted(
            [(u["item"], u["n"]) for u in s], [(u["item"], u["n"]) for u in t])],
        lambda s: sum(u["n"] > 0 for u in s), MODE, LONG,
        lambda s, t: [{"item": k, "n": n} for k, n in counted(
            [(u["item"], u["n"]) for u in s], [(u["item"], -u["n"]) for u in t])], capability=GROUP,
    ), values=st.integers(0, 3)),
    # Numbers
    "floats called exact": one(float_sum("Sum", capability=GROUP), values=DOUBLE),
    "whole numbers as floats": one(float_sum("Sum"), values=LONG),
    "whole numbers as floats, called exact": one(float_sum("Sum", capability=GROUP)),
    "whole numbers as short floats": one(float_sum("Sum", state=pa.float32()), values=LONG),
    "decimals as floats": one(float_sum("Sum", capability=GROUP), values=pa.decimal128(10, 2)),
    "a state of one byte": one(long_sum("Sum", state=pa.int8())),
    "a state without a sign": one(long_sum("Sum", state=pa.uint64())),
    # Tolerance
    "an infinite tolerance": one(tolerant(lambda m, n: math.inf)),
    "a tolerance larger than all there is": one(tolerant(lambda m, n: 1e12)),
    "a tolerance of the sum": one(tolerant(lambda m, n: sum(m))),
    "a tolerance below zero": one(tolerant(lambda m, n: -1.0)),
    "a tolerance that is none": one(tolerant(lambda m, n: "small")),
    "a tolerance that raises": one(tolerant(unknown)),
    "a tolerance too small": one(float_sum("Sum", tolerance=lambda m, n: 1e-12), values=DOUBLE),
    # Errors
    "divides by no rows": one(welford("Variance", guarded=False)),
    "the mean of no rows": one(scalar(
        "Mean", lambda: {"sum": 0, "n": 0}, lambda s, x: plus(s, {"sum": x, "n": 1}), plus,
        lambda s: s["sum"] / s["n"], PAIR, DOUBLE,
    )),
    "the greatest of an empty list": one(bag("Max", extract=lambda s: max(s))),
    "the logarithm of zero": one(scalar(
        "Log", lambda: 0.0, lambda s, x: s + math.log(x), lambda s, t: s + t, itself, DOUBLE, DOUBLE,
        tolerance=lambda m, n: 1e-9 * n,
    ), values=st.sampled_from([0, 1, 2, 5])),
    "a key that is not there": one(scalar(
        "Counts", list, lambda s, x: [*s, x], lambda s, t: [{1: 1, 2: 2}[x] for x in s + t], len, LONGS, LONG
    ), values=st.integers(1, 3)),
    # More than its arguments
    "chance": one(scalar(
        "Sample", list, lambda s, x: [*s, x], lambda s, t: s + t, lambda s: random.choice(s) if s else None, LONGS, LONG
    )),
    "every 60th is forgotten": one(long_sum("Sum", add=forgetful)),
    "the time of day": one(long_sum("Sum", extract=lambda s: s + time.perf_counter_ns() % 2)),
    "one list for all groups": one(bag("Bag", create=lambda: shared, add=into_shared)),
    # Lawful, and something else than was meant
    "least, from zero": one(long_sum(
        "Min", add=min, merge=min, uncombine=None, capability=None
    ), expected=min),
    "sample variance of a population": one(welford("Variance"), expected=statistics.variance),
    "squares": one(long_sum("Sum", add=lambda s, x: s + x * x), expected=sum),
    "a mean that is cut": one(scalar(
        "Mean", lambda: {"sum": 0, "n": 0}, lambda s, x: plus(s, {"sum": x, "n": 1}), plus,
        lambda s: s["sum"] // s["n"] if s["n"] else None, PAIR, LONG, lambda s, t: plus(s, t, -1), capability=GROUP,
    ), expected=statistics.fmean),
    "a sum modulo 997": one(long_sum(
        "Sum", add=lambda s, x: (s + x) % 997, merge=lambda s, t: (s + t) % 997, uncombine=lambda s, t: (s - t) % 997
    ), expected=sum),
    "distinct remainders": one(
        bag("Distinct", add=lambda s, x: sorted({*s, x % 16}), merge=lambda s, t: sorted({*s, *t})),
        expected=lambda xs: len(set(xs)),
    ),
    "distinct texts, joined by commas": one(scalar(
        "Distinct", lambda: "", lambda s, x: ",".join(sorted({*s.split(","), x})),
        lambda s, t: ",".join(sorted({*s.split(","), *t.split(",")})), lambda s: len([w for w in s.split(",") if w]),
        TEXT, LONG,
    ), values=WORDS, expected=lambda xs: len(set(xs) - {""})),
    "a maximum of the first column only": two(scalar(
        "Max", lambda: None, lambda s, x, y: best(s, x), best, itself, LONG, LONG
    ), expected=lambda xs, ys: max(map(max, xs, ys))),
    "cents as floats": one(scalar(
        "Sum", lambda: 0, lambda s, x: s + int(float(x) * 100), lambda s, t: s + t, lambda s: Decimal(s) / 100,
        LONG, pa.decimal128(20, 2), lambda s, t: s - t, capability=GROUP,
    ), values=typed(pa.decimal128(9, 2), st.decimals("0.00", "9.99", places=2)), expected=sum),
}  # fmt: skip

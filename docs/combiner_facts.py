"""Facts of each combiner that its code knows: how far it retracts rows, and how large the state of a key becomes.

Guarded by tests/house/test_docs.py.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import uncombine as uc

# What stands for an argument that has no default, by the argument's name.
ARGUMENTS: dict[str, Any] = {
    "input": "x", "x": "x", "y": "y", "by": "t", "weight": "w",
    "k": 3, "edges": (0, 10, 20), "q": 0.5, "quantiles": (0.25, 0.75),
}  # fmt: skip
# The same for one combiner, where an argument's name means another thing.
OF_ONE: dict[tuple[str, str], Any] = {("ApproxQuantiles", "q"): (0.25, 0.75), ("Quantiles", "q"): (0.25, 0.75)}
SWITCHES = ("exact", "retractable")
KINDS = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
USED = ["Count", "Sum", "Mean", "Min", "Max", "Median", "Quantile", "CountDistinct", "CountIf", "StdDev", "Variance"]
USED += ["First", "Last", "ArgMax", "ArgMin", "TopK", "BottomK", "CollectList", "CollectSet"]
"""The combiners that are used most, which come first."""
FEW, SOME, MANY = 10, 1_000, 20_000
"""Numbers of rows, or of different values, of a key whose state is measured."""


def combiners() -> Iterator[type[uc.Combiner]]:
    """The exported combiner classes."""
    for name in uc.combiners.__all__:
        value = getattr(uc.combiners, name)
        if inspect.isclass(value) and issubclass(value, uc.Combiner) and not inspect.isabstract(value):
            yield value


def by_use() -> list[type[uc.Combiner]]:
    """The same, those first that are used most."""
    return sorted(combiners(), key=lambda cls: USED.index(cls.__name__) if cls.__name__ in USED else len(USED))


def forms(cls: type[uc.Combiner]) -> Iterator[uc.Combiner]:
    """A combiner with its switches one way and the other; none for those that are made of other combiners."""
    if not dataclasses.is_dataclass(cls):
        return
    fields = [field for field in dataclasses.fields(cls) if field.init]
    required = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    if {"combiner", "combiners", "parts"} & set(required):
        return
    unknown = [name for name in required if name not in ARGUMENTS]
    if unknown:
        raise SystemExit(f"docs/generate.py: what stands for {unknown[0]!r} of {cls.__name__}? Add it to ARGUMENTS.")
    plain = cls(**{name: OF_ONE.get((cls.__name__, name), ARGUMENTS[name]) for name in required})
    yield plain
    for field in fields:
        if field.name in SWITCHES:
            yield dataclasses.replace(plain, **{field.name: not field.default})


def promise(combiner: uc.Combiner, kind: pa.DataType) -> uc.Capability | None:
    """The capability of a combiner over columns of one type; None if it does not take them."""
    others = {"t": pa.timestamp("us"), "w": pa.float64() if pa.types.is_floating(kind) else pa.int64()}
    try:
        return combiner.compile(pa.schema({"x": kind, "y": kind, **others})).capability
    except uc.UncombineError:
        return None


def retracts(cls: type[uc.Combiner]) -> str:
    """The promise of a combiner to retract rows, in words."""
    plain, *others = forms(cls)
    on_whole, on_floats = promise(plain, KINDS["int64"]), promise(plain, KINDS["float64"])
    exact = any(promise(form, KINDS["float64"]) is uc.Capability.GROUP for form in others)
    if on_floats in (None, uc.Capability.GROUP):
        return "exactly"
    always = "; exactly with `exact=True`" if exact and on_whole is not uc.Capability.GROUP else ""
    if on_whole is not uc.Capability.GROUP:
        return f"within a tolerance{always}"
    return "exactly; floats within a tolerance" + (", or exactly with `exact=True`" if exact else "")


def memory(cls: type[uc.Combiner]) -> str:
    """The size of the state of a key, if rows only come, and if they can be retracted."""
    plain = next(forms(cls))
    small, whole = growth(plain.append_only()), growth(plain)
    each = " for each different pair" if getattr(plain, "by", None) else EACH
    said = [f" with `{name}={getattr(plain, name)!r}`" for name in ("k", "edges") if hasattr(plain, name)]
    first = small + "".join(said if small.endswith("bytes") else [])
    if small == whole:
        return first.replace(EACH, each)
    return f"{first}; if rows can be retracted, {whole.replace(EACH, ' each' if EACH in first else each)}"


EACH = " for each different value"


def growth(combiner: uc.Combiner) -> str:
    """The size of the state of a key in words, as measured."""
    few, again = size(combiner, FEW, FEW), size(combiner, SOME, FEW)
    some, many = size(combiner, SOME, SOME), size(combiner, MANY, MANY)
    if again > 2 * few:
        return "grows with its rows"
    if many < 2 * few:
        return f"{few} bytes"
    if many > 0.9 * some * MANY / SOME:
        return f"{round((many - some) / (MANY - SOME))} bytes{EACH}"
    return f"{in_words(few)} for {FEW} different values, {in_words(some)} for {SOME:,}, {in_words(many)} for {MANY:,}"


def in_words(count: int) -> str:
    """A number of bytes."""
    return f"{count} bytes" if count < 1_000 else f"{round(count / 1_000)} kB"


@cache
def size(combiner: uc.Combiner, rows: int, values: int) -> int:
    """The bytes of the accumulator of rows with so many different values, in the first type that a combiner takes."""
    places = pa.array(np.arange(rows) % values)
    kind = next(kind for kind in ("int64", "float64", "bool", "string") if promise(combiner, KINDS[kind]))
    column = pa.array(np.arange(rows) % 2 == 0) if kind == "bool" else places.cast(KINDS[kind])
    times, weights = places.cast(pa.timestamp("us")), pa.array(np.ones(rows, np.int64))
    table = pa.table({"x": column, "y": column, "t": times, "w": weights})
    return sum(part.nbytes for part in combiner.bind(table.schema).accumulate(table))

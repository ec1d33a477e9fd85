"""Multisets as plain Python counters: the results that combiners must give, computed from the raw rows."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.laws.compare import bits
from uncombine.combiners.rows.groups import Groups

few = settings(max_examples=max(settings.default.max_examples // 4, 10))
"""For tests that run once for each type."""

NAN = math.nan
GROUPS = 3

# Few values of each type, so that rows collide, and those that are hard to tell apart or lie at the ends.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [-(2**63), -2, -1, 0, 1, 2, 3, 2**63 - 1]),
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "uint64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "float64": (pa.float64(), [0.0, -0.0, 1.5, -1.5, 2.5, 1e-300, 1e300, math.inf, -math.inf, NAN]),
    "float32": (pa.float32(), [0.0, -0.0, 0.5, -0.5, math.inf, NAN]),
    "string": (pa.string(), ["", "a", "ab", "b", "Z", "é", "z" * 20]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x00\x01", b"\xff"]),
    "bool": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(1969, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    "decimal": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("99.99")]),
    "wide decimal": (
        pa.decimal128(30, 1),
        [Decimal(10**20 * k).quantize(Decimal("0.1")) for k in (-1, 0, 1)],
    ),
    "hundreds": (pa.decimal128(5, -2), [Decimal("-5E+2"), Decimal("0E+2"), Decimal("1E+2"), Decimal("99999E+2")]),
}
ORDERED = list(VALUES)
NUMBERS = ["int64", "int8", "uint64", "float64", "float32", "decimal", "wide decimal"]

Row = tuple[int, int, tuple[Any, ...]]
"""Group, weight, values."""


def rows(*names: str, nullable: bool = True, least: int = -2) -> st.SearchStrategy[list[Row]]:
    """Rows with a value of each kind, weights from `least` to 2; a row may be retracted before it comes."""
    columns = [st.sampled_from([*VALUES[name][1], *([None] if nullable else [])]) for name in names]
    return st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(least, 2), st.tuples(*columns)), max_size=12)


def canonical(value: Any) -> Any:
    """One object for all values that count as equal."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value


def order(value: Any) -> tuple[Any, ...]:
    """Sorts as Spark does: null first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value.encode() if isinstance(value, str) else value)


def weighed(given: Sequence[Row], group: int) -> Counter[tuple[Any, ...]]:
    """A group's items with the sums of their weights, which may be zero or negative."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for at, weight, values in given:
        if at == group:
            counts[tuple(map(canonical, values))] += weight
    return counts


def held(given: Sequence[Row], group: int) -> Counter[tuple[Any, ...]]:
    """The items of a group's multiset that have a positive weight."""
    return +weighed(given, group)


def expand(counts: Counter[tuple[Any, ...]], column: int = 0) -> list[Any]:
    """One column's values without nulls, sorted, each as often as it weighs."""
    values = [v[column] for v, n in counts.items() for _ in range(n) if v[column] is not None]
    return sorted(values, key=order)


def table(given: Sequence[Row], kinds: Sequence[pa.DataType]) -> pa.Table:
    """The value columns, x first, then y."""
    columns = {
        name: pa.array([row[2][i] for row in given], kind, from_pandas=False)
        for i, (name, kind) in enumerate(zip("xyz", kinds, strict=False))
    }
    return pa.table(columns)


def accumulate(fn: Any, given: Sequence[Row], kinds: Sequence[pa.DataType]) -> tuple[pa.Array, ...]:
    """The accumulators of some rows, three groups."""
    return fn.plan.add(*weighted(given, kinds))


def weighted(given: Sequence[Row], kinds: Sequence[pa.DataType]) -> tuple[Groups, pa.Table, np.ndarray]:
    """Some rows with their groups and weights."""
    codes = np.array([row[0] for row in given], np.int64)
    weights = np.array([row[1] for row in given], np.int64)
    return Groups(codes, GROUPS), table(given, kinds), weights


def check(
    combiner: uc.Combiner,
    names: Sequence[str],
    given: Sequence[Row],
    expected: Callable[[Counter[tuple[Any, ...]]], Any],
    data: st.DataObject,
    negative: bool = False,
) -> None:
    """Compare with `expected` of each group's multiset: at once, in any cut and order, after retracting."""
    kinds = [VALUES[name][0] for name in names]
    fn = combiner.bind(pa.schema(list(zip("xyz", kinds, strict=False))))
    whole = accumulate(fn, given, kinds)
    results = fn.extract(whole)
    assert results.type == fn.output
    wanted = [expected((weighed if negative else held)(given, group)) for group in range(GROUPS)]
    assert repr(results.to_pylist()) == repr(wanted)
    (at_once,) = fn.plan.results(*weighted(given, kinds))
    assert at_once.type == fn.output
    assert repr(at_once.to_pylist()) == repr(wanted)

    shuffled = data.draw(st.permutations(given))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(given)), max_size=3)))
    parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(given)], strict=True)]
    merged = together(fn, [accumulate(fn, part, kinds) for part in parts])
    assert repr(fn.extract(merged).to_pylist()) == repr(wanted)
    if combiner.capability is uc.Capability.GROUP:
        assert bits(merged) == bits(whole)
        first = data.draw(st.integers(0, len(given)))
        rest = fn.uncombine(merged, accumulate(fn, given[:first], kinds))
        assert bits(rest) == bits(accumulate(fn, given[first:], kinds))
        assert bits(fn.uncombine(merged, whole)) == bits(fn.zero(GROUPS))


def together(fn: Any, parts: Sequence[tuple[pa.Array, ...]]) -> tuple[pa.Array, ...]:
    """The sum of some accumulator columns, group by group."""
    columns = tuple(pa.concat_arrays(list(column)) for column in zip(*parts, strict=True))
    return fn.merge(Groups.repeated(GROUPS, len(parts)), columns)

"""Exact statistics of every type of number compared with fractions of the raw rows."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.floats.exact_pieces import exact_pieces
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.errors import OutOfRange, TypeMismatch

CONTEXT = Context(prec=100)
Pair = tuple[Any, Any]
Weighted = list[tuple[Pair, int]]

# Spreads of times fit into 64 bits here.
WHOLE: dict[pa.DataType, tuple[int, int]] = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint64(): (0, 2**64 - 1),
    pa.timestamp("us"): (-(2**62), 2**62),
    pa.timestamp("ns", "UTC"): (-(2**62), 2**62),
    pa.duration("s"): (-(2**62), 2**62),
    pa.duration("ns"): (-(2**62), 2**62),
}
DECIMALS = [pa.decimal128(9, 2), pa.decimal128(38, 0), pa.decimal128(30, 17), pa.decimal256(60, 20)]
KINDS = [*WHOLE, *DECIMALS, pa.float64(), pa.float32()]
NUMBERS = [kind for kind in KINDS if not pa.types.is_temporal(kind)]
SPANS = [kind for kind in KINDS if pa.types.is_temporal(kind)]
GROUPS = 8
FLOATS = [0.0, 1.0, -1.0, 0.1, 3.0, 1e16, -1e16, 1e200, -1e200, 1.7e308, 5e-324, -5e-324, 1e-310, 3e-200, 2.0**53]


def range_of(kind: pa.DataType) -> tuple[int, int]:
    """The least and greatest number of a type in its units."""
    return WHOLE.get(kind) or (1 - 10**kind.precision, 10**kind.precision - 1)


def units(draw: random.Random, kind: pa.DataType) -> Any:
    """A value of a type in its units, often next to where arithmetic changes its ways, or to another such value."""
    if pa.types.is_floating(kind):
        value = draw.choice(
            [*FLOATS, draw.uniform(-10, 10), math.ldexp(draw.random() - 0.5, draw.randrange(-1060, 1024))]
        )
        return float(np.float32(min(max(value, -3e38), 3e38))) if kind == pa.float32() else value
    low, high = range_of(kind)
    centre = draw.choice(
        [0, 0, low, high, *(s * 2**b for b in (24, 31, 32, 52, 53, 60, 62, 63, 64, 96) for s in (1, -1))]
    )
    width = draw.choice([2, 5, 1000, 2**31, 2**33, 2**60])
    return min(max(centre + draw.randrange(-width, width + 1), low), high)


def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """An Arrow column of values in units."""
    if pa.types.is_decimal(kind):
        with_point = [None if v is None else Decimal(v).scaleb(-kind.scale, CONTEXT) for v in values]
        return pa.array(with_point, kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def unit_of(kind: pa.DataType) -> Fraction:
    return Fraction(1, 10**kind.scale) if pa.types.is_decimal(kind) else Fraction(1)


def rounded(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_root(found: float, square: Fraction) -> bool:
    """True if a float is the nearest one to the root, by squaring the middles between it and its neighbours."""
    if found == math.inf:
        return square >= (Fraction(2**1024) - Fraction(2**970)) ** 2
    low, high = ((Fraction(found) + Fraction(math.nextafter(found, way))) / 2 for way in (0.0, math.inf))
    return low**2 <= square <= high**2


def half_up(value: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


class Sums:
    """The exact sums of what is left of weighted rows."""

    def __init__(self, rows: Weighted, kinds: tuple[pa.DataType, pa.DataType], single: bool) -> None:
        self.known = [
            (Fraction(x) * unit_of(kinds[0]), Fraction(0 if y is None else y) * unit_of(kinds[1]), w)
            for (x, y), w in rows
            if x is not None and (single or y is not None)
        ]
        self.n = sum(w for *_, w in self.known)

    def of(self, i: int, j: int = 0) -> Fraction:
        return sum((x**i * y**j * w for x, y, w in self.known), Fraction(0))

    def spread(self, i: int, j: int) -> Fraction:
        """n**2 times the covariance of two powers of the columns."""
        first, second = [(1, 0), (0, 1)][i], [(1, 0), (0, 1)][j]
        return self.n * self.of(first[0] + second[0], first[1] + second[1]) - self.of(*first) * self.of(*second)


def check_one(found: dict[str, Any], rows: Weighted, kind: pa.DataType) -> None:
    sums = Sums(rows, (kind, pa.int8()), single=True)
    n, spread = sums.n, sums.spread(0, 0)
    for name, below, least in (("sample", n * (n - 1), 2), ("population", n * n, 1)):
        if n < least:
            assert found.get(f"variance_{name}") is None
            assert found[f"deviation_{name}"] is None
            continue
        if f"variance_{name}" in found:
            assert found[f"variance_{name}"] == rounded(spread / below)
        deviation = found[f"deviation_{name}"]
        if pa.types.is_temporal(kind):
            assert deviation == (math.isqrt(math.floor(4 * spread / below)) + 1) // 2
        else:
            assert is_root(deviation, spread / below), (deviation, spread / below)
    if n == 0 or spread == 0:
        assert (found["skewness"], found["kurtosis"]) == (None, None)
        return
    mean = sums.of(1) / n
    third, fourth = (sum(((x - mean) ** p * w for x, _, w in sums.known), Fraction(0)) / n for p in (3, 4))
    skewness = found["skewness"]
    assert is_root(abs(skewness), third**2 / (spread / n**2) ** 3), (skewness, third)
    assert skewness == 0 or (skewness > 0) == (third > 0)
    assert found["kurtosis"] == rounded(fourth / (spread / n**2) ** 2 - 3)


def one_column(kind: pa.DataType) -> dict[str, uc.Combiner]:
    out: dict[str, uc.Combiner] = {"skewness": uc.Skewness("x", exact=True), "kurtosis": uc.Kurtosis("x", exact=True)}
    for name in ("sample", "population"):
        out[f"deviation_{name}"] = uc.StdDev("x", exact=True, population=name == "population")
        if kind not in SPANS:
            out[f"variance_{name}"] = uc.Variance("x", exact=True, population=name == "population")
    return out


def check_two(found: dict[str, Any], rows: Weighted, kinds: tuple[pa.DataType, pa.DataType]) -> None:
    sums = Sums(rows, kinds, single=False)
    n, xx, yy, xy = sums.n, sums.spread(0, 0), sums.spread(1, 1), sums.spread(0, 1)
    if "weighted" in found:
        weight = sums.of(0, 1)
        assert found["weighted"] == (rounded(sums.of(1, 1) / weight) if sums.known and weight else None)
    if "sample" in found:
        assert found["sample"] == (rounded(xy / (n * (n - 1))) if n > 1 else None)
        assert found["population"] == (rounded(xy / n**2) if n else None)
    correlation = found["correlation"]
    if n < 2 or not xx * yy:
        assert correlation is None
    else:
        assert is_root(abs(correlation), xy**2 / (xx * yy))
        assert correlation == 0 or (correlation > 0) == (xy > 0)
    if "line" in found:
        intercept = sums.of(0, 1) * sums.of(2) - sums.of(1) * sums.of(1, 1)
        line = None if n < 2 or not xx else {
            "slope": rounded(xy / xx), "intercept": rounded(intercept / xx),
            "r2": rounded(xy**2 / (xx * yy)) if yy else 1.0,
        }  # fmt: skip
        assert found["line"] == line


def two_columns(kinds: tuple[pa.DataType, pa.DataType]) -> dict[str, uc.Combiner]:
    out: dict[str, uc.Combiner] = {"correlation": uc.Correlation("x", "y", exact=True)}
    if not any(kind in SPANS for kind in kinds):
        out["weighted"] = uc.WeightedMean("x", "y", exact=True)
        out["sample"] = uc.Covariance("x", "y", exact=True)
        out["population"] = uc.Covariance("x", "y", exact=True, population=True)
        out["line"] = uc.LinearRegression("x", "y", exact=True)
    return out


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, durations in their units."""
    columns = {name: table[name] for name in table.column_names}
    return pa.table({
        name: values.cast(pa.int64()) if pa.types.is_duration(values.type) else values
        for name, values in columns.items()
    }).to_pylist()  # fmt: skip


def check(seed: int) -> None:
    """Check groups of random types and sizes, cut in two and joined, whose rows come and go."""
    draw = random.Random(seed)
    kinds = (draw.choice(KINDS), draw.choice(KINDS))
    if draw.random() < 0.5:
        kinds = (kinds[0], kinds[0])
    heaviest = draw.choice([1, 3, 2**40])
    kept: list[tuple[int, Pair, int]] = []
    gone: list[tuple[int, Pair, int]] = []
    for group in range(GROUPS):
        pool: list[Pair] = []
        for _ in range(draw.randrange(1, 7)):
            x, y = (None if draw.random() < 0.05 else units(draw, kind) for kind in kinds)
            pool.append((x, y))
        kept += [(group, draw.choice(pool), draw.choice([1, 1, heaviest])) for _ in range(draw.randrange(1, 7))]
        gone += [(group, draw.choice(pool), draw.choice([1, heaviest])) for _ in range(draw.randrange(4))]
    rows = [*kept, *gone, *((group, pair, -w) for group, pair, w in gone)]
    draw.shuffle(rows)
    combiners = {**one_column(kinds[0]), **two_columns(kinds)}
    plan = Plan(combiners, pa.schema(list(zip("xy", kinds, strict=True))))

    def add(rows: list[tuple[int, Pair, int]]) -> tuple[pa.Array, ...]:
        table = pa.table([column(kind, [pair[i] for _, pair, _ in rows]) for i, kind in enumerate(kinds)], plan.schema)
        groups = Groups(np.array([group for group, *_ in rows], np.int64), GROUPS)
        return plan.add(groups, table, np.array([w for *_, w in rows], np.int64))

    cut = draw.randrange(len(rows) + 1)
    both = zip(add(rows[:cut]), add(rows[cut:]), strict=True)
    state = plan.merge(Groups.repeated(GROUPS, 2), tuple(pa.concat_arrays(pair) for pair in both))
    fresh = add(kept)
    assert all(a.equals(b) for a, b in zip(state, fresh, strict=True)), "a row that is gone shows in the state"
    results = plain(pa.table(dict(zip(combiners, plan.extract(state), strict=True))))
    for group, found in enumerate(results):
        mine = [(pair, w) for of, pair, w in kept if of == group]
        check_one(found, mine, kinds[0])
        check_two(found, mine, kinds)


@pytest.mark.full
@given(st.integers(0, 2**48))
@settings(max_examples=settings.default.max_examples // 4)
def test_exact_statistics_are_the_exact_rationals_rounded_once(seed: int) -> None:
    check(seed)


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-50, 50)), min_size=1, max_size=6),
    st.sampled_from(["s", "us", "ns"]),
)
@settings(max_examples=25)
def test_weighted_means_of_durations_are_durations_rounded_half_away_from_zero(
    rows: list[tuple[int, int]], unit: str
) -> None:
    kind = pa.duration(unit)
    table = pa.table({"x": column(kind, [x for x, _ in rows]), "w": pa.array([w for _, w in rows], pa.int64())})
    for combiner in (uc.WeightedMean("x", "w", exact=True), uc.WeightedMean("x", "w")):
        weight = sum(w for _, w in rows)
        mean = half_up(Fraction(sum(x * w for x, w in rows), weight)) if weight else None
        if mean is not None and not -(2**63) < mean < 2**63:
            with pytest.raises(OutOfRange, match=r"duration\[" + unit):
                uc.aggregate(table, m=combiner)
        else:
            found = uc.aggregate(table, m=combiner)
            assert found["m"].type == kind
            assert plain(found)[0]["m"] == mean


def test_what_was_wrong_by_hand() -> None:
    large = pa.table({"x": [2**60, 2**60 + 1, 2**60 + 3]})
    assert uc.aggregate(large, v=uc.Variance("x", exact=True))["v"].to_pylist() == [float(Fraction(7, 3))]
    assert (
        uc.aggregate(pa.table({"x": [1e200, -1e200]}), s=uc.StdDev("x", exact=True, population=True))["s"][0].as_py()
        == 1e200
    )
    assert (
        uc.aggregate(pa.table({"x": [0.0, 1e-323]}), s=uc.StdDev("x", exact=True, population=True))["s"][0].as_py()
        == 5e-324
    )
    cents = pa.table({"x": pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("0.30")], pa.decimal128(5, 2))})
    assert uc.aggregate(cents, v=uc.Variance("x", exact=True))["v"].to_pylist() == [0.01]


def test_spreads_of_times_and_durations() -> None:
    spans = [dt.timedelta(seconds=s) for s in (1, 3, 8)]
    table = pa.table({"x": spans, "t": [dt.datetime(2024, 2, 29) + span for span in spans], "y": [1.0, 2.0, 4.0]})
    for name in ("x", "t"):
        for options in ({}, {"exact": True}, {"retractable": False}):
            found = uc.aggregate(table, s=uc.StdDev(name, population=True, **options), k=uc.Skewness(name, **options))
            assert found["s"].type == pa.duration("us")
            assert found["s"][0].as_py() == dt.timedelta(microseconds=2943920)
            assert found["k"] == uc.aggregate(pa.table({"x": [1, 3, 8]}), k=uc.Skewness("x", exact=True))["k"]
            with pytest.raises(TypeMismatch, match="square of a time"):
                uc.aggregate(table, v=uc.Variance(name, **options))
        for combiner in (uc.Covariance(name, "y"), uc.LinearRegression("y", name)):
            with pytest.raises(TypeMismatch, match="cast"):
                uc.aggregate(table, c=combiner)
        steady = uc.aggregate(table, a=uc.Correlation(name, "y"), b=uc.Correlation("y", name, exact=True))
        assert steady["a"] == steady["b"]
    with pytest.raises(TypeMismatch, match="timestamp"):
        uc.aggregate(table, m=uc.WeightedMean("t", "y"))
    held = uc.aggregate(table, m=uc.WeightedMean("y", "x", exact=True))["m"][0].as_py()
    assert held == (1 + 6 + 32) / 12


def test_a_spread_beyond_64_bits_is_refused() -> None:
    ends = pa.table({"x": pa.array([-(2**63), 2**63 - 1]).cast(pa.duration("ns"))})
    with pytest.raises(OutOfRange, match=r"StdDev.*duration\[ns\]"):
        uc.aggregate(ends, s=uc.StdDev("x"))


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 4), pa.decimal256(60, 4)], ids=str)
def test_groups_in_a_slice(kind: pa.DataType) -> None:
    draw = random.Random(3)
    values = [units(draw, kind) for _ in range(200)]
    table = pa.table({"x": column(kind, values), "k": [i % 7 for i in range(200)]}).slice(11, 150)
    found = uc.aggregate(table, by="k", v=uc.Variance("x", exact=True))
    for key, variance in zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True):
        rows: Weighted = [((values[i], 0), 1) for i in range(11, 161) if i % 7 == key]
        sums = Sums(rows, (kind, pa.int8()), single=True)
        assert variance == rounded(sums.spread(0, 0) / (sums.n * (sums.n - 1)))


def test_small_integers_stay_in_one_piece() -> None:
    assert len(exact_pieces(Column(pa.array([2**53, -(2**53)])))) == 1
    assert len(exact_pieces(Column(pa.array([2**53 + 1])))) == 2
    assert len(exact_pieces(Column(pc.cast(pa.array([1]), pa.decimal128(38, 2))))) == 1

"""`Bound.whole`: the result of one group, the same as that of `add` and `extract` to the last bit."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from statistics import median, multimode
from typing import Any

import every
import numpy as np
import pyarrow as pa
import pytest
from seeds import share

import uncombine as uc
from uncombine.combiners.combiner import Bound
from uncombine.combiners.rows.groups import Groups

x = uc.col("x")
NAN, INF = math.nan, math.inf
OTHER_NAN: float = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
"""A NaN with a sign and a payload, as other programs write it; there is one NaN in results."""
TIMES = [dt.datetime(2024, 2, 29), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1, 1, 1)]
SPANS = [dt.timedelta(0), dt.timedelta(days=-1), dt.timedelta(days=100_000), dt.timedelta(microseconds=1)]
DAYS = [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)]
TEXTS = ["", "a", "b", "ab", "é", "\0", "a text longer than a word of memory"]

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [0, 1, -1, 127, -128],
    pa.uint16(): [0, 1, 2**16 - 1],
    pa.int32(): [0, 5, -7, 2**31 - 1, -(2**31)],
    pa.int64(): [0, 1, 2, 3, -3, 2**53 + 1, 2**62, -(2**63)],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.float16(): [np.float16(0.0), np.float16(1.5), np.float16(-2.0)],
    pa.float32(): [0.0, -0.0, 0.5, 16777216.0, -1.25, NAN],
    pa.float64(): [
        0.0,
        -0.0,
        0.1,
        0.2,
        0.3,
        -7.25,
        1e16,
        -1e16,
        5e-324,
        1e300,
        1.7976931348623157e308,
        NAN,
        INF,
        -INF,
        OTHER_NAN,
    ],
    pa.bool_(): [False, True],
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.dictionary(pa.int8(), pa.string()): TEXTS,
    pa.dictionary(pa.int32(), pa.int64()): [0, 1, 2**40],
    pa.binary(): [text.encode() for text in TEXTS],
    pa.binary(2): [b"ab", b"\0\0"],
    pa.decimal128(10, 2): [Decimal(text) for text in ("0.00", "0.10", "-0.10", "99999999.99", "-1.00")],
    pa.decimal128(18, 4): [Decimal(text) for text in ("0.0000", "12345678901234.5678", "-99999999999999.9999")],
    pa.decimal128(38, 10): [Decimal(text) for text in ("0.0000000000", "9" * 28 + ".9999999999", "-1.5000000000")],
    pa.date32(): DAYS,
    pa.date64(): DAYS,
    pa.time32("s"): [dt.time(0), dt.time(23, 59, 59)],
    pa.time64("us"): [dt.time(0), dt.time(12, 30, 0, 1)],
    pa.timestamp("us"): TIMES,
    pa.timestamp("ns", "UTC"): TIMES[:2],
    pa.duration("us"): SPANS,
    pa.struct([("f", pa.int64())]): [{"f": 1}, {"f": None}, {"f": 3}],
    pa.null(): [None],
}
"""Values of each type, among them those that are hard to add up, to compare or to read."""

KINDS = [pa.int64(), pa.float64(), *(kind for kind in VALUES if kind not in (pa.int64(), pa.float64()))]
SIZES = (0, 1, 2, 3, 7, 65, 300)

MADE: list[uc.Combiner] = [
    uc.Sum("x").where(x > 1),
    uc.Count().where(x.is_null()),
    uc.Median(x * 2),
    uc.Max(uc.coalesce(x, 1)),
    uc.Sum("x") / uc.Count(),
    uc.Struct(s=uc.Sum("x"), m=uc.Max("x")),
    uc.Max("x").map(lambda results: results),
    uc.TopK("x", 200),
    uc.BottomK("x", 200),
    uc.Quantiles("x", [0.0, 0.05, 0.35, 0.5, 0.95, 1.0]),
]
FORMS = [*every._forms(), *MADE]


def column(draw: random.Random, kind: pa.DataType, rows: int) -> pa.Array | pa.ChunkedArray:
    """Values of a type: of all of them or of few, with nulls or without, as an array, a slice or in chunks."""
    values = VALUES[kind][: draw.choice([2, 3, 20, 20])]
    some = draw.choice([values, [*values, None], [value for value in values if value == value]])
    drawn = [draw.choice(some or [None]) for _ in range(rows + 2)]
    array = pa.array(drawn, kind, from_pandas=False)
    if rows > 3 and kind in (pa.int64(), pa.float64()) and draw.random() < 0.5:
        array = pa.array([draw.uniform(-1e6, 1e6) for _ in range(rows + 2)]).cast(kind, safe=False)
    array = array.slice(1, rows)
    if draw.random() < 0.3:
        return pa.chunked_array([array[: rows // 2], array[rows // 2 :]], kind)
    return array


def typings(combiner: uc.Combiner) -> Iterator[pa.Schema]:
    """Schemas on which the combiner works: all its columns of one type, and one of another."""
    for kind in KINDS:
        for other in dict.fromkeys((kind, pa.float64(), pa.string())):
            schema = pa.schema({"x": kind, "y": other, "k": pa.string() if kind != pa.string() else pa.int64()})
            try:
                bound = combiner.bind(schema)
            except (uc.errors.UncombineError, pa.ArrowException):
                continue
            yield schema
            if "y" not in bound.columns:
                break


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def outcome(result: Callable[[], pa.Scalar]) -> str:
    """A result with its type, or the error instead, and the bits of its floats, also those of NaN."""
    try:
        value = result()
    except (uc.errors.OutOfRange, pa.ArrowInvalid) as error:
        return f"{type(error).__name__}: {error}"
    shown = value.as_py()
    return f"{shown!r} {value.type} {list(map(bits, floats_in(shown)))}"


def floats_in(result: Any) -> list[float]:
    """The floats of a result, however deep."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [number for part in result for number in floats_in(part)]
    return [result] if isinstance(result, float) else []


def by_steps(bound: Bound, columns: Sequence[Any], rows: int) -> pa.Scalar:
    return bound.extract(bound.add(Groups.single(rows), *columns))[0]


def agree(bound: Bound, seed: str, rows: int) -> None:
    """Compare both ways on a random group."""
    draw = random.Random(seed)
    columns = [column(draw, bound.schema.field(name).type, rows) for name in bound.columns]
    wanted = outcome(lambda: by_steps(bound, columns, rows))
    assert outcome(lambda: bound.whole(columns or [pa.nulls(rows)])) == wanted, (bound.combiner, columns)


def check(combiner: uc.Combiner, seeds: Sequence[int], sizes: Sequence[int]) -> int:
    """Compare random groups of each type and size; the number of types."""
    types = 0
    for form in dict.fromkeys((combiner, combiner.append_only())):
        for place, schema in enumerate(typings(form)):
            for seed, rows in product(seeds, sizes[place % 3 :: 3]):
                agree(form.bind(schema), f"{form!r} {schema} {seed} {rows}", rows)
            types += 1
    return types


@pytest.mark.weekly
@pytest.mark.parametrize("combiner", share(FORMS), ids=repr)
def test_the_same_as_add_and_extract(combiner: uc.Combiner) -> None:
    assert check(combiner, (1,), SIZES) > 0


@pytest.mark.soak
@pytest.mark.parametrize("combiner", FORMS, ids=repr)
def test_the_same_as_add_and_extract_over_many_groups(combiner: uc.Combiner) -> None:
    check(combiner, range(2, 30), (*SIZES, 5000))


ORACLES: dict[str, tuple[uc.Combiner, Callable[[list[Any]], Any]]] = {
    "count": (uc.Count("x"), len),
    "sum": (uc.Sum("x"), sum),
    "exact sum": (uc.Sum("x", exact=True), math.fsum),
    "mean": (uc.Mean("x"), lambda values: float(Fraction(sum(values), len(values)))),
    "max": (uc.Max("x"), max),
    "min": (uc.Min("x"), min),
    "median": (uc.Median("x"), median),
    "distinct": (uc.CountDistinct("x"), lambda values: len(set(values))),
    "top": (uc.TopK("x", 3), lambda values: sorted(values, reverse=True)[:3]),
    "mode": (uc.Mode("x"), lambda values: min(multimode(values))),
    "list": (uc.CollectList("x"), sorted),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("size", [1, 60, 1000])
def test_against_plain_python(name: str, size: int) -> None:
    combiner, oracle = ORACLES[name]
    draw = random.Random(size)
    for values in (
        [draw.randrange(-50, 50) for _ in range(size)],
        [draw.randrange(-(2**50), 2**50) for _ in range(size)],
    ):
        column = pa.array([*values, None])
        if name == "exact sum":
            column = column.cast(pa.float64())
        bound = combiner.append_only().bind(pa.schema({"x": column.type}))
        assert bound.whole([column]).as_py() == oracle(values)


def test_an_exact_sum_is_that_of_fsum_also_for_many_values() -> None:
    draw = random.Random(1)
    bound = uc.Sum("x", exact=True).bind(pa.schema({"x": pa.float64()}))
    for size in (10, 4096, 4097, 20_000):
        values = [draw.choice([1e16, -1e16, 1.0, 0.1]) * draw.random() for _ in range(size)]
        assert bits(bound.whole([pa.array(values)]).as_py()) == bits(math.fsum(values))
    assert bits(bound.whole([pa.array([-0.0])]).as_py()) == bits(0.0)


@pytest.mark.parametrize("rows", [8191, 8193, 70_000])
def test_moments_of_a_large_group_add_up_in_the_same_order(rows: int) -> None:
    draw = np.random.default_rng(rows)
    for values in (draw.normal(size=rows), draw.integers(0, 9, rows), np.zeros(rows), draw.normal(size=rows) * 1e120):
        column = pa.array(values)
        for make in (uc.Variance, uc.Skewness, uc.Kurtosis):
            bound = make("x", retractable=False).bind(pa.schema({"x": column.type}))
            assert repr(bound.whole([column]).as_py()) == repr(by_steps(bound, [column], rows).as_py())


@pytest.mark.parametrize("combiner", [uc.ArgMax("x", by="y"), uc.First("x", by="y"), uc.Max("x"), uc.TopK("x", 1)])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_there_is_one_nan_in_results(combiner: uc.Combiner, kind: pa.DataType) -> None:
    """A NaN with other bits came through as it was where one row has the extreme."""
    for form in (combiner, combiner.append_only()):
        bound = form.bind(pa.schema({"x": kind, "y": pa.int64()}))
        number = np.array([OTHER_NAN]).astype(kind.to_pandas_dtype())
        columns = [pa.array(number, from_pandas=False) if name == "x" else pa.array([1]) for name in bound.columns]
        (found,) = floats_in([bound.whole(columns).as_py()])
        assert bits(found) == bits(math.nan)


def test_a_sum_outside_its_type_raises() -> None:
    bound = uc.Sum("x").bind(pa.schema({"x": pa.int64()}))
    assert bound.whole([pa.array([2**63 - 1, -5, 4])]).as_py() == 2**63 - 2
    with pytest.raises(uc.errors.OutOfRange, match="a sum is 18446744073709551614, outside int64"):
        bound.whole([pa.array([2**63 - 1, 2**63 - 1])])


def test_no_warning_of_numpy() -> None:
    with np.errstate(all="raise"):
        for combiner in (uc.Sum("x"), uc.Mean("x"), uc.Max("x"), uc.Variance("x"), uc.Median("x"), uc.TopK("x", 2)):
            bound = combiner.append_only().bind(pa.schema({"x": pa.float64()}))
            for values in ([1e308, 1e308], [INF, -INF], [NAN, 1.0], [5e-324, 5e-324], [1e200, -1e200, 3.0]):
                bound.whole([pa.array(values, from_pandas=False)])


KERNELS = ("Count", "Sum", "Mean", "Max", "Min", "Variance", "StdDev", "Median", "Quantile", "CountDistinct", "TopK")


@pytest.mark.parametrize("name", [*KERNELS, "BottomK", "Mode", "ArgMax", "First", "CollectList", "CollectSet"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), pa.decimal128(10, 2), pa.string()], ids=str)
def test_the_families_that_people_use_need_no_accumulators(name: str, kind: pa.DataType, monkeypatch: Any) -> None:
    """A kernel that is not called any more would give the same results, ten times later."""
    arguments = {
        "Quantile": ("x", 0.3),
        "TopK": ("x", 2),
        "BottomK": ("x", 2),
        "ArgMax": ("x", "x"),
        "First": ("x", "x"),
    }
    combiner = getattr(uc, name)(*arguments.get(name, ("x",))).append_only()
    try:
        bound = combiner.bind(pa.schema({"x": kind}))
    except uc.errors.TypeMismatch:
        return
    if (name, kind) in WITHOUT or (name in ("TopK", "BottomK") and kind == pa.decimal128(10, 2)):
        return
    monkeypatch.setattr(Bound, "add", None)
    monkeypatch.setattr("uncombine.combiners.compiled.CompiledPlan.add", None)
    values = [value for value in VALUES[kind] if value == value and abs(value) < 1e9] if kind == pa.float64() else None
    ends = sorted(values or [value for value in VALUES[kind] if kind != pa.int64() or abs(value) < 2**50])
    assert bound.whole([pa.array([*dict.fromkeys(ends), None], kind)]).is_valid


WITHOUT = {(name, pa.string()) for name in ("TopK", "BottomK", "ArgMax", "First", "CollectList", "CollectSet")}
"""Texts have no numbers that sort as they do, so these sort them as other combiners do."""

"""Quantiles against the definition of Spark's percentile, numpy and pandas."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multisets import NUMBERS, VALUES, check, few, rows

import uncombine as uc
from uncombine.combiners.rows.groups import Groups
from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch

PARTS = [0.0, 0.1, 0.25, 0.5, 2 / 3, 1.0]


def percentile(values: Sequence[Any], q: float) -> float | None:
    """The percentile of sorted values as Spark 4.3 computes it: place q (n - 1), or between its neighbours."""
    if not values:
        return None
    place = (len(values) - 1) * q
    low, high = float(values[math.floor(place)]), float(values[math.ceil(place)])
    if low == high or place == math.floor(place):
        return low
    part = place - math.floor(place)
    return low + (high - low) * part


def sorted_values(counts: Counter[tuple[Any, ...]]) -> list[Any]:
    copies = [x for (x,), n in counts.items() for _ in range(n) if x is not None]
    return sorted(copies, key=lambda x: (isinstance(x, float) and math.isnan(x), x))


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("name", NUMBERS)
@few
@given(data=st.data())
def test_the_definition_on_every_type(name: str, retractable: bool, data: st.DataObject) -> None:
    given_rows = data.draw(rows(name, least=-2 if retractable else 0))
    q = data.draw(st.sampled_from(PARTS))

    def several(counts: Counter[tuple[Any, ...]]) -> list[float | None] | None:
        values = sorted_values(counts)
        return [percentile(values, part) for part in PARTS] if values else None

    one = uc.Quantile("x", q, retractable=retractable)
    check(one, [name], given_rows, lambda c: percentile(sorted_values(c), q), data)
    check(uc.Quantiles("x", PARTS, retractable=retractable), [name], given_rows, several, data)
    median = uc.Median("x", retractable=retractable)
    check(median, [name], given_rows, lambda c: percentile(sorted_values(c), 0.5), data)


@pytest.mark.parametrize("name", ["date", "timestamp"])
@pytest.mark.parametrize("retractable", [True, False])
@few
@given(data=st.data())
def test_times_keep_their_type_and_are_rounded_down(name: str, retractable: bool, data: st.DataObject) -> None:
    unit = dt.timedelta(days=1) if name == "date" else dt.timedelta(microseconds=1)

    def middle(counts: Counter[tuple[Any, ...]]) -> Any:
        values = sorted_values(counts)
        if not values:
            return None
        low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
        return low + (high - low) // 2 // unit * unit

    given_rows = data.draw(rows(name, least=-2 if retractable else 0))
    check(uc.Median("x", retractable=retractable), [name], given_rows, middle, data)


def test_times_as_far_apart_as_they_can_be() -> None:
    ends = pa.array([-(2**63), 2**63 - 1], pa.duration("us"))
    for retractable in (True, False):
        result = uc.aggregate(pa.table({"x": ends}), m=uc.Quantile("x", 0.75, retractable=retractable))["m"]
        assert result.cast(pa.int64()).to_pylist() == [2**62 - 1]


def test_times_far_apart_are_not_rounded_before() -> None:
    rng = np.random.default_rng(5)
    pairs = np.sort(rng.integers(-(2**63), 2**63 - 1, (2_000, 2)), axis=1)
    near = rng.integers(2**53, 2**56, 2_000)
    pairs[::2, 1] = np.where(pairs[::2, 0] < 2**62, pairs[::2, 0] + near[::2], pairs[::2, 1])
    table = pa.table({"k": np.repeat(np.arange(2_000), 2), "x": pa.array(pairs.ravel(), pa.timestamp("ns"))})
    for q in (0.5, 0.1, 1 / 3, 2.0**-60, 1 - 2.0**-53, *rng.random(5).tolist()):
        for retractable in (True, False):
            found = uc.aggregate(table, by="k", m=uc.Quantile("x", q, retractable=retractable)).sort_by("k")["m"]
            for (low, high), one in zip(pairs.tolist(), found.cast(pa.int64()).to_pylist(), strict=True):
                off = one - low - math.floor((high - low) * Fraction(q))
                assert off == 0 or (high - low <= 2**53 and abs(off) == 1)


SHAPES = {"few large": 3, "middling": 60, "many small": 900}


@pytest.mark.weekly
@pytest.mark.parametrize("kind", ["floats", "ints", "few values", "with NaN"])
@pytest.mark.parametrize("groups", SHAPES.values(), ids=SHAPES)
def test_as_numpy_and_pandas_on_many_rows(groups: int, kind: str) -> None:
    rng = np.random.default_rng(groups)
    values = {
        "floats": rng.normal(size=6_000),
        "ints": rng.integers(-(2**40), 2**40, 6_000),
        "few values": rng.integers(0, 5, 6_000).astype(float),
        "with NaN": np.where(rng.random(6_000) < 0.001, np.nan, rng.random(6_000)),
    }[kind]
    table = pa.table({"k": rng.integers(0, groups, 6_000), "x": pa.array(values, from_pandas=False), "w": [1] * 6_000})
    by = pd.DataFrame({"k": table["k"].to_numpy(), "x": values}).groupby("k", sort=False).x
    spread = by.apply(lambda x: np.quantile(np.sort(x.to_numpy()), [0.1, 0.9]).tolist())
    for diff in (None, "w"):
        result = uc.aggregate(table, "k", diff=diff, m=uc.Median("x"), ends=uc.Quantiles("x", [0.1, 0.9]))
        if kind == "with NaN":
            nans = by.apply(lambda x: x.isna().any()).to_numpy()
            assert nans.any()
            result = result.filter(pa.array(~nans))
            wanted, ends = by.median()[~nans], spread[~nans]
        else:
            wanted, ends = by.median(), spread
        assert np.allclose(result["m"].to_numpy(), wanted.to_numpy(), rtol=1e-14, atol=1e-14)
        assert np.allclose(result["ends"].to_pylist(), ends.tolist(), rtol=1e-12)


def test_bags_merge_with_bags_and_with_z_sets() -> None:
    """States of one batch are unsorted, merged ones canonical: a column may hold both."""
    fn = uc.Quantiles("x", [0.0, 0.5, 1.0], retractable=False).bind(pa.schema({"x": pa.float64()}))
    raw = fn.accumulate({"x": [5.0, 1.0, 3.0]})
    assert [item["item"] for item in raw[0].to_pylist()[0]] == [5.0, 1.0, 3.0]
    merged = fn.merge(Groups.single(2), tuple(pa.concat_arrays([a, a]) for a in raw))
    assert [item["item"] for item in merged[0].to_pylist()[0]] == [1.0, 3.0, 5.0]
    both = tuple(pa.concat_arrays([a, b]) for a, b in zip(raw, merged, strict=True))
    assert fn.extract(both).to_pylist() == [[1.0, 3.0, 5.0], [1.0, 3.0, 5.0]]


def test_rows_that_repeat_are_counted_at_once() -> None:
    fn = uc.Median("x", retractable=False).bind(pa.schema({"x": pa.float64()}))
    assert fn.accumulate({"x": [2.0, 1.0] * 50})[0].to_pylist() == [
        [{"item": 1.0, "weight": 50}, {"item": 2.0, "weight": 50}]
    ]


def test_groups_whose_weights_together_are_past_int64() -> None:
    groups = {"k": [0, 0, 0, 1, 1, 2], "x": [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]}
    table = pa.table({**groups, "w": [1, 2**62 - 3, 1, 2**61 + 2**60, 2**60 - 1, 2**62 - 1]})
    found = uc.aggregate(table, by="k", diff="w", q=uc.Quantiles("x", [0, 0.5, 1]))["q"].to_pylist()
    assert found == [[1.0, 2.0, 3.0], [5.0, 5.0, 7.0], [9.0, 9.0, 9.0]]


def test_a_group_whose_weights_are_past_what_is_counted_is_an_error() -> None:
    fn = uc.Median("x").bind(pa.schema({"x": pa.float64()}))
    with pytest.raises(OutOfRange, match=r"2\*\*62"):
        fn.result(fn.accumulate({"x": [1.0, 2.0, 7.0]}, [2**61] * 3))


def test_infinities_do_not_make_nan_of_what_is_between_equals() -> None:
    table = pa.table({"x": [math.inf, math.inf, 1.0]})
    result = uc.aggregate(table, q=uc.Quantiles("x", [0.25, 0.5, 0.75]))["q"].to_pylist()
    assert result == [[math.inf, math.inf, math.inf]]


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, "half", None])
def test_parts_lie_from_0_to_1(q: Any) -> None:
    with pytest.raises(InvalidArgument, match="a part must be a number from 0 to 1"):
        uc.Quantile("x", q)
    with pytest.raises(InvalidArgument, match="a part must be a number from 0 to 1"):
        uc.Quantiles("x", [0.5, q])


@pytest.mark.parametrize("q", [[], 0.5, "0.5"])
def test_quantiles_take_a_list(q: Any) -> None:
    with pytest.raises(InvalidArgument, match="q must be a list of parts"):
        uc.Quantiles("x", q)


@pytest.mark.parametrize("name", ["string", "bool", "binary"])
def test_what_has_no_middle_is_refused(name: str) -> None:
    with pytest.raises(TypeMismatch, match="takes numbers or times, but 'x' is"):
        uc.Median("x").bind(pa.schema({"x": VALUES[name][0]}))


@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates_are_whole_days(kind: pa.DataType, retractable: bool) -> None:
    days = [dt.date(1969, 12, 30), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    table = pa.table({"x": pa.array(days).cast(kind)})
    found = uc.aggregate(table, q=uc.Quantiles("x", [0.1, 0.9], retractable=retractable))
    assert found["q"].to_pylist() == [[dt.date(1969, 12, 30), dt.date(2024, 2, 29)]]
    flat = found["q"].combine_chunks().flatten()
    units = flat.cast(pa.int64() if kind == pa.date64() else pa.int32()).to_pylist()
    assert kind == pa.date32() or [unit % 86_400_000 for unit in units] == [0, 0]

"""Heavy hitters: the stated promises against exact counts, retraction, and values of every type."""

from __future__ import annotations

import collections
import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.rows.plain_types import plain_type
from uncombine.combiners.sketches.heavy_hitters import BucketsFn
from uncombine.combiners.sketches.heavy_hitters_bits import bits_of, cut, from_bits


def found(values: Any, **options: Any) -> dict[Any, int]:
    table = pa.table({"x": values})
    (row,) = uc.aggregate(table, top=uc.HeavyHitters("x", 1000, **options))["top"].to_pylist()
    assert [entry["count"] for entry in row] == sorted((entry["count"] for entry in row), reverse=True)
    return {entry["item"]: entry["count"] for entry in row}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("error", [0.05, 0.01, 0.002])
def test_the_promises_are_kept_on_skewed_values(error: float, text: bool) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.zipf(1.2, 50_000) % 10_000
    values = [f"user number {n}" for n in numbers] if text else numbers.tolist()
    counts, total = collections.Counter(values), len(values)
    got = found(values, error=error, confidence=0.999)
    assert {value for value, count in counts.items() if count >= error * total} <= set(got)
    assert all(counts[value] <= got[value] <= counts[value] + error * total for value in got)


def test_what_is_too_rare_is_left_out() -> None:
    values, error = np.arange(30_000) % 150, 0.01
    got = found(values, error=error, confidence=0.9)
    assert 0 < len(got) < 75
    assert min(got.values()) >= error * len(values)


def test_misses_stay_below_what_is_stated() -> None:
    rng = np.random.default_rng(2)
    groups, rows, error, confidence = 100, 3_000, 0.01, 0.6
    values = rng.zipf(1.3, (groups, rows)) % 5_000
    table = pa.table({"g": np.repeat(np.arange(groups), rows), "x": values.ravel()})
    top = uc.HeavyHitters("x", 1000, error, confidence)
    missed = heavy = over = seen = 0
    for row, mine in zip(uc.aggregate(table, by="g", top=top)["top"].to_pylist(), values.tolist(), strict=True):
        counts, got = collections.Counter(mine), {entry["item"]: entry["count"] for entry in row}
        expected = {value for value, count in counts.items() if count >= error * rows}
        heavy, missed = heavy + len(expected), missed + len(expected - set(got))
        seen, over = seen + len(got), over + sum(got[v] > counts[v] + error * rows for v in got)
    assert missed + over > 0
    assert missed <= (1 - confidence) * heavy
    assert over <= (1 - confidence) * seen


def test_retracted_values_make_room_for_others() -> None:
    table = pa.table({"x": ["a"] * 9 + ["b"] * 5 + ["c"] + ["a"] * 9, "w": [1] * 15 + [-1] * 9})
    out = uc.aggregate(table, diff="w", top=uc.HeavyHitters("x", 2))
    assert out["top"][0].as_py() == [{"item": "b", "count": 5}, {"item": "c", "count": 1}]


ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6)), max_size=20)


@given(ROWS, ROWS)
def test_retracted_equals_never_seen(kept: list[tuple[str, int]], gone: list[tuple[str, int]]) -> None:
    fn = uc.HeavyHitters("x", 3).bind(pa.schema({"x": pa.string()}))

    def state(rows: list[tuple[str, int]], weights: list[int]) -> tuple[pa.Array, ...]:
        return fn.accumulate({"x": [f"{text}{number}" for text, number in rows]}, weights=weights)

    taken = state(kept + gone + gone, [1] * len(kept + gone) + [-1] * len(gone))
    assert taken == state(kept, [1] * len(kept))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30))
def test_few_values_are_counted_exactly_in_order(values: list[int]) -> None:
    (row,) = uc.aggregate(
        pa.table({"x": pa.array([*values, None], pa.int64())}), t=uc.HeavyHitters("x", 5, confidence=0.9999)
    )["t"].to_pylist()
    counts = collections.Counter(values)
    expected = sorted(counts, key=lambda value: (-counts[value], value))[:5]
    assert row == [{"item": value, "count": counts[value]} for value in expected]


TYPED = [
    pa.array([0, 1, -1, 2**63 - 1, -(2**63)], pa.int64()),
    pa.array([0, 2**64 - 1], pa.uint64()),
    pa.array([-128, 127], pa.int8()),
    pa.array([True, False]),
    pa.array([0.0, -1.5, float("inf"), float("-inf"), 5e-324]),
    pa.array([0.5, 3.25], pa.float32()),
    pa.array([Decimal("-99999999.99"), Decimal("0.01")], pa.decimal128(10, 2)),
    pa.array([Decimal(10**37), Decimal(-(10**37))], pa.decimal128(38, 0)),
    pa.array(["", "a", "é", "a\0", "\0", "x" * 64]),
    pa.array(["large"], pa.large_string()),
    pa.array([b"", b"\0", b"\1", b"\xff\1"]),
    pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    pa.array([dt.datetime(1, 1, 1), dt.datetime(2024, 1, 1)], pa.timestamp("us")),
    pa.array([dt.timedelta(-1)], pa.duration("us")),
    pa.array(["cut", "from", "more"])[1:],
    pa.array([], pa.string()),
    pa.array([], pa.int64()),
]


@pytest.mark.parametrize("values", TYPED, ids=lambda values: str(values.type))
def test_bits_there_and_back(values: pa.Array) -> None:
    back, right = from_bits(bits_of(values), values.type)
    assert right.all()
    assert back.equals(values)


@pytest.mark.parametrize("values", [v for v in TYPED if len(v)], ids=lambda values: str(values.type))
def test_values_of_every_type_come_back(values: pa.Array) -> None:
    out = uc.aggregate(pa.table({"x": values}), top=uc.HeavyHitters("x", 10))
    entries = out["top"][0].as_py()
    assert {entry["item"] for entry in entries} == set(values.to_pylist())
    assert out.schema.field("top").type.value_type.field("item").type == plain_type(values.type)


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        (pa.int8(), 64),
        (pa.bool_(), 64),
        (pa.date32(), 64),
        (pa.uint16(), 24),
        (pa.string(), 80),
        (pa.binary(), 80),
        (pa.float64(), 80),
    ],
)
def test_any_bits_are_a_value_or_are_told_apart(kind: pa.DataType, width: int) -> None:
    bits = np.random.default_rng(3).integers(0, 2, (400, width), np.uint8)
    bits[:200, 8:] = 0
    values, right = from_bits(bits, kind)
    values.validate(full=True)
    assert len(values) == right.sum() < 400


def test_text_is_cut_between_characters() -> None:
    assert cut(pa.array(["aé", "€€x", "𝄞𝄞", "abc"]), 4).to_pylist() == ["aé", "€", "𝄞", "abc"]
    assert cut(pa.array([b"\x80\x80\x80"]), 2).to_pylist() == [b"\x80\x80"]
    out = found(["long text 1", "long text 2", "short"], length=9)
    assert out == {"long text": 2, "short": 1}


def test_nan_zero_and_no_values() -> None:
    table = pa.table({"x": [float("nan"), -float("nan"), 0.0, -0.0, -0.0, None]})
    out = uc.aggregate(table, top=uc.HeavyHitters("x", 3), none=uc.HeavyHitters("x", 3).where(uc.col("x") > 9e99))
    assert repr(out["top"][0].as_py()) == "[{'item': 0.0, 'count': 3}, {'item': nan, 'count': 2}]"
    nothing = uc.aggregate(pa.table({"x": pa.array([None], pa.int8())}), top=uc.HeavyHitters("x", 3))
    assert nothing["top"].to_pylist() == [[]]


def test_the_state_is_bounded() -> None:
    fn = uc.HeavyHitters("x", 3, 0.1, 0.9).bind(pa.schema({"x": pa.int64()}))
    (held,) = fn.accumulate(pa.table({"x": np.arange(20_000)}))
    assert len(held[0]) <= 3 * 28


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: uc.HeavyHitters("x", 0), "k must be a whole number from 1"),
        (lambda: uc.HeavyHitters("x", 3, error=0.9), "error must be a number from 1e-05 to 0.5, but is 0.9"),
        (lambda: uc.HeavyHitters("x", 3, confidence=1), "confidence must be a number from 0.5"),
        (lambda: uc.HeavyHitters("x", 3, length=0), "length must be a whole number from 1 to 1024"),
        (
            lambda: uc.aggregate(pa.table({"x": [[1]]}), t=uc.HeavyHitters("x", 3)),
            "takes numbers, times, booleans",
        ),
    ],
)
def test_wrong_use(make, says: str) -> None:
    with pytest.raises(uc.UncombineError, match=says):
        make()


def test_data_chosen_against_one_seed_are_as_others_with_another() -> None:
    """A frequent value is not found where others that were looked for outweigh it in all of its buckets."""
    fn, others = BucketsFn(pa.int64(), 5, 272, 64), 2**20 + np.arange(300_000)
    of_others, of_zero = fn.places(pa.array(others)), fn.places(pa.array([0]))
    aimed = [others[row == mine[0]][:500] for row, mine in zip(of_others, of_zero, strict=True)]
    values = pa.array(np.concatenate([np.zeros(300, np.int64), *aimed, 10**7 + np.arange(10_000)]))
    assert 0 not in found(values)
    for seed in (1, 2, 2**62):
        assert found(values, seed=seed).get(0, 0) >= 300
    with pytest.raises(uc.errors.InvalidArgument, match=r"HeavyHitters\(seed\)"):
        uc.HeavyHitters("x", 2, seed=2**63)

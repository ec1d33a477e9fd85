"""Approximate distinct counts: the stated error against exact counts, retraction, and the form without it."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners.plan import Plan
from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.groups import Groups
from uncombine.combiners.sketches import rank_buckets
from uncombine.combiners.sketches.approx_distinct import estimates


def off(error: float, distinct: int, groups: int) -> np.ndarray:
    """Relative errors over many groups of so many different values."""
    values = np.random.default_rng([distinct, groups]).permutation(2 * groups * distinct)[: groups * distinct]
    table = pa.table({"x": np.tile(values, 2), "g": np.tile(np.repeat(np.arange(groups), distinct), 2)})
    found = uc.aggregate(table, by="g", n=uc.ApproxCountDistinct("x", error))["n"]
    return np.asarray(found) / distinct - 1


@pytest.mark.weekly
@pytest.mark.parametrize("error", [0.5, 0.09, 0.05, 0.02])
@pytest.mark.parametrize("distinct", [3, 100, 3_000])
def test_the_stated_error_is_kept(error: float, distinct: int) -> None:
    found = off(error, distinct, groups=150)
    spread = math.sqrt((found**2).mean())
    assert spread <= 1.1 * error
    assert abs(found.mean()) <= error / 3
    assert np.quantile(np.abs(found), 0.9) <= 2 * error


def test_the_error_is_not_far_below_what_is_stated() -> None:
    assert np.abs(off(0.09, 3_000, groups=150)).max() > 0.09


@pytest.mark.parametrize(
    "registers", [{5: 3, 9: 1, 70: 2, 100: 58}, dict.fromkeys(range(127), 58) | {127: 57}, dict.fromkeys(range(128), 9)]
)
def test_the_estimate_is_that_of_the_formula(registers: dict[int, int]) -> None:
    m, q = 128, 57
    counts = [m - len(registers), *(sum(rank == k for rank in registers.values()) for k in range(1, q + 2))]
    x, y, z = 1 - counts[q + 1] / m, 1.0, counts[q + 1] / m
    for _ in range(200):
        x, y = math.sqrt(x), y / 2
        z -= (1 - x) ** 2 * y
    z *= m / 3
    for k in range(q, 0, -1):
        z = (z + counts[k]) / 2
    x, y, sigma = counts[0] / m, 1.0, counts[0] / m
    for _ in range(200):
        x, y = x * x, 2 * y
        sigma += x * y / 2
    z += m * sigma
    ranks = np.array([64 * register + rank for register, rank in registers.items()])
    found = estimates(Groups.single(len(ranks)), ranks, 7)
    assert found == pytest.approx([m * m / (2 * math.log(2) * z)])


def test_buckets_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.array([0, 1, 2**57 - 1, 2**56, 2**57, 127 * 2**57 + 4], np.uint64)
    monkeypatch.setattr(rank_buckets, "hash_rows", lambda columns, seed: hashes)
    buckets, checks = rank_buckets._hashed([], 7, 0)
    assert [divmod(bucket, 64) for bucket in buckets.tolist()] == [(0, 58), (0, 1), (0, 1), (0, 57), (1, 58), (127, 3)]
    assert (checks < rank_buckets.PRIME).all()


@pytest.mark.weekly
@pytest.mark.parametrize("retractable", [True, False])
@pytest.mark.parametrize("error", [0.03, 0.02, 0.005])
def test_fewer_than_a_thousand_values_are_counted_to_within_one_percent(error: float, retractable: bool) -> None:
    rng, groups = np.random.default_rng(11), 40
    for seed in range(20):
        for distinct in (1, 30, 99, 100, 400, 999):
            values = rng.integers(-(2**63), 2**63 - 1, groups * distinct)
            table = pa.table({"x": values, "g": np.repeat(np.arange(groups), distinct)})
            combiner = uc.ApproxCountDistinct("x", error, seed=seed, retractable=retractable)
            found = np.asarray(uc.aggregate(table, by="g", n=combiner)["n"])
            assert np.abs(found / distinct - 1).max() <= 0.01, (seed, distinct)


@pytest.mark.parametrize("weights", [[1, 1, 1], [3, 5, 2**40], [rank_buckets.PRIME + 1, 2, 7]])
def test_a_bucket_tells_one_value_from_two_and_three(monkeypatch: pytest.MonkeyPatch, weights: list[int]) -> None:
    checks = np.array([5, 46_000, 17], np.uint32)
    monkeypatch.setattr(rank_buckets, "_hashed", lambda columns, bits, seed: (np.full(3, 65, np.int32), checks))
    fn = rank_buckets.BucketWeightsFn(7)
    for count in (1, 2, 3):
        chosen = np.array(weights[:count] + [0] * (3 - count), np.int64)
        state = fn.add(Groups.single(3), Column(pa.array([0, 0, 0])), weights=chosen)
        assert fn.bucket_counts(state).values.tolist() == [count]
        plain = rank_buckets.RegistersFn(7)
        assert plain.bucket_counts(
            plain.add(Groups.single(3), Column(pa.array([0] * 3)), weights=chosen)
        ).values.tolist() == [count]


def random_tree(fn: uc.CombineFn, parts: list[tuple[pa.Array, ...]], draw: random.Random) -> tuple[pa.Array, ...]:
    """The sum of some accumulators, in any order and grouping."""
    while len(parts) > 1:
        draw.shuffle(parts)
        some = [parts.pop() for _ in range(min(draw.choice([2, 3]), len(parts)))]
        both = tuple(pa.concat_arrays(list(columns)) for columns in zip(*some, strict=True))
        parts.append(fn.merge(Groups.repeated(len(some[0][0]), len(some)), both))
    return parts[0]


@pytest.mark.parametrize("retractable", [True, False])
def test_few_and_many_values_by_any_way_are_one_state(retractable: bool) -> None:
    draw, rng = random.Random(4), np.random.default_rng(4)
    fn = uc.ApproxCountDistinct("x", 0.09, retractable=retractable).bind(pa.schema({"x": pa.int64()}))
    for distinct in (3, 100, 120, 140, 150, 400, 3_000):
        values = rng.permutation(distinct) * 7_919 + draw.randrange(2**40)
        values = np.concatenate([values, rng.choice(values, distinct // 2)])
        codes = rng.integers(0, 3, len(values))
        codes[rng.random(len(values)) < 0.5] = 0
        whole = fn.add(Groups(codes, 4), pa.array(values))
        cuts = np.array_split(rng.permutation(len(values)), draw.choice([2, 5, 9]))
        parts = [fn.add(Groups(codes[cut], 4), pa.array(values[cut])) for cut in cuts]
        joined = random_tree(fn, parts, draw)
        assert all(a.equals(b) for a, b in zip(joined, whole, strict=True)), distinct


def test_many_values_of_which_few_are_left_are_as_few_that_ever_were() -> None:
    fn = uc.ApproxCountDistinct("x").bind(pa.schema({"x": pa.int64()}))
    rng = np.random.default_rng(6)
    kept, gone = rng.integers(0, 2**62, 60), rng.integers(0, 2**62, 50_000)
    few = fn.accumulate({"x": kept.tolist()})
    many = fn.accumulate({"x": [*kept.tolist(), *gone.tolist()]})
    assert abs(fn.result(many) / 50_060 - 1) < 0.05
    left = fn.uncombine(many, fn.accumulate({"x": gone.tolist()}))
    assert all(a.equals(b) for a, b in zip(left, few, strict=True))
    assert fn.result(left) == 60
    nothing = fn.uncombine(left, few)
    assert all(a.equals(b) for a, b in zip(nothing, fn.zero(1), strict=True))


def test_values_retracted_more_often_than_they_came_are_kept() -> None:
    fn = uc.ApproxCountDistinct("x").bind(pa.schema({"x": pa.int64()}))
    negative = fn.accumulate({"x": [1, 2, 2]}, weights=[1, -1, -1])
    assert fn.result(negative) == 1
    both = tuple(pa.concat_arrays([a, b]) for a, b in zip(negative, fn.accumulate({"x": [2, 2, 3]}), strict=True))
    assert fn.result(fn.merge(Groups.repeated(1, 2), both)) == 2


@pytest.mark.parametrize("distinct", [500, 2_300, 2_600, 20_000])
def test_both_forms_agree_on_many_values(distinct: int) -> None:
    table = pa.table({"g": np.arange(20 * distinct) % 20, "x": np.arange(20 * distinct) * 31 + 5})
    forms = {f"{keep}": uc.ApproxCountDistinct("x", retractable=keep) for keep in (True, False)}
    plans = {name: Plan({"n": form}, table.schema) for name, form in forms.items()}
    groups = Groups(np.asarray(table["g"]), 20)
    results = [plan.extract(plan.add(groups, table))[0] for plan in plans.values()]
    assert results[0] == results[1]


def test_data_chosen_against_one_seed_are_as_others_with_another() -> None:
    values = np.arange(1_000_000)
    registers = rank_buckets._hashed([Column(pa.array(values))], 12, 0)[0] // rank_buckets.RANKS
    chosen = pa.table({"x": values[registers < 8]})
    assert 1_500 < chosen.num_rows < 2_500
    aimed = uc.aggregate(chosen, n=uc.ApproxCountDistinct("x"))["n"][0].as_py()
    assert aimed < 0.3 * chosen.num_rows
    for seed in (1, 2, 2**62):
        found = uc.aggregate(chosen, n=uc.ApproxCountDistinct("x", seed=seed))["n"][0].as_py()
        assert found == pytest.approx(chosen.num_rows, rel=0.06)


ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(1, 2)), max_size=20)


@given(ROWS)
def test_both_forms_agree(rows: list[tuple[str, int, int]]) -> None:
    table = pa.table(
        {
            "g": [r[0] for r in rows],
            "x": pa.array([r[1] for r in rows], pa.int64()),
            "w": [r[2] for r in rows],
        }
    )
    table = table.set_column(2, "w", table["w"].cast(pa.int64()))
    both = {f"{keep}": uc.ApproxCountDistinct("x", retractable=keep) for keep in (True, False)}
    out = uc.aggregate(table, by="g", diff="w", **both)
    assert out["True"] == out["False"]
    expected = {g: len({r[1] for r in rows if r[0] == g}) for g in {r[0] for r in rows}}
    assert dict(zip(out["g"].to_pylist(), out["True"].to_pylist(), strict=True)) == expected


@given(ROWS, ROWS)
def test_retracted_equals_never_seen(kept: list[tuple[str, int, int]], gone: list[tuple[str, int, int]]) -> None:
    fn = uc.ApproxCountDistinct(["g", "x"]).bind(pa.schema({"g": pa.string(), "x": pa.int64()}))

    def state(rows: list[tuple[str, int, int]], back: list[tuple[str, int, int]]) -> tuple[pa.Array, ...]:
        every = rows + back
        weights = [r[2] for r in rows] + [-r[2] for r in back]
        return fn.accumulate({"g": [r[0] for r in every], "x": [r[1] for r in every]}, weights=weights)

    assert state(kept + gone, gone) == state(kept, [])


def test_nulls_nan_and_no_values() -> None:
    table = pa.table({"x": [None, float("nan"), -float("nan"), 0.0, -0.0], "y": ["a", None, "b", "c", "c"]})
    out = uc.aggregate(table, x=uc.ApproxCountDistinct("x"), both=uc.ApproxCountDistinct(["x", "y"]))
    assert out.to_pylist() == [{"x": 2, "both": 2}]
    empty = uc.aggregate(pa.table({"x": pa.array([None], pa.string())}), n=uc.ApproxCountDistinct("x"))
    assert empty.to_pylist() == [{"n": 0}]


def test_the_state_is_bounded() -> None:
    values = pa.table({"x": np.arange(200_000)})
    bits = uc.ApproxCountDistinct("x", 0.05).bits
    for keep, most in ((True, 20 * 2**bits * (65 - bits)), (False, 4 * 2**bits)):
        fn = uc.ApproxCountDistinct("x", 0.05, retractable=keep).bind(values.schema)
        assert sum(column.nbytes for column in fn.accumulate(values)) <= most + 64


@pytest.mark.parametrize(("count", "kept", "plain"), [(1_000, 20_000, 8_100), (1_000_000, 820_000, 16_500)])
def test_the_state_has_the_stated_size(count: int, kept: int, plain: int) -> None:
    values = pa.table({"x": np.arange(count)})
    for combiner, most in (
        (uc.ApproxCountDistinct("x"), kept),
        (uc.ApproxCountDistinct("x", retractable=False), plain),
    ):
        size = sum(column.nbytes for column in combiner.bind(values.schema).accumulate(values))
        assert 0.8 * most < size < most + 100


def test_registers_for_an_error() -> None:
    bits = [uc.ApproxCountDistinct("x", error).bits for error in (0.9, 0.05, 0.02, 0.01, 0.0021)]
    assert bits == [7, 9, 12, 14, 18]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: uc.ApproxCountDistinct("x", 0), "error must be at least 0.0021 and below 1, but is 0"),
        (lambda: uc.ApproxCountDistinct("x", "low"), "error must be at least"),
        (lambda: uc.ApproxCountDistinct("x", seed=-1), "seed must be a whole number from 0"),
        (lambda: uc.ApproxCountDistinct("x", seed=True), "seed must be"),
        (lambda: uc.ApproxCountDistinct([]), "takes a column or a list of columns"),
        (
            lambda: uc.aggregate(
                pa.table({"x": [1], "w": [-1]}), diff="w", n=uc.ApproxCountDistinct("x", retractable=False)
            ),
            "use its retractable form",
        ),
    ],
)
def test_wrong_use(make, says: str) -> None:
    with pytest.raises(uc.UncombineError, match=says):
        make()

"""Approximate distinct counts: the stated error against exact counts, retraction, and the form without it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.combiners import approx_distinct
from uncombine.combiners.approx_distinct import estimates
from uncombine.combiners.groups import Groups


def off(error: float, distinct: int, groups: int) -> np.ndarray:
    """Relative errors over many groups of so many different values."""
    values = np.random.default_rng([distinct, groups]).permutation(2 * groups * distinct)[: groups * distinct]
    table = pa.table({"x": np.tile(values, 2), "g": np.tile(np.repeat(np.arange(groups), distinct), 2)})
    found = uc.aggregate(table, by="g", n=uc.ApproxCountDistinct("x", error))["n"]
    return np.asarray(found) / distinct - 1


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


def test_registers_and_ranks_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.array([0, 1, 2**57 - 1, 2**56, 2**57, 127 * 2**57 + 4], np.uint64)
    monkeypatch.setattr(approx_distinct, "hash_rows", lambda columns: hashes)
    ranks = approx_distinct._ranks([], 7)
    assert [divmod(rank, 64) for rank in ranks.tolist()] == [(0, 58), (0, 1), (0, 1), (0, 57), (1, 58), (127, 3)]


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
def test_taken_back_equals_never_seen(kept: list[tuple[str, int, int]], gone: list[tuple[str, int, int]]) -> None:
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
    for keep, most in ((True, 2**bits * (65 - bits)), (False, 2**bits)):
        fn = uc.ApproxCountDistinct("x", 0.05, retractable=keep).bind(values.schema)
        assert len(fn.accumulate(values)[0][0]) <= most


def test_registers_for_an_error() -> None:
    bits = [uc.ApproxCountDistinct("x", error).bits for error in (0.9, 0.05, 0.02, 0.01, 0.0021)]
    assert bits == [7, 9, 12, 14, 18]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: uc.ApproxCountDistinct("x", 0), "error is at least 0.0021 and below 1, and 0 is not"),
        (lambda: uc.ApproxCountDistinct("x", "low"), "error is at least"),
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

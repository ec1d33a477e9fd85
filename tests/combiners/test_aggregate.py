"""uc.aggregate: results, order of groups, weights, and each bad input in one sentence."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, NotRetractable, OutOfRange, TypeMismatch, UnknownColumn

TABLE = pa.table({"k": ["b", "a", "b", None], "x": [1, 2, None, 4], "f": [0.5, 1.5, 2.5, 3.5], "w": [1, 1, 1, -1]})


def test_groups_come_in_the_order_of_their_first_appearance() -> None:
    result = uc.aggregate(TABLE, by=["k"], n=uc.Count(), s=uc.Sum("x"))
    assert result.to_pylist() == [
        {"k": "b", "n": 2, "s": 1},
        {"k": "a", "n": 1, "s": 2},
        {"k": None, "n": 1, "s": 4},
    ]


@pytest.mark.parametrize("diff", [None, "w"])
def test_few_groups_of_many_rows_come_in_that_order_too(diff: str | None) -> None:
    keys, weights = [3, 5, 1, 2, 4], [1, 1, 1, -1, 1]
    table = pa.table({"k": keys * 40, "x": list(range(200)), "w": weights * 20 + [-1, 1, 1, -1, 1] * 20})
    result = uc.aggregate(table, by="k", diff=diff, n=uc.Count(), s=uc.Sum("x"))
    sums = {3: 3900, 5: 3940, 1: 3980, 2: 4020, 4: 4060}
    if diff is None:
        assert result.to_pylist() == [{"k": k, "n": 40, "s": s} for k, s in sums.items()]
    else:  # the first 20 rows of key 3 are retracted by the last 20
        sums[2] *= -1
        assert result.to_pylist() == [{"k": k, "n": 40 if k != 2 else -40, "s": s} for k, s in sums.items() if k != 3]


def test_groups_whose_weights_sum_to_zero_have_no_row() -> None:
    table = pa.table({"k": ["a", "b", "a", "c"], "x": [1, 2, 1, 5], "w": [1, 1, -1, -1]})
    result = uc.aggregate(table, by="k", diff="w", n=uc.Count(), s=uc.Sum("x"))
    assert result.to_pylist() == [{"k": "b", "n": 1, "s": 2}, {"k": "c", "n": -1, "s": -5}]


def test_without_keys_all_rows_are_one_group_and_no_rows_are_one_too() -> None:
    assert uc.aggregate(TABLE, s=uc.Sum("x")).to_pylist() == [{"s": 7}]
    nothing = uc.aggregate(TABLE.slice(0, 0), s=uc.Sum("x"), n=uc.Count(), q=uc.Median("f"), m=uc.StdDev("f"))
    assert nothing.to_pylist() == [{"s": None, "n": 0, "q": None, "m": None}]
    assert uc.aggregate(TABLE.slice(0, 0), by="k", s=uc.Sum("x")).schema.names == ["k", "s"]


@pytest.mark.parametrize("weights", [[1, -1, 1, -1], [2, 2, -3, -1]])
def test_without_keys_weights_that_cancel_give_the_row_of_no_rows(weights: list[int]) -> None:
    table = pa.table({"x": [3, 3, 5, 7], "f": [0.1, 0.2, 0.3, math.nan], "w": weights})
    combiners = {"n": uc.Count(), "s": uc.Sum("x"), "f": uc.Sum("f"), "v": uc.Variance("f"), "d": uc.CountDistinct("x")}
    expected = {"n": 0, "s": None, "f": None, "v": None, "d": 0}
    assert uc.aggregate(table, diff="w", **combiners).to_pylist() == [expected]
    assert uc.aggregate(table.slice(0, 0), diff="w", **combiners).to_pylist() == [expected]


def test_frames_and_batches_are_taken_as_they_are() -> None:
    frame = pd.DataFrame({"k": ["a", "a", "b"], "x": [1.0, math.nan, 3.0]})
    expected = [{"k": "a", "n": 1, "s": 1.0}, {"k": "b", "n": 1, "s": 3.0}]
    assert uc.aggregate(frame, by="k", n=uc.Count("x"), s=uc.Sum("x")).to_pylist() == expected
    batch = pa.record_batch({"x": [1, 2]})
    assert uc.aggregate(batch, s=uc.Sum("x")).to_pylist() == [{"s": 3}]
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    assert uc.aggregate(reader, s=uc.Sum("x")).to_pylist() == [{"s": 6}]
    dicts = [{"k": "a", "x": 1.0}, {"k": "a"}, {"x": 3.0, "k": "b"}]
    assert uc.aggregate(dicts, by=uc.col("k"), n=uc.Count("x"), s=uc.Sum("x")).to_pylist() == expected
    assert uc.aggregate(frame, by="k", s=uc.Sum("x")).to_pandas().s.tolist() == [1.0, 3.0]


def test_chunked_and_sliced_tables_are_no_different() -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {"k": rng.integers(0, 5, 100), "x": rng.integers(-9, 9, 100), "s": rng.integers(0, 3, 100).astype(str)}
    )
    chunked = pa.concat_tables([table.slice(i, 7) for i in range(0, 100, 7)])
    results: dict[str, uc.Combiner] = {
        "s": uc.Sum("x"),
        "m": uc.Max("s"),
        "d": uc.CountDistinct("x"),
        "q": uc.Median("x"),
    }
    assert uc.aggregate(chunked, by="k", **results).equals(uc.aggregate(table, by="k", **results))


@pytest.mark.parametrize("kind", ["int", "decimal", "float"])
def test_sums_against_pandas(kind: str) -> None:
    rng = np.random.default_rng(7)
    values: dict[str, Any] = {
        "int": rng.integers(-(10**6), 10**6, 500),
        "decimal": [decimal.Decimal(int(v)) / 100 for v in rng.integers(-(10**6), 10**6, 500)],
        "float": rng.normal(size=500),
    }
    frame = pd.DataFrame({"k": rng.integers(0, 9, 500), "x": values[kind]})
    expected = frame.groupby("k", sort=False)["x"].agg(["sum", "count", "min", "max"])
    got = uc.aggregate(
        frame, by="k", sum=uc.Sum("x"), count=uc.Count("x"), min=uc.Min("x"), max=uc.Max("x")
    ).to_pandas()
    for name in ("sum", "count", "min", "max"):
        if kind == "float":
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-12)
        else:
            assert got[name].tolist() == expected[name].tolist()


def test_a_sum_outside_int64_raises_when_it_is_read_and_not_before() -> None:
    table = pa.table({"x": [2**62, 2**62, 2**62], "w": [1, 1, 1]})
    with pytest.raises(OutOfRange, match="13835058055282163712"):
        uc.aggregate(table, s=uc.Sum("x"))
    back = pa.concat_tables([table, pa.table({"x": [2**62, 2**62], "w": [-1, -1]})])
    assert uc.aggregate(back, diff="w", s=uc.Sum("x")).to_pylist() == [{"s": 2**62}]


MIXED = pd.DataFrame({"k": [1, "a"]})
BAD: list[tuple[Callable[[], Any], type[Exception], type[Exception], str]] = [
    (lambda: uc.aggregate(TABLE, s=uc.Sum("k")), TypeMismatch, TypeError, "Sum"),
    (lambda: uc.aggregate(TABLE, by="kk", s=uc.Count()), UnknownColumn, LookupError, "did you mean 'k'"),
    (lambda: uc.aggregate(TABLE, s=uc.Sum("xx")), UnknownColumn, LookupError, "did you mean 'x'"),
    (lambda: uc.aggregate(TABLE, s=uc.Count("*")), UnknownColumn, LookupError, r"write Count\(\)"),
    (lambda: uc.aggregate(TABLE, diff="x", s=uc.Count()), InvalidArgument, ValueError, "nulls"),
    (lambda: uc.aggregate(TABLE, diff="f", s=uc.Count()), TypeMismatch, TypeError, "int64"),
    (
        lambda: uc.aggregate(TABLE, diff="w", m=uc.Max("x", retractable=False)),
        NotRetractable,
        ValueError,
        "retractable",
    ),
    (lambda: uc.aggregate(TABLE, k=uc.Count(), by="k"), InvalidArgument, ValueError, "rename"),
    (lambda: uc.aggregate(TABLE, n="x"), InvalidArgument, ValueError, "takes a combiner"),  # type: ignore[arg-type]
    (lambda: uc.aggregate([1, 2], n=uc.Count()), TypeMismatch, TypeError, "list"),  # type: ignore[list-item]
    (lambda: uc.aggregate([{"x": 1}, {"x": "a"}], n=uc.Count()), TypeMismatch, TypeError, "column 'x' of the dicts"),
    (lambda: uc.aggregate(MIXED, n=uc.Count()), TypeMismatch, TypeError, "column k with type object"),
    (lambda: uc.flow(MIXED), TypeMismatch, TypeError, "values of different types"),
    (lambda: uc.aggregate(TABLE), InvalidArgument, ValueError, "Count"),
    (lambda: uc.Histogram("x", [3, 1, 2]), InvalidArgument, ValueError, "increas"),
    (lambda: uc.TopK("x", 0), InvalidArgument, ValueError, "TopK"),
    (lambda: uc.Quantile("x", 1.5), InvalidArgument, ValueError, "0"),
    (lambda: uc.Count().where("x > 1"), InvalidArgument, ValueError, "where"),  # type: ignore[arg-type]
    (lambda: uc.aggregate(TABLE, n=uc.Count().where(uc.col("x"))), TypeMismatch, TypeError, "boolean"),
    (lambda: uc.aggregate(TABLE, n=uc.CountIf("x")), TypeMismatch, TypeError, "boolean"),
    (lambda: uc.Sum("x") + "y", InvalidArgument, ValueError, "combiners and numbers"),  # type: ignore[operator]
    (lambda: uc.aggregate(TABLE, n=uc.Max("k") + 1), TypeMismatch, TypeError, "numbers"),
    (lambda: uc.Struct(), InvalidArgument, ValueError, "at least one"),
]


@pytest.mark.parametrize("case", BAD, ids=range(len(BAD)))
def test_bad_input_is_one_sentence_from_one_family(case: tuple[Any, ...]) -> None:
    call, kind, builtin, words = case
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, uc.UncombineError)
    assert isinstance(caught.value, builtin)
    assert "\n" not in str(caught.value)


def test_two_columns_of_one_name_are_named() -> None:
    table = pa.table([pa.array([1]), pa.array([10]), pa.array([2])], names=["x", "x", "y"])
    assert uc.aggregate(table, m=uc.Sum("y")).to_pylist() == [{"m": 2}]
    twice = r"needs column 'x', but the input has 2 columns of this name: rename them"
    for given in ({"m": uc.Sum("x")}, {"m": uc.Sum(uc.col("x") + 1)}, {"by": "x", "m": uc.Count()}, {"diff": "x"}):
        with pytest.raises(InvalidArgument, match=twice):
            uc.aggregate(table, **given)


def test_a_weight_past_int64_is_named() -> None:
    table = pa.table({"x": [1, 2], "w": pa.array([2**64 - 1, 1], pa.uint64())})
    says = r"the weight column 'w' has a weight of 18446744073709551615, but weights must fit int64"
    with pytest.raises(OutOfRange, match=says):
        uc.aggregate(table, diff="w", m=uc.Sum("x"))


def test_an_expression_of_results_is_named_by_its_combiners() -> None:
    table = pa.table({"u": pa.array([2**63 + 7], pa.uint64())})
    with pytest.raises(OutOfRange, match=r"^\(Max\('u', retractable=False\) \+ 1\) failed on the data"):
        uc.aggregate(table, m=uc.Max("u") + 1)
    with pytest.raises(OutOfRange, match=r"^\(Max\('u', retractable=False\) \* 2\) failed on the data"):
        uc.aggregate(table, m=uc.Max("u") * 2 + 1)

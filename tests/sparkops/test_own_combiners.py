"""Combiners of the user's own, columnar and scalar, where Spark's workers do the work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.sparkops import accumulate, add_udf, as_arrow_udf, extract_accumulated, uncombine_accumulated


def total() -> Any:
    """A columnar sum; a class in a function goes to the workers by value."""

    class TotalFn(uc.CombineFn):
        fields = (pa.field("total", pa.int64()),)

        def add(self, groups, *columns, weights=None):
            weights = 1 if weights is None else weights
            return self.merge(groups, (pa.array(columns[0].values * weights),))

        def merge(self, groups, accumulators):
            sums = np.zeros(groups.count, np.int64)
            np.add.at(sums, groups.codes, np.asarray(accumulators[0]))
            return (pa.array(sums),)

        def negate(self, accumulators):
            return (pa.array(-np.asarray(accumulators[0])),)

        def extract(self, accumulators):
            return accumulators[0]

    return uc.from_columns("Total", TotalFn(), output=pa.int64())


Total = total()
Plain = uc.from_scalar(
    "Plain", create=lambda: 0, add=lambda s, x: s + x, merge=lambda s, t: s + t, extract=lambda s: s,
    accumulator=pa.int64(), output=pa.int64(),
)  # fmt: skip


@pytest.fixture
def scores(spark: SparkSession) -> Any:
    rows = [("a", second, second % 5, -1 if second == 3 else 1) for second in range(40)] + [("b", 7, 9, 1)]
    return spark.createDataFrame(rows, "k string, second long, x long, w long").selectExpr(
        "k", "timestamp_seconds(second) AS ts", "x", "w"
    )


def test_in_a_flow(scores: Any) -> None:
    for diff in (None, "w"):
        flow = uc.flow(scores, time="ts", diff=diff).window(uc.Sliding("20 seconds", "5 seconds"))
        panes = flow.combine(by="k", t=Total("x"), s=uc.Sum("x")).df.toArrow()
        assert panes.num_rows > 10
        assert panes["t"].to_pylist() == panes["s"].to_pylist()


def test_in_a_udf(scores: Any) -> None:
    calls = [as_arrow_udf(made("x"), scores.schema)("x").alias(n) for n, made in (("t", Total), ("s", uc.Sum))]
    found = scores.groupBy("k").agg(*calls).orderBy("k").collect()
    assert [tuple(row) for row in found] == [("a", 80, 80), ("b", 9, 9)]


def test_stored_as_columns(scores: Any) -> None:
    whole = accumulate(scores, by="k", t=Total("x"))
    some = accumulate(scores.where("x > 1"), by="k", t=Total("x"))
    with pytest.raises(uc.errors.StateMismatch, match=r"made by Total\('x'\).*give the combiner as t="):
        extract_accumulated(whole)
    left = extract_accumulated(uncombine_accumulated(whole, some, by="k", t=Total("x")), t=Total("x"))
    assert sorted(tuple(row) for row in left.collect()) == [("a", 8)]


def test_what_is_no_more_than_a_monoid_names_the_way_out(scores: Any) -> None:
    says = r"is a MONOID combiner and .*: give from_scalar uncombine="
    with pytest.raises(uc.errors.NotRetractable, match=says):
        accumulate(scores, by="k", diff="w", p=Plain("x"))
    with pytest.raises(uc.errors.NotRetractable, match=says):
        uc.flow(scores, time="ts", diff="w").window(uc.Fixed("1 minute")).combine(p=Plain("x"))
    assert add_udf(Plain("x"), scores.schema) is not None

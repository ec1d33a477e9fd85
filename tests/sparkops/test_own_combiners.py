"""Combiners of the user's own, columnar and scalar, where Spark's workers do the work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.sparkops.stored.column_expressions import EXPRESSIONS

expressions = pytest.mark.skipif(not EXPRESSIONS, reason="expressions of accumulators need Spark 4.1")


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


@expressions
def test_in_a_udf(scores: Any) -> None:
    made = (("t", Total("x")), ("s", uc.Sum("x")))
    calls = [uc.Accumulator(combiner, schema=scores).udf("x").alias(name) for name, combiner in made]
    found = scores.groupBy("k").agg(*calls).orderBy("k").collect()
    assert [tuple(row) for row in found] == [("a", 80, 80), ("b", 9, 9)]


def test_stored_as_columns(scores: Any) -> None:
    total = uc.Accumulator(Total("x"), "t")
    whole, some = total.add(scores, by="k"), total.add(scores.where("x > 1"), by="k")
    with pytest.raises(uc.errors.StateMismatch, match=r"made by Total\('x'\) over .*, not by Sum\('x'\)"):
        uc.Accumulator(uc.Sum("x"), "t").extract(whole)
    left = total.extract(total.uncombine(whole, some, by="k"))
    assert sorted(tuple(row) for row in left.collect()) == [("a", 8)]


def test_what_is_no_more_than_a_monoid_names_the_way_out(scores: Any) -> None:
    says = r"is a MONOID combiner and .*: give from_scalar uncombine="
    with pytest.raises(uc.errors.NotRetractable, match=says):
        uc.Accumulator(Plain("x"), "p").add(scores, by="k", diff="w")
    with pytest.raises(uc.errors.NotRetractable, match=says):
        uc.flow(scores, time="ts", diff="w").window(uc.Fixed("1 minute")).combine(p=Plain("x"))
    assert uc.Accumulator(Plain("x"), "p").add(scores, by="k") is not None

"""Combiners as grouped-aggregate UDFs of Spark beside the pandas UDFs that anybody writes for the same, over files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from datasets import files
from harness import Row, pair, wall
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

import uncombine as uc

TITLE = "Aggregate functions in Python on Spark"

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this folder

ROWS = 6_000_000
GROUPS = {100: "100 groups", 10_000: "10 k groups", 100_000: "100 k groups"}
RUNS = {100: 3, 10_000: 3, 100_000: 1}
"""A run of many groups takes long, and the two differ by factors."""
GOAL = 0.9
EXACT = 1.3
CALLS = 2_000


@dataclass(frozen=True)
class Same:
    """One aggregate twice: as a combiner, and as the body of a pandas UDF with its type in Spark."""

    combiner: uc.Combiner
    body: Callable[[pd.Series], Any]
    kind: str = "double"
    goal: float = GOAL

    @property
    def column(self) -> str:
        return str(self.combiner.input)  # type: ignore[attr-defined]


PEERS = {
    "count": Same(uc.Count("x"), lambda x: x.count(), "long"),
    "sum": Same(uc.Sum("x"), lambda x: x.sum()),
    "mean": Same(uc.Mean("x"), lambda x: x.mean()),
    "max": Same(uc.Max("x"), lambda x: x.max()),
    "variance": Same(uc.Variance("x"), lambda x: x.var()),
    "median": Same(uc.Median("x"), lambda x: x.median()),
    "count distinct": Same(uc.CountDistinct("v"), lambda v: v.nunique(), "long"),
    "top 3": Same(uc.TopK("x", 3), lambda x: x.nlargest(3).tolist(), "array<double>"),
    "mode": Same(uc.Mode("v"), lambda v: v.mode().iloc[0], "long"),
    "exact sum": Same(uc.Sum("x", exact=True), lambda x: x.sum(), goal=EXACT),
}


def rows() -> Iterator[Row]:
    yield from calls()
    spark = uc.session("benchmarks", cores=2)
    for groups, what in GROUPS.items():
        df = spark.read.parquet(files(ROWS, groups))
        for place, query in (("agg", grouped), ("over", windowed)):
            pandas = F.pandas_udf(_of_pandas(lambda x: 1.0), "double")
            arrow = F.arrow_udf(_of_arrow(), "double")
            constant = partial(query, df, arrow, "x"), partial(query, df, pandas, "x")
            yield wall(f"a constant, {what}, {place}", *constant, "a constant in pandas", None, RUNS[groups])
            for name, same in PEERS.items():
                ours = uc.Accumulator(same.combiner, schema=df).udf
                theirs = F.pandas_udf(_of_pandas(same.body), same.kind)
                both = partial(query, df, ours, same.column), partial(query, df, theirs, same.column)
                # The JVM has compiled the plan in the rows before.
                yield wall(
                    f"{name}, {what}, {place}",
                    *both,
                    "a pandas UDF",
                    same.goal,
                    RUNS[groups],
                    before=min(1, RUNS[groups] - 1),
                )


def calls() -> Iterator[Row]:
    """The function alone, without Spark: a call for each of many groups of 60 rows, in processor time."""
    draw = np.random.default_rng(1)
    columns = {"x": pa.array(draw.normal(0, 1e3, 60)), "v": pa.array(draw.integers(0, 1000, 60))}
    schema = pa.schema({name: column.type for name, column in columns.items()})
    for name, same in PEERS.items():
        whole, column = same.combiner.append_only().bind(schema).whole, columns[same.column]
        series = pd.Series(column.to_numpy())
        ours, theirs = partial(_repeat, whole, [column]), partial(_repeat, same.body, series)
        yield pair(f"{name}, {CALLS} calls for 60 rows", ours, theirs, "the body of the pandas UDF", None)


def _repeat(function: Callable[[Any], Any], argument: Any) -> None:
    for _ in range(CALLS):
        function(argument)


def grouped(df: DataFrame, function: Callable[..., Column], column: str) -> None:
    _do(df.groupBy("k").agg(function(column).alias("r")))


def windowed(df: DataFrame, function: Callable[..., Column], column: str) -> None:
    _do(df.select("k", function(column).over(Window.partitionBy("k")).alias("r")))


def _do(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def _of_pandas(body: Callable[[pd.Series], Any]) -> Callable[..., Any]:
    """The body with the annotations from which Spark reads the kind of the function."""

    def aggregate(x: pd.Series) -> float:
        return body(x)  # type: ignore[no-any-return]

    aggregate.__annotations__ = {"x": pd.Series, "return": float}
    return aggregate


def _of_arrow() -> Callable[..., Any]:
    def constant(x: pa.Array) -> pa.Scalar:
        return pa.scalar(1.0)

    constant.__annotations__ = {"x": pa.Array, "return": pa.Scalar}
    return constant

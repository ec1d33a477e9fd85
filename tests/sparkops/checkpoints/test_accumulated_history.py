"""A past of stored accumulators is as good as its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_queries import FIRST, SCHEMA, THEN
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, TypeMismatch, UnknownColumn

COMBINERS: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "middle": uc.Median("x"),
    "mean": uc.Mean("x"),
    "odd": uc.Sum("x").where(uc.col("x") > 3),
}


def table(rows: list[tuple[int, str, int]]) -> pa.Table:
    times, users, xs = zip(*rows, strict=True)
    return pa.table([pa.array([t * 1_000_000 for t in times], SCHEMA.field("ts").type), users, xs], schema=SCHEMA)


def flow(spark: SparkSession, **combiners: uc.Combiner) -> uc.Flow:
    rows = uc.flow(
        uc.Files("/nowhere", format="parquet", schema=SCHEMA), spark=spark, streaming=True, watermark="30 seconds"
    )
    minutes = rows.window("1 minute", "each row", "retracting", allowed_lateness="1 hour")
    return minutes.combine(by="user", **combiners)


def stored(spark: SparkSession, rows: list[tuple[int, str, int]], combiners: dict[str, uc.Combiner]) -> DataFrame:
    """The accumulators of each user and minute, as a job of each day would store them."""
    df = spark.createDataFrame(table(rows).to_pandas()).withColumn("window", F.window("ts", "1 minute"))
    columns = [
        uc.Accumulator(combiner, name, schema=df).add(df, by=["user", "window"]) for name, combiner in combiners.items()
    ]
    joined = columns[0]
    for one in columns[1:]:
        joined = joined.join(one, ["user", "window"])
    return joined


def left(results: list[dict[str, Any]]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row in results:
        about = {name: row[name] for name in ("user", "window", *COMBINERS)}
        rows[repr(about)] = rows.get(repr(about), 0) + row["diff"]
    return {row: count for row, count in rows.items() if count}


@pytest.mark.daily
def test_a_run_goes_on_after_stored_accumulators(spark: SparkSession, tmp_path: Path) -> None:
    one = flow(spark, **COMBINERS)
    accumulators = stored(spark, FIRST, COMBINERS)
    seed = one.seed(accumulators=accumulators, to=tmp_path / "seed")
    rows = uc.flow(SCHEMA, watermark="30 seconds").window(
        "1 minute", "each row", "retracting", allowed_lateness="1 hour"
    )
    here = rows.combine(by="user", **COMBINERS)
    got = here.run([uc.Elements(table(THEN))], start=seed).to_arrow().to_pylist()
    expected = here.run([uc.Elements(table(FIRST)), uc.Elements(table(THEN))]).to_arrow().to_pylist()
    assert left(got) == left(expected)


def test_accumulators_that_do_not_fit_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    one, to = flow(spark, n=uc.Count()), tmp_path / "seed"
    fit = stored(spark, FIRST, {"n": uc.Count()})
    with pytest.raises(InvalidArgument, match="leave one of them out"):
        one.seed([], accumulators=fit, to=to)
    with pytest.raises(InvalidArgument, match="leave until= out"):
        one.seed(accumulators=fit, until="2020-01-01", to=to)
    with pytest.raises(TypeMismatch, match="takes a DataFrame of Spark"):
        one.seed(accumulators=table(FIRST), to=to)
    with pytest.raises(InvalidArgument, match="which are on Spark"):
        uc.flow(SCHEMA).window("1 minute").combine(n=uc.Count()).seed(accumulators=fit, to=to)
    with pytest.raises(UnknownColumn, match="'n'"):
        one.seed(accumulators=fit.drop("n"), to=to)
    with pytest.raises(UnknownColumn, match="window_start"):
        one.seed(accumulators=fit.drop("window"), to=to)
    with pytest.raises(StateMismatch, match="was made by"):
        flow(spark, n=uc.Sum("x")).seed(accumulators=fit, to=to)
    with pytest.raises(StateMismatch, match="keeps smaller ones"):
        flow(spark, n=uc.Max("x")).seed(accumulators=stored(spark, FIRST, {"n": uc.Max("x")}), to=to)
    rows = uc.flow(fit.limit(0).selectExpr("window.start AS ts", "user"), watermark="30 seconds")
    with pytest.raises(InvalidArgument, match="fill windows that do not depend on rows"):
        rows.window("sessions 1 minute").combine(by="user", n=uc.Count()).seed(accumulators=fit, to=to)
    with pytest.raises(InvalidArgument, match="depend on single rows"):
        rows.window("1 minute", granularity="record").combine(by="user", n=uc.Count()).seed(accumulators=fit, to=to)
    assert not to.exists()


def test_windows_of_another_size_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    fit = stored(spark, FIRST, {"n": uc.Count()})
    hours = uc.flow(SCHEMA.empty_table(), spark=spark, watermark="30 seconds").window("1 hour", mode="retracting")
    with pytest.raises(Exception, match="which is none of Fixed"):
        hours.combine(by="user", n=uc.Count()).seed(accumulators=fit, to=tmp_path / "seed")

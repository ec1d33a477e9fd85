"""A watermark of Spark that nothing uses gives a warning; one by which a step before the flow forgets gives none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import uncombine as uc

USED: dict[str, tuple[bool, Callable[[DataFrame], Any]]] = {
    "bare": (False, lambda df: df),
    "filtered": (False, lambda df: df.where("value > 3").withColumn("x", F.lit(1)).select("timestamp", "x")),
    "with an alias": (False, lambda df: df.alias("t").select("t.*").drop("value")),
    "shuffled": (False, lambda df: df.repartition(3)),
    "of another column": (False, lambda df: df.withColumn("ts", F.col("timestamp")).withWatermark("ts", "1 minute")),
    "without duplicates": (True, lambda df: df.dropDuplicates(["value", "timestamp"])),
    "without duplicates nearby": (True, lambda df: df.dropDuplicatesWithinWatermark(["value"]).where("value > 3")),
    "joined": (True, lambda df: df.join(df.withColumnRenamed("value", "v"), "timestamp")),
    "grouped": (True, lambda df: df.groupBy(F.window("timestamp", "1 minute").alias("w")).count().select("w.end")),
}


@pytest.mark.parametrize("name", USED)
def test_a_watermark_of_the_dataframe_has_no_effect(name: str, spark: SparkSession) -> None:
    used, change = USED[name]
    df = change(spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute"))
    column = "ts" if name == "of another column" else "end" if name == "grouped" else "timestamp"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        uc.flow(df, time=column, watermark="10 minutes")
    said = [str(one.message) for one in told if "withWatermark" in str(one.message)]
    if used:
        assert said == []
        return
    assert said == [
        f"withWatermark({column!r}, ...) of the DataFrame has no effect on the flow, which has that of watermark= "
        "alone: leave withWatermark out"
    ]
    assert [one.filename for one in told] == [__file__]


def test_bounded_rows_and_rows_without_one_are_quiet(spark: SparkSession) -> None:
    """Spark itself drops the watermark of a bounded DataFrame."""
    bounded = spark.range(1).select(F.current_timestamp().alias("ts")).withWatermark("ts", "1 minute")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uc.flow(bounded)
        uc.flow(spark.readStream.format("rate").load(), time="timestamp", watermark="1 minute")

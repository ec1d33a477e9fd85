"""This library on Spark, from Parquet files, and from CSV files as a DataFrame; and what Spark itself takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from contender import THREADS, Task, serve
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import uncombine as uc

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this folder
SPARK = uc.session("world", cores=THREADS)
WINDOWS = {"windows": uc.Fixed("1 minute"), "sessions": uc.Sessions("30 seconds")}


def of_files(window: str, folder: str) -> DataFrame:
    return summed(uc.flow(folder, spark=SPARK), window)


def of_csv(window: str, folder: str) -> DataFrame:
    rows = SPARK.read.csv(folder, header=True, schema="k bigint, ts bigint, v bigint").withColumn(
        "ts", F.timestamp_micros("ts")
    )
    return summed(uc.flow(rows), window)


def summed(rows: uc.Flow, window: str) -> DataFrame:
    """The columns that the other systems give, too."""
    df = rows.window(WINDOWS[window]).combine(by="k", s=uc.Sum("v"), c=uc.Count()).df
    return done(df.select("k", "window", "s", "c"))


def idle(folder: str) -> DataFrame:
    """The rows through Python and nothing else."""
    return done(SPARK.read.parquet(folder).select("k", "ts", "v").mapInArrow(nothing, "s bigint"))


def nothing(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield batch.slice(0, 0).select([2])


def done(df: DataFrame) -> DataFrame:
    df.write.format("noop").mode("overwrite").save()
    return df


def facts(df: DataFrame) -> tuple[int, float, float]:
    count, total, most = df.agg(F.count("s"), F.sum("s"), F.max("s")).first()
    return count, total, most


if __name__ == "__main__":
    tasks = {name: Task(partial(of_files, name), facts) for name in WINDOWS}
    tasks |= {f"{name} of CSV": Task(partial(of_csv, name), facts) for name in WINDOWS}
    serve("pyspark", tasks | {"idle": Task(idle)})

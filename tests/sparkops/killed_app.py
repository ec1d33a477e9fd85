"""An application of its own, to be killed: panes of files into a file sink, and at its end the rows of the sink."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from streams import read_stream, started

import uncombine as uc

SCHEMA = pa.schema(
    {"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64(), "at": pa.timestamp("us", "UTC")}
)


def panes(spark: SparkSession, folder: Path) -> DataFrame:
    """Sessions with early, late and retracted panes of each key."""
    flow = uc.flow(read_stream(spark, folder, SCHEMA), watermark=uc.BoundedLag("20 seconds"), processing_time="at")
    trigger = uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(1))
    sessions = flow.window(uc.Sessions("4 seconds"), trigger, "retracting", allowed_lateness="1 minute")
    combined = sessions.combine(by="k", n=uc.Count(), total=uc.Sum("v"), best=uc.Max("v"))
    return combined.df


def main() -> None:
    files, out, result = map(Path, sys.argv[1:])
    spark = uc.session("killed", cores=2, settings={"spark.driver.memory": "700m"})
    started(panes(spark, files), out).awaitTermination()
    pq.write_table(spark.read.parquet(str(out / "panes")).toArrow(), result)
    spark.stop()


if __name__ == "__main__":
    main()

"""An application that loses an executor while the shards of its last stage are at work, some of them done.

Each shard notes that it has panes and takes its time, so that a test can choose the moment of the kill.
"""

from __future__ import annotations

import argparse
import os
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from opened import opened
from pyspark.sql import DataFrame, SparkSession

import uncombine as uc

SHARDS = 8


def flow_over(spark: SparkSession, kind: str, files: Path, marks: Path) -> uc.Flow:
    """Medians and sums of floats by key; parcels are large."""

    def slowly(panes: pa.Table) -> pa.Table:
        if panes.num_rows:
            (marks / uuid.uuid4().hex).touch()
            time.sleep(1)
        return panes

    given = {"watermark": "1 minute", "shards": SHARDS, "files": "never"}
    if kind == "stream":
        read: DataFrame = spark.readStream.schema(spark.read.parquet(str(files)).schema).parquet(str(files))
        flow = opened(read, **given)
    elif kind == "replay":
        flow = opened(spark.read.parquet(str(files)), replay=True, processing_time="at", close_at_end=True, **given)
    else:
        flow = uc.flow(spark.read.parquet(str(files)), tuning=uc.Tuning(shards=SHARDS, native="never"))
    medians = flow.window(uc.Fixed("1 hour"), trigger=None).combine(by="k", middle=uc.Median("x"), total=uc.Sum("x"))
    return medians.map(slowly)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["batch", "replay", "stream"])
    parser.add_argument("files", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    spark = uc.session(
        "losing", settings={"spark.master": "local-cluster[2,1,1200]", "spark.sql.shuffle.partitions": str(SHARDS)}
    )
    made = flow_over(spark, given.kind, given.files, given.out / "marks")
    if given.kind == "stream":
        writer = made.write_stream(checkpoint=given.out / "checkpoint").format("parquet")
        writer.trigger(availableNow=True).start(str(given.out / "panes")).awaitTermination()
        result = spark.read.parquet(str(given.out / "panes"))
    else:
        result = made.df
    pq.write_table(result.select("k", "middle", "total").toArrow(), given.out / "result.parquet")
    spark.stop()
    os._exit(0)


if __name__ == "__main__":
    main()

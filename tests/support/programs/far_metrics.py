"""An application of its own that receives metrics of a query through Spark Connect, and then ends by itself."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.metrics.instruments import RUNNING, Point
from uncombine.metrics.receivers import RECEIVERS, BatchSpan
from uncombine.sparkops.session import PROVIDER, ROCKSDB


class Kept:
    """Keeps all numbers."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.spans: list[BatchSpan] = []

    def take(self, points: list[Point], query: str | None = None) -> None:
        self.points += points

    def span(self, span: BatchSpan) -> None:
        self.spans.append(span)


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_TESTING"] = "1"  # only then does a client find a server whose port is any that is free
    builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", "0")
    spark = builder.config("spark.driver.memory", "700m").config("spark.log.level", "ERROR").getOrCreate()
    assert "connect" in type(spark).__module__
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set(PROVIDER, ROCKSDB)
    rows = spark.readStream.schema("ts timestamp, k string").parquet(str(folder / "in"))
    counts = uc.flow(rows, watermark="1 minute").window("1 minute").combine(by="k", n=uc.Count())
    writer = counts.write_stream(checkpoint=str(folder / "c")).format("noop").queryName("far")
    kept = Kept()
    RECEIVERS.add(kept)  # after the flow was made
    writer.trigger(availableNow=True).start().awaitTermination()
    ended = time.monotonic() + 60
    while time.monotonic() < ended and not any(p.instrument is RUNNING and not p.number for p in kept.points):
        time.sleep(0.1)
    numbers = [[point.instrument.name, point.values, point.number] for point in kept.points]
    print(json.dumps([numbers, len(kept.spans)]), flush=True)
    # No spark.stop(): the thread of the listener must not keep the program.


if __name__ == "__main__":
    main()

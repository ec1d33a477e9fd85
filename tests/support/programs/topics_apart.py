"""An application of its own that reads a topic once and as a stream; with `connect` it knows a server of Spark alone.

    python topics_apart.py SERVERS TOPIC OUT [connect]

It prints the totals of both, and then, for `connect`, why nothing is written to a topic.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyarrow as pa

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.sparkops.session import PROVIDER, ROCKSDB

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})


def session(connect: bool) -> Any:
    settings = {
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        PROVIDER: ROCKSDB,
    }
    if not connect:
        return uc.session("topics apart", cores=2, settings=settings)
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_TESTING"] = "1"  # only then does a client find a server whose port is any that is free
    builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", "0")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def totals(rows: pa.Table) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows.to_pylist():
        found[row["k"]] = found.get(row["k"], 0) + row["total"] * row.get("diff", 1)
    return found


def main() -> None:
    servers, topic, out, *connect = sys.argv[1:]
    spark, kafka = session(bool(connect)), uc.Kafka(servers, topic, value=ROW)
    once = uc.flow(kafka, spark=spark).combine(by="k", total=uc.Sum("n"))
    print(json.dumps(totals(once.df.toArrow())), flush=True)
    flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds")
    hours = flow.window("1 hour", "every 1 row", mode="retracting").combine(by="k", total=uc.Sum("n"))
    for _ in range(2):
        writer = hours.write_stream(checkpoint=f"{out}/checkpoint").format("parquet").option("path", f"{out}/rows")
        writer.trigger(availableNow=True).start().awaitTermination()
    print(json.dumps(totals(spark.read.parquet(f"{out}/rows").toArrow())), flush=True)
    try:
        if connect:
            hours.to_kafka(servers, topic, changelog="diff", checkpoint=f"{out}/other")
    except InvalidArgument as error:
        print(json.dumps(str(error)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

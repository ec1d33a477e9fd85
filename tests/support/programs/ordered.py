"""An application that reads weekly files in the order of their times, in one of several places."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from s3_server import s3

import uncombine as uc
from uncombine.sparkops.session import PROVIDER, ROCKSDB, WORKER_PATH, WORKER_START


def session(place: str) -> SparkSession:
    """A session that runs its tasks in this process, in two of their own, or beyond a server."""
    match place:
        case "cluster":
            paths = os.pathsep.join([str(WORKER_START), os.environ.get("PYTHONPATH", "")])
            settings = {"spark.master": "local-cluster[2,1,1200]", "spark.driver.memory": "700m", WORKER_PATH: paths}
            return uc.session(settings=settings)
        case "connect":
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ["SPARK_TESTING"] = "1"  # only then does a client find a server whose port is any that is free
            builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", "0")
            spark = builder.config("spark.driver.memory", "700m").config("spark.log.level", "ERROR").getOrCreate()
            settings = {PROVIDER: ROCKSDB, "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
            for name, value in settings.items():
                spark.conf.set(name, value)
            return spark
        case _:
            return uc.session(cores=2)


def main() -> None:
    folder, place = Path(sys.argv[1]), sys.argv[2]
    with s3(folder) as store:
        os.environ.update(store.environment)  # before the session starts, so that its workers have it
        spark = session(place)
        path = "s3://bucket/in" if place == "s3" else folder / "bucket" / "in"
        files = uc.Files(path, order="time", max_files_per_batch=3)
        source = uc.flow(files, spark=spark, streaming=True, watermark="1 day", tuning=uc.Tuning(wake=False))
        days = source.window("1 day").combine(by="k", n=uc.Count())
        writer = days.write_stream(checkpoint=folder / "checkpoint").format("parquet")
        writer.option("path", str(folder / "out")).trigger(availableNow=True).start().awaitTermination()
        spark.stop()
    rows = pq.read_table(folder / "out", columns=["k", "window", "n"]).to_pylist()
    found = [[row["k"], f"{row['window']['start']:%Y-%m-%d}", row["n"]] for row in rows]
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""A query that keeps the totals of users by minute in a live table, for tests that change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import uncombine as uc

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
FIRST = [(0, "a", 1), (1, "b", 2), (70, "a", 3), (5, "c", 4), (61, "d", 9)]
THEN = [(62, "a", 10), (65, "b", 20), (5, "c", 40), (80, "e", 1)]
URLS = ["duckdb:{}/a.db#totals", "delta:{}/totals", "parquet:{}/totals"]


def put(folder: Path, name: str, rows: list[tuple[int, str, int]]) -> None:
    folder.mkdir(exist_ok=True)
    times, users, xs = zip(*rows, strict=True)
    table = pa.table([pa.array([t * 1_000_000 for t in times], SCHEMA.field("ts").type), users, xs], schema=SCHEMA)
    pq.write_table(table, folder / f"{name}.parquet")


def flow(spark: SparkSession, folder: Path, shards: int | None = 2, **combiners: uc.Combiner) -> uc.Flow:
    files = uc.Files(str(folder / "in"), order="name")
    tuning = uc.Tuning(shards=shards)
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=tuning)
    return rows.window("1 minute", "each row", allowed_lateness="1 hour").combine(by="user", **combiners)


def run(one: uc.Flow, url: str, folder: Path, checkpoint: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of the live table after all data that are there."""
    trigger = {"availableNow": True}
    live = one.to_table(url.format(folder), checkpoint=folder / checkpoint, trigger=trigger, **options)
    live.awaitTermination()
    rows = live.arrow().to_pylist()
    return sorted(({k: v for k, v in row.items() if k != "event_time"} for row in rows), key=repr)


def expected(folder: Path, **combiners: uc.Combiner) -> list[dict[str, Any]]:
    """The rows of the table by a bounded run of all files."""
    rows = pa.concat_tables([pq.read_table(path) for path in sorted((folder / "in").iterdir())])
    minutes = uc.flow(rows).window("1 minute").combine(by="user", **combiners).run().to_arrow(flat=True)
    names = ["user", "window_start", "window_end", *combiners]
    return sorted(minutes.select(names).to_pylist(), key=repr)

"""Events in files, made by Spark's tasks, and flows over them in batch, as a replay and as a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import uncombine as uc

from . import events, queries
from .events import Events
from .queries import Site

WAITS = uc.BoundedLag("4 seconds")
"""The watermark of all events: no event is delayed for longer."""
KINDS = ("persons", "auctions", "bids")

for module in (events, queries, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(module)  # workers do not find this folder


def write(spark: SparkSession, made: Events, count: int, parts: int, folder: Path) -> None:
    """Write the changes of the first events, a folder for each kind and a file for each part, in order of time."""
    each = -(-count // parts)

    def written(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch["id"].to_pylist():
                first = part * each
                for name, table in made.tables(first, min(each, count - first)).items():
                    kept = table if made.changes else table.drop_columns("diff")
                    pq.write_table(kept, folder / name / f"part-{part:05d}.parquet")
            yield batch

    for name in KINDS:
        (folder / name).mkdir(parents=True)
    spark.range(0, parts, 1, parts).mapInArrow(written, "id bigint").count()
    for file in folder.glob("*/*.parquet"):
        at = 1_700_000_000 + int(file.stem.removeprefix("part-"))
        os.utime(file, (at, at))


def site(spark: SparkSession, made: Events, folder: Path, **options: Any) -> Site:
    """The flows over such files, read in this way."""
    options |= {"watermark": WAITS, "diff": "diff" if made.changes else None}
    replay, most = options.pop("replay", False), options.pop("max_files_per_batch", None)
    given = {}
    for name in KINDS:
        files = uc.Files(str(folder / name), max_files_per_batch=most)
        flow = uc.flow(files, spark=spark, name=name, **options)
        given[name] = flow.replay(close_at_end=True) if replay else flow
    return Site(given, timedelta(microseconds=made.longest), made.changes)


WAYS: dict[str, dict[str, Any]] = {
    "batch": {},
    "replay": {"replay": True, "processing_time": "seen"},
    "stream": {"streaming": True, "processing_time": "seen", "max_files_per_batch": 1},
}
"""The options of the flows for each way to run a query."""

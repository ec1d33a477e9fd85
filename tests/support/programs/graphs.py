"""Random flows that share steps as one query, to be run in a session of a test or in an application that is killed.

Each batch of each flow is a file, which a batch that is run again writes again.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from differing import cut_at_random
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from row_steps import SCHEMA
from streams import FEW_ROWS, read_stream, written
from together_flows import tables_together

import uncombine as uc


def cut(seed: int, most: int) -> tuple[dict[str, pa.Table], list[dict[str, pa.Table]]]:
    """The rows of each source that the flows read, and batches of them of so many instants at most."""
    _, tables = tables_together(seed, steps_alone=True)
    return tables, list(cut_at_random(tables, random.Random(seed + 1), most))


def write_rows(seed: int, folder: Path, most: int) -> dict[str, pa.Table]:
    """The rows of each source, in a folder of its own; of each batch one file, perhaps empty."""
    tables, batches = cut(seed, most)
    for name in "abc":
        written([batch[name] for batch in batches] if name in tables else [], folder / name)
    return tables


def flows_over(spark: SparkSession, seed: int, folder: Path) -> dict[str, uc.Flow]:
    def source(name: str, options: dict[str, Any]) -> uc.Flow:
        rows = read_stream(spark, folder / name, SCHEMA)
        return uc.flow(rows, time="ts", watermark="1 minute", name=name, tuning=uc.Tuning(shards=2), **options)

    return tables_together(seed, source, steps_alone=True)[0]


def started(
    spark: SparkSession, seed: int, files: Path, out: Path, before: Callable[[int], None] = lambda _: None
) -> StreamingQuery:
    """The query over what is there; `before` is called with the number of each batch before its rows are written."""
    flows = flows_over(spark, seed, files)

    def write(results: Any, batch: int) -> None:
        before(batch)
        for name, df in results.items():
            path = out / "panes" / name / f"{batch}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(df.toArrow().cast(flows[name].schema), path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)

    writer = uc.together(**flows).write_stream(checkpoint=out / "checkpoint").foreach_batch(write)
    return writer.trigger(availableNow=True).start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("folders", nargs=2, type=Path, help="of files, and of the checkpoint and the panes")
    given = parser.parse_args()
    spark = uc.session("graphs", cores=2, settings={"spark.driver.memory": "700m", **FEW_ROWS})
    started(spark, given.seed, *given.folders).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()

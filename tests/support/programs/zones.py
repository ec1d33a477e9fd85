"""Results of every kind taken to Python in whatever time zone the process has: `collect`, `first`, `toPandas`."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import uncombine as uc

SECOND = 1_000_000
NOON = 1_453_291_200 * SECOND
TIMES = ("end_of_window", "start_of_window", "earliest", "latest", "watermark")
EACH = uc.Repeatedly(uc.AfterCount(1))


def rows() -> pa.Table:
    times = pa.array([NOON + t * SECOND for t in (1, 2, 90)]).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "at": times, "k": ["a", "b", "a"], "x": [1, 2, 4]})


def taken(df: DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a result, which must be the same for every way to read it."""
    collected, frame, first = df.collect(), df.toPandas(), df.first()
    assert (first is None) == (not collected)
    assert len(frame) == len(collected)
    times = [row.event_time.timestamp() for row in collected]
    # Of pandas the times are in the session's zone, which is UTC.
    assert sorted(t.tz_localize("UTC").timestamp() for t in frame["event_time"]) == sorted(times)
    return [(row.total, row.diff, time - NOON / SECOND) for row, time in zip(collected, times, strict=True)]


def results(spark: SparkSession) -> dict[str, DataFrame]:
    """Results of each route; those of replays have times of every kind."""
    df = spark.createDataFrame(rows())
    whole = uc.flow(df).window(uc.Global())
    played = uc.flow(df, watermark="1 minute", processing_time="at").replay(close_at_end=True)
    each = (played.window(uc.Global(), EACH, timestamp=name).combine(total=uc.Sum("x")).df for name in TIMES)
    return {
        "native": whole.combine(total=uc.Sum("x")).df,
        "tasks": whole.combine(total=uc.Sum("x"), middle=uc.Median("x")).df,
        "stages": whole.combine(by="k", n=uc.Sum("x")).window(uc.Global()).combine(total=uc.Sum("n")).df,
        "replays": reduce(DataFrame.union, each),
    }


def streamed(spark: SparkSession) -> list[tuple[Any, ...]]:
    """Panes from before the watermark has started, in a stream."""
    folder, seen = Path(tempfile.mkdtemp()), list[tuple[Any, ...]]()
    (folder / "rows").mkdir()
    pq.write_table(rows(), folder / "rows" / "one.parquet")
    source = uc.flow(str(folder / "rows"), spark=spark, streaming=True, watermark="1 minute")
    totals = source.window(uc.Global(), EACH).combine(total=uc.Sum("x"))

    writer = totals.df.writeStream.foreachBatch(lambda df, _: seen.extend(taken(df)))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return seen


def main() -> None:
    spark = uc.session("zones", cores=2, settings={"spark.driver.memory": "700m"})
    found = {name: taken(df) for name, df in results(spark).items()}
    found["stream"] = streamed(spark)
    Path(sys.argv[1]).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()

"""Results of every kind taken to Python in whatever time zone the process has: `collect`, `first`, `toPandas`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import uncombine as uc

SECOND = 1_000_000
NOON = 1_453_291_200 * SECOND
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


def flows(spark: SparkSession) -> dict[str, Any]:
    df = spark.createDataFrame(rows())
    played = {"processing_time": "at", "replay": True, "close_at_end": True}
    out: dict[str, Any] = {
        "native": uc.flow(df).window(uc.Global()).combine(total=uc.Sum("x")),
        "tasks": uc.flow(df).window(uc.Global()).combine(total=uc.Sum("x"), middle=uc.Median("x")),
        "stages": uc.flow(df)
        .window(uc.Global())
        .combine(by="k", n=uc.Sum("x"))
        .window(uc.Global())
        .combine(total=uc.Sum("n")),
    }
    for name in ("end_of_window", "start_of_window", "earliest", "latest", "watermark"):
        source = uc.flow(df, watermark="1 minute", **played)
        out[f"global {name}"] = source.window(uc.Global(), EACH, timestamp=name).combine(total=uc.Sum("x"))
    return out


def streamed(spark: SparkSession) -> list[tuple[Any, ...]]:
    """Panes from before the watermark has started, in a stream."""
    folder, seen = Path(tempfile.mkdtemp()), list[tuple[Any, ...]]()
    (folder / "rows").mkdir()
    pq.write_table(rows(), folder / "rows" / "one.parquet")
    source = uc.files(spark, str(folder / "rows"), streaming=True, watermark="1 minute")
    totals = source.window(uc.Global(), EACH).combine(total=uc.Sum("x"))

    writer = totals.df.writeStream.foreachBatch(lambda df, _: seen.extend(taken(df)))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return seen


def main() -> None:
    spark = uc.session("zones", cores=2, settings={"spark.driver.memory": "700m"})
    found = {name: taken(flow.df) for name, flow in flows(spark).items()}
    found["stream"] = streamed(spark)
    Path(sys.argv[1]).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()

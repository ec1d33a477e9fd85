"""A query that another process starts again, and that waits for rows, has the state that its checkpoint says."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.sparkops.measuring.last_batches import LAST_BATCHES
from uncombine.sparkops.spark_private import await_events

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC")})


@pytest.mark.full
def test_the_state_before_the_start_is_that_of_the_checkpoint(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.Table.from_pylist([{"k": k, "ts": START} for k in "aab"], SCHEMA)
    df = read_stream(spark, written([rows], tmp_path / "in"), SCHEMA)
    flow = uc.flow(df, watermark=uc.PerSource("k", lag="30 seconds"), tuning=uc.Tuning(shards=2), name="sensors")
    counts = flow.window("1 minute").combine(by="k", n=uc.Count())
    writer = counts.write_stream(checkpoint=tmp_path / "c").format("noop")
    writer.trigger(availableNow=True).start().awaitTermination()
    await_events(spark)
    monkeypatch.setattr(LAST_BATCHES, "_last", {})  # as in another process
    with changed(spark, {"spark.sql.streaming.noDataProgressEventInterval": "100"}):
        query = writer.trigger(processingTime="100 milliseconds").start()
        try:
            for _ in range(1_200):
                if (progress := uc.progress(query)) is not None:
                    break
                time.sleep(0.1)
            assert progress is not None
            line = r"waiting since [\d: -]{19}; after batch 0: watermark [\d: -]{19}, 2 windows in [\d.]+ .*B"
            assert re.fullmatch(line, str(progress)), progress
            assert [one.name for one in progress.stages[0].sources] == ["a", "b"]
            began = progress.waiting_since
            time.sleep(0.3)
            assert (again := uc.progress(query)) is not None
            assert again.waiting_since == began
        finally:
            query.stop()

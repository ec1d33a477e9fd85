"""A stream that leaves out many rows as late says so once, by a logger of the driver, whatever writes it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import program
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.sparkops.late_rows import LateRows
from uncombine.sparkops.spark_private import await_events

WEEK = 7 * 86_400_000_000


def history(folder: Path, weeks: int, order: list[int]) -> None:
    """A file for each week, of which the first of `order` is the oldest file."""
    folder.mkdir()
    for place, week in enumerate(order):
        times = 1_700_000_000_000_000 + week * WEEK + np.arange(0, WEEK, WEEK // 20)
        path = folder / f"{week:02}.parquet"
        pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))}), path)
        os.utime(path, (1_600_000_000 + 10 * place,) * 2)
    assert len(order) == weeks


def late_rows(spark: SparkSession, folder: Path, state: Path, **options: Any) -> int:
    """Run a stream over the files, some in each batch; the number of rows that it leaves out as late."""
    source = uc.flow(
        uc.Files(folder, max_files_per_batch=4),
        spark=spark,
        streaming=True,
        watermark="1 day",
        tuning=uc.Tuning(wake=False),
    )
    flow = source.window(uc.Fixed("1 day"), **options).combine(n=uc.Count())
    writer = flow.write_stream(checkpoint=state).format("noop")
    query = writer.queryName(f"backfill {state.name}").trigger(availableNow=True).start()
    query.awaitTermination()
    await_events(spark)
    batches = [uc.progress(batch) for batch in query.recentProgress]
    return sum(stage.rows_dropped for batch in batches if batch is not None for stage in batch.stages)


def test_a_history_in_another_order_is_told_once(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    order = [int(week) for week in np.random.default_rng(1).permutation(12)]
    history(tmp_path / "mixed", 12, order)
    history(tmp_path / "in order", 12, sorted(order))
    with caplog.at_level(logging.WARNING, "uncombine"):
        lost = late_rows(spark, tmp_path / "mixed", tmp_path / "one")
        assert lost > 100
        [warning] = caplog.messages
        assert warning.startswith("the query 'backfill one': stage 1 has left out ")
        assert "rows as late: give watermark= a lag" in warning
        caplog.clear()
        assert late_rows(spark, tmp_path / "in order", tmp_path / "two") == 0
        assert late_rows(spark, tmp_path / "mixed", tmp_path / "three", late="duplicate") == lost
        assert caplog.messages == []


def test_a_share_is_that_of_one_query_so_far() -> None:
    late = LateRows()
    late.watch("uncombine flow 1", 1)

    def batch(run: str, number: int, rows: int, dropped: int, metric: str = "uncombine flow 1") -> str | None:
        observed = {metric: {"counts": {"rows_in": rows, "rows_dropped": dropped}}, "other": {"x": 1}}
        return late.warning({"id": "q", "runId": run, "batchId": number, "observedMetrics": observed})

    assert batch("a", 0, 1000, 10) is None
    assert batch("a", 1, 0, 1) is not None
    assert batch("a", 2, 0, 100) is None  # once a query
    assert batch("b", 0, 10, 1, "uncombine flow #2 1") is None  # a stage whose late rows are shown
    assert batch("b", 1, 10, 1) is not None
    late.end("b")
    assert batch("b", 0, 10, 1) is not None
    assert late.warning({"id": "q", "runId": "c", "batchId": 0, "observedMetrics": {"uncombine flow 1": {}}}) is None
    assert late.warning({"id": "of others", "runId": "d", "batchId": 0}) is None  # Spark has no empty metrics


@pytest.mark.full
@pytest.mark.spark
def test_a_program_that_ends_with_its_query_says_so(tmp_path: Path) -> None:
    """The rows of its last batch are late, and stderr has the warning."""
    history(tmp_path / "in", 8, [7, 6, 5, 4, 3, 2, 1, 0])
    done = subprocess.run(
        [sys.executable, str(program("backfill")), str(tmp_path)], capture_output=True, text=True, check=True
    )
    [line] = [line for line in done.stderr.splitlines() if "rows as late" in line]
    assert line.startswith("the query ")
    assert "stage 1 has left out 80 of 160 rows as late" in line

"""The difference of two streams after each batch is that of bounded runs of the rows so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.sparkops.planners.data_source import LIMITS

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64(), "diff": pa.int64()})
BATCHES = [
    [(0, "a", 1, 1), (1, "b", 2, 1), (2, "b", 3, 1)],
    [(3, "a", 4, 1), (70, "a", 5, 1)],
    [(1, "b", 2, -1), (2, "b", 3, -1), (70, "a", 5, -1), (71, "c", 6, 1)],
    [(3, "a", 4, -1), (3, "a", 0, 1)],
]
KEYS = ["user", "window"]
COUNTS = ("equal", "changed", "only_old", "only_new", "changed_columns")


def table(rows: list[tuple[int, str, int, int]]) -> pa.Table:
    times, *others = zip(*rows, strict=True)
    return pa.table([pa.array([t * 1_000_000 for t in times], SCHEMA.field("ts").type), *others], schema=SCHEMA)


def totals(events: Any, old: bool) -> uc.Flow:
    """Sums of all users, or the largest values of all but one."""
    if not old:
        events = events.where(uc.col("user") != "c")
    minutes = events.window("1 minute", "each row", allowed_lateness="1 hour")
    total = uc.Sum("x") if old else uc.Max("x")
    return minutes.combine(by="user", total=total)


def streamed(spark: SparkSession, folder: Path) -> uc.Flow:
    files = uc.Files(str(folder), order="name", max_files_per_batch=1)
    tuning = uc.Tuning(shards=1)
    return uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", diff="diff", tuning=tuning)


def told(comparison: uc.Comparison) -> Any:
    rows = sorted(map(repr, comparison.to_arrow().to_pylist()))
    return [getattr(comparison, name) for name in COUNTS], rows


@pytest.mark.full
@pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")
def test_two_flows_over_one_source_are_compared_as_they_go(spark: SparkSession, tmp_path: Path) -> None:
    for number, rows in enumerate(BATCHES):
        pq.write_table(table(rows), tmp_path / f"{number}.parquet")
    seen: list[Any] = []
    events = streamed(spark, tmp_path)
    old, new = (totals(events, old) for old in (True, False))

    def note(comparison: uc.Comparison, number: int) -> None:
        seen.append(told(comparison))

    with uc.compare(old, new, keys=KEYS, trigger={"availableNow": True}, on_batch=note) as live:
        live.awaitTermination()
    whole = []
    for count in range(1, len(BATCHES) + 1):
        rows = uc.flow(pa.concat_tables(map(table, BATCHES[:count])), watermark="30 seconds", diff="diff")
        whole.append(told(uc.compare(totals(rows, True), totals(rows, False), keys=KEYS)))
    assert seen[: len(BATCHES)] == whole
    assert told(live.comparison) == whole[-1]
    assert live.comparison.verdict in repr(live)
    with uc.compare(old, totals(events, True), trigger={"availableNow": True}) as live:
        live.awaitTermination()
    assert live.comparison.verdict == "old and new are the same: 2 rows"


def test_sides_that_are_no_streams_are_refused() -> None:
    rows = uc.flow(table(BATCHES[0]), diff="diff")
    with pytest.raises(InvalidArgument, match="trigger= compares two streams on Spark, and old is none"):
        uc.compare(totals(rows, True), totals(rows, False), trigger={"availableNow": True})
    with pytest.raises(InvalidArgument, match="trigger= takes a mapping"):
        uc.compare(rows, rows, trigger="10 seconds")  # type: ignore[call-overload]
    with pytest.raises(InvalidArgument, match="on_batch= is for streams: give trigger= too"):
        uc.compare(rows, rows, on_batch=print)  # type: ignore[call-overload]

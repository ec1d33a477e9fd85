"""A checkpoint shows what it holds, in the words of a user, also while its query runs and after earlier batches."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument, UnreadableFile

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
ROWS = [(0, "a", 1), (1, "b", 2), (70, "a", 3), (5, "c", 4), (6, "c", 5)]
LATER = [(200, "a", 7), (210, None, 2)]


def put(folder: Path, name: str, rows: list[tuple[int, str | None, int]]) -> None:
    folder.mkdir(exist_ok=True)
    times, users, xs = zip(*rows, strict=True)
    table = pa.table([pa.array([t * 1_000_000 for t in times], SCHEMA.field("ts").type), users, xs], schema=SCHEMA)
    pq.write_table(table, folder / f"{name}.parquet")


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def ran(flow: uc.Flow, checkpoint: Path) -> None:
    flow.write_stream(checkpoint=checkpoint).format("noop").trigger(availableNow=True).start().awaitTermination()


def test_the_windows_of_a_grouping(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ROWS)
    files = uc.Files(str(tmp_path / "in"), order="name")
    rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=2))
    minutes = rows.window("1 minute", "each row", mode="retracting").combine(
        by="user", total=uc.Sum("x"), m=uc.Median("x")
    )
    hours = minutes.window("1 hour").combine(n=uc.Count())
    ran(hours, tmp_path / "c")
    found = uc.checkpoint(tmp_path / "c", spark=spark)
    assert [(step.number, step.rows, step.shards, step.watermark) for step in found.steps] == [
        (1, {"windows": 4}, 2, at(40)),
        (2, {"windows": 1}, 2, at(40)),
    ]
    windows = found.rows(1)
    frame = pd.DataFrame(ROWS, columns=["s", "user", "x"])
    expected = frame.groupby(["user", frame.s // 60]).x.agg(["sum", "median", "count"]).reset_index().to_dict("records")
    got = {
        (row["user"], row["window"]["start"]): (
            row["rows"],
            row["has_new_rows"],
            row["shown"],
            row["waits_for_watermark"],
        )
        for row in windows.to_pylist()
    }
    assert len(got) == len(expected)
    for row in expected:
        count, new, [shown], waits = got[row["user"], at(60 * row["s"])]
        assert (count, new, waits) == (row["count"], False, at(60 * row["s"] + 60))
        assert (shown["total"], shown["m"], shown["timing"]) == (row["sum"], row["median"], "EARLY")
    results = {(row["user"], row["window"]["start"]): row["results"] for row in windows.to_pylist()}
    assert results == {(row["user"], at(60 * row["s"])): {"total": row["sum"], "m": row["median"]} for row in expected}
    assert windows["expires"].to_pylist() == [row["end"] for row in windows["window"].to_pylist()]
    assert found.rows(2)["results"].to_pylist() == [{"n": 4}]
    assert found.largest(1, 2).num_rows == 2
    with pytest.raises(InvalidArgument, match=r"not of 20: write largest\(1, 20\) for 20 rows of step 1"):
        found.largest(20)
    assert found.largest(1, 1)["bytes"].to_pylist() == [max(windows["bytes"].to_pylist())]
    assert [(row["step"], row["source"], row["watermark"], row["holds"]) for row in found.sources().to_pylist()] == [
        (1, None, at(40), True),
        (2, "the step before", at(40), True),
    ]
    for name, later in (("b", LATER), ("c", [(2, "b", 1)])):
        put(tmp_path / "in", name, later)
        ran(hours, tmp_path / "c")
    after = uc.checkpoint(tmp_path / "c", spark=spark)
    assert after.counts() == {"dropped": 1, "finished": 0, "unassigned": 0, "bad": 0}
    assert after.counts(2)["dropped"] == 0
    assert sorted(map(str, after.rows(1)["user"].to_pylist())) == ["None", "a"]
    assert after.batch > 0
    assert after.at(0).rows(1).num_rows == windows.num_rows
    assert after.changes(0, 0).count() == 0
    versions = [Counter(map(repr, after.at(batch).rows(1).to_pylist())) for batch in (0, after.batch)]
    found_changes = Counter[tuple[str, int]]()
    for row in after.changes(0, after.batch).toArrow().to_pylist():
        weight = row.pop("diff")
        found_changes[repr(row), weight] += 1
    assert {row: count for (row, weight), count in found_changes.items() if weight < 0} == versions[0] - versions[1]
    assert {row: count for (row, weight), count in found_changes.items() if weight > 0} == versions[1] - versions[0]
    assert versions[0] - versions[1]
    with pytest.raises(InvalidArgument, match="is none of them"):
        after.changes(0, 99)
    with pytest.raises(InvalidArgument, match="has state of the steps"):
        found.rows(3)
    with pytest.raises(InvalidArgument, match="keeps no 'left rows'"):
        found.rows(1, "left rows")
    with pytest.raises(InvalidArgument, match="is none of them"):
        found.at(99)
    with pytest.raises(InvalidArgument, match="is no checkpoint of a streaming query"):
        uc.checkpoint(tmp_path, spark=spark)


def test_the_rows_of_other_steps(spark: SparkSession, tmp_path: Path) -> None:
    """Those of a join, of distinct and of a remembered map, with their keys where they are kept."""
    put(tmp_path / "in", "a", ROWS)

    def source(name: str) -> uc.Flow:
        files = uc.Files(str(tmp_path / "in"), order="name")
        return uc.flow(
            files, spark=spark, streaming=True, watermark="30 seconds", name=name, tuning=uc.Tuning(shards=2)
        )

    once = source("once").distinct("user", within="1 hour").select("user", "x", "event_time")
    pairs = once.join(source("all").select("user", "ts", "x"), on="user", within=("0 seconds", "1 minute"))
    ran(pairs, tmp_path / "c")
    found = uc.checkpoint(tmp_path / "c", spark=spark)
    ids, joined = found.steps
    assert (ids.words, ids.rows, joined.words) == ("distinct()", {"ids": 3}, "a join")
    assert set(found.rows(1).column_names) == {"id", "waits_for_watermark", "bytes"}
    right = found.rows(2, "right rows")
    assert set(right["user"].to_pylist()) <= {user for _, user, _ in ROWS}
    assert {"user", "ts", "x", "waits_for_watermark", "bytes"} <= set(right.column_names)
    assert sum(joined.rows.values()) == found.rows(2, "left rows").num_rows + found.rows(2, "right rows").num_rows


def test_a_query_in_its_first_batch_is_told(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ROWS)
    rows = uc.flow(uc.Files(str(tmp_path / "in"), order="name"), spark=spark, streaming=True, watermark="30 seconds")
    ran(rows.window("1 minute").combine(n=uc.Count()), tmp_path / "c")
    for commit in (tmp_path / "c" / "commits").iterdir():
        commit.unlink()
    with pytest.raises(InvalidArgument, match="has not ended its first batch yet: ask again when it has"):
        uc.checkpoint(tmp_path / "c")
    assert uc.why(tmp_path / "c").startswith(f"the query of '{tmp_path}/c' has not ended its first batch yet: ask")
    with pytest.raises(InvalidArgument, match="is no checkpoint of a streaming query"):
        uc.checkpoint(tmp_path / "in")


def test_a_folder_that_spark_cannot_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's reader of states escapes the path once more than it reads it."""
    put(tmp_path / "in", "a", ROWS)
    rows = uc.flow(uc.Files(str(tmp_path / "in"), order="name"), spark=spark, streaming=True, watermark="30 seconds")
    ran(rows.window("1 minute").combine(n=uc.Count()), tmp_path / "a b")
    with pytest.raises(UnreadableFile, match="no state in a folder whose path has a space or a sign that URLs escape"):
        _ = uc.checkpoint(tmp_path / "a b", spark=spark).steps


def test_a_batch_that_is_no_longer_kept(spark: SparkSession, tmp_path: Path) -> None:
    key = "spark.sql.streaming.minBatchesToRetain"
    spark.conf.set(key, 1)
    try:
        for number in range(5):
            put(tmp_path / "in", f"{number}", [(60 * number, "a", 1)])
            files = uc.Files(str(tmp_path / "in"), order="name")
            rows = uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=1))
            ran(rows.window("1 minute").combine(n=uc.Count()), tmp_path / "c")
    finally:
        spark.conf.unset(key)
    found = uc.checkpoint(tmp_path / "c", spark=spark)
    assert found.at(found.batch).steps[0].rows == {"windows": 2}
    with pytest.raises(
        InvalidArgument, match=r"after batch 0 of .* is no longer kept: the oldest is that after batch \d"
    ):
        found.at(0).rows(1)

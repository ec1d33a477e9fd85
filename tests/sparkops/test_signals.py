"""Signals on Spark: a live table over restarts, a seed in other shards, replays and batches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.sparkops.sql_types import spark_schema

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema({"ts": TIME, "seen": TIME, "k": pa.string(), "x": pa.int64()})
TOLD = pa.schema({"ts": TIME, "seen": TIME, "kind": pa.string()})
NOON = 1_453_291_200_000_000


def totals(rows: uc.Flow, told: uc.Flow) -> uc.Flow:
    """Sums by key that signals show, of one key beside many."""
    trigger = uc.AfterWatermark(early=uc.OnSignal(told, uc.col("kind") == "flush"), late=uc.AfterCount(1))
    return rows.window("1 day", trigger, mode="retracting").combine(by="k", x=uc.Sum("x"))


def stream(spark: SparkSession, folder: Path, shards: int) -> uc.Flow:
    options: dict[str, Any] = {"spark": spark, "streaming": True, "watermark": "1 minute"}
    flows = [
        uc.flow(
            uc.Files(str(folder / name), order="name", max_files_per_batch=1),
            name=name,
            tuning=uc.Tuning(shards=shards),
            **options,
        )
        for name in ("rows", "told")
    ]
    return totals(*flows)


def put(folder: Path, number: int, *kinds: str) -> None:
    """A file of rows, one for each of nine keys and two of which are new, and one of signals."""
    rows = [{"ts": NOON + number, "seen": NOON, "k": f"k{k + 2 * number}", "x": 1} for k in range(9)]
    told = [{"ts": NOON + number, "seen": NOON, "kind": kind} for kind in kinds]
    for name, some, schema in (("rows", rows, ROWS), ("told", told, TOLD)):
        (folder / name).mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(some, schema), folder / name / f"{number:03d}.parquet")


def wanted(last: int) -> dict[str, int]:
    """The sums after so many files of rows."""
    keys = [f"k{k + 2 * number}" for number in range(last + 1) for k in range(9)]
    return {key: keys.count(key) for key in keys}


def test_a_live_table_has_what_the_last_signal_showed_over_restarts_and_seeds(
    spark: SparkSession, tmp_path: Path
) -> None:
    def run(name: str, shards: int, **options: Any) -> dict[str, int]:
        live = stream(spark, tmp_path, shards).to_table(
            f"parquet:{tmp_path}/{name} table",
            checkpoint=str(tmp_path / name),
            trigger={"availableNow": True},
            **options,
        )
        live.awaitTermination()
        return {row["k"]: row["x"] for row in live.arrow().to_pylist()}

    put(tmp_path, 0, "none")
    assert run("old", 3) == {}
    put(tmp_path, 1, "none", "flush")
    assert run("old", 3) == wanted(1)
    put(tmp_path, 2, "none")
    assert run("old", 3) == wanted(1)
    seed = uc.checkpoint(tmp_path / "old", spark=spark).seed(str(tmp_path / "seed"))
    shutil.copytree(tmp_path / "old table", tmp_path / "new table")
    put(tmp_path, 3, "flush", "flush")
    assert run("old", 3) == wanted(3)
    assert run("new", 5, start=seed.folder) == wanted(3)


def test_a_replay_gives_the_panes_of_a_local_run_and_a_batch_final_ones(spark: SparkSession) -> None:
    rows = pa.Table.from_pylist([{"ts": NOON + n, "seen": NOON + n, "k": f"k{n % 5}", "x": n} for n in range(40)], ROWS)
    told = pa.Table.from_pylist(
        [{"ts": NOON, "seen": NOON + n, "kind": "flush" if n % 2 else "no"} for n in (3, 10, 21, 33)], TOLD
    )
    options: dict[str, Any] = {"watermark": "1 minute", "processing_time": "seen"}
    there = [
        uc.flow(spark.createDataFrame(table, spark_schema(table.schema)), name=name, **options)
        for name, table in (("rows", rows), ("told", told))
    ]
    here = [uc.flow(table, name=name, **options) for name, table in (("rows", rows), ("told", told))]
    found = totals(*(flow.replay(close_at_end=True) for flow in there)).df.toArrow()
    want = totals(*(flow.replay(close_at_end=True) for flow in here)).run().panes.select(found.column_names)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, want.to_pylist()))
    assert {row["pane"]["trigger"] for row in found.to_pylist()} == {"signal", "watermark"}
    batch = totals(*there)
    final = {row["k"]: row["x"] for row in batch.df.toArrow().to_pylist()}
    assert final == {f"k{k}": sum(range(k, 40, 5)) for k in range(5)}
    assert batch.df.count() == 5
    assert batch.left_out.count() == 0
    first = batch.distinct("k", within="2 days")
    assert first.df.count() == 5

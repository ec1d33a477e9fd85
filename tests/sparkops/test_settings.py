"""Settings of Spark under which a flow gives the same panes, or is refused in one sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apps import finished
from programs.killed import SCHEMA, batches, closed, left_over, recomputed, two_stages
from pyspark.sql import SparkSession
from streams import changed, panes_by_batch, read_stream, started, written

import uncombine as uc
from uncombine.sparkops.session import PROVIDER
from uncombine.sparkops.spark_private import renaming_writer
from uncombine.sparkops.tuning.checkpoint_files import WAY

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def run(spark: SparkSession, files: Path, out: Path) -> pa.Table:
    """All rows of the sink, after what there is has been taken."""
    started(two_stages(spark, files), out).awaitTermination()
    return pa.concat_tables(panes_by_batch(out))


SETTINGS = {
    "no changelog": {CHANGELOG: "false"},
    "checkpoints as Spark writes them": {WAY: "FileContextBased"},
    "not adaptive": {"spark.sql.adaptive.enabled": "false"},
    "times without a zone": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    "10 rows to a record batch": {"spark.sql.execution.arrow.maxRecordsPerBatch": "10"},
    "1 kB to a record batch": {"spark.sql.execution.arrow.maxBytesPerBatch": "1000"},
}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({name: value for given in SETTINGS.values() for name, value in given.items()}, id="all"),
        *(pytest.param(given, id=name, marks=pytest.mark.soak) for name, given in SETTINGS.items()),
    ],
)
def test_settings_that_change_nothing(spark: SparkSession, tmp_path: Path, settings: dict[str, str]) -> None:
    """In a stream of two runs, and in batch; all other tests run with adaptive execution."""
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    tables = closed(batches(5, 3))
    files = written(tables[:2], tmp_path / "files")
    if WAY in settings:
        settings = settings | {WAY: str(renaming_writer(spark)).replace("FileSystemBased", settings[WAY])}
    with changed(spark, settings):
        run(spark, files, tmp_path)
        pq.write_table(tables[2], files / "later.parquet")
        assert left_over(run(spark, files, tmp_path)) == recomputed(tables)
        rows = spark.read.parquet(str(files))
        final = uc.flow(rows).window(uc.Sessions("4 seconds")).combine(by="k", n=uc.Count(), middle=uc.Median("v"))
        got = final.df.select("n", "middle").toArrow().to_pylist()
    want = (
        uc.flow(SCHEMA)
        .window(uc.Sessions("4 seconds"))
        .combine(by="k", n=uc.Count(), middle=uc.Median("v"))
        .run([uc.Elements(pa.concat_tables(tables)), uc.Watermark(None)])
    )
    assert sorted(map(repr, got)) == sorted(map(repr, want.select(["n", "middle"]).to_pylist()))


@pytest.mark.full
def test_a_checkpoint_that_was_copied(spark: SparkSession, tmp_path: Path) -> None:
    """Both go on, each with rows of its own, though a worker remembers the state of the one."""
    first, *later = batches(6, 3)
    files = written([first], tmp_path / "files")
    (tmp_path / "one").mkdir()
    with changed(spark):
        run(spark, files, tmp_path / "one")
    shutil.copytree(tmp_path / "one" / "checkpoint", tmp_path / "two" / "checkpoint")
    before = panes_by_batch(tmp_path / "one")
    for name, table in zip(("one", "two"), (closed([table])[0] for table in later), strict=True):
        pq.write_table(table, files / f"{name}.parquet")
        with changed(spark):
            shown = run(spark, files, tmp_path / name)
        (files / f"{name}.parquet").unlink()
        whole = shown if name == "one" else pa.concat_tables([*before, shown])
        assert left_over(whole) == recomputed([first, table])


@pytest.mark.full
def test_other_shuffle_partitions(spark: SparkSession, tmp_path: Path) -> None:
    first, later = closed(batches(7, 2))
    files = written([first], tmp_path / "files")
    partitions = "spark.sql.shuffle.partitions"
    with changed(spark):
        run(spark, files, tmp_path)
        pq.write_table(later, files / "later.parquet")
        with changed(spark, {partitions: "2"}), pytest.raises(Exception, match="StateMismatch: ") as refused:
            run(spark, files, tmp_path)
        assert "it had shards=1 and has shards=2 (from shards= or spark.sql.shuffle.partitions)" in str(refused.value)
        assert left_over(run(spark, files, tmp_path)) == recomputed([first, later])


def test_state_in_no_rocksdb(spark: SparkSession, tmp_path: Path) -> None:
    df = read_stream(spark, written(batches(0, 1), tmp_path / "files"), SCHEMA)
    flow = uc.flow(df, watermark=uc.Monotonic()).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    with (
        changed(spark, {PROVIDER: HDFS}),
        pytest.raises(uc.UncombineError, match="RocksDBStateStoreProvider") as refused,
    ):
        flow.df
    assert str(refused.value).startswith(f"a streaming flow keeps its state in RocksDB, but {PROVIDER} is {HDFS}: set")
    with changed(spark, {PROVIDER: HDFS}), pytest.raises(uc.UncombineError, match="keeps its state in RocksDB"):
        flow.to_table(f"duckdb:///{tmp_path}/t.db#t", checkpoint=str(tmp_path / "checkpoint"))
    assert not (tmp_path / "checkpoint").exists()
    assert flow.df.isStreaming


@pytest.mark.spark
@pytest.mark.soak
def test_workers_that_are_not_used_again(tmp_path: Path) -> None:
    tables = closed(batches(8, 3))
    files, result = written(tables, tmp_path / "files"), tmp_path / "result.parquet"
    finished(tmp_path, files, tmp_path, result, "--pipeline", "two_stages", "--set", "spark.python.worker.reuse=false")
    assert left_over(pq.read_table(result)) == recomputed(tables)

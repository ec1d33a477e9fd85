"""Queries of a flow write their checkpoints in few processes, and replace the files of a batch that failed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs.killed import batches, closed, left_over, recomputed, two_stages
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from streams import changed, panes_by_batch, started, written

from uncombine.sparkops import spark_private
from uncombine.sparkops.tuning.checkpoint_files import WAY, fit_for


def way_of(query: StreamingQuery) -> str:
    """The setting that the last batch of a query had."""
    made: Any = query
    return str(made._jsq.streamingQuery().lastExecution().sparkSession().conf().get(WAY, "none"))


def test_files_of_a_batch_that_failed_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """The state of a run is read from the files of the runs before it."""
    tables = closed(batches(9, 3))
    files = written(tables[:1], tmp_path / "files")
    with changed(spark):
        for number, table in enumerate([None, *tables[1:]]):
            if table is not None:
                for shard in (tmp_path / "checkpoint" / "state").glob("[0-9]*/[0-9]*"):
                    version = max(int(file.stem) for file in shard.glob("*.changelog"))
                    (shard / f"{version + 1}.changelog").write_bytes(b"of a batch that failed")
                pq.write_table(table, files / f"later {number}.parquet")
            query = started(two_stages(spark, files), tmp_path)
            query.awaitTermination()
            assert way_of(query) == spark_private.renaming_writer(spark)
            assert spark.conf.get(WAY, None) is None
    assert left_over(pa.concat_tables(panes_by_batch(tmp_path))) == recomputed(tables)


@pytest.mark.parametrize("folder", ["hive:///tmp", "nowhere://tmp"])
def test_folders_where_a_file_is_not_replaced(spark: SparkSession, folder: str) -> None:
    with (
        changed(spark, {"fs.hive.impl": "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem"}),
        fit_for(folder, spark),
    ):
        assert spark.conf.get(WAY, None) is None


def test_a_session_of_connect(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_private, "file_system", lambda spark, folder: None)
    with fit_for("/tmp", spark):
        assert spark.conf.get(WAY, None) is None


def test_a_setting_that_says_how(spark: SparkSession) -> None:
    with changed(spark, {WAY: "mine"}):
        with fit_for("/tmp", spark):
            assert spark.conf.get(WAY) == "mine"
        assert spark.conf.get(WAY) == "mine"


def test_a_query_that_does_not_start_leaves_the_setting_as_it_was(spark: SparkSession) -> None:
    with suppress(KeyError), fit_for("/tmp", spark):
        assert spark.conf.get(WAY) == spark_private.renaming_writer(spark)
        raise KeyError
    assert spark.conf.get(WAY, None) is None

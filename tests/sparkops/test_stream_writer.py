"""Streams of flows: the output mode and the checkpoint of a query, looked at before it starts."""

from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter
from streams import changed

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.sparkops import stream_writer
from uncombine.sparkops.spark_private import renaming_writer
from uncombine.sparkops.tuning.checkpoint_files import WAY
from uncombine.sparkops.tuning.quiet_start import quiet_start


@pytest.fixture
def flow(spark: SparkSession) -> uc.Flow:
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    return uc.flow(rates, time="timestamp", watermark=uc.Monotonic()).window(uc.Fixed("1 hour")).combine(n=uc.Count())


def test_another_output_mode_than_append_is_refused(flow: uc.Flow, tmp_path: Path) -> None:
    says = r"outputMode\('update'\) does not fit the rows of a flow, which are a changelog to append: leave it out"
    writer = flow.write_stream(checkpoint=tmp_path / "c")
    assert isinstance(writer.outputMode("append"), DataStreamWriter)
    with pytest.raises(InvalidArgument, match=says):
        writer.format("noop").outputMode("update")
    with pytest.raises(InvalidArgument, match=says):
        writer.start("out", format="parquet", outputMode="update")
    with pytest.raises(InvalidArgument, match=says):
        flow.foreach_batch(lambda panes, left_out, number: None).outputMode("update")


def test_the_stream_is_a_dataframe_of_sparks_own(flow: uc.Flow) -> None:
    assert "uncombine" not in type(flow.df).__module__
    assert type(flow.df.writeStream) is DataStreamWriter


def test_a_query_without_a_checkpoint_is_told(
    flow: uc.Flow, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(DataStreamWriter, "start", lambda self, *given, **options: started.append(given))
    monkeypatch.setattr(stream_writer, "started", lambda start, *about: start())
    batches = flow.foreach_batch(lambda panes, left_out, number: None)
    with pytest.warns(UserWarning, match="has no checkpoint, so a restart forgets its windows"):
        batches.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        flow.write_stream(checkpoint=str(tmp_path / "c")).start("out")
        flow.foreach_batch(lambda panes, left_out, number: None).options(checkpointlocation="c").start("out")
        flow.foreach_batch(lambda panes, left_out, number: None).start("out", checkpointLocation="c")
        flow.foreach_batch(lambda panes, left_out, number: None).format("noop").start()
        spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
        try:
            flow.foreach_batch(lambda panes, left_out, number: None).start("out")
        finally:
            spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert len(started) == 6


def test_a_query_is_started_in_the_way_that_fits_its_folder(
    flow: uc.Flow, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """The folder of an argument or an option is looked at, and that of the session only where a query names none."""
    found: list[str | None] = []
    monkeypatch.setattr(stream_writer, "started", lambda start, *about: start())
    for name in ("start", "toTable"):
        monkeypatch.setattr(DataStreamWriter, name, lambda *_, **options: found.append(spark.conf.get(WAY, None)))

    def writer() -> Any:
        return flow.foreach_batch(lambda panes, left_out, number: None)

    everywhere = "spark.sql.streaming.checkpointLocation"
    with changed(spark, {"fs.raw.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}):
        for folder, other in (("/tmp/c", "raw:///tmp/c"), ("raw:///tmp/c", "/tmp/c")):
            writer().option("checkpointLocation", folder).start("out")
            writer().options(checkpointLocation=folder).toTable("out")
            writer().start(checkpointLocation=folder)
            with changed(spark, {everywhere: folder}):
                writer().start("out")
            with changed(spark, {everywhere: other}):
                writer().option("checkpointLocation", folder).start("out")
    writer().format("noop").start()
    by_renames = renaming_writer(spark)
    assert by_renames is not None
    assert found == [by_renames] * 5 + [None] * 5 + [by_renames]


def test_the_usual_lines_of_a_start_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    usual = [
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        "26/11/22 13:00:00 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform",
    ]
    script = "".join(f'echo "{line}" >&2\n' for line in (usual[0], "a real error", *usual[1:], "another"))
    with quiet_start():
        started = subprocess.Popen(["sh", "-c", f"{script}read line; echo late >&2"], stdin=subprocess.PIPE)
        os.write(2, b"of this process\n")
        assert started.stdin is not None
        started.stdin.write(b"\n")
    started.communicate()
    shown = ""
    while "late" not in shown:
        shown += capfd.readouterr().err
    assert sorted(shown.split("\n")) == sorted(["", "a real error", "another", "late", "of this process"])

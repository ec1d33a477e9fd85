"""Streams of flows: the output mode and the checkpoint of a query, looked at before it starts."""

from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter
from streams import changed

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.sparkops import streamed
from uncombine.sparkops.tuning.checkpoint_files import BY_RENAMES, WAY
from uncombine.sparkops.tuning.quiet_start import quiet_start


@pytest.fixture
def flow(spark: SparkSession) -> uc.Flow:
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    return uc.flow(rates, time="timestamp", watermark=uc.Monotonic()).window(uc.Fixed("1 hour")).combine(n=uc.Count())


def test_another_output_mode_than_append_is_refused(flow: uc.Flow) -> None:
    says = r"outputMode\('update'\) does not fit the rows of a flow, which are a changelog to append: leave it out"
    for df in (flow.df, flow.df.select("n").where("n > 0").drop("m")):
        assert isinstance(df, DataFrame)
        assert isinstance(df.writeStream.outputMode("append"), DataStreamWriter)
        with pytest.raises(InvalidArgument, match=says):
            df.writeStream.format("noop").outputMode("update")
        with pytest.raises(InvalidArgument, match=says):
            df.writeStream.start("out", format="parquet", outputMode="update")
    with pytest.raises(InvalidArgument, match=says):
        flow.foreach_batch(lambda panes, left_out, number: None).outputMode("update")


def test_a_query_without_a_checkpoint_is_told(
    flow: uc.Flow, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(DataStreamWriter, "start", lambda self, *given, **options: started.append(given))
    monkeypatch.setattr(streamed, "started", lambda start, begun: start())
    with pytest.warns(UserWarning, match="has no checkpoint, so a restart forgets its windows"):
        flow.df.writeStream.format("parquet").start(str(tmp_path / "out"))
    with pytest.warns(UserWarning, match="has no checkpoint"):
        flow.foreach_batch(lambda panes, left_out, number: None).start()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        flow.df.writeStream.option("checkpointLocation", "c").start("out")
        flow.df.select("n").writeStream.options(checkpointlocation="c").start("out")
        flow.df.writeStream.start("out", checkpointLocation="c")
        flow.df.writeStream.format("noop").start()
        spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
        try:
            flow.df.writeStream.start("out")
        finally:
            spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert len(started) == 7


def test_a_query_is_started_in_the_way_that_fits_its_folder(
    flow: uc.Flow, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """The folder of an argument or an option is looked at, and that of the session only where a query names none."""
    found: list[str | None] = []
    monkeypatch.setattr(streamed, "started", lambda start, begun: start())
    for name in ("start", "toTable"):
        monkeypatch.setattr(DataStreamWriter, name, lambda *_, **options: found.append(spark.conf.get(WAY, None)))
    batches = flow.foreach_batch(lambda panes, left_out, number: None)
    everywhere = "spark.sql.streaming.checkpointLocation"
    for folder, other in (("/tmp/c", "nowhere://c"), ("nowhere://c", "/tmp/c")):
        flow.df.writeStream.option("checkpointLocation", folder).start("out")
        flow.df.writeStream.options(checkpointLocation=folder).toTable("out")
        batches.start(checkpointLocation=folder)
        with changed(spark, {everywhere: folder}):
            flow.df.writeStream.start("out")
        with changed(spark, {everywhere: other}):
            flow.df.writeStream.option("checkpointLocation", folder).start("out")
    flow.df.writeStream.format("noop").start()
    assert found == [BY_RENAMES] * 5 + [None] * 5 + [BY_RENAMES]


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

"""The session for newcomers: its settings, its workers, and what it says where there is no Java."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession
from streams import changed

import uncombine as uc
from uncombine.sparkops.inputs import DataFrameInput
from uncombine.sparkops.routes.streaming import by_shard, require_rocksdb
from uncombine.sparkops.session import setting, shuffle_partitions


def fake_java(folder: Path, says: str) -> None:
    folder.mkdir()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)


def test_the_settings_that_fit(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")


def test_arrow_in_java_does_not_check_places(spark: SparkSession) -> None:
    """Spark's JVM has other options of the tests too, which the defaults do not replace."""
    for name, value in (("arrow.enable_unsafe_memory_access", "true"), ("arrow.enable_null_check_for_get", "false")):
        asked = f"java_method('java.lang.System', 'getProperty', '{name}') AS value"
        assert spark.range(1).selectExpr(asked).first().value == value
    assert not spark._jvm.org.apache.arrow.memory.BoundsChecking.BOUNDS_CHECKING_ENABLED


def test_a_limit_of_bytes_is_said_where_rows_go_to_python(spark: SparkSession) -> None:
    """Spark measures a batch after each row then."""
    limit, slow = "spark.sql.execution.arrow.maxBytesPerBatch", "slow: Spark measures"
    df = spark.createDataFrame([(0, 1)], "ts long, v long").selectExpr("timestamp_micros(ts) AS ts", "v")
    window = {"window": uc.Fixed("1 minute")}
    native = uc.flow(df).window(**window).combine(n=uc.Count())
    in_python = [
        uc.flow(df, tuning=uc.Tuning(native="never")).window(**window).combine(n=uc.Count()),
        uc.flow(df).map(lambda rows: rows),
        uc.flow(df, processing_time="ts", watermark="0 seconds").replay().window(**window).combine(n=uc.Count()),
        uc.flow(df, time="ts").window(**window).combine(n=uc.Median("v")),
    ]
    for flow in (native, *in_python):
        assert slow not in flow.explain()
    with changed(spark, {limit: "64MB"}):
        assert slow not in native.explain()
        for flow in in_python:
            assert f"set {limit} to 2147483647" in flow.explain()


def test_a_session_that_knows_no_limit_has_that_of_spark() -> None:
    """The value of Spark itself counts, where nobody has set one."""

    class Conf:
        def get(self, name: str, *default: str) -> str:
            return default[0] if default else "67108864"

    df = SimpleNamespace(sparkSession=SimpleNamespace(conf=Conf()))
    assert DataFrameInput(df).slowed() != ()  # type: ignore[arg-type]


def test_workers_run_on_this_python(spark: SparkSession) -> None:
    def which(batches):
        import sys

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"path": [sys.executable]})

    assert spark.range(1, numPartitions=1).mapInArrow(which, "path string").first().path == sys.executable


def test_workers_and_the_driver_have_minutes_to_connect(spark: SparkSession) -> None:
    def allowed(batches):
        import os

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"seconds": [os.environ["SPARK_AUTH_SOCKET_TIMEOUT"]]})

    assert os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] == "120"
    assert spark.range(1, numPartitions=1).mapInArrow(allowed, "seconds string").first().seconds == "120"
    assert spark.conf.get("spark.executor.heartbeatInterval") == "60s"


def test_it_gives_the_one_that_runs(spark: SparkSession) -> None:
    assert uc.session() is spark


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is 11"),
        ('java version "1.8.0_181"', "is 8"),
        ("hello", "the version of .* is unknown"),
    ],
)
def test_a_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: str) -> None:
    fake_java(tmp_path / "bin", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(uc.UncombineError, match=found):
        uc.session()


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(uc.UncombineError, match="no java in PATH: install Java 17"):
        uc.session()


def test_a_java_that_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    fake_java(tmp_path / "bin", 'openjdk version "21" 2023-09-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert uc.session() is spark


def test_a_worker_that_imports_a_module_which_starts_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """Spark's own error named neither the module nor the remedy."""
    (tmp_path / "job_with_session.py").write_text("import uncombine as uc\nspark = uc.session()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: object())
    with pytest.raises(uc.UncombineError, match=r"imports the module 'job_with_session' .* call it in a function of"):
        importlib.import_module("job_with_session")


def test_a_function_that_starts_a_session_in_a_worker(spark: SparkSession) -> None:
    def starts(rows: pa.Table) -> pa.Table:
        uc.session()
        return rows

    rows = spark.range(1).selectExpr("id", "timestamp_micros(id) AS ts")
    with pytest.raises(PythonException, match=r"a worker of Spark calls uc\.session\(\), which only the driver can"):
        uc.flow(rows).map(starts).df.collect()


def test_a_setting_that_a_service_hides_is_as_one_that_is_not_set() -> None:
    """As on serverless compute, where asking for it is an error."""

    class Hidden:
        class conf:
            @staticmethod
            def get(name: str) -> str:
                raise PySparkException(f"{name} is not available")

    hidden: Any = Hidden
    assert setting(hidden, "spark.sql.ansi.enabled") is None
    assert setting(hidden, "spark.sql.ansi.enabled", "true") == "true"
    assert shuffle_partitions(hidden) == 200
    require_rocksdb(hidden)


def test_a_client_that_has_no_stateful_processors() -> None:
    """As that of Spark Connect in 4.0."""

    class Frame:
        @staticmethod
        def groupBy(name: str) -> object:
            return object()

    frame: Any = Frame
    with pytest.raises(uc.errors.InvalidArgument, match=r"session of Spark Connect needs Spark 4\.1: run it"):
        by_shard(frame)

"""The names of PySpark that are not public: what each does in the PySpark at hand."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, CalendarIntervalType, StructType, TimestampNTZType, TimestampType
from streams import changed

from uncombine.sparkops.spark_private import (
    arrow_of,
    await_events,
    checkpoint_of,
    cores,
    execution,
    file_system,
    has_jobs,
    lacks_file_system,
    messages,
    on_progress,
    pickled,
    renaming_writer,
    session_id,
    spark_of,
    travels_by_value,
    write_new_file,
)

DDL = (
    "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(20, 3), i string, j binary, "
    "k date, l timestamp, m timestamp_ntz, n interval day to second, o array<timestamp>, "
    "p map<string, timestamp_ntz>, q struct<x: timestamp, y: array<bigint>>"
)
UTC = pa.timestamp("us", "UTC")
ARROW = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(20, 3),
    pa.string(), pa.binary(), pa.date32(), UTC, pa.timestamp("us"), pa.duration("us"),
    pa.list_(pa.field("element", UTC)), pa.map_(pa.string(), pa.timestamp("us")),
    pa.struct([("x", UTC), ("y", pa.list_(pa.field("element", pa.int64())))]),
]  # fmt: skip


def test_every_type_there_and_back(spark: object) -> None:
    kinds = [field.dataType for field in StructType.fromDDL(DDL)]
    assert list(map(arrow_of, kinds)) == ARROW
    assert [spark_of(kind) for kind in ARROW] == kinds


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_only_timestamps_with_a_time_zone_have_one_in_spark(unit: str) -> None:
    assert spark_of(pa.timestamp(unit)) == TimestampNTZType()
    assert spark_of(pa.timestamp(unit, "Asia/Tokyo")) == TimestampType()
    assert spark_of(pa.list_(pa.timestamp(unit))) == ArrayType(TimestampNTZType())


def test_a_type_that_the_other_has_not_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        arrow_of(CalendarIntervalType())
    with pytest.raises(TypeError):
        spark_of(pa.uint64())


def test_what_only_annotations_name_is_there() -> None:
    module = importlib.import_module("pyspark.sql.streaming.stateful_processor")
    assert {"ExpiredTimerInfo", "TimerValues"} <= set(vars(module))


def test_the_class_for_the_files_of_a_folder(spark: SparkSession) -> None:
    assert file_system(spark, "/tmp") == file_system(spark, "file:///") == "org.apache.hadoop.fs.LocalFileSystem"
    assert file_system(spark, "nowhere://tmp") is None
    other = "org.apache.hadoop.fs.RawLocalFileSystem"
    with changed(spark, {"fs.raw.impl": other}):
        assert file_system(spark, "raw:///tmp") == other
    assert file_system(cast(Any, object()), "/tmp") is None
    lacking = [lacks_file_system(spark, f"{scheme}/tmp") for scheme in ("", "file://", "nowhere://")]
    assert lacking == [False, False, True]
    assert not lacks_file_system(cast(Any, object()), "nowhere://tmp")


def test_the_class_that_writes_a_checkpoint_by_renames(spark: SparkSession) -> None:
    name = renaming_writer(spark)
    assert name is not None
    assert name.endswith(".FileSystemBasedCheckpointFileManager")
    assert renaming_writer(cast(Any, object())) is None


def test_a_new_file_of_a_checkpoint_is_whole_and_no_other_is_touched(spark: SparkSession, tmp_path: Path) -> None:
    assert write_new_file(spark, str(tmp_path / "1"), "v1\nü")
    assert not write_new_file(spark, f"file://{tmp_path}/1", "v2")
    assert (tmp_path / "1").read_text() == "v1\nü"
    assert {path.name for path in tmp_path.iterdir()} == {"1", ".1.crc"}
    assert not write_new_file(cast(Any, object()), str(tmp_path / "2"), "v1")


def test_the_plan_of_a_dataframe(spark: SparkSession) -> None:
    found = execution(spark.range(3))
    assert found is not None
    assert [plan.nodeName() for plan in (found.analyzed(), found.withCachedData())] == ["Range", "Range"]
    assert execution(cast(Any, object())) is None


def test_the_messages_of_a_dataframe_of_spark_connect() -> None:
    """tests/sparkops/test_connect.py asks a true client."""

    class Frame:
        sparkSession = SimpleNamespace(client="client")

        def __init__(self, plan: Any, session: Any) -> None:
            self._plan = plan

    first = SimpleNamespace(_child=None, plan=lambda client: f"first for {client}")
    last = SimpleNamespace(_child=first, plan=lambda client: f"last for {client}")
    found = list(messages(cast(Any, Frame(last, None))))
    assert [message for message, _ in found] == ["last for client", "first for client"]
    assert [cast(Any, frame)._plan for _, frame in found] == [last, first]


def test_a_group_has_had_jobs_or_not(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("of this test", "")
    try:
        spark.range(3).collect()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert has_jobs(spark, "of this test")
    assert not has_jobs(spark, "of no test")
    assert not has_jobs(cast("SparkSession", SimpleNamespace()), "of this test")


def test_the_tasks_that_run_at_once(spark: SparkSession) -> None:
    assert cores(spark) == spark.sparkContext.defaultParallelism == 2
    assert cores(cast("SparkSession", SimpleNamespace())) == 8  # a session of Spark Connect


def test_the_progress_of_each_batch_as_json(spark: SparkSession, tmp_path: Path) -> None:
    batches, ended = list[Any](), list[Any]()
    assert on_progress(spark, batches.append, ended.append)
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counted = rates.observe("seen", F.struct(F.count("*").alias("rows")).alias("counts"))
    writer = counted.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(once=True).start()
    query.awaitTermination()
    await_events(spark)
    [batch] = [batch for batch in batches if batch["runId"] == query.runId]
    assert (batch["batchId"], batch["id"]) == (0, query.id)
    assert batch["observedMetrics"]["seen"]["counts"]["rows"] == 10
    [end] = [end for end in ended if end["runId"] == query.runId]
    assert (end["id"], end.get("exception")) == (query.id, None)
    assert not on_progress(cast("SparkSession", SimpleNamespace()), batches.append, ended.append)


def test_several_objects_of_one_session(spark: SparkSession) -> None:
    assert session_id(spark) == session_id(cast(SparkSession, SparkSession.getActiveSession()))
    assert session_id(spark) != session_id(spark.newSession())
    assert session_id(cast("SparkSession", SimpleNamespace())) is None


def test_a_function_travels_whole() -> None:
    assert pickle.loads(pickled(lambda x: x + 1))(2) == 3
    module = ModuleType("of_the_driver_alone")
    exec("def two(): return 2", vars(module))
    sys.modules[module.__name__] = module
    try:
        travels_by_value(module)
        travels = pickled(module.two)
    finally:
        del sys.modules[module.__name__]
    assert pickle.loads(travels)() == 2


def test_the_folder_of_the_checkpoint_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().writeStream.format("noop")
    query = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(once=True).start()
    query.awaitTermination()
    found = checkpoint_of(query)
    assert found is not None
    assert found.endswith(str(tmp_path / "c"))
    assert checkpoint_of(object()) is None  # type: ignore[arg-type]

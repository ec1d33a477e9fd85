"""Event times that are computed, on Spark: the panes are those of this process, over DataFrames and files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument

pytestmark = pytest.mark.spark

MS = 1_704_067_200_000
ROWS = [{"ms": None if i % 7 == 3 else MS + 1000 * i, "day": f"{1 + i % 40}.01.2024", "user": "ab"[i % 2], "x": i}
        for i in range(200)]  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS)
TIMES: list[dict[str, Any]] = [
    {"time": uc.col("ms").cast_time("ms")},
    {"time": "day", "time_format": "%d.%m.%Y"},
    {"time": (uc.col("ms") + 5).cast_time("ms")},
]


def minutes(flow: uc.Flow) -> uc.Flow:
    return flow.window("1 minute").combine(by="user", total=uc.Sum("x"), n=uc.Count())


def panes_of(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["user"], row["window"]["start"].timestamp(), row["total"], row["n"]) for row in rows)


def bad_of(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["why"], row["row"]["x"], row["row"]["day"], row["row"]["event_time"]) for row in rows)


def dicts(df: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]


@pytest.mark.parametrize("options", TIMES, ids=str)
@pytest.mark.parametrize("form", ["DataFrame", "table", "parquet", "scan", "json"])
def test_bounded_rows(form: str, options: dict[str, Any], spark: SparkSession, tmp_path: Path) -> None:
    wanted = minutes(uc.flow(TABLE, **options)).run()
    pq.write_table(TABLE, tmp_path / "a.parquet")
    source: Any = {
        "DataFrame": lambda: uc.flow(spark.createDataFrame(TABLE), **options),
        "table": lambda: uc.flow(TABLE, spark=spark, **options),
        "parquet": lambda: uc.flow(tmp_path / "a.parquet", spark=spark, **options),
        "scan": lambda: uc.flow(spark.read.parquet(str(tmp_path / "a.parquet")), **options),
        "json": lambda: uc.flow(_json(tmp_path), spark=spark, **options),
    }[form]()
    flow = minutes(source)
    assert panes_of(dicts(flow.df)) == panes_of(wanted.to_pylist())
    assert bad_of(dicts(flow.left_out)) == bad_of(wanted.left_out.to_pylist())
    assert wanted.counts()["bad"] > 10
    assert f"  time: {source.settings.event_time.value!r}" in flow.explain()
    plan = flow.explain()
    assert ("whose files Spark reads" in plan or "DataFrame of Parquet files" in plan) == (form == "scan")
    assert "the tasks compute the event times (time=)" in plan


def _json(folder: Path) -> uc.Files:
    (folder / "a.json").write_text("\n".join(map(json.dumps, ROWS)))
    return uc.Files(folder / "a.json", schema=TABLE.schema)


@pytest.mark.parametrize("form", ["DataFrame", "files"])
def test_streams(form: str, spark: SparkSession, tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(TABLE.slice(50 * i, 50), tmp_path / "in" / f"{i}.parquet")
    options: dict[str, Any] = {**TIMES[0], "watermark": uc.BoundedLag("1 hour")}
    if form == "DataFrame":
        df = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
        source = uc.flow(df, **options)
    else:
        source = uc.flow(tmp_path / "in", spark=spark, streaming=True, **options)
    flow = source.window("1 minute", "each row", "retracting").combine(by="user", total=uc.Sum("x"), n=uc.Count())
    shown, rows = list[dict[str, Any]](), list[dict[str, Any]]()

    def keep(panes: DataFrame, left_out: DataFrame, number: int) -> None:
        shown.extend(dicts(panes))
        rows.extend(dicts(left_out))

    writer = flow.foreach_batch(keep).option("checkpointLocation", str(tmp_path / "state"))
    writer.trigger(availableNow=True).start().awaitTermination()
    wanted = minutes(uc.flow(TABLE, **TIMES[0])).run()
    net = Counter[Any]()
    for row in shown:
        net.update(dict.fromkeys(panes_of([row]), row["diff"]))
    assert +net == panes_of(wanted.to_pylist())
    assert bad_of(rows) == bad_of(wanted.left_out.to_pylist())


def test_a_changelog_with_keys(spark: SparkSession) -> None:
    feed = [
        {"id": 1, "ms": MS, "user": "a", "x": 1, "day": "", "seq": 1, "kind": "+I"},
        {"id": 1, "ms": MS + 60_000, "user": "a", "x": 2, "day": "", "seq": 2, "kind": "+U"},
        {"id": 2, "ms": None, "user": "b", "x": 4, "day": "", "seq": 3, "kind": "+I"},
    ]
    form = uc.changelog.Flink("kind", keys="id", order="seq")
    for source in (uc.flow(feed, changelog=form, **TIMES[0]), uc.flow(feed, spark=spark, changelog=form, **TIMES[0])):
        flow = minutes(source)
        panes = flow.run().to_pylist() if source.source.engine.has_streams is False else dicts(flow.df)
        assert panes_of(panes) == Counter({("a", MS / 1000 + 60, 2, 1): 1})


def test_replays_unions_and_scripts(spark: SparkSession) -> None:
    rows = [{**row, "seen": MS * 1000 + row["x"]} for row in ROWS]
    table = pa.Table.from_pylist(rows).set_column(
        4, "seen", pa.array([r["seen"] for r in rows]).cast(pa.timestamp("us", "UTC"))
    )
    options: dict[str, Any] = {**TIMES[0], "watermark": "10 minutes", "processing_time": "seen", "max_future": None}
    found = [
        minutes(uc.flow(given, **options).replay(close_at_end=True)) for given in (table, spark.createDataFrame(table))
    ]
    assert panes_of(dicts(found[1].df)) == panes_of(found[0].run().to_pylist())
    # A script takes the place of the rows of Spark.
    script = [uc.Elements(rows), uc.Watermark(None)]
    assert panes_of(found[1].run(script).to_pylist()) == panes_of(found[0].run(script).to_pylist())
    other = uc.flow(TABLE, **TIMES[1], name="other"), uc.flow(TABLE, spark=spark, **TIMES[1], name="other")
    one = uc.flow(TABLE, **TIMES[0], name="one"), uc.flow(TABLE, spark=spark, **TIMES[0], name="one")
    here, there = (minutes(uc.union(a, b)) for a, b in zip(one, other, strict=True))
    assert panes_of(dicts(there.df)) == panes_of(here.run().to_pylist())


def test_files_are_not_put_in_order_by_times_that_tasks_compute(spark: SparkSession, tmp_path: Path) -> None:
    """Not even if the files have a column of the name that the computed times get."""
    rows = TABLE.append_column("event_time", pa.array([MS] * len(TABLE)).cast(pa.timestamp("ms", "UTC")))
    pq.write_table(rows, tmp_path / "a.parquet")
    times = uc.when(uc.col("x") > 3, uc.col("event_time"))
    with pytest.raises(InvalidArgument, match="order='time' reads times that are in the files, and time=when"):
        uc.flow(uc.Files(tmp_path, order="time"), spark=spark, streaming=True, time=times, watermark="1 minute")


def test_a_changelog_in_messages_is_not_put_in_order_by_times(spark: SparkSession, tmp_path: Path) -> None:
    after = {"at": MS, "n": 1}
    (tmp_path / "a.json").write_text(json.dumps({"op": "c", "before": None, "after": after}) + "\n")
    files = uc.Files(tmp_path, format="json", order="time")
    options: dict[str, Any] = {"spark": spark, "streaming": True, "changelog": uc.changelog.Debezium()}
    told = "of a changelog are in its messages: give order='name' and, from the first start on, an allowed_lateness="
    for more in ({"time": "at", "time_format": "ms"}, {"time": "at"}):
        with pytest.raises(InvalidArgument, match=told):
            uc.flow(files, watermark="1 minute", **more, **options)

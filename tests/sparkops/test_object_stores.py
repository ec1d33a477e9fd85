"""Files of an object store on Spark, which has no jar for it: bounded, as a stream, and what is said before a start."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from s3_server import Store, s3
from streams import changed

import uncombine as uc
from uncombine.errors import InvalidArgument, StoreUnreachable, UnreadableFile
from uncombine.sparkops.planners.data_source import LIMITS

START = 1_420_070_400_000_000  # 2015-01-01
HOUR = 3_600_000_000
SCHEMA = pa.schema({"k": pa.int32(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64(), "more": pa.string()})
BAD = {"csv": "2015-01-01T00:00:00Z,many,\n", "json": '{"ts": "2015-01-01T00:00:00Z", "v": "many"}\n'}
"""A row that cannot be read, of each format with such rows."""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = tmp_path_factory.mktemp("s3")
    for form in ("parquet", "csv", "json"):
        for number, rows in enumerate(files()):
            path = root / "bucket" / form / f"k={number % 2}" / f"{number}.{form}"
            write(path, rows)
            os.utime(path, (1_600_000_000 + number,) * 2)
    for k in range(2):
        write(root / "bucket" / "wide" / f"k={k}" / "0.parquet", [row | {"more": "x" * 2_000} for row in files()[0]])
    with s3(root) as store:
        yield store


def files() -> list[Rows]:
    """The rows of each file; a column of each is in the name of its folder."""
    return [
        [{"ts": START + (400 * number + row) * HOUR // 40, "v": row, "more": "x" * 50} for row in range(400)]
        for number in range(4)
    ]


def write(path: Path, rows: Rows) -> None:
    """A file in the format that its name ends with, which begins with a bad row if it can have one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, SCHEMA.remove(0))
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="none")
        case ".csv":
            pacsv.write_csv(table, path)
            path.write_text(path.read_text() + BAD["csv"])
        case _:
            lines = (json.dumps({**row, "ts": row["ts"].isoformat()}) for row in table.to_pylist())
            path.write_text("\n".join([*lines, BAD["json"]]))


def expected(least: int = 0) -> Counter[tuple[int, int, int]]:
    """The sum for each folder and each hour, in plain Python."""
    sums = Counter[tuple[int, int]]()
    for number, rows in enumerate(files()):
        for row in rows:
            if row["v"] >= least:
                sums[number % 2, row["ts"] // HOUR] += row["v"]
    return Counter((k, hour, total) for (k, hour), total in sums.items())


def hours(source: uc.Flow) -> uc.Flow:
    return source.window("1 hour").combine(by="k", total=uc.Sum("v")).select("k", "window", "total")


def shown(rows: Rows) -> Counter[tuple[int, int, int]]:
    return Counter((row["k"], int(row["window"]["start"].timestamp() * 1e6) // HOUR, row["total"]) for row in rows)


def by_spark(flow: uc.Flow, folder: Path) -> Rows:
    """All rows of a flow, of a stream those that its queries have written, of which this one ends."""
    if not flow.source.streaming:
        return [row.asDict(recursive=True) for row in flow.df.collect()]
    writer = flow.write_stream(checkpoint=str(folder / "checkpoint")).format("parquet")
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    rows: Rows = pq.read_table(folder / "out").to_pylist()
    return rows


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_all_ways_have_the_same_rows(spark: SparkSession, store: Store, tmp_path: Path, form: str) -> None:
    path = f"s3://bucket/{form}/k=*/*.{form}{store.parameters}"
    bad = {} if form == "parquet" else {"on_bad_row": "leave_out"}
    source = uc.Files(path, schema=SCHEMA, filter=uc.col("v") >= 100, **bad)  # type: ignore[arg-type]
    assert shown(hours(uc.flow(source)).run().to_pylist()) == expected(100)
    bounded = hours(uc.flow(source, spark=spark))
    assert shown(by_spark(bounded, tmp_path)) == expected(100)
    stream = hours(uc.flow(source, spark=spark, streaming=True, watermark="1 day"))
    for flow in (bounded, stream):
        assert "s3://bucket/" in flow.explain()
        assert store.address not in flow.explain()
    assert "ordered by their last change" in stream.explain()
    if form != "json":  # whose rows come as those of CSV do
        with changed(spark):
            found = shown(by_spark(stream, tmp_path))
        assert found == Counter({row: 1 for row in expected(100) if row[1] < START // HOUR + 15})


def test_files_of_several_paths_and_of_no_steps(spark: SparkSession, store: Store) -> None:
    named = [f"s3a://bucket/csv/k={k}/{number}.csv{store.parameters}" for k, number in ((0, 0), (1, 3), (1, 9))]
    source = uc.Files(named, schema=SCHEMA.remove(0), on_bad_file="skip", on_bad_row="leave_out")
    rows = uc.flow(source, spark=spark).select("v").df.collect()
    assert sorted(row.v for row in rows) == sorted(2 * list(range(400)))
    left_out = uc.flow(source, spark=spark).window("global").combine(n=uc.Sum("v")).left_out.collect()
    assert sorted(row.file for row in left_out) == ["s3://bucket/csv/k=0/0.csv", "s3://bucket/csv/k=1/3.csv"]


def test_only_the_parts_that_can_have_rows_are_read(spark: SparkSession, store: Store) -> None:
    """Of Parquet the columns that are needed, of the row groups whose statistics allow it, in folders that fit."""

    def sent(*columns: str, condition: Any = None) -> int:
        flow = uc.flow(uc.Files(f"s3://bucket/wide{store.parameters}", filter=condition), spark=spark)
        before = store.sent
        flow.window("global").combine(**{name: uc.Max(name) for name in columns}).df.collect()
        return store.sent - before

    every = sent("v", "more")
    assert sent("v") < every / 2
    assert sent("v", "more", condition=uc.col("v") >= 300) < every / 2
    assert sent("v", "more", condition=uc.col("k") == 1) < every * 3 / 4


@pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")
def test_a_stream_goes_on_where_it_was(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    def again(**options: Any) -> Counter[tuple[int, int, int]]:
        path = f"s3://bucket/parquet{store.parameters}"
        files = uc.Files(path, max_files_per_batch=2, **options)
        stream = uc.flow(files, spark=spark, streaming=True, watermark="1 minute")
        return shown(by_spark(hours(stream), tmp_path))

    with changed(spark):
        first = again()
        assert first == Counter({row: 1 for row in expected() if row[1] < START // HOUR + 39})
        assert again(order="name") == first


@pytest.mark.parametrize("where", ["here", "bounded", "stream"])
def test_faults_are_told_before_anything_starts(spark: SparkSession, store: Store, where: str) -> None:
    on_spark: dict[str, Any] = {} if where == "here" else {"spark": spark}
    if where == "stream":
        on_spark |= {"streaming": True, "watermark": "1 day"}
    schema: dict[str, Any] = {"format": "csv", "schema": SCHEMA}
    store.refused = {"bucket/secret/", "closed/"}
    for path, options, kind, says in [
        ("s3://nowhere/in", {}, UnreadableFile, "there is no bucket or container s3://nowhere: check its name, its"),
        ("s3://nowhere/in/*.csv", schema, UnreadableFile, "there is no bucket or container s3://nowhere: check"),
        ("s3://bucket/nothing", {}, UnreadableFile, "there are no files in s3://bucket/nothing: check the path"),
        ("s3://closed/in", {}, StoreUnreachable, "s3://closed/in cannot be reached: .*ACCESS_DENIED.*: check the"),
        ("s3://bucket/secret/a.csv", schema, StoreUnreachable, "cannot be reached: .*and the credentials and the"),
        ("s3:/bucket/in", {}, InvalidArgument, "s3:// names no bucket .*: write it as a text"),
    ]:
        with pytest.raises(kind, match=says) as told:
            uc.flow(uc.Files(path + store.parameters, **options), **on_spark)
        assert "\n" not in str(told.value)
    with pytest.raises(InvalidArgument, match="no password, key or token in it: give the credentials in the env") as no:
        uc.flow("s3://key:geheim@bucket/in", **on_spark)
    assert "geheim" not in str(no.value)


def test_a_checkpoint_that_spark_cannot_write(spark: SparkSession, store: Store) -> None:
    path = f"s3://bucket/parquet{store.parameters}"
    flow = hours(uc.flow(path, spark=spark, streaming=True, watermark="1 day"))
    says = "Spark itself writes the checkpoint, and has no file system for s3://bucket/state: name a folder"
    with pytest.raises(InvalidArgument, match=says):
        flow.write_stream(checkpoint="s3://bucket/state")
    with pytest.raises(InvalidArgument, match=says):
        flow.to_table("duckdb:/nowhere.db#t", checkpoint="s3://bucket/state")
    with pytest.raises(InvalidArgument, match=says):
        flow.foreach_batch(print).option("checkpointLocation", "s3://bucket/state").start()

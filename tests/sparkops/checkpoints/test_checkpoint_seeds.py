"""A query begins with the seed of a checkpoint, with as many shards as it likes, as if the first had gone on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.sparkops.sql_types import spark_schema

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
FIRST = [(0, "a", 1), (1, "b", 2), (70, "a", 3), (5, "c", 4), (61, "d", 9)]
THEN = [(20, "a", 10), (65, "b", 20), (3700, "a", 30), (5, "c", 40), (3800, "e", 1)]


def put(folder: Path, name: str, rows: list[tuple[int, str, int]]) -> None:
    folder.mkdir(exist_ok=True)
    times, users, xs = zip(*rows, strict=True)
    table = pa.table([pa.array([t * 1_000_000 for t in times], SCHEMA.field("ts").type), users, xs], schema=SCHEMA)
    pq.write_table(table, folder / f"{name}.parquet")


def sums(rows: uc.Flow) -> uc.Flow:
    minutes = rows.window("1 minute", "each row", mode="retracting", allowed_lateness="30 seconds")
    totals = minutes.combine(by="user", total=uc.Sum("x"), middle=uc.Median("x"))
    return totals.window("1 hour", "each row", mode="retracting").combine(n=uc.Count(), most=uc.Max("total"))


def flow(spark: SparkSession, folder: Path, shards: int, **options: Any) -> uc.Flow:
    files = uc.Files(str(folder), order="name", **options)
    return sums(uc.flow(files, spark=spark, streaming=True, watermark="30 seconds", tuning=uc.Tuning(shards=shards)))


def run(one: uc.Flow, folder: Path, name: str, **options: Any) -> list[dict[str, Any]]:
    """The panes that a query writes, in any order."""
    out, checkpoint = str(folder / f"{name} out"), str(folder / name)
    stream = one.write_stream(checkpoint=checkpoint, **options).format("parquet").option("path", out)
    stream.trigger(availableNow=True).start().awaitTermination()
    rows = pq.read_table(out).select(["n", "most", "diff"]).to_pylist()
    shutil.rmtree(out)
    return sorted(rows, key=repr)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    put(tmp_path / "in", "a", FIRST)
    return tmp_path / "in"


def test_a_query_with_other_shards_goes_on_from_a_seed(spark: SparkSession, tmp_path: Path, rows: Path) -> None:
    run(flow(spark, rows, 3), tmp_path, "old")
    seed = uc.checkpoint(tmp_path / "old", spark=spark).seed(str(tmp_path / "seed"))
    assert [(step.rows, len(step.pieces)) for step in seed.steps] == [({"windows": 5}, 3), ({"windows": 1}, 3)]
    put(rows, "b", THEN)
    expected = run(flow(spark, rows, 3), tmp_path, "old")
    assert len(expected) > 2
    for shards in (2, 5):
        found = run(flow(spark, rows, shards), tmp_path, f"new{shards}", start=seed.folder)
        assert found == expected
    gone = shutil.move(seed.folder, str(tmp_path / "gone"))
    put(rows, "c", [(3900, "a", 5)])
    expected = run(flow(spark, rows, 3), tmp_path, "old")
    found = run(flow(spark, rows, 5), tmp_path, "new5", start=seed.folder)
    assert found == expected, "a program that still gives the seed goes on without it"
    put(rows, "d", [(3905, "a", 5)])
    expected = run(flow(spark, rows, 3), tmp_path, "old")
    assert run(flow(spark, rows, 5), tmp_path, "new5") == expected, "the first batch has stored the seed"
    assert gone


def test_a_query_that_has_no_batch_done_needs_its_seed(spark: SparkSession, tmp_path: Path, rows: Path) -> None:
    run(flow(spark, rows, 2), tmp_path, "old")
    seed = uc.checkpoint(tmp_path / "old", spark=spark).seed(str(tmp_path / "seed"))
    put(rows, "b", THEN)
    expected = run(flow(spark, rows, 2), tmp_path, "old")

    def fail(df: DataFrame, number: int) -> None:
        raise ValueError("stopped in its first batch")

    new = str(tmp_path / "new")
    stream = flow(spark, rows, 2).write_stream(checkpoint=new, start=seed).foreachBatch(fail)
    with pytest.raises(StreamingQueryException):
        stream.trigger(availableNow=True).start().awaitTermination()
    assert not Path(new, "commits", "0").exists()
    with pytest.raises(StateMismatch, match=r"began after files that a seed, or start= of uc\.Files"):
        flow(spark, rows, 2).write_stream(checkpoint=new)
    assert run(flow(spark, rows, 2), tmp_path, "new", start=seed) == expected


def test_a_step_whose_source_has_had_no_rows_needs_the_seed_still(spark: SparkSession, tmp_path: Path) -> None:
    """Its source is one of Spark's own, which has no batch without rows."""

    def pairs() -> uc.Flow:
        options: dict[str, Any] = {"watermark": "1 hour", "tuning": uc.Tuning(shards=2)}
        files = uc.Files(str(tmp_path / "left"), order="name")
        left = uc.flow(files, spark=spark, streaming=True, name="left", **options)
        stream = spark.readStream.schema(spark_schema(SCHEMA)).parquet(str(tmp_path / "right"))
        right = uc.flow(stream, name="right", **options)
        once = right.distinct("user", within="1 hour").select("user", "event_time")
        return left.join(once, on="user", within=("-1 hour", "1 hour"))

    def ran(name: str, **options: Any) -> list[dict[str, Any]]:
        out = str(tmp_path / f"{name} out")
        stream = pairs().write_stream(checkpoint=str(tmp_path / name), **options).format("parquet").option("path", out)
        stream.trigger(availableNow=True).start().awaitTermination()
        rows = pq.read_table(out).select(["user", "x", "diff"]).to_pylist()
        shutil.rmtree(out)
        return sorted(rows, key=repr)

    put(tmp_path / "left", "a", FIRST)
    put(tmp_path / "right", "a", FIRST)
    ran("old")
    seed = uc.checkpoint(tmp_path / "old", spark=spark).seed(str(tmp_path / "seed"))
    (tmp_path / "right" / "a.parquet").unlink()
    put(tmp_path / "left", "b", [(30, "b", 7)])
    ran("old")
    ran("new", start=seed)
    put(tmp_path / "right", "b", [(31, "b", 8), (32, "z", 8)])
    put(tmp_path / "left", "c", [(33, "z", 9)])
    expected = ran("old")
    assert expected
    with pytest.raises(StateMismatch, match="has not stored all of its state yet: give the same start= again"):
        pairs().write_stream(checkpoint=str(tmp_path / "new"))
    assert ran("new", start=seed) == expected


def test_a_query_without_a_seed_that_has_no_batch_done_starts(spark: SparkSession, tmp_path: Path, rows: Path) -> None:
    new, done = str(tmp_path / "new"), [str(rows / "a.parquet")]
    put(rows, "b", THEN)

    def fail(df: DataFrame, number: int) -> None:
        raise ValueError("stopped in its first batch")

    stream = flow(spark, rows, 2, start=done).write_stream(checkpoint=new).foreachBatch(fail)
    with pytest.raises(StreamingQueryException):
        stream.trigger(availableNow=True).start().awaitTermination()
    assert run(flow(spark, rows, 2, start=done), tmp_path, "new")


def test_a_run_of_this_process_moves_to_spark_and_back(spark: SparkSession, tmp_path: Path, rows: Path) -> None:
    here = sums(uc.flow(SCHEMA, watermark="30 seconds"))

    def entries(some: list[tuple[int, str, int]]) -> Any:
        return uc.Elements([{"ts": t * 1_000_000, "user": user, "x": x} for t, user, x in some])

    first = here.run([entries(FIRST)])
    (rows / "a.parquet").unlink()
    put(rows, "b", THEN)
    expected = here.run([entries(FIRST), entries(THEN)])
    last = [row for row in expected.select(["n", "most", "diff", "step"]).to_pylist() if row.pop("step") == 1]
    seed = first.seed(str(tmp_path / "seed"))
    assert run(flow(spark, rows, 2), tmp_path, "there", start=seed) == sorted(last, key=repr)
    back = uc.checkpoint(tmp_path / "there", spark=spark).seed(str(tmp_path / "back"))
    more = entries([(3950, "b", 7)])
    whole = here.run([entries(FIRST), entries(THEN), more])
    tail = [row for row in whole.select(["n", "most", "diff", "step"]).to_pylist() if row.pop("step") == 2]
    assert here.run([more], start=back).select(["n", "most", "diff"]).to_pylist() == tail


def test_what_a_seed_cannot_start_is_refused(spark: SparkSession, tmp_path: Path, rows: Path) -> None:
    run(flow(spark, rows, 2), tmp_path, "old")
    seed = uc.checkpoint(tmp_path / "old", spark=spark).seed(str(tmp_path / "seed"))
    new = str(tmp_path / "new")
    other = flow(spark, rows, 2).window("2 hours").combine(n=uc.Sum("n"))
    with pytest.raises(StateMismatch, match=r"the seed .* is of another flow, in stage 1: its steps were"):
        other.write_stream(checkpoint=new, start=seed)
    listed = sums(uc.flow(uc.Files(str(rows)), spark=spark, streaming=True, watermark="30 seconds"))
    with pytest.raises(InvalidArgument, match=r"would read them again: give them an order"):
        listed.write_stream(checkpoint=new, start=seed)
    with pytest.raises(InvalidArgument, match="leave one of them out"):
        flow(spark, rows, 2, start=[str(rows / "a.parquet")]).write_stream(checkpoint=new, start=seed)
    with pytest.raises(InvalidArgument, match="a seed is written to a new folder"):
        uc.checkpoint(tmp_path / "old", spark=spark).seed(str(tmp_path / "seed"))
    manifest = Path(seed.folder, "seed.json")
    written = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**written, "seed": 9}))
    with pytest.raises(StateMismatch, match="has format 9"):
        flow(spark, rows, 2).write_stream(checkpoint=new, start=seed.folder)
    manifest.unlink()
    with pytest.raises(InvalidArgument, match=r"is no seed: it has no file seed\.json"):
        flow(spark, rows, 2).write_stream(checkpoint=new, start=seed.folder)

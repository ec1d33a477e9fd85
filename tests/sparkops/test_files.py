"""Flows over files: the panes are those of a DataFrame of them, bounded and streaming; bad files are named."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from opened import opened
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from seeds import share

import uncombine as uc
from uncombine.sparkops.progress import progress_of

LAG = uc.BoundedLag("1 second")


def rows(seed: int, count: int = 500) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = 1_700_000_000_000_000 + np.sort(rng.integers(0, 600_000_000, count)) + seed * 600_000_000
    return pa.table(
        {
            "k": rng.integers(0, 9, count),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": pa.array(rng.integers(0, 100, count), mask=rng.random(count) < 0.1),
        }
    )


def write(folder: Path, format: str, count: int = 3) -> pa.Table:
    folder.mkdir(parents=True, exist_ok=True)
    tables = [rows(seed) for seed in range(count)]
    for i, table in enumerate(tables):
        match format:
            case "parquet":
                pq.write_table(table, folder / f"{i}.parquet", row_group_size=100)
            case "arrow":
                feather.write_feather(table, str(folder / f"{i}.arrow"))
            case "csv":
                pacsv.write_csv(table, folder / f"{i}.csv")
            case _:
                lines = [json.dumps({**row, "ts": row["ts"].isoformat()}) for row in table.to_pylist()]
                (folder / f"{i}.json").write_text("\n".join(lines))
    return pa.concat_tables(tables)


def totals(flow: Any) -> list[dict[str, Any]]:
    combined = flow.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count(), total=uc.Sum("v"))
    return sorted_rows(combined.df.select("k", "window", "n", "total").collect())


def sorted_rows(found: list[Any]) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in found), key=lambda r: (r["k"], r["window"]["start"]))


def expected(table: pa.Table) -> dict[tuple[int, int], tuple[int, int | None]]:
    frame = table.to_pandas()
    frame["start"] = frame["ts"].dt.floor("1min")
    grouped = frame.groupby(["k", "start"])["v"]
    counts, sums = grouped.size(), grouped.sum(min_count=1)
    return {
        (int(k), start.value // 1000): (int(n), None if np.isnan(s) else int(s))
        for ((k, start), n), s in zip(counts.items(), sums, strict=True)
    }


def keyed(found: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, int | None]]:
    micros = {id(r): int(r["window"]["start"].timestamp() * 1_000_000) for r in found}
    return {(r["k"], micros[id(r)]): (r["n"], r["total"]) for r in found}


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv", "json"])
def test_every_format_gives_what_pandas_gives(spark: SparkSession, tmp_path: Path, format: str) -> None:
    table = write(tmp_path / "in", format)
    schema = pa.schema({"k": pa.int64(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
    assert keyed(totals(uc.flow(uc.Files(str(tmp_path / "in"), schema=schema), spark=spark))) == expected(table)


def test_large_files_are_read_in_parts(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "in", "parquet")
    flow = uc.flow(str(tmp_path / "in"), spark=spark)
    monkeypatch.setattr("uncombine.sparkops.files_input.LARGE", 2_000)
    assert flow.source.input._files_now([]).count() > 3
    assert keyed(totals(flow)) == expected(table)


def test_folders_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in" / "day=2016-01-20", "parquet", 1)
    write(tmp_path / "in" / "day=2016-01-21", "parquet", 1)
    flow = uc.flow(str(tmp_path / "in"), spark=spark).window(uc.Global()).combine(by="day", n=uc.Count())
    found = {str(row.day): row.n for row in flow.df.collect()}
    assert found == {"2016-01-20": 500, "2016-01-21": 500}


def _numbered(path: Path, first: int) -> None:
    """A file with three rows that have numbers from the first on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = np.arange(first, first + 3)
    pq.write_table(pa.table({"ts": pa.array(1_700_000_000_000_000 + ids, pa.timestamp("us", "UTC")), "id": ids}), path)


FOLDERS = [
    ["0", "more/deep/0"],
    ["day=x/0", "day=5/h=3/0"],
    ["h=4/0", "path=1/0", "length=2/0", "1", "day=x/1", "none/0"],
]
"""The files that come after each other below a folder."""

COLUMNS = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64(), "day": pa.string(), "h": pa.int64()})


def _drawn(seed: int) -> list[list[str]]:
    """Files in random folders, in three parts."""
    r = random.Random(seed)
    some = ["day=x", "day=5", "day=2024-02-29", "h=3", "h=-1", "more", "more/deep", "path=1", "none"]
    folders = ["/".join(r.sample(some, r.choice([0, 1, 2]))) for _ in range(9)]
    # A folder cannot be of one column twice.
    folders = [f for f in folders if max(f.count("day="), f.count("h=")) < 2]
    return [[f"{f}/{part}{i}".lstrip("/") for i, f in enumerate(folders) if r.random() < 0.5] for part in "abc"]


@pytest.mark.parametrize("parts", [FOLDERS, *(pytest.param(_drawn(i), marks=pytest.mark.soak) for i in range(30))])
def test_folders_that_appear_later(spark: SparkSession, tmp_path: Path, parts: list[list[str]]) -> None:
    """All files below a folder are read once, in batch and in streams, whatever folders they are in."""
    expected, streamed = list[tuple[Any, ...]](), list[tuple[Any, ...]]()

    def grouped(**options: Any) -> Any:
        flow = opened(
            tmp_path / "in", spark=spark, format="parquet", schema=COLUMNS, on_missing_column="null", **options
        )
        shown = {"trigger": uc.Repeatedly(uc.AfterCount(1)), "mode": "discarding"} if options else {}
        return flow.window(uc.Fixed("1 day"), **shown).combine(by=("id", "day", "h"), n=uc.Count()).df

    def kept(df: Any, number: int) -> None:
        streamed.extend(tuple(row) for row in df.select("id", "day", "h", "n").collect())

    for i, files in enumerate(parts):
        for j, name in enumerate(files):
            first = 100 * i + 10 * j
            _numbered(tmp_path / "in" / f"{name}.parquet", first)
            folders = dict(part.split("=") for part in name.split("/")[:-1] if "=" in part)
            hour = int(folders["h"]) if "h" in folders else None
            expected += [(first + k, folders.get("day"), hour, 1) for k in range(3)]
        for hidden in ("_tmp/0", ".0", "day=x/_0", "day=x/.tmp/0"):
            _numbered(tmp_path / "in" / f"{hidden}.parquet", -10)
        (tmp_path / "in" / f"empty {i}.parquet").touch()
        writer = grouped(streaming=True, watermark=LAG, wake=False).writeStream.foreachBatch(kept)
        query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        query.awaitTermination()
        bounded = [tuple(row) for row in grouped().select("id", "day", "h", "n").collect()]
        assert sorted(bounded, key=repr) == sorted(streamed, key=repr) == sorted(expected, key=repr)


def test_a_bad_file_stops_the_job_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "parquet")
    (tmp_path / "in" / "9.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(Exception, match=re.escape("9.parquet")):
        totals(uc.flow(str(tmp_path / "in"), spark=spark))


def test_a_bad_file_is_skipped_on_request(spark: SparkSession, tmp_path: Path) -> None:
    table = write(tmp_path / "in", "parquet")
    (tmp_path / "in" / "9.parquet").write_bytes(b"PAR1 this is none PAR1")
    assert keyed(totals(uc.flow(uc.Files(str(tmp_path / "in"), on_bad_file="skip"), spark=spark))) == expected(table)


def test_a_stream_of_files_gives_the_panes_of_a_stream_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "parquet")
    (tmp_path / "in" / "9.parquet").write_bytes(b"PAR1 this is none PAR1")
    path = str(tmp_path / "in")
    options = {"streaming": True, "max_files_per_batch": 1, "on_bad_file": "skip"}
    by_files = opened(path, spark=spark, watermark=LAG, **options)
    frame = spark.readStream.schema("k bigint, ts timestamp, v bigint").option("maxFilesPerTrigger", 1)
    by_rows = uc.flow(frame.option("pathGlobFilter", "[0-8].parquet").parquet(path), watermark=LAG)
    results = []
    for i, flow in enumerate((by_files, by_rows)):
        panes = flow.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count(), total=uc.Sum("v")).df
        writer = panes.writeStream.format("memory").queryName(f"files_{i}")
        query = writer.option("checkpointLocation", str(tmp_path / f"state {i}")).trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [progress_of(p) for p in query.recentProgress]
        assert sum(p.files_skipped for p in progress) == (1 if i == 0 else 0)
        assert sum(p.stages[0].rows_in for p in progress if p.stages) == 1500
        results.append(sorted_rows(spark.table(f"files_{i}").select("k", "window", "n", "total").collect()))
    assert results[0] == results[1]
    assert len(results[0]) > 100


def test_the_explanation_names_the_files(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "parquet", 1)
    flow = uc.flow(str(tmp_path / "in"), spark=spark).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    assert "parquet files at" in flow.explain()
    assert "not Spark's own aggregation: files are read faster by the tasks themselves" in flow.explain()


def test_what_cannot_be_is_said_when_the_flow_is_built(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "parquet", 1)
    path = str(tmp_path / "in")
    with pytest.raises(uc.UncombineError, match="max_files_per_batch= needs streaming=True"):
        uc.flow(uc.Files(path, max_files_per_batch=1), spark=spark)
    for name in ("max_files_per_trigger", "maxFilesPerTrigger"):
        with pytest.raises(uc.UncombineError, match=f"no option '{name}': did you mean 'max_files_per_batch'"):
            opened(path, spark=spark, streaming=True, **{name: 1})
    with pytest.raises(uc.UncombineError, match="did you mean 'ts'"):
        uc.flow(path, spark=spark, time="tsx")
    with pytest.raises(uc.UncombineError, match="needs watermark="):
        uc.flow(path, spark=spark, streaming=True)
    late = uc.Files(tmp_path / "later", format="csv", schema=pa.schema([("ts", pa.timestamp("us", "UTC"))]))
    minutes = uc.flow(late, spark=spark, streaming=True, watermark="1 day").window("1 day").combine(n=uc.Count())
    with pytest.raises(uc.UncombineError, match=r"there is no folder .*later: make it, or give"):
        minutes.df


@pytest.mark.parametrize(
    "form", share([("PARQUET_1_0", 128 << 20), ("PARQUET_2_0", 40_000), ("PARQUET_2_0", 128 << 20)]), ids=str
)
def test_files_of_the_java_writer(spark: SparkSession, tmp_path: Path, form: tuple[str, int]) -> None:
    """It goes on without a dictionary that becomes too large, in version 2 with differences of texts."""
    version, block = form
    few = F.concat(F.lit("u"), (F.col("id") % 2).cast("string"))
    df = spark.range(0, 30_000, 1, 1).select(
        F.timestamp_micros("id").alias("ts"),
        F.when(F.col("id") < 22_000, few).otherwise(F.format_string("user-%06d", "id")).alias("k"),
        (F.col("id") % 100).cast("decimal(30, 2)").alias("m"),
        F.when(F.col("id") % 7 > 0, F.col("id") % 3 == 0).alias("flag"),
        F.array(few, F.format_string("user-%06d", "id")).alias("tags"),
    )
    options = {"parquet.writer.version": version, "parquet.dictionary.page.size": 100, "parquet.block.size": block}
    df.write.options(**options, **{"parquet.page.row.count.limit": 1000}).parquet(str(tmp_path / "in"))
    [file] = (tmp_path / "in").glob("*.parquet")
    metadata = pq.read_metadata(file)
    found = [set(metadata.row_group(i).column(1).encodings) for i in range(metadata.num_row_groups)]
    assert (len(found) > 1) == (block < 1 << 20)
    if version == "PARQUET_2_0" and len(found) == 1:
        assert found[0] >= {"RLE_DICTIONARY", "DELTA_BYTE_ARRAY"}
    flow = uc.flow(tmp_path / "in", spark=spark).window(uc.Global())
    by_key = flow.combine(by="k", n=uc.Count(), m=uc.Sum("m"), flags=uc.CountIf("flag"), tags=uc.Count("tags"))
    want = df.groupBy("k").agg(F.count("*"), F.sum("m"), F.count_if("flag"), F.count("tags"))
    assert sorted(by_key.df.select("k", "n", "m", "flags", "tags").collect()) == sorted(want.collect())
    tags = uc.flow(tmp_path / "in", spark=spark).flat_map(tag_rows).window(uc.Global()).combine(by="tag", n=uc.Count())
    want = df.select(F.explode("tags").alias("tag")).groupBy("tag").count()
    assert sorted(tags.df.select("tag", "n").collect()) == sorted(want.collect())


def tag_rows(table: pa.Table) -> pa.Table:
    """A row for each tag, with the time and the place of its row."""
    places = pc.list_parent_indices(table["tags"]).cast(pa.int64())
    columns = [table["ts"].take(places), pc.list_flatten(table["tags"]), places]
    return pa.table(columns, names=["ts", "tag", "row"])


def _number(path: Path, v: int, **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"ts": pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC")), "v": [v]}
    pq.write_table(pa.table({**columns, **{name: [value] for name, value in more.items()}}), path)
    return path


def _ways(spark: SparkSession, paths: Any, state: Path, **options: Any) -> list[list[int]]:
    """The numbers in files: as panes of a batch, as rows, and as rows of a stream."""
    flow = opened(paths, spark=spark, **options)
    panes = flow.window(uc.Global()).combine(v=uc.CollectList("v")).df.collect()
    out = [sorted(panes[0].v), sorted(row.v for row in flow.df.collect())]
    if not isinstance(paths, list):
        live, streamed = opened(paths, spark=spark, streaming=True, watermark=LAG, wake=False, **options), list[int]()
        shown = live.window(uc.Fixed("1 day"), uc.Always(), mode="discarding").combine(v=uc.CollectList("v"))
        writer = shown.write_stream(checkpoint=state)
        writer = writer.foreachBatch(lambda df, _: streamed.extend(v for r in df.collect() for v in r.v))
        writer.trigger(availableNow=True).start().awaitTermination()
        out.append(sorted(streamed))
    return out


def test_an_existing_path_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    """In batch, in lists of paths, and for Spark's source of files in a stream."""
    names = ["a*b", "axb", "export [1]", "export 1", "q{x,y}", "qx"]
    for i, name in enumerate(names):
        _number(tmp_path / name / "f.parquet", i)
    for i, path in [(0, "a*b"), (2, "export [1]"), (4, "q{x,y}/*.parquet")]:
        assert _ways(spark, f"{tmp_path}/{path}", tmp_path / f"state {i}") == [[i]] * 3, path
    assert _ways(spark, [f"{tmp_path}/{name}" for name in names[::2]], tmp_path) == [[0, 2, 4]] * 2
    assert _ways(spark, f"{tmp_path}/a?b", tmp_path / "state") == [[0, 1]] * 3
    assert "a*b (an existing path, not a pattern)" in uc.flow(f"{tmp_path}/a*b", spark=spark).explain()
    assert "a?b (a pattern)" in uc.flow(f"{tmp_path}/a?b", spark=spark).explain()


def test_links_that_are_not_followed(spark: SparkSession, tmp_path: Path) -> None:
    """They are errors, or left out: also in a flow of rows, and in a stream."""
    _number(tmp_path / "in" / "a.parquet", 1)
    (tmp_path / "in" / "b.parquet").symlink_to(_number(tmp_path / "out" / "b.parquet", 10))
    with pytest.raises(Exception, match=r"b\.parquet is a link out of"):
        _ways(spark, tmp_path / "in", tmp_path / "state 1")
    assert _ways(spark, tmp_path / "in", tmp_path / "state 2", on_bad_file="skip") == [[1]] * 3
    assert _ways(spark, [tmp_path / "in", tmp_path / "in" / "b.parquet"], tmp_path) == [[1, 10]] * 2
    (tmp_path / "in" / "b.parquet").unlink()
    (tmp_path / "in" / "c.parquet").symlink_to(tmp_path / "gone.parquet")
    given = {"schema": pa.schema({"ts": pa.timestamp("us", "UTC"), "v": pa.int64()}), "format": "parquet"}
    with pytest.raises(Exception, match=r"c\.parquet is a link to '.*gone\.parquet', which does not exist"):
        _ways(spark, tmp_path / "in", tmp_path / "state 3", **given)
    with pytest.raises(uc.UncombineError, match=r"c\.parquet is a link to"):
        _ = opened(tmp_path / "in", spark=spark, streaming=True, watermark=LAG, **given).df
    with pytest.warns(UserWarning, match=r"skipped: .*c\.parquet is a link to"):
        assert _ways(spark, tmp_path / "in", tmp_path / "state 4", on_bad_file="skip", **given) == [[1]] * 3


def test_a_column_of_folders_that_differs_from_that_of_files(spark: SparkSession, tmp_path: Path) -> None:
    for i, (folder, k) in enumerate([("k=y", "y"), ("k=z", "q")]):
        _number(tmp_path / "in" / folder / "a.parquet", i, k=k)
    by_spark = {(row.k, row.v) for row in spark.read.parquet(str(tmp_path / "in")).collect()}
    with pytest.warns(UserWarning, match="column 'k' is in the names of folders and in the files") as told:
        found = uc.flow(tmp_path / "in", spark=spark).window(uc.Global()).combine(by="k", v=uc.Max("v")).df.collect()
    assert {(row.k, row.v) for row in found} == by_spark == {("y", 0), ("z", 1)}
    assert sum("names of folders" in str(one.message) for one in told) == 1
    with pytest.warns(UserWarning, match="'q' in the file and 'z' in the name of its folder"):
        _ = uc.flow(tmp_path / "in", spark=spark, streaming=True, watermark=LAG).df

"""A DataFrame of files is read by the tasks, with the rows that Spark reads; what may differ is left to Spark."""

from __future__ import annotations

import datetime as dt
import random
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened import opened
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import changed

import uncombine as uc
from uncombine.flows.flow import Flow
from uncombine.sparkops.per_key import combine_per_key, per_key

UTC = pa.timestamp("us", "UTC")
START = 1_700_000_000_000_000
MIDDLE = dt.datetime(2023, 11, 14, 22, 16, tzinfo=dt.UTC)
READ = "a DataFrame of Parquet files, read by the tasks that combine their rows"


def rows(seed: int, count: int = 120) -> pa.Table:
    r = random.Random(seed)

    def some(values: list[Any]) -> list[Any]:
        return [r.choice([*values, None]) for _ in range(count)]

    return pa.table(
        {
            "ts": pa.array([START + r.randrange(300) * 10**6 for _ in range(count)], UTC),
            "k": pa.array(some(["a", "b", "ä", ""])),
            "n": pa.array(some([-3, 0, 1, 2**31 - 1]), pa.int32()),
            "v": pa.array(some([-(2**40), 0, 5, 7]), pa.int64()),
            "x": pa.array(some([0.5, -2.25, 1e9]), pa.float64()),
            "day": pa.array(some([dt.date(1969, 12, 31), dt.date(2024, 2, 29)]), pa.date32()),
            "yes": pa.array(some([True, False])),
        }
    )


def write(folder: Path) -> str:
    """Files as several writers make them: with dictionaries, times in nanoseconds of old, no rows, fewer columns."""
    folder.mkdir(parents=True)
    first, second, third = (rows(seed) for seed in (1, 2, 3))
    pq.write_table(first, folder / "1.parquet", row_group_size=50)
    coded = second.set_column(1, "k", second["k"].dictionary_encode()).drop_columns(["yes", "x"])
    pq.write_table(coded, folder / "2.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(third.slice(0, 0), folder / "3.parquet")
    pq.write_table(third, folder / "4 %20.parquet", coerce_timestamps="ms")
    (folder / "5.parquet").write_bytes(b"")
    return str(folder)


CHANGES: tuple[Callable[[DataFrame], DataFrame], ...] = (
    lambda df: df,
    lambda df: df.select("K", F.col("v").alias("n"), "ts", F.col("n").alias("v"), F.col("n").alias("same")).where(
        "v < 2"
    ),
    lambda df: df.where((F.lit(MIDDLE) > F.col("ts")) & (F.col("n") >= 0)).where("5 < v AND k = 'a' AND x IS NOT NULL"),
    lambda df: df.where("ts >= timestamp'2023-11-14 22:15:00Z'").alias("t").select("t.*"),
)


def flows(df: DataFrame, **options: Any) -> list[Flow]:
    """A flow as Spark reads the rows, and as the tasks read the files."""
    return [opened(df, files=files, native="never", **options) for files in ("never", "auto")]


def test_the_rows_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(write(tmp_path / "in"))
    ways: list[list[DataFrame]] = [[], []]
    for case, change in enumerate(CHANGES):
        altered = change(df)
        key = "K" if "K" in altered.columns else "k"
        others = [name for name in altered.columns if name not in ("ts", "k", "K")]
        combiners = {"all": uc.Count(), **{name: uc.CollectList(name) for name in others}}
        for way, flow in zip(ways, flows(altered, shards=1), strict=True):
            made = flow.window(uc.Fixed("1 minute")).combine(by=key, **combiners)
            assert (READ in made.explain()) == (way is ways[1]), case
            way.append(
                made.df.select("window", F.col(key).alias("k"), *sorted_lists(combiners), F.lit(case).alias("case"))
            )
    with changed(spark):
        spark_s, ours = (reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), way).collect() for way in ways)
    assert sorted(map(repr, ours)) == sorted(map(repr, spark_s))
    assert {row["case"] for row in ours} == set(range(len(CHANGES)))


def sorted_lists(combiners: dict[str, uc.Combiner]) -> list[Any]:
    return [F.sort_array(name).alias(name) if name != "all" else F.col(name) for name in combiners]


def test_combining_by_key_reads_the_files(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(write(tmp_path / "in")).select("v", F.col("k").alias("key"))
    assert READ in per_key(df, ["key"], None, None, {"n": uc.Count()}).explain()
    for by, combiners in (("key", {"n": uc.Count(), "mid": uc.Median("v")}), ((), {"n": uc.Count()})):
        ways = (combine_per_key(df, by, files=files, native="never", **combiners) for files in ("auto", "never"))
        ours, spark_s = (sorted(map(repr, way.collect())) for way in ways)
        assert ours == spark_s


def test_folders_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    for i, folder in enumerate(("day=2024-01-01/part=x%20y", "day=2024-01-02/part=__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(rows(i).drop_columns(["day"]), tmp_path / folder / "0.parquet")
    df = spark.read.parquet(str(tmp_path))
    alone = spark.read.parquet(str(tmp_path / "day=2024-01-01" / "part=x%20y"))
    assert "part" not in alone.columns
    for frame, by in ((df, ["day", "part"]), (df.where("day = date'2024-01-02'"), ["day"]), (alone, ["k"])):
        found = []
        for flow in flows(frame):
            made = flow.window(uc.Global()).combine(by=by, n=uc.Count(), v=uc.Sum("v"))
            found.append(sorted(map(repr, made.df.select(*by, "n", "v").collect())))
        assert found[0] == found[1]
        assert READ in flow.window(uc.Global()).combine(n=uc.Count()).explain() or by[-1] == "day"


@pytest.mark.parametrize(
    ("folder", "kind", "reason"),
    [("part=%C3%A4", "string", "escaped letters beyond ASCII"), ("part=10000-01-01", "date", "does not have the type")],
)
def test_folders_that_spark_reads_otherwise(
    folder: str, kind: str, reason: str, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / folder).mkdir()
    pq.write_table(rows(1), tmp_path / folder / "0.parquet")
    df = spark.read.schema(f"ts timestamp, part {kind}").parquet(str(tmp_path))
    assert reason in uc.flow(df).window(uc.Global()).combine(n=uc.Count()).explain()


def test_what_may_differ_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "in")
    df = spark.read.parquet(path)
    kinds = {
        "naive": rows(1).set_column(0, "ts", rows(1)["ts"].cast(pa.timestamp("us"))),
        "wide": rows(1).set_column(2, "n", rows(1)["n"].cast(pa.int64())),
        "case": rows(1).rename_columns([name.upper() if name == "k" else name for name in rows(1).column_names]),
        "old": rows(1).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}),
    }
    for name, table in kinds.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")

    def of(name: str) -> DataFrame:
        return spark.read.schema(df.schema).parquet(str(tmp_path / name))

    cached = df.select("ts", "k").cache()
    left = {
        "the option mergeSchema": spark.read.schema(df.schema).option("mergeSchema", "true").parquet(path),
        "the option pathGlobFilter": spark.read.option("pathGlobFilter", "1*").parquet(path),
        "the option recursiveFileLookup": spark.read.option("recursiveFileLookup", "true").parquet(path),
        "the option modifiedAfter": spark.read.option("modifiedAfter", "2000-01-01T00:00:00").parquet(path),
        "it computes columns": df.withColumn("v", F.col("v") + 1),
        "more than a column and a value": df.where("v > n"),
        "more than a column and a value ": df.where("v > 1 OR v < 0"),
        "compares values of type double": df.where("x > 1.5D"),
        "no file": df.select("*", "_metadata").select("ts", F.col("_metadata").alias("m")),
        "'n' as int64": of("wide"),
        "as timestamp[us]": of("naive"),
        "differs from 'k' by case alone": of("case"),
        "old calendar": of("old"),
        "": cached.where("k = 'a'"),
        " ": df.limit(5),
        "  ": df.join(df.select("k"), "k"),
        "   ": df.distinct(),
    }
    for reason, frame in left.items():
        said = uc.flow(frame).window(uc.Fixed("1 minute")).combine(n=uc.Count()).explain()
        assert READ not in said, reason
        assert ("whose files Spark reads: " in said) == bool(reason.strip()), (reason, said)
        assert reason.strip().lower() in said.lower()
    cached.unpersist()
    for setting, value in (("spark.sql.files.ignoreCorruptFiles", "true"), ("spark.sql.parquet.mergeSchema", "true")):
        spark.conf.set(setting, value)
        try:
            counted = uc.flow(df).window(uc.Fixed("1 minute")).combine(n=uc.Count())
            assert f"{setting} is not false" in counted.explain()
        finally:
            spark.conf.unset(setting)
    assert READ in uc.flow(df).window(uc.Fixed("1 minute")).combine(n=uc.Count()).explain()
    assert (
        READ
        not in uc.flow(df, tuning=uc.Tuning(files="never")).window(uc.Fixed("1 minute")).combine(n=uc.Count()).explain()
    )


def test_a_file_that_spark_reads_otherwise_is_an_error_if_it_was_not_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncombine.sparkops.scans.faster.CHECKED", 1)
    pq.write_table(rows(1), tmp_path / "1.parquet")
    pq.write_table(rows(2).set_column(2, "n", rows(2)["n"].cast(pa.int64())), tmp_path / "2.parquet")
    df = spark.read.schema("ts timestamp, n int").parquet(str(tmp_path))
    flow = uc.flow(df).window(uc.Fixed("1 minute")).combine(n=uc.Sum("n"))
    with pytest.raises(Exception, match=r"2.parquet has 'n' as int64, .* give files='never'"):
        flow.df.collect()


def test_a_stream_of_files(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "in")
    stream = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 2)
    df = stream.parquet(path).where("v > 0").select("ts", F.col("k").alias("key"), "v")
    results = []
    for i, flow in enumerate(flows(df, watermark="1 second")):
        made = flow.window(uc.Fixed("1 minute")).combine(by="key", n=uc.Count(), total=uc.Sum("v"))
        assert (READ in made.explain()) == (i == 1)
        writer = made.df.writeStream.format("memory").queryName(f"scan_{i}").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / f"state {i}")).start()
        query.awaitTermination()
        listed = (tmp_path / f"state {i}" / "sources" / "0").iterdir()
        assert sorted(file.name for file in listed if file.name.isdigit()) == ["0", "1", "2"]
        results.append(sorted(map(repr, spark.table(f"scan_{i}").select("key", "window", "n", "total").collect())))
    assert results[0] == results[1]
    assert len(results[0]) > 5
    (tmp_path / "none").mkdir()
    empty = uc.flow(stream.parquet(str(tmp_path / "none")), watermark="1 second")
    assert "whose files Spark reads: there are none yet" in empty.explain()


def test_a_stream_whose_folders_come_later(spark: SparkSession, tmp_path: Path) -> None:
    """A folder that is a column stops the query, and then Spark reads it; those of other folders are left out."""
    folder, found = tmp_path / "in", list[Any]()

    def write_in(path: Path, number: int) -> None:
        path.mkdir(parents=True, exist_ok=True)
        ids = [10 * number + i for i in range(3)]
        pq.write_table(rows(number, 3).select(["ts"]).append_column("id", pa.array(ids)), path / f"{number}.parquet")

    def started(columns: str, keys: tuple[str, ...]) -> Any:
        def kept(df: DataFrame, batch: int) -> None:
            found.extend(tuple(row) for row in df.select(*keys, "n").collect())

        df = spark.readStream.schema(f"ts timestamp, id bigint{columns}").parquet(str(folder))
        early = {"trigger": uc.Repeatedly(uc.AfterCount(1)), "mode": "discarding"}
        flow = (
            uc.flow(df, watermark="1 second", tuning=uc.Tuning(wake=False))
            .window(uc.Global(), **early)
            .combine(keys, n=uc.Count())
        )
        assert (READ in flow.explain()) == (not any(folder.glob("*=*")))
        return flow.write_stream(checkpoint=tmp_path / keys[-1]).foreachBatch(kept).start()

    write_in(folder, 1)
    queries = started("", ("id",)), started(", day string", ("id", "day"))
    for query in queries:
        query.processAllAvailable()
    write_in(folder / "more", 2)
    write_in(folder / "hour=3", 3)
    for query in queries:
        query.processAllAvailable()
    write_in(folder / "day=x", 4)
    queries[0].processAllAvailable()
    queries[0].stop()
    with pytest.raises(Exception, match=r"day=x/4.parquet is in a folder that is column 'day', .*: start the query ag"):
        queries[1].processAllAvailable()
    for name in ("more", "hour=3"):  # Spark refuses folders of several columns side by side
        shutil.rmtree(folder / name)
    query = started(", day string", ("id", "day"))
    query.processAllAvailable()
    query.stop()
    numbers = {number: [10 * number + i for i in range(3)] for number in (1, 3, 4)}
    plain = [(row, 1) for some in numbers.values() for row in some]
    keyed = [(row, "x" if number == 4 else None, 1) for number, some in numbers.items() for row in some]
    assert sorted(map(repr, found)) == sorted(map(repr, [*plain, *keyed]))

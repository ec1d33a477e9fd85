"""Rows that Spark itself selects and filters are those of the same steps over Arrow tables."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened import opened
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from seeds import seeds

import uncombine as uc
from uncombine.combiners.expressions.expr import Expr
from uncombine.panes.transforms import applied
from uncombine.sparkops.source import in_spark

pytestmark = pytest.mark.spark

STAMP = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("ts", STAMP),
        ("at", STAMP),
        ("n", pa.int64()),
        ("small", pa.int16()),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("x", pa.float64()),
        ("money", pa.decimal128(10, 2)),
        ("odd name.`é`", pa.int64()),
    ]
)
NUMBERS = [None, -(2**63), 2**63 - 1, -7, -1, 0, 1, 2, 3, 123, 246]
TEXTS = [None, "", "a", "A", "a ", "é", "ß", "z", "\U0001f600", "\uffff"]
FLOATS = [None, float("nan"), float("inf"), -0.0, 0.0, 1.5]


def table(rng: random.Random, rows: int) -> pa.Table:
    """Rows with nulls and values at the edges of their types."""
    times = [None, datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(2020, 2, 29, tzinfo=UTC)]
    columns: dict[str, list[Any]] = {
        "ts": times,
        "at": times,
        "n": NUMBERS,
        "small": [None, -32768, -1, 0, 1, 32767],
        "text": TEXTS,
        "flag": [None, True, False],
        "day": [None, date(1, 1, 1), date(1970, 1, 1), date(2020, 2, 29)],
        "x": FLOATS,
        "money": [None, Decimal("0.00"), Decimal("-1.50")],
        "odd name.`é`": NUMBERS,
    }
    return pa.table([[rng.choice(values) for _ in range(rows)] for values in columns.values()], schema=SCHEMA)


def value(rng: random.Random) -> Expr:
    """A value that can be compared: a column, or the rest of a division."""
    name = rng.choice(["n", "small", "odd name.`é`", "text", "flag", "day", "ts", "at", "x", "money"])
    if name in ("n", "small") and rng.random() < 0.4:
        return uc.col(name) % rng.choice([1, 2, 123, 2**62, -3, 0])
    return uc.col(name)


def condition(rng: random.Random, depth: int = 2) -> Expr:
    """A random condition, of which some have an equivalent in Spark."""
    kind = rng.choice(["both", "either", "not", "null", "isin", "compared", "compared", "flag"])
    if depth and kind in ("both", "either"):
        one, other = condition(rng, depth - 1), condition(rng, depth - 1)
        return one & other if kind == "both" else one | other
    if depth and kind == "not":
        return ~condition(rng, depth - 1)
    given = value(rng)
    if kind == "null":
        return given.is_null()
    if kind == "flag":
        return uc.col("flag")
    if kind == "isin":
        return given.isin(rng.choice([[], [1, 2], ["a", "é"], [True], [0, None], [1.5], [date(1970, 1, 1)]]))
    other = value(rng) if rng.random() < 0.5 else rng.choice([0, 1, 2**62, "a", "", True, 1.5, date(1970, 1, 1)])
    op = rng.choice(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
    compared: Expr = getattr(given, op)(other)
    return compared


def steps(rng: random.Random, flow: Any) -> Any:
    """The flow after some random steps, of those that fit the types."""
    for _ in range(rng.randint(1, 3)):
        names = flow.schema.names
        kind = rng.choice(["where", "select", "with", "with", "map"] if rng.random() < 0.5 else ["where"])
        try:
            if kind == "where":
                flow = flow.where(condition(rng))
            elif kind == "select":
                kept = rng.sample([name for name in names if name != "ts"], rng.randint(1, len(names) - 1))
                flow = flow.select(*kept, "ts")
            elif kind == "with":
                made = [condition(rng, 0), uc.col("n") % 5, uc.col("n") % 7, uc.col("small"), uc.col("text")]
                made += [uc.col("n") + 0] if rng.random() < 0.2 else []
                chosen = rng.sample(["made", "n", "at", "small"], rng.randint(1, 4))
                flow = flow.with_columns(**{name: rng.choice(made) for name in chosen})
            else:
                flow = flow.map(lambda rows: rows)
        except (uc.errors.TypeMismatch, uc.errors.UnknownColumn, uc.errors.InvalidArgument):
            continue
    return flow


def in_any_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("seed", seeds(25))
def test_spark_and_arrow_keep_the_same_rows(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = table(rng, 60)
    if seed % 2:
        for part in range(3):
            pq.write_table(rows.slice(20 * part, 20), tmp_path / f"{part}.parquet")
        start = uc.flow(tmp_path, spark=spark, time="ts")
    else:
        start = uc.flow(spark.createDataFrame(rows), time="ts", tuning=uc.Tuning(files="never"))
    flow = steps(rng, start)
    wanted = applied(flow.transforms, rows).select(flow.schema.names)
    assert in_any_order(flow.df.toArrow().cast(wanted.schema)) == in_any_order(wanted)


def test_null_is_not_one_of_several_values(spark: SparkSession) -> None:
    """`isin` is false for null, so its opposite keeps nulls; in SQL it is null."""
    rows = table(random.Random(7), 60)
    flow = uc.flow(spark.createDataFrame(rows), time="ts", tuning=uc.Tuning(files="never")).where(
        ~uc.col("n").isin([0, 1])
    )
    assert "Spark itself" in flow.explain()
    assert None in flow.df.toArrow()["n"].to_pylist()
    assert in_any_order(flow.df.toArrow().cast(SCHEMA)) == in_any_order(applied(flow.transforms, rows))


def test_new_columns_are_computed_from_those_before_the_step(spark: SparkSession) -> None:
    df = spark.createDataFrame(pa.table({"ts": pa.array([0], STAMP), "n": [7], "m": [8]}))
    flow = uc.flow(df, time="ts", tuning=uc.Tuning(files="never")).with_columns(n=uc.col("m") % 5, m=uc.col("n") % 5)
    assert "Spark itself" in flow.explain()
    assert flow.df.select("n", "m").collect() == [(3, 2)]


def test_a_column_of_nulls_alone_is_a_condition(spark: SparkSession) -> None:
    df = spark.createDataFrame(pa.table({"ts": pa.array([0], STAMP)})).withColumn("none", F.lit(None))
    assert uc.flow(df, time="ts", tuning=uc.Tuning(files="never")).where(uc.col("none")).df.count() == 0


def test_most_of_the_flows_are_spark_s_own(spark: SparkSession) -> None:
    """The test before this one compares Spark with Arrow, and not Arrow with Arrow."""
    rows = spark.createDataFrame(table(random.Random(0), 3))
    flows = [
        steps(random.Random(seed), uc.flow(rows, time="ts", tuning=uc.Tuning(files="never"))) for seed in range(100)
    ]
    native = [flow for flow in flows if flow.transforms and "Spark itself" in flow.explain()]
    assert len(native) >= 20
    assert len([flow for flow in flows if flow.transforms]) - len(native) >= 20


@pytest.mark.parametrize("seed", seeds(8))
def test_windows_of_rows_that_spark_filters(seed: int, spark: SparkSession) -> None:
    """A flow over a DataFrame that begins with conditions has the panes of the same flow in Python."""
    rng = random.Random(seed)
    rows = table(rng, 80)
    rows = rows.set_column(0, "ts", pa.array([rng.randrange(10**9) for _ in range(80)]).cast(STAMP))
    df = spark.createDataFrame(rows)
    results = []
    for native in ("auto", "never"):
        rng.seed(seed)
        flow = steps(rng, uc.flow(df, time="ts", tuning=uc.Tuning(files="never", native=native)))
        flow = flow.window(uc.Fixed("1 minute")).combine(n=uc.Count(), first=uc.Min("ts"))
        results.append(flow.df.toArrow())
    assert in_any_order(results[0]) == in_any_order(results[1])


def test_a_condition_before_a_window_leaves_the_aggregation_to_spark(spark: SparkSession) -> None:
    df = spark.createDataFrame(table(random.Random(1), 5))
    flow = uc.flow(df, time="ts", tuning=uc.Tuning(files="never")).where(uc.col("n") > 0)
    assert "Spark's own aggregation:" in flow.window(uc.Fixed("1 day")).combine(n=uc.Count()).explain()
    mapped = flow.map(lambda rows: rows).window(uc.Fixed("1 day")).combine(n=uc.Count())
    assert [type(step).__name__ for step in in_spark(mapped).stages[0].transforms] == ["Map"]


@pytest.mark.parametrize("kind", ["char", "collation"])
def test_texts_that_spark_does_not_compare_by_bytes(kind: str, spark: SparkSession) -> None:
    """Spark pads texts of char(n) in comparisons, and some collations take no notice of case."""
    rows = spark.createDataFrame(pa.table({"text": ["a", "A", "b"], "ts": pa.array([0, 1, 2], STAMP)}))
    text = F.col("text").alias("text", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    df = rows.select(text if kind == "char" else F.collate("text", "UTF8_LCASE").alias("text"), "ts")
    kept = uc.flow(df, time="ts", tuning=uc.Tuning(files="never")).where(uc.col("text") == "a").df.toArrow()
    assert kept["text"].to_pylist() == ["a"]


def test_files_that_spark_reads_in_another_way_are_read_by_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    plain = pa.table({"ts": pa.array([0, 1], STAMP), "n": pa.array([1, 2], pa.int64())})
    other = plain.set_column(1, "n", pa.array([1, 2], pa.int32()))
    folders = {
        "plain": [plain],
        "without nulls": [plain.cast(pa.schema([field.with_nullable(False) for field in plain.schema]))],
        "another type": [plain, other],
        "a column missing": [plain, plain.drop_columns("n")],
        "compressed": [plain],
        "old": [plain.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})],
    }
    found = {}
    for name, tables in folders.items():
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        for number, rows in enumerate(tables):
            compression = "brotli" if name == "compressed" else "snappy"
            pq.write_table(rows, folder / f"{number}.parquet", compression=compression)
        options: dict[str, Any] = {"schema": tables[0].schema, "on_missing_column": "error"}
        flow = opened(folder, spark=spark, time="ts", **options)
        found[name] = "read by Spark itself" in flow.explain()
        if name in ("plain", "without nulls", "compressed"):
            assert in_any_order(flow.df.toArrow()) == in_any_order(plain)
    assert [name for name, by_spark in found.items() if by_spark] == ["plain", "without nulls"]


def test_a_cached_flow_does_not_stand_in_for_one_of_files_that_have_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"ts": pa.array([0, 1], STAMP)})
    pq.write_table(rows.slice(1), tmp_path / "a.parquet")
    cached = uc.flow(tmp_path, spark=spark, time="ts").df.cache()
    assert cached.count() == 1
    pq.write_table(rows, tmp_path / "a.parquet")
    flow = uc.flow(tmp_path, spark=spark, time="ts")
    assert "read by Spark itself" in flow.explain()
    assert flow.df.count() == 2
    cached.unpersist()


KINDS = {
    "int8": pa.array([-1, None], pa.int8()),
    "float16": pa.array(np.array([1.5, 2.5], np.float16)),
    "null": pa.nulls(2),
    "a list of null": pa.array([[None], None], pa.list_(pa.null())),
    "large text": pa.array(["a", None], pa.large_string()),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
    "binary": pa.array([b"a", None]),
    "fixed binary": pa.array([b"ab", None], pa.binary(2)),
    "decimal": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    "wide decimal": pa.array([Decimal("1.50"), None], pa.decimal256(30, 2)),
    "uuid": pa.array([b"sixteen letters.", None], pa.uuid()),
    "milliseconds": pa.array([1, None], pa.duration("ms")),
    "microseconds": pa.array([1, None], pa.duration("us")),
    "a list of durations": pa.array([[1], None], pa.list_(pa.duration("ms"))),
    "struct": pa.array([{"a": 1}, None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "seconds": pa.array([1, None], pa.timestamp("s", "UTC")),
    "zone": pa.array([1, None], pa.timestamp("ms", "Europe/Berlin")),
    "naive": pa.array([1, None], pa.timestamp("us")),
    "date": pa.array([date(2020, 1, 1), None], pa.date64()),
}


def test_columns_of_files_are_the_same_from_both_readers(spark: SparkSession, tmp_path: Path) -> None:
    for name, values in KINDS.items():
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        pq.write_table(pa.table({"ts": pa.array([0, 1], STAMP), "x": values}), folder / "a.parquet")
        flow = uc.flow(folder, spark=spark, time="ts")
        found, wanted = flow.df.toArrow(), flow.map(lambda rows: rows).df.toArrow()
        assert found.schema.equals(wanted.schema), name
        assert in_any_order(found) == in_any_order(wanted), name


@pytest.mark.parametrize("kind", [pa.uint8(), pa.time32("ms"), pa.decimal256(50, 2)])
def test_a_column_that_spark_has_no_type_for_can_be_left_out(
    kind: pa.DataType, spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"ts": pa.array([0, 1], STAMP), "x": pa.nulls(2, kind)}), tmp_path / "a.parquet")
    assert uc.flow(tmp_path, spark=spark, time="ts").select("ts").df.count() == 2


def test_folders_that_are_columns_are_read_by_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array([0, 1], STAMP), "n": [1, 2]})
    (tmp_path / "day=3").mkdir()
    pq.write_table(rows, tmp_path / "day=3" / "a.parquet")
    flow = uc.flow(tmp_path, spark=spark, time="ts").where(uc.col("n") > 1)
    assert "read by the tasks" in flow.explain()
    assert flow.df.toArrow().to_pylist()[0]["n"] == 2


@pytest.mark.daily
def test_a_join_of_files_is_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    sides = []
    for side in ("left", "right"):
        rows = pa.table(
            {
                "k": [rng.choice([None, "a", "b"]) for _ in range(40)],
                "ts": pa.array([rng.randrange(20) * 1_000_000 for _ in range(40)], STAMP),
                side: list(range(40)),
            }
        )
        (tmp_path / side).mkdir()
        pq.write_table(rows, tmp_path / side / "a.parquet")
        sides.append(rows.to_pandas())
    flows = [uc.flow(tmp_path / side, spark=spark, time="ts") for side in ("left", "right")]
    flow = flows[0].where(uc.col("left") % 3 == 0).join(flows[1], on="k", within=("-5 seconds", "5 seconds"))
    assert flow.explain().count("read by Spark itself") == 2
    left, right = sides
    both = left[left["left"] % 3 == 0].dropna(subset="k").merge(right, on="k")
    apart = (both["ts_y"] - both["ts_x"]).dt.total_seconds()
    wanted = both[(apart >= -5) & (apart <= 5)]
    last = wanted[["ts_x", "ts_y"]].max(axis=1).astype("datetime64[us, UTC]").astype("int64")
    expected = sorted(zip(wanted["left"], wanted["right"], last, strict=True))
    got = flow.df.toArrow()
    times = got["event_time"].cast(pa.int64()).to_pylist()
    assert sorted(zip(got["left"].to_pylist(), got["right"].to_pylist(), times, strict=True)) == expected

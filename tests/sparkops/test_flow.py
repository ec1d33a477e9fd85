"""Flows over bounded rows: final panes against raw rows, several stages, ways to run, and what is refused."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded_flow, cut
from finals import COMBINERS, POLICIES, SCHEMA, WINDOWS, found, oracle, rows
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from zones import in_utc, zone

import uncombine as uc
from uncombine.errors import TypeMismatch
from uncombine.panes.transforms import _typed
from uncombine.sparkops.sql_types import spark_schema


def same(table: pa.Table) -> pa.Table:
    return table


@pytest.mark.weekly
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@pytest.mark.parametrize("changelog", [False, True], ids=["rows", "changelog"])
def test_final_panes_by_the_tasks(window: uc.Window, changelog: bool) -> None:
    """Cut into tasks and batches in any way, some of them empty."""
    for seed, (count, by) in enumerate([(0, ("k",)), (1, ()), (60, ("k", "j")), (200, ("j",))]):
        table = rows(count, seed, changelog)
        policy = "end_of_window" if changelog else POLICIES[seed]
        flow = bounded_flow(cut(table, 4, seed), "ts", seed=seed, diff="d" if changelog else None, shards=3)
        panes = flow.window(window, timestamp=policy).combine(by=by, **COMBINERS).map(same).df.toArrow()
        assert set(panes["diff"].to_pylist()) <= {1}
        assert found(panes, by) == oracle(table, window, by, policy, flow=True)


@pytest.mark.daily
def test_a_table_with_chunks_that_have_no_rows(spark: SparkSession) -> None:
    """Spark's own createDataFrame ends at such a chunk, without a word."""
    parts = [[], [0, 1], [], [2], [], [3, 4], []]
    times = pa.chunked_array([pa.array(part, pa.timestamp("us", "UTC")) for part in parts])
    counts = uc.flow(pa.table({"ts": times}), spark=spark).window("global").combine(n=uc.Count())
    assert [row["n"] for row in counts.df.collect()] == [5]


def test_sessions_whose_rows_bring_the_gap_are_those_of_spark(spark: SparkSession) -> None:
    """As an interval column of Spark: rows without a gap, or with none above zero, are in no session in both.

    No two windows only touch here: Spark merges those too.
    """
    rows = (
        spark.range(400)
        .select(
            F.timestamp_seconds(F.expr("1453291200 + (id * 7919) % 3000")).alias("ts"),
            F.expr("id % 5").alias("k"),
            F.expr("CASE WHEN id % 17 = 0 THEN NULL ELSE (id * 31) % 60 - 3.5 END").alias("seconds"),
        )
        .withColumn("gap", F.expr("make_dt_interval(0, 0, 0, seconds)"))
    )
    text = F.concat("seconds", F.lit(" seconds"))  # Spark's own sessions take a gap as text alone
    own = rows.groupBy("k", F.session_window("ts", text).alias("window")).agg(F.count("*").alias("n"))
    want = {tuple(row) for row in own.select("k", "window.start", "window.end", "n").collect()}
    window = uc.Sessions(uc.col("gap"))
    frame = uc.flow(rows, time="ts").window(window).combine(by="k", n=uc.Count()).df
    found = frame.select("k", "window.start", "window.end", "n").collect()
    assert (len(found), {tuple(row) for row in found}) == (len(want), want)


SOME = (
    uc.Global(),
    uc.Sliding("50 seconds", "20 seconds", "7 seconds"),
    uc.Sessions("30 seconds"),
    uc.Calendar("day", "America/New_York"),
    uc.Inherit(),
)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_final_panes_on_spark(spark: SparkSession, kind: str) -> None:
    """In a session of another zone than UTC, some partitions empty; a local time is taken as UTC."""
    table = rows(150, 5)
    with zone(spark, "America/New_York"):
        given = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us"))) if kind == "timestamp_ntz" else table
        df = spark.createDataFrame(given, spark_schema(given.schema)).repartition(5, "j")
        assert dict(df.dtypes)["ts"] == kind
        frames = [uc.flow(df).window(window).combine(by=("k", "j"), **COMBINERS).df for window in SOME]
        panes = in_utc(union(frames).toArrow())
    for i, window in enumerate(SOME):
        got = panes.filter(pc.equal(panes["case"], i))
        assert found(got, ("k", "j")) == oracle(table, window, ("k", "j"))


def union(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, [df.withColumn("case", F.lit(i)) for i, df in enumerate(frames)])


def test_no_rows_and_one_row(spark: SparkSession) -> None:
    one = spark.createDataFrame(rows(1, 3).slice(0, 1), spark_schema(SCHEMA))
    none, timeless = one.where("false"), one.withColumn("ts", F.lit(None).cast("timestamp"))
    windows = (uc.Fixed("1 minute"), uc.Sessions("1 minute"), uc.Global())
    frames = [uc.flow(df).window(w).combine(**COMBINERS).df for df in (one, none, timeless) for w in windows]
    assert sorted(row["case"] for row in union(frames).collect()) == [0, 1, 2, 5, 8]


def test_as_spark_has_it(spark: SparkSession) -> None:
    """Tumbling, sliding and session windows of Spark's, with combiners that are not lowered."""
    ids = spark.range(3000, numPartitions=3)
    df = ids.select(
        F.timestamp_micros((F.pmod(F.hash("id"), F.lit(4000)) - 2000).cast("bigint") * 1_234_567).alias("ts"),
        F.pmod(F.hash(F.col("id") + 1), F.lit(5)).alias("k"),
        F.pmod(F.hash(F.col("id") + 2), F.lit(100)).cast("bigint").alias("x"),
    )
    pairs: list[tuple[uc.Window, Any]] = [
        (uc.Fixed("1 hour", "7 minutes"), F.window("ts", "1 hour", startTime="7 minutes")),
        (uc.Sliding("10 minutes", "4 minutes"), F.window("ts", "10 minutes", "4 minutes")),
        (uc.Sessions("8 seconds"), F.session_window("ts", "8 seconds")),
    ]
    results = {"n": uc.Count(), "different": uc.CountDistinct("x"), "mid": uc.Median("x"), "total": uc.Sum("x")}
    for window, spans in pairs:
        aggregates = [F.count(F.lit(1)), F.countDistinct("x"), F.expr("percentile(x, 0.5)"), F.sum("x")]
        native = df.groupBy("k", spans.alias("w")).agg(*aggregates)
        ours = uc.flow(df).window(window).combine(by="k", **results).df.select("k", "window", *results)
        assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, native.collect())), window


def test_local_processing_times_are_utc(spark: SparkSession) -> None:
    """As they are in every other column, and whatever the session's zone: also hours that its clocks repeat or skip."""
    texts = ["2024-03-10T02:30:00.123456", "2024-11-03T01:30:00", "2024-11-03T06:30:00"]
    times = pa.array(texts).cast(pa.timestamp("us"))
    table = pa.table({"ts": times, "proc": times, "x": [1, 2, 3]})
    with zone(spark, "America/New_York"):
        df = spark.createDataFrame(table, "ts timestamp_ntz, proc timestamp_ntz, x bigint")
        flow = uc.flow(df, watermark="1 day", processing_time="proc", tuning=uc.Tuning(shards=1)).replay()
        made = flow.window(uc.Global(), uc.Repeatedly(uc.AfterCount(1)), "discarding").combine(x=uc.Sum("x"))
        panes = made.df.select("x", F.unix_micros("pane.processing_time").alias("at")).toArrow().sort_by("x")
    assert panes["at"].to_pylist() == times.cast(pa.int64()).to_pylist()


KNOWN = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "user": pa.string(),
        "score": pa.int64(),
        "share": pa.float64(),
        "proc": pa.timestamp("us", "UTC"),
    }
)
PLAYED: dict[str, Any] = {"watermark": "1 day", "processing_time": "proc", "replay": True}
FIXED = uc.Fixed("1 minute")
EACH = uc.Repeatedly(uc.AfterCount(1))


def rows_flow(time: Any = "ts", **settings: Any) -> Any:
    return bounded_flow([KNOWN.empty_table()], time, **settings)


def each(mode: str | None = None) -> Any:
    """Windows of which each can be shown more than once."""
    return rows_flow(**PLAYED).window(FIXED, EACH, mode)


def grouped(windowed: Any = None, **combiners: Any) -> Any:
    return (windowed or rows_flow().window(FIXED)).combine(**(combiners or {"n": uc.Count()}))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: rows_flow("tss"), "time= needs column 'tss', .* did you mean 'ts'"),
        (lambda: rows_flow(None), "time= takes the name of a column, but was given None"),
        (lambda: grouped(rows_flow("user").window(FIXED)), "'user' is string: cast it to timestamp"),
        (lambda: rows_flow(watermark="10 parsecs"), "unknown unit 'parsecs'"),
        (lambda: rows_flow(watermark=5), "takes a strategy such as"),
        (lambda: rows_flow(watermark=uc.PerSource("usr")), "did you mean 'user'"),
        (lambda: rows_flow(watermark=uc.Punctuated("score")), "'score' is int64: cast it"),
        (lambda: grouped(rows_flow(watermark=uc.IngressTime()).window(FIXED)), "needs a stream or a replay"),
        (lambda: rows_flow(**PLAYED | {"processing_time": "prok"}), "did you mean 'proc'"),
        (lambda: rows_flow(**PLAYED | {"processing_time": "user"}), "'user' is string: let uc.Files read it"),
        (lambda: rows_flow(diff="weight"), "diff= needs column 'weight'"),
        (lambda: rows_flow(diff=5), "diff= takes the name of a column, but was given 5"),
        (lambda: grouped(rows_flow(diff="share").window(FIXED)), "int64 column of weights, but 'share' is double"),
        (lambda: grouped(rows_flow().window(5)), "takes a window such as"),
        (lambda: rows_flow().window("sesions 1 minute"), "did you mean 'sessions'"),
        (lambda: rows_flow().window(FIXED, "erly every 1 minute"), "did you mean 'early'"),
        (lambda: rows_flow().window(FIXED, triger=uc.Always()), "did you mean 'trigger'"),
        (lambda: grouped(rows_flow().window(FIXED, mode="acumulating")), "did you mean 'accumulating'"),
        (lambda: grouped(by="usr", n=uc.Count()), "did you mean 'user'"),
        (lambda: grouped(by=5, n=uc.Count()), "by= takes the name of a column or several names, but was given 5"),
        (lambda: rows_flow().window(FIXED).combine(by="user"), "at least one combiner"),
        (lambda: grouped(n=5), "n= takes a combiner"),
        (lambda: grouped(n=uc.Sum("scor")), "did you mean 'score'"),
        (lambda: grouped(n=uc.Sum("user")), "takes numbers, but 'user' is string"),
        (lambda: grouped(pane=uc.Count()), "'pane' is a column of every result"),
        (lambda: grouped(by="user", User=uc.Count()), "'user' and 'User' differ only by case"),
        (lambda: grouped(rows_flow().window(uc.Inherit())), "needs column 'window'"),
        (lambda: grouped(rows_flow(**PLAYED).window(FIXED, uc.AfterCount(1))), r"use Repeatedly\(AfterCount\(1\)\)"),
        (lambda: grouped(rows_flow(**PLAYED).window(uc.Global())), "can never fire on Global"),
        (
            lambda: grouped(rows_flow(**PLAYED).window(FIXED, late="emit")),
            "late= is 'emit': it must be 'drop' or 'duplicate', and rows that were dropped are in left_out",
        ),
        (
            lambda: rows_flow(**PLAYED).distinct("user", within="1 s", late="drop"),
            r"distinct\(\) has no late=: rows that come too late for it are in left_out",
        ),
        (lambda: rows_flow(**PLAYED).in_order(late="drop"), r"in_order\(\) has no late=: .* are in left_out"),
        (lambda: rows_flow(**PLAYED).process(function=1, late="drop"), r"process\(\) has no late=: .* in left_out"),
        (
            lambda: grouped(grouped(each("accumulating")).window(FIXED)),
            "use mode='retracting'",
        ),
        (
            lambda: grouped(grouped(each("discarding"), n=uc.Max("score")).window(FIXED)),
            "n= cannot show its changes as differences in mode='discarding', so the next grouping would count",
        ),
        (
            lambda: grouped(grouped(each()).window(FIXED, diff=None)),
            "diff=None of stage 2",
        ),
        (lambda: grouped(grouped().window(FIXED), s=uc.Sum("score")), "'score', .* known are 'window', 'n'"),
        (lambda: rows_flow().select("usr"), "did you mean 'user'"),
        (lambda: rows_flow().select("user", "user"), "twice"),
        (lambda: rows_flow().select(), "leaves no column: keep"),
        (lambda: rows_flow().where("score > 1"), r"takes an expression of uc\.col"),
        (lambda: rows_flow().where(uc.col("scor") > 1), "did you mean 'score'"),
        (lambda: rows_flow().where(uc.col("score")), "one boolean a row"),
        (lambda: rows_flow().with_columns(y=uc.col("scor")), "did you mean 'score'"),
        (lambda: rows_flow().with_columns(y=5), r"with_columns\(y=\) takes an expression .* but was given 5"),
        (lambda: rows_flow().with_columns(y=lambda t: [1, 2]), "but gave 2 for 0 rows"),
        (lambda: rows_flow().with_columns(y=lambda t: [1] * t.num_rows), "without a type for a table without rows"),
        (lambda: rows_flow().map(5), "takes a function of an Arrow table, but was given 5"),
        (lambda: rows_flow().map(lambda t: 5), "returns an Arrow table or a pandas DataFrame, .* gave int"),
    ],
)
def test_what_is_wrong_is_told_when_it_is_built(made: Any, says: str) -> None:
    with pytest.raises(uc.UncombineError, match=says) as told:
        made()
    assert "\n" not in str(told.value)


def test_a_mode_left_open_is_settled_when_another_grouping_follows() -> None:
    first = grouped(rows_flow(**PLAYED).window(FIXED, EACH, allowed_lateness="1 hour"))
    both = grouped(first.window(FIXED, EACH))
    third = grouped(both.window(FIXED))
    assert [stage.grouping.mode for stage in first.stages] == ["accumulating"]
    assert [stage.grouping.mode for stage in third.stages] == ["retracting"] * 3
    assert [stage.grouping.diff for stage in third.stages] == [None, "diff", "diff"]
    assert {str(stage.grouping.allowed_lateness) for stage in third.stages} == {"1 hour"}
    once = grouped(grouped().window(FIXED))
    assert [stage.grouping.mode for stage in once.stages] == ["accumulating"] * 2


def test_a_list_of_answers_is_a_predicate() -> None:
    table = rows(40, 1)
    flow = bounded_flow(cut(table, 3, 1), "ts").where(lambda t: [x == 3 for x in t["x"].to_pylist()])
    panes = flow.window(uc.Global()).combine(**COMBINERS).map(same).df.toArrow()
    assert found(panes, ()) == oracle(table.filter(pc.equal(table["x"], 3)), uc.Global(), ())


def through_pandas(table: pa.Table) -> Any:
    """Text columns have no type in pandas where there are no rows, and whole numbers another where some are missing."""
    df = table.to_pandas()
    return df.assign(name="user " + df["j"].astype("string[pyarrow]"), at=df["ts"].astype("datetime64[ns, UTC]"))


def test_columns_of_pandas_keep_their_types() -> None:
    table = rows(80, 2)
    flow = bounded_flow(cut(table, 3, 2), "ts").map(through_pandas)
    assert flow.schema.field("j").type == pa.string()
    assert flow.schema.field("name").type == pa.string()
    assert flow.schema.field("at").type == pa.timestamp("us", "UTC")
    panes = flow.window(FIXED).combine(by=("j",), **COMBINERS).map(lambda t: t.to_pandas()).df.toArrow()
    assert found(panes, ("j",)) == oracle(table, FIXED, ("j",))


def test_structs_keep_their_fields_whatever_their_order() -> None:
    inner = {"b": pa.array([1, None, 3, 4]), "a": pa.array(["x", "y", None, "z"])}
    there = pa.StructArray.from_arrays(list(inner.values()), list(inner), mask=pa.array([False, False, False, True]))
    back = pa.StructArray.from_arrays([inner["a"], inner["b"]], ["a", "b"], mask=there.is_null())
    given = pa.StructArray.from_arrays([pa.array(range(4)), back], ["n", "half"])
    field = pa.field("both", pa.struct({"half": there.type, "n": pa.int64()}))
    for column in (given, given.slice(1, 2), pa.chunked_array([given.slice(2), given.slice(0, 1)]), given.slice(4)):
        assert _typed(column, field, "map()").to_pylist() == column.to_pylist()
        assert _typed(column, field, "map()").type == field.type
    lacking = _typed(pa.StructArray.from_arrays([back], ["half"]), field, "map()")
    assert lacking.to_pylist() == [{"half": half, "n": None} for half in back.to_pylist()]
    with pytest.raises(uc.errors.TypeMismatch, match=r"map\(\) gave column 'both' as .*: field 'a' is new"):
        _typed(back, field, "map()")


def test_other_types_than_were_told_are_refused() -> None:
    flow = bounded_flow([rows(5, 1)], "ts")
    for function, says in (
        (
            lambda t: t.select(["ts"]) if t.num_rows else t,
            r"map\(\) with <lambda> must give the same columns for any rows, but gave \['ts'\], and \['ts', 'k'",
        ),
        (lambda t: t.set_column(3, "x", [["a"] * t.num_rows]) if t.num_rows else t, "'x' as string, but as int64"),
    ):
        with pytest.raises(TypeMismatch, match=says):
            flow.map(function).df.toArrow()
    flow = flow.with_columns(y=lambda t: pa.array([0.5] * t.num_rows) if t.num_rows else pa.array([], pa.int64()))
    with pytest.raises(TypeMismatch, match=r"with_columns\(y=\) gave column 'y' as double, but as int64"):
        flow.df.toArrow()


def test_rows_of_no_stage_on_spark(spark: SparkSession) -> None:
    """Pandas on the way, and expressions; whatever Arrow types come of it, Spark gets its own."""
    table = rows(50, 3).drop_columns(["window"])
    df = spark.createDataFrame(table).repartition(3)
    flow = uc.flow(df).where(uc.col("x") > 2).map(lambda t: t.to_pandas().astype({"j": "string[pyarrow]"}))
    got = flow.with_columns(twice=uc.col("x") * 2).select("twice", "x", "j", "ts").df
    assert got.schema["j"].dataType.simpleString() == "string"
    want = table.filter(pc.greater(table["x"], 2))
    expected = [(2 * row["x"], row["x"], row["j"], row["ts"]) for row in want.to_pylist()]
    given = [tuple(row.values()) for row in got.toArrow().to_pylist()]
    assert sorted(map(repr, given)) == sorted(map(repr, expected))

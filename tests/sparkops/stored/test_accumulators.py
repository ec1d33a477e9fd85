"""Accumulators as columns: stored, read back, merged, retracted and extracted; those of two makers never mixed."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import every
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from public_names import PUBLIC
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.combiners import read_repr as spelled
from uncombine.combiners.rows.groups import Groups
from uncombine.sparkops.sql_types import bind
from uncombine.sparkops.stored import codec as maker
from uncombine.sparkops.stored import column_expressions
from uncombine.sparkops.stored import dataframes as accumulated
from uncombine.sparkops.stored.column_expressions import EXPRESSIONS

expressions = pytest.mark.skipif(not EXPRESSIONS, reason="expressions of accumulators need Spark 4.1")

SCORES = "user string, day int, score long, size long, diff long"

Differ = uc.from_scalar(
    "Differ", create=lambda: 0, add=lambda s, v: s + v, merge=lambda s, t: s + t, uncombine=lambda s, t: s - t,
    extract=lambda s: s, accumulator=pa.int64(), output=pa.int64(), capability=uc.Capability.GROUP,
)  # fmt: skip


@pytest.fixture
def scores(spark: SparkSession) -> Any:
    rows = [("a", 1, 3, 1, 1), ("a", 2, 9, 2, 1), ("b", 1, 5, 3, 1), ("b", 2, 5, 4, -1), (None, 2, 7, 5, 1)]
    return spark.createDataFrame(rows, SCORES)


def rows_of(df: Any) -> list[tuple[Any, ...]]:
    """The values of an accumulator, null first."""
    return sorted((tuple(row) for row in df.collect()), key=lambda row: [(v is not None, v) for v in row])


def retractable(table: pa.Table, combiners: dict[str, uc.Combiner]) -> dict[str, uc.Combiner]:
    return {n: c for n, c in combiners.items() if c.bind(table.schema).capability is not uc.Capability.MONOID}


def together(combiners: dict[str, uc.Combiner]) -> uc.Accumulator:
    return uc.Accumulator(uc.Struct(**combiners), "all")


def results(accumulator: uc.Accumulator, df: Any) -> pa.Table:
    return accumulator.extract(df).select("g", "all.*").toArrow()


def each(combiners: dict[str, uc.Combiner], df: Any) -> dict[str, uc.Accumulator]:
    return {name: uc.Accumulator(combiner, name, schema=df) for name, combiner in combiners.items()}


def added(accumulators: dict[str, uc.Accumulator], table: pa.Table) -> list[Any]:
    """The accumulators of groups, each as a column; those that read none get some column."""
    return [a.add(*(a.combiner.bind(table.schema).columns or ["part"])) for a in accumulators.values()]


def test_every_combiner_through_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Parts are accumulated and stored; another session rolls them up, and retracts one."""
    table, combiners = every.rows(300, seed=11), every.A_CLASS_EACH
    df, stored = every.frame(spark, table), str(tmp_path / "stored")
    whole = together(combiners)
    whole.add(df, by=["g", "part"]).write.parquet(stored)
    found = results(whole, whole.merge(spark.newSession().read.parquet(stored), by="g"))
    assert every.differing(combiners, found, uc.aggregate(table, by="g", **combiners), table) == []

    kept = retractable(table, combiners)
    # The structs of that table have a part that can retract nothing.
    assert {type(c) for n, c in combiners.items() if n not in kept} == {uc.Struct}
    rest, stored = together(kept), str(tmp_path / "kept")
    rest.add(df, by=["g", "part"]).write.parquet(stored)
    back = spark.newSession().read.parquet(stored)
    left = rest.uncombine(back, back.where("part = 2"), by="g")
    expected = uc.aggregate(table.filter(pc.less(table["part"], 2)), by="g", **kept)
    assert every.differing(kept, results(rest, left), expected, table) == []


@pytest.mark.daily
@expressions
def test_every_combiner_through_columns(spark: SparkSession) -> None:
    table, combiners = every.rows(200, seed=12), retractable(every.rows(0, 0), every.ONE_OF_EACH)
    df = every.frame(spark, table)
    accumulators = each(combiners, df)
    parts = df.groupBy("g", "part").agg(*added(accumulators, table))
    whole = parts.groupBy("g").agg(*(a.merge(n) for n, a in accumulators.items()))
    last = parts.where("part = 2").select(F.col("g").alias("h"), *(F.col(n).alias(f"{n}_2") for n in combiners))
    both = whole.join(last, F.col("g").eqNullSafe(F.col("h")), "left")
    left = both.select("g", *(a.uncombine(n, F.col(f"{n}_2")) for n, a in accumulators.items()))
    found = left.select("g", *(a.extract(n) for n, a in accumulators.items())).toArrow()
    kept = table.filter(pc.less(table["part"], 2))
    expected = uc.aggregate(kept, by="g", **combiners)
    # A join keeps the groups of which nothing is left.
    found = found.filter(pc.is_in(found["g"], expected["g"]))
    assert every.differing(combiners, found, expected, table) == []


@expressions
def test_every_combiner_over_a_window(spark: SparkSession) -> None:
    """Stored parts that roll: each frame has the results of its own rows, and its columns know their makers."""
    table, combiners = every.rows(200, seed=15), every.ONE_OF_EACH
    df = every.frame(spark, table)
    accumulators = each(combiners, df)
    parts = df.groupBy("g", "part").agg(*added(accumulators, table))
    frame = Window.partitionBy("g").orderBy("part").rangeBetween(-1, 0)
    merged = parts.select("g", "part", *(a.merge(n).over(frame) for n, a in accumulators.items()))
    for name, combiner in combiners.items():
        assert merged.schema[name].metadata[maker.KEY]["combiner"] == repr(combiner)
    rolled = merged.select("g", "part", *(a.extract(n) for n, a in accumulators.items())).toArrow()
    for part in range(3):
        rows = table.filter(pc.is_in(table["part"], pa.array([part - 1, part], pa.int32())))
        rows = rows.filter(pc.is_in(rows["g"], rows.filter(pc.equal(rows["part"], part))["g"]))
        found = rolled.filter(pc.equal(rolled["part"], part))
        assert every.differing(combiners, found, uc.aggregate(rows, by="g", **combiners), table) == []


@expressions
def test_daily_accumulators_roll(spark: SparkSession) -> None:
    """The median of the last three days for each user and day, also of days on which the user has no rows."""
    draw = np.random.default_rng(37)
    rows = pd.DataFrame({"user": draw.choice(list("abc"), 200), "day": draw.integers(0, 9, 200)})
    rows["score"] = draw.integers(0, 50, 200)
    rows = rows[(rows["user"] != "b") | (rows["day"] % 3 > 0)]
    df = spark.createDataFrame(rows)
    middle = uc.Accumulator(uc.Median("score"), "acc", schema=df)
    daily = df.groupBy("user", "day").agg(middle.add("score"))
    last = Window.partitionBy("user").orderBy("day").rangeBetween(-2, 0)
    before = Window.partitionBy("user").orderBy("day").rangeBetween(-2, -1)
    whole = Window.partitionBy("user")
    earlier_days = middle.extract(middle.merge("acc").over(before)).alias("before")
    rolled = daily.select("user", "day", middle.merge("acc").over(last), earlier_days)
    found = {(row[0], row[1]): (row[3], row[2]) for row in middle.extract(rolled).collect()}
    assert len(found) == rows.groupby(["user", "day"]).ngroups
    for (user, day), (earlier, three) in ((key, (value[0], value[1])) for key, value in found.items()):
        mine = rows[rows["user"] == user]
        assert three == mine[mine["day"].between(day - 2, day)]["score"].median()
        past = mine[mine["day"].between(day - 2, day - 1)]["score"]
        assert earlier == (past.median() if len(past) else None)
    by_user = df.select("user", middle.add("score").over(whole))
    assert by_user.schema["acc"].metadata[maker.KEY]["combiner"] == "Median('score')"
    medians = dict(map(tuple, middle.extract(by_user).distinct().collect()))
    assert medians == rows.groupby("user")["score"].median().to_dict()


def test_every_combiner_with_weights(spark: SparkSession) -> None:
    table = every.rows(300, seed=13)
    combiners = retractable(table, every.ONE_OF_EACH)
    whole = together(combiners)
    found = results(whole, whole.add(every.frame(spark, table), by="g", diff="diff"))
    expected = uc.aggregate(table, by="g", diff="diff", **combiners)
    assert every.differing(combiners, found, expected, table) == []


@pytest.mark.parametrize(
    ("count", "nulls"), [(300, 0.2), (1, 0.0), *(pytest.param(n, 1.0, marks=pytest.mark.soak) for n in (0, 1))]
)
def test_every_form_of_every_combiner_is_merged(spark: SparkSession, count: int, nulls: float) -> None:
    table = every.rows(count, seed=14, nulls=nulls)
    whole = together(every.ONE_OF_EACH)
    found = results(whole, whole.merge(whole.add(every.frame(spark, table), by=["g", "part"]), by="g"))
    expected = uc.aggregate(table, by="g", **every.ONE_OF_EACH)
    assert every.differing(every.ONE_OF_EACH, found, expected, table) == []


@expressions
def test_the_metadata_names_the_maker(spark: SparkSession, scores: Any, tmp_path: Path) -> None:
    combiner = uc.Sum("score").where(uc.col("size") > 1)
    total = uc.Accumulator(combiner, "total", schema=scores)
    ways = {
        "rows": total.add(scores, by="user"),
        "add": scores.groupBy("user").agg(total.add("score", "size")),
        "merge": scores.groupBy("user").agg(total.add("score", "size").alias("s")).agg(total.merge("s")),
        "uncombine": total.add(scores, by="user").select(total.uncombine("total", F.col("total"))),
        "renamed": scores.groupBy("user").agg(replace(total, name="else").add("score", "size").alias("total")),
    }
    for way, df in ways.items():
        df.write.parquet(str(tmp_path / way))
        (said,) = spark.read.parquet(str(tmp_path / way)).schema["total"].metadata.values()
        assert said["combiner"] == "Sum('score').where(col('size') > 1)"
        assert [name in said["input"] for name in ("score", "size", "user")] == [True, True, False]
        assert said["format"] == maker.FORMAT


def test_rolled_up_over_any_keys(scores: Any) -> None:
    both = uc.Accumulator(uc.Struct(n=uc.Count(), best=uc.Max("score")), "both")
    daily = both.add(scores, by=["user", "day"])
    assert rows_of(both.extract(both.merge(daily, by="day"))) == [(1, (2, 5)), (2, (3, 9))]
    assert rows_of(both.extract(both.merge(daily))) == [((5, 9),)]
    assert rows_of(both.extract(both.merge(daily, by=("day", "user")).where("day = 1"))) == [
        (1, "a", (1, 3)),
        (1, "b", (1, 5)),
    ]


def test_keys_as_in_spark(spark: SparkSession) -> None:
    rows = [(0.0, ("x", 1)), (-0.0, ("x", 1)), (math.nan, None), (math.nan, None), (None, ("y", None))]
    df = spark.createDataFrame(rows, "a double, b struct<s: string, n: int>").repartition(3)
    count = uc.Accumulator(uc.Count(), "n")
    found = count.extract(count.add(df, by=["a", "b"]))
    assert sorted(row["n"] for row in found.collect()) == [1, 2, 2]
    odd = df.select(F.create_map(F.lit("k"), "a").alias("m"))
    with pytest.raises(uc.errors.TypeMismatch, match="by= takes columns that can be compared, but 'm' is map<"):
        count.add(odd, by="m")


def test_names_that_need_quotes(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2), (1, 3)], ["the.key", "a `b`"])
    for name in ("my.sum", ""):
        total = uc.Accumulator(uc.Sum("a `b`"), name)
        merged = total.merge(total.add(df, by="the.key"), by="the.key")
        assert merged.columns == ["the.key", name or repr(total.combiner)]
        assert rows_of(total.extract(merged)) == [(1, 5)]


def test_a_key_that_is_fully_retracted_has_no_row(scores: Any) -> None:
    both = uc.Accumulator(uc.Struct(n=uc.Count(), best=uc.Max("score")), "both")
    whole, second = both.add(scores, by="user"), both.add(scores.where("day = 2"), by="user")
    left = both.uncombine(whole, second, by="user")
    assert rows_of(both.extract(left)) == [("a", (1, 3)), ("b", (1, 5))]
    assert left.count() == 2


def test_as_many_retracted_as_added_is_not_nothing(spark: SparkSession) -> None:
    """The sum of the weights is 0 and yet a later part needs what is held; results show it only then."""
    df = spark.createDataFrame(
        [("a", 1, 5, 1), ("a", 1, 3, -1), ("a", 2, 3, 1)], "user string, day int, x long, diff int"
    )
    for combiner, expected in ((uc.Sum("x"), 5), (uc.Mean("x"), 5.0)):
        a = uc.Accumulator(combiner, "a")
        first = a.add(df.where("day = 1"), by="user", diff="diff")
        assert rows_of(a.extract(first)) == []
        assert first.count() == 1
        whole = a.merge(first.unionByName(a.add(df.where("day = 2"), by="user")), by="user")
        assert rows_of(a.extract(whole)) == [("a", expected)]


@expressions
def test_null_is_the_accumulator_of_nothing(scores: Any) -> None:
    total = uc.Accumulator(uc.Sum("score"), "a", schema=scores)
    merge, uncombine, extract = total.merge, total.uncombine, total.extract
    one = scores.groupBy("user").agg(total.add("score"))
    none = F.lit(None).cast(one.schema["a"].dataType)
    some = one.withColumn("none", none)
    found = some.select(
        "user",
        *(extract(c) for c in (uncombine("a", "none"), uncombine("none", "a"), uncombine("none", "none"), "none")),
    )
    assert rows_of(found) == [(None, 7, -7, None, None), ("a", 12, -12, None, None), ("b", 10, -10, None, None)]
    assert some.agg(extract(merge("none"))).first()[0] is None
    assert some.select(extract(uncombine("a", "a"))).distinct().first()[0] is None
    assert some.unionByName(some.withColumn("a", none)).agg(extract(merge("a"))).first()[0] == 29
    holes = some.withColumn("a", F.when(F.col("user") == "a", F.col("a")))
    assert rows_of(holes.select("user", extract("a"))) == [(None, None), ("a", 12), ("b", None)]


@expressions
def test_weights_in_columns(scores: Any) -> None:
    best = uc.Accumulator(uc.Max("score"), "a", schema=scores)
    found = scores.groupBy("user").agg(best.add("score", diff="diff")).select("user", best.extract("a"))
    assert rows_of(found) == [(None, 7), ("a", 9), ("b", None)]
    count = uc.Accumulator(uc.Count(), "n")
    for counted in (count.add(diff="diff"), count.add("user", diff=F.col("diff"))):
        assert scores.agg(counted).select(count.extract("n")).first()[0] == 3
    holes = F.when(F.col("day") == 1, 1).when(F.col("user") == "a", 1).when(F.col("user") == "b", -1)
    with pytest.raises(Exception, match="the weights have 1 nulls: give every row a weight"):
        scores.agg(best.add("score", diff=holes)).collect()
    with pytest.raises(Exception, match="diff= takes an integer column of weights, but it is double: cast it"):
        scores.agg(best.add("score", diff=F.lit(0.5))).collect()


MIXED: list[tuple[str, uc.Combiner, str]] = [
    ("another column", uc.Sum("size"), "score long, size long"),
    ("another setting", uc.Sum("score").where(uc.col("score") > 3), "score long, size long"),
    ("another type", uc.Sum("score"), "score int, size long"),
]


@pytest.mark.parametrize(("other", "schema"), [m[1:] for m in MIXED], ids=[m[0] for m in MIXED])
def test_accumulators_of_two_makers_are_never_mixed(
    spark: SparkSession, scores: Any, other: uc.Combiner, schema: str
) -> None:
    """The error comes before anything runs, or, if a union hid the metadata, while it runs."""
    total = uc.Accumulator(uc.Sum("score"), "a")
    mine = total.add(scores, by="user")
    typed = scores.withColumn("score", F.col("score").cast(schema.split()[1].rstrip(",")))
    theirs = uc.Accumulator(other, "a").add(typed, by="user")
    sides = (
        r"'a' was made by Sum\('score'\) over \(score bigint\) on one side and by Sum.* over \(score int\) on the other"
    )
    told = sides if "score int" in schema else r"'a' was made by Sum\('s.*\) over \(s.*, not by Sum\('score'\)"
    with pytest.raises(uc.errors.StateMismatch, match=told):
        total.uncombine(mine, theirs, by="user")
    refused = r"StateMismatch: Sum\('score'\) over \(score bigint\) cannot read accumulators that another combiner made"
    with pytest.raises(Exception, match=refused):
        total.merge(mine.union(theirs), by="user").collect()


@expressions
def test_every_reader_looks_at_each_row(scores: Any) -> None:
    total = uc.Accumulator(uc.Sum("score"), "a", schema=scores)
    theirs = uc.Accumulator(uc.Sum("size"), "a").add(scores, by="user")
    mixed = total.add(scores, by="user").union(theirs)
    for way in (
        total.extract(mixed),
        total.merge(mixed),
        mixed.agg(total.merge("a")),
        mixed.select(total.extract("a")),
        theirs.select(total.uncombine("a", "a")),
    ):
        with pytest.raises(Exception, match=r"StateMismatch: Sum\('score'\) over .* cannot read accumulators"):
            way.collect()


def test_a_maker_that_is_not_what_the_column_says(scores: Any) -> None:
    total = uc.Accumulator(uc.Sum("score"), "a")
    mine = total.add(scores, by="user")
    with pytest.raises(uc.errors.StateMismatch, match=r"'a' was made by Sum\('score'\) over .*, not by Sum\('size'\)"):
        uc.Accumulator(uc.Sum("size"), "a").merge(mine, by="user")
    for schema in (None, scores):
        with pytest.raises(uc.errors.StateMismatch, match=r"metadata of column 'user' names no combiner.*schema="):
            uc.Accumulator(uc.Sum("score"), "user", schema=schema).extract(mine)
    with pytest.raises(uc.errors.UnknownColumn, match=r"Accumulator\.extract needs column 'a'"):
        total.extract(scores)
    with pytest.raises(uc.errors.StateMismatch, match=r"over \(score bigint\), but schema= says .* over \(score int\)"):
        replace(total, schema="score int").extract(mine)
    filtered = uc.Sum("score").where(uc.col("score") > 0)
    said = mine.schema["a"].metadata[maker.KEY]
    forged = mine.withMetadata("a", {maker.KEY: {**said, "combiner": repr(filtered)}})
    with pytest.raises(uc.errors.StateMismatch, match="another combiner made its values"):
        uc.Accumulator(filtered, "a").extract(forged)


@pytest.mark.parametrize("seeded", [uc.ApproxCountDistinct("score", seed=7), uc.HeavyHitters("score", 2, seed=7)])
def test_accumulators_of_two_seeds_are_never_mixed(scores: Any, seeded: Any) -> None:
    others = [uc.Accumulator(replace(seeded, seed=seed), "a").add(scores, by="user") for seed in (0, 8)]
    accumulator = uc.Accumulator(seeded, "a")
    mine = accumulator.add(scores, by="user")
    for theirs in others:
        with pytest.raises(uc.errors.StateMismatch, match=r"'a' was made by .* over .*, not by .*seed=7\)"):
            accumulator.uncombine(mine, theirs, by="user")
    with pytest.raises(Exception, match=r"StateMismatch: .*seed=7\) over .* cannot read accumulators"):
        accumulator.extract(mine.union(others[0])).collect()


@expressions
def test_lost_metadata_comes_back(spark: SparkSession, scores: Any) -> None:
    total = uc.Accumulator(uc.Sum("score"), "a")
    stored = total.add(scores, by="user")
    lost = spark.createDataFrame(stored.collect(), "user string, a " + stored.schema["a"].dataType.simpleString())
    with pytest.raises(uc.errors.StateMismatch, match=r"names no combiner.*schema=\) with the types of its rows"):
        total.merge(lost, by="user")
    typed = replace(total, schema=scores)
    for again in (typed.merge(lost, by="user"), lost.groupBy("user").agg(typed.merge("a"))):
        assert rows_of(total.extract(again)) == [(None, 7), ("a", 12), ("b", 10)]
    with pytest.raises(Exception, match=r"StateMismatch: Sum\('size'\) over .* cannot read accumulators"):
        uc.Accumulator(uc.Sum("size"), "a", schema=scores).extract(lost).collect()


def test_combiners_of_the_users_own_functions(scores: Any) -> None:
    for combiner, expected in ((Differ("score"), 29), (uc.Sum("score").map(pc.negate), -29)):
        own = uc.Accumulator(combiner, "a")
        stored = own.add(scores, by="user")
        with pytest.raises(
            uc.errors.StateMismatch, match=r"cannot be made from its name: write Accumulator\(combiner, 'a'"
        ):
            uc.Accumulator.read(stored, "a")
        assert rows_of(own.extract(own.merge(stored))) == [(expected,)]


@expressions
def test_the_metadata_is_read(scores: Any) -> None:
    best = uc.Accumulator(uc.Max("score").where(uc.col("size") > 1), "best", schema=scores)
    for stored in (best.add(scores, by="user"), scores.agg(best.add("score", "size"))):
        assert uc.Accumulator.read(stored, "best") == best
    with pytest.raises(uc.errors.StateMismatch, match="metadata of column 'user' names no combiner"):
        uc.Accumulator.read(scores, "user")
    with pytest.raises(uc.errors.UnknownColumn, match=r"Accumulator\.read needs column 'best'"):
        uc.Accumulator.read(scores, "best")


def test_a_combiner_is_read_back_from_its_repr() -> None:
    assert [one for one in every.EVERY.values() if spelled.read_combiner(repr(one)) != one] == []


x, t = uc.col("x"), uc.col("t")
COMPOSED = [
    uc.Sum("x").where((x > 2) & ~(t.is_null() | (x <= -1.5))),
    (uc.Sum("x") / uc.Count() - 1) * 2,
    uc.Max("x").where(t >= dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    uc.Max("x").where(t < dt.date(2024, 2, 29)),
    uc.Sum(uc.coalesce(x, 1) * x % 3),
    uc.Sum(uc.when(x > 0, x, 0)),
    uc.Histogram("x", [-math.inf, 0, math.inf]),
    uc.Sum(uc.col("s").str.len_chars() // 2),
    uc.CountIf(uc.col("s").str.contains("a'b\\d+", literal=True)),
    uc.CollectSet(uc.concat(uc.col("s").str.slice(-2), "-", separator='"')),
    uc.Max(t.dt.truncate("15 minutes") - dt.timedelta(seconds=5)),
    uc.Max((t - t.dt.truncate("1 day")).dt.total_seconds()),
    uc.Min(t.dt.convert_time_zone("Europe/Berlin").dt.date()),
    uc.Sum(abs(x).call("round", options={"ndigits": -1, "round_mode": "half_to_even"}).cast(pa.decimal128(9, 2))),
    uc.Max(t).where(t > dt.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))),
]  # fmt: skip


@pytest.mark.parametrize("combiner", COMPOSED, ids=repr)
def test_composed_combiners_are_read_back(combiner: uc.Combiner) -> None:
    found = spelled.read_combiner(repr(combiner))
    assert repr(found) == repr(combiner)
    assert found == combiner


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "Sum('x').__class__", "Sum('x').of.__globals__", "col('x')", "3", "Sum(",
        "Sum('x').where(open('f'))", "[Sum('x')][0]", "(lambda: Sum('x'))()", "Sum(**{'input': 'x'})", "Sum( 'x' )",
        "Count().bind", "Sum('x') + f", "Sum(col('x').str)", "Sum(col('x').str.to_lowercase)", "col('x').str",
        "Sum(col('x').str._step('lit', 1))", "Sum(col('x').str.__init__(1, 2))", "Sum(col('x').call('system'))",
        "Sum({**{}})", "Sum(pa.py_buffer('x'))", "Sum(col('x').str.contains('('))",
    ],
)  # fmt: skip
def test_nothing_else_is_read(text: str) -> None:
    assert spelled.read_combiner(text) is None


def test_forms_that_cannot_retract(scores: Any) -> None:
    best = uc.Accumulator(uc.Max("score", retractable=False), "best", schema=scores)
    stored = best.add(scores, by="user")
    assert rows_of(best.extract(best.merge(stored))) == [(9,)]
    for why, ways in {
        r"Accumulator\.uncombine retracts rows": (
            lambda: best.uncombine(stored, stored, by="user"),
            lambda: best.uncombine("best", "best"),
        ),
        "diff= can retract rows": (
            lambda: best.add(scores, by="user", diff="diff"),
            lambda: best.add("score", diff="diff"),
        ),
    }.items():
        for way in ways:
            with pytest.raises(
                uc.errors.NotRetractable, match=rf"is a MONOID combiner and {why}: use its retractable form"
            ):
                way()


COUNT = uc.Accumulator(uc.Count(), "n")
TOTAL = uc.Accumulator(uc.Sum("score"), "n")
WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda df: COUNT.add(df, by="usr"), uc.errors.UnknownColumn, "by= needs column 'usr'.*'user'"),
    (lambda df: uc.Accumulator(uc.Count(), "user").add(df, by="user"), uc.errors.InvalidArgument, "'user' is both a"),
    (lambda df: uc.Accumulator(), uc.errors.InvalidArgument, r"Accumulator\(\) needs 'combiner'"),  # type: ignore[call-arg]
    (lambda df: uc.Accumulator(3), uc.errors.InvalidArgument, "Accumulator takes a combiner such as"),  # type: ignore[arg-type]
    (lambda df: uc.Accumulator(uc.Count(), 3), uc.errors.InvalidArgument, "name=.* takes the name of a column"),  # type: ignore[arg-type]
    (lambda df: uc.Accumulator(uc.Sum("user"), schema=df), uc.errors.TypeMismatch, "takes numbers, but 'user' is str"),
    (lambda df: uc.Accumulator(uc.Sum("user")).add(df), uc.errors.TypeMismatch, "takes numbers, but 'user' is string"),
    (lambda df: COUNT.add(df, diff="dif"), uc.errors.UnknownColumn, "diff= needs column 'dif'"),
    (lambda df: COUNT.add(df, diff="user"), uc.errors.TypeMismatch, "diff= takes .* but 'user' is str"),
    (lambda df: COUNT.merge(df), uc.errors.UnknownColumn, r"Accumulator\.merge needs column 'n'"),
    (lambda df: TOTAL.add("score"), uc.errors.InvalidArgument, "Accumulator.*needs the type of 'score'"),
    (lambda df: TOTAL.extract("n"), uc.errors.InvalidArgument, "Accumulator.*needs the type of 'score'"),
    (lambda df: COUNT.uncombine(COUNT.add(df), df), uc.errors.UnknownColumn, r"\.uncombine needs column 'n'"),
    (lambda df: COUNT.add(), uc.errors.InvalidArgument, "was given no column: give it any column"),
    (lambda df: replace(TOTAL, schema=df).add("score", "size"), uc.errors.InvalidArgument, "was given 2 columns"),
    (lambda df: replace(TOTAL, schema="score int").add(df), uc.errors.TypeMismatch, "or leave schema= out"),
    (lambda df: COUNT.add(df, df), uc.errors.InvalidArgument, "takes a DataFrame, or .* given DataFrame, Da"),  # type: ignore[call-overload]
    (lambda df: COUNT.uncombine(df, "n"), uc.errors.InvalidArgument, "takes two DataFrames, or columns"),  # type: ignore[call-overload]
    (lambda df: COUNT.merge([df]), uc.errors.InvalidArgument, "takes a DataFrame, or .* given list"),  # type: ignore[call-overload]
    (lambda df: COUNT.merge("n", by="user"), uc.errors.InvalidArgument, r"merge\(by=\) is for a DataFrame"),  # type: ignore[call-overload]
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "kind", "says"), WRONG)
def test_wrong_use_is_found_when_it_is_built(
    scores: Any, wrong: Callable[[Any], Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        wrong(scores)


def test_a_stream_is_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(uc.errors.InvalidArgument, match=r"Accumulator\.add takes a bounded DataFrame"):
        COUNT.add(stream)


def test_an_accumulator_is_a_value(scores: Any) -> None:
    best = uc.Accumulator(uc.Max("score"), "best", schema=scores)
    assert repr(best) == "Accumulator(Max('score'), 'best', schema='score bigint')"
    assert eval(repr(best), {**PUBLIC, "Accumulator": uc.Accumulator}) == best
    assert repr(uc.Accumulator(uc.Count())) == "Accumulator(Count())"
    assert uc.Accumulator(uc.Count()).name == "Count()"
    assert len({best, uc.Accumulator(uc.Max("score"), "best", schema="size int, score long"), COUNT}) == 2
    with pytest.raises(AttributeError):
        best.name = "other"  # type: ignore[misc]


def cells(keys: list[int], of: uc.Combiner) -> tuple[accumulated.Cells, pa.Table]:
    made_by = maker.Maker(bind("n=", of, pa.schema({"k": pa.int64()})))
    return accumulated.Cells(("k",), "n", made_by), pa.table({"k": pa.array(keys, pa.int64())})


def test_more_keys_than_a_task_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accumulators that cannot be merged further are sent on, so that a task holds few of them."""
    monkeypatch.setattr(accumulated, "ENOUGH", 10)
    of, _ = cells([], uc.Sum("k"))
    tables = [cells(list(range(i, i + 4)), uc.Sum("k"))[1] for i in range(0, 100, 2)]
    sent = list(of.combined(of.added(table, None) for table in tables))
    assert max(batch.num_rows for batch in sent) < 14
    few = list(of.combined(of.added(cells([1, 2, 1], uc.Sum("k"))[1], None) for _ in range(50)))
    assert [batch.num_rows for batch in few] == [2]
    for batches, rows in ((sent, tables), (few, [cells([1, 2, 1] * 50, uc.Sum("k"))[1]])):
        whole = of.merged(pa.Table.from_batches(batches))
        found = dict(zip(whole["k"].to_pylist(), of.maker.extract(whole["n"].chunk(0)).to_pylist(), strict=True))
        expected = pa.concat_tables(rows).group_by("k").aggregate([("k", "sum")]).to_pydict()
        assert found == dict(zip(expected["k"], expected["k_sum"], strict=True))


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 100])
def test_keys_that_lie_across_batches(cut: int) -> None:
    of, table = cells([1, 1, 1, 2, 3, 3, 3, 3, 4], uc.Count())
    single = of.maker.add(Groups(np.arange(9), 9), [])
    each = pa.table({"k": table["k"], "n": single})
    gathered = pa.Table.from_batches(of.gathered(each.slice(i, cut) for i in range(0, 9, cut)))
    assert gathered["k"].to_pylist() == [1, 2, 3, 4]
    assert of.maker.extract(gathered["n"].combine_chunks()).to_pylist() == [3, 1, 4, 1]


def test_what_is_nothing() -> None:
    """Null and a retracted row are nothing; an excess retraction is not, nor is a rest that rounding may hide."""
    for of, exact in ((uc.Sum("k"), True), (uc.Variance("k"), False)):
        made_by = cells([], of)[0].maker
        some = made_by.add(Groups(np.arange(2), 2), [pa.array([5, -5])])
        gone = made_by.uncombine(some.slice(0, 1), some.slice(0, 1))
        null = pa.nulls(1, made_by.type)
        stored = pa.concat_arrays([some, null, gone, made_by.negate(some), null])
        assert made_by.nothing(stored).tolist() == [False, False, True, exact, False, False, True]
        assert made_by.nothing(some).tolist() == [False, False]


def test_expressions_are_refused_where_spark_has_no_functions_for_them(
    scores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Spark 4.0, where DataFrames are extracted in whole rows."""
    best = uc.Accumulator(uc.Struct(best=uc.Max("score"), at=uc.ArgMax("day", "score")), "b", schema=scores)
    stored = best.add(scores, by=["user", "day"]).withColumn("n`o", F.lit("x"))
    by_column = best.extract(stored)
    monkeypatch.setattr(column_expressions, "EXPRESSIONS", False)
    found = best.extract(stored)
    assert found.columns == ["user", "day", "b", "n`o"]
    assert {row["user"]: row["b"]["best"] for row in found.where("day = 2").collect()} == {"a": 9, "b": 5, None: 7}
    assert found.schema["b"].dataType == by_column.schema["b"].dataType
    assert rows_of(found) == rows_of(by_column)
    says = (
        r"as expressions of columns need Spark 4\.1, and this is PySpark 4\..*: give the verbs of uc\.Accumulator Data"
    )
    for made in (
        lambda: best.udf,
        lambda: best.register(scores.sparkSession, "best"),
        lambda: best.add("score", "day"),
        lambda: best.merge("b"),
        lambda: best.extract("b"),
        lambda: replace(best, combiner=uc.Sum("score")).uncombine("b", "b"),
    ):
        with pytest.raises(uc.errors.InvalidArgument, match=says):
            made()


def test_rows_without_columns_are_counted(spark: Any) -> None:
    assert COUNT.extract(COUNT.add(spark.range(3).select())).collect() == [(3,)]

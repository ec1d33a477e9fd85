"""Accumulators as columns: stored, read back, merged, retracted and extracted; those of two makers never mixed."""

from __future__ import annotations

import datetime as dt
import math
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
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.combiners import read_repr as spelled
from uncombine.combiners.rows.groups import Groups
from uncombine.sparkops import (
    accumulate,
    add_udf,
    extract_accumulated,
    extract_udf,
    merge_accumulated,
    merge_udf,
    uncombine_accumulated,
    uncombine_udf,
)
from uncombine.sparkops.sql_types import bind
from uncombine.sparkops.stored import codec as maker
from uncombine.sparkops.stored import dataframes as accumulated

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


def test_every_combiner_through_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Parts are accumulated and stored; another session rolls them up, and takes one back."""
    table, combiners = every.rows(300, seed=11), every.A_CLASS_EACH
    df, stored = every.frame(spark, table), str(tmp_path / "stored")
    accumulate(df, by=["g", "part"], **combiners).write.parquet(stored)

    back = spark.newSession().read.parquet(stored)
    whole = merge_accumulated(back, by="g")
    found = extract_accumulated(whole).toArrow()
    assert every.differing(combiners, found, uc.aggregate(table, by="g", **combiners), table) == []

    kept = retractable(table, combiners)
    # The structs of that table have a part that can take nothing back.
    assert {type(c) for n, c in combiners.items() if n not in kept} == {uc.Struct}
    columns = ["g", *kept]
    left = uncombine_accumulated(back.select(columns), back.where("part = 2").select(columns), by="g")
    expected = uc.aggregate(table.filter(pc.less(table["part"], 2)), by="g", **kept)
    assert every.differing(kept, extract_accumulated(left).toArrow(), expected, table) == []


def test_every_combiner_through_udfs(spark: SparkSession) -> None:
    table, combiners = every.rows(200, seed=12), retractable(every.rows(0, 0), every.ONE_OF_EACH)
    df = every.frame(spark, table)

    def each(make: Callable[..., Any], *columns: Callable[[str, uc.Combiner], list[str]]) -> list[Any]:
        return [
            make(c, df.schema)(*(name for of in columns for name in of(n, c))).alias(n) for n, c in combiners.items()
        ]

    inputs = each(add_udf, lambda _, c: list(c.bind(table.schema).columns) or ["part"])
    parts = df.groupBy("g", "part").agg(*inputs)
    whole = parts.groupBy("g").agg(*each(merge_udf, lambda n, _: [n]))
    last = parts.where("part = 2").select(F.col("g").alias("h"), *(F.col(n).alias(f"{n}_2") for n in combiners))
    both = whole.join(last, F.col("g").eqNullSafe(F.col("h")), "left")
    left = both.select("g", *each(uncombine_udf, lambda n, _: [n, f"{n}_2"]))
    found = left.select("g", *each(extract_udf, lambda n, _: [n])).toArrow()
    kept = table.filter(pc.less(table["part"], 2))
    expected = uc.aggregate(kept, by="g", **combiners)
    # A join keeps the groups of which nothing is left.
    found = found.filter(pc.is_in(found["g"], expected["g"]))
    assert every.differing(combiners, found, expected, table) == []


def test_every_combiner_over_a_window(spark: SparkSession) -> None:
    """Stored parts that roll: each frame has the results of its own rows, and its columns know their makers."""
    table, combiners = every.rows(200, seed=15), every.ONE_OF_EACH
    df = every.frame(spark, table)
    parts = accumulate(df, by=["g", "part"], **combiners)
    frame = Window.partitionBy("g").orderBy("part").rangeBetween(-1, 0)
    merged = [merge_udf(c, df.schema)(n).over(frame).alias(n) for n, c in combiners.items()]
    rolled = extract_accumulated(parts.select("g", "part", *merged)).toArrow()
    for part in range(3):
        rows = table.filter(pc.is_in(table["part"], pa.array([part - 1, part], pa.int32())))
        rows = rows.filter(pc.is_in(rows["g"], rows.filter(pc.equal(rows["part"], part))["g"]))
        found = rolled.filter(pc.equal(rolled["part"], part))
        assert every.differing(combiners, found, uc.aggregate(rows, by="g", **combiners), table) == []


def test_daily_accumulators_roll(spark: SparkSession) -> None:
    """The median of the last three days for each user and day, also of days on which the user has no rows."""
    draw = np.random.default_rng(37)
    rows = pd.DataFrame({"user": draw.choice(list("abc"), 200), "day": draw.integers(0, 9, 200)})
    rows["score"] = draw.integers(0, 50, 200)
    rows = rows[(rows["user"] != "b") | (rows["day"] % 3 > 0)]
    df = spark.createDataFrame(rows)
    of = uc.Median("score"), df
    add, merge, extract = add_udf(*of), merge_udf(*of), extract_udf(*of)
    daily = df.groupBy("user", "day").agg(add("score").alias("acc"))
    last = Window.partitionBy("user").orderBy("day").rangeBetween(-2, 0)
    before = Window.partitionBy("user").orderBy("day").rangeBetween(-2, -1)
    whole = Window.partitionBy("user")
    rolled = daily.select("user", "day", merge("acc").over(last).alias("acc"), extract(merge("acc").over(before)))
    found = {(row[0], row[1]): (row[3], row[2]) for row in extract_accumulated(rolled).collect()}
    assert len(found) == rows.groupby(["user", "day"]).ngroups
    for (user, day), (earlier, three) in ((key, (value[0], value[1])) for key, value in found.items()):
        mine = rows[rows["user"] == user]
        assert three == mine[mine["day"].between(day - 2, day)]["score"].median()
        past = mine[mine["day"].between(day - 2, day - 1)]["score"]
        assert earlier == (past.median() if len(past) else None)
    added = df.select("user", add("score").over(whole).alias("acc"))
    assert added.schema["acc"].metadata[maker.KEY]["combiner"] == "Median('score')"
    middle = dict(map(tuple, extract_accumulated(added).distinct().collect()))
    assert middle == rows.groupby("user")["score"].median().to_dict()


def test_every_combiner_with_weights(spark: SparkSession) -> None:
    table = every.rows(300, seed=13)
    combiners = retractable(table, every.ONE_OF_EACH)
    found = extract_accumulated(accumulate(every.frame(spark, table), by="g", diff="diff", **combiners)).toArrow()
    expected = uc.aggregate(table, by="g", diff="diff", **combiners)
    assert every.differing(combiners, found, expected, table) == []


@pytest.mark.parametrize(
    ("count", "nulls"), [(300, 0.2), (1, 0.0), *(pytest.param(n, 1.0, marks=pytest.mark.soak) for n in (0, 1))]
)
def test_every_form_of_every_combiner_is_merged(spark: SparkSession, count: int, nulls: float) -> None:
    table = every.rows(count, seed=14, nulls=nulls)
    stored = accumulate(every.frame(spark, table), by=["g", "part"], **every.ONE_OF_EACH)
    found = extract_accumulated(merge_accumulated(stored, by="g")).toArrow()
    expected = uc.aggregate(table, by="g", **every.ONE_OF_EACH)
    assert every.differing(every.ONE_OF_EACH, found, expected, table) == []


def test_the_metadata_names_the_maker(spark: SparkSession, scores: Any, tmp_path: Path) -> None:
    combiner = uc.Sum("score").where(uc.col("size") > 1)
    add, merge = add_udf(combiner, scores), merge_udf(combiner, scores)
    ways = {
        "accumulate": accumulate(scores, by="user", total=combiner),
        "add_udf": scores.groupBy("user").agg(add("score", "size").alias("total")),
        "merge_udf": scores.groupBy("user").agg(add("score", "size").alias("s")).agg(merge("s").alias("total")),
    }
    for way, df in ways.items():
        df.write.parquet(str(tmp_path / way))
        (said,) = spark.read.parquet(str(tmp_path / way)).schema["total"].metadata.values()
        assert said["combiner"] == "Sum('score').where(col('size') > 1)"
        assert [name in said["input"] for name in ("score", "size", "user")] == [True, True, False]
        assert said["format"] == maker.FORMAT


def test_rolled_up_over_any_keys(scores: Any) -> None:
    daily = accumulate(scores, by=["user", "day"], n=uc.Count(), best=uc.Max("score"))
    assert rows_of(extract_accumulated(merge_accumulated(daily, by="day"))) == [(1, 2, 5), (2, 3, 9)]
    assert rows_of(extract_accumulated(merge_accumulated(daily))) == [(5, 9)]
    assert rows_of(extract_accumulated(merge_accumulated(daily, by=("day", "user")).where("day = 1"))) == [
        (1, "a", 1, 3),
        (1, "b", 1, 5),
    ]


def test_keys_as_in_spark(spark: SparkSession) -> None:
    rows = [(0.0, ("x", 1)), (-0.0, ("x", 1)), (math.nan, None), (math.nan, None), (None, ("y", None))]
    df = spark.createDataFrame(rows, "a double, b struct<s: string, n: int>").repartition(3)
    found = extract_accumulated(accumulate(df, by=["a", "b"], n=uc.Count()))
    assert sorted(row["n"] for row in found.collect()) == [1, 2, 2]
    odd = df.select(F.create_map(F.lit("k"), "a").alias("m"))
    with pytest.raises(uc.errors.TypeMismatch, match="by= takes columns that can be compared, but 'm' is map<"):
        accumulate(odd, by="m", n=uc.Count())


def test_names_that_need_quotes(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2), (1, 3)], ["the.key", "a `b`"])
    stored = accumulate(df, by="the.key", **{"my.sum": uc.Sum("a `b`")})
    assert rows_of(extract_accumulated(merge_accumulated(stored, by="the.key"))) == [(1, 5)]


def test_a_key_that_is_fully_retracted_has_no_row(scores: Any) -> None:
    whole = accumulate(scores, by="user", n=uc.Count(), best=uc.Max("score"))
    second = accumulate(scores.where("day = 2"), by="user", n=uc.Count(), best=uc.Max("score"))
    left = uncombine_accumulated(whole, second, by="user")
    assert rows_of(extract_accumulated(left)) == [("a", 1, 3), ("b", 1, 5)]
    assert left.count() == 2


def test_as_many_retracted_as_added_is_not_nothing(spark: SparkSession) -> None:
    """The sum of the weights is 0 and yet a later part needs what is held; results show it only then."""
    df = spark.createDataFrame(
        [("a", 1, 5, 1), ("a", 1, 3, -1), ("a", 2, 3, 1)], "user string, day int, x long, diff int"
    )
    first = accumulate(df.where("day = 1"), by="user", diff="diff", total=uc.Sum("x"), fast=uc.Mean("x"))
    assert rows_of(extract_accumulated(first)) == []
    assert first.count() == 1
    whole = merge_accumulated(
        first.unionByName(accumulate(df.where("day = 2"), by="user", total=uc.Sum("x"), fast=uc.Mean("x"))), by="user"
    )
    assert rows_of(extract_accumulated(whole)) == [("a", 5, 5.0)]


def test_null_is_the_accumulator_of_nothing(scores: Any) -> None:
    of = uc.Sum("score"), scores
    add, merge, uncombine, extract = (make(*of) for make in (add_udf, merge_udf, uncombine_udf, extract_udf))
    one = scores.groupBy("user").agg(add("score").alias("a"))
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


def test_weights_in_udfs(scores: Any) -> None:
    best = add_udf(uc.Max("score"), scores, weights=True)
    extract = extract_udf(uc.Max("score"), scores)
    found = scores.groupBy("user").agg(best("score", "diff").alias("a")).select("user", extract("a"))
    assert rows_of(found) == [(None, 7), ("a", 9), ("b", None)]
    count = scores.agg(add_udf(uc.Count(), weights=True)("diff").alias("n"))
    assert count.select(extract_udf(uc.Count())("n")).first()[0] == 3
    with pytest.raises(Exception, match="the weights have 1 nulls: give every row a weight"):
        scores.agg(
            best("score", F.when(F.col("day") == 1, 1).when(F.col("user") == "a", 1).when(F.col("user") == "b", -1))
        ).collect()
    with pytest.raises(Exception, match="the last column must be integer weights, but is double"):
        scores.agg(best("score", F.lit(0.5))).collect()


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
    mine = accumulate(scores, by="user", a=uc.Sum("score"))
    typed = scores.withColumn("score", F.col("score").cast(schema.split()[1].rstrip(",")))
    theirs = accumulate(typed, by="user", a=other)
    told = r"column 'a' was made by Sum\('score'\) over \(score bigint\) on one side and by .* on the other"
    with pytest.raises(uc.errors.StateMismatch, match=told):
        uncombine_accumulated(mine, theirs, by="user")
    refused = r"StateMismatch: Sum\('score'\) over \(score bigint\) cannot read accumulators that another combiner made"
    with pytest.raises(Exception, match=refused):
        merge_accumulated(mine.union(theirs), by="user").collect()


def test_every_reader_looks_at_each_row(scores: Any) -> None:
    theirs = accumulate(scores, by="user", a=uc.Sum("size"))
    mixed = accumulate(scores, by="user", a=uc.Sum("score")).union(theirs)
    merge, extract, uncombine = (make(uc.Sum("score"), scores) for make in (merge_udf, extract_udf, uncombine_udf))
    for way in (
        extract_accumulated(mixed),
        mixed.agg(merge("a")),
        mixed.select(extract("a")),
        theirs.select(uncombine("a", "a")),
    ):
        with pytest.raises(Exception, match=r"StateMismatch: Sum\('score'\) over .* cannot read accumulators"):
            way.collect()


def test_a_maker_that_is_not_what_the_column_says(scores: Any) -> None:
    mine = accumulate(scores, by="user", a=uc.Sum("score"))
    with pytest.raises(uc.errors.StateMismatch, match=r"'a' was made by Sum\('score'\) over .*, not by Sum\('size'\)"):
        merge_accumulated(mine, by="user", a=uc.Sum("size"))
    with pytest.raises(uc.errors.StateMismatch, match=r"metadata of column 'user' names no combiner.*merge_udf"):
        extract_accumulated(mine, user=uc.Sum("score"))
    with pytest.raises(uc.errors.InvalidArgument, match="has no column of accumulators: make one"):
        extract_accumulated(scores)
    said = mine.schema["a"].metadata[maker.KEY]
    forged = mine.withMetadata("a", {maker.KEY: {**said, "combiner": "Sum('score').where(col('score') > 0)"}})
    with pytest.raises(uc.errors.StateMismatch, match="another combiner made its values"):
        extract_accumulated(forged)


@pytest.mark.parametrize("seeded", [uc.ApproxCountDistinct("score", seed=7), uc.HeavyHitters("score", 2, seed=7)])
def test_accumulators_of_two_seeds_are_never_mixed(scores: Any, seeded: Any) -> None:
    others = [accumulate(scores, by="user", a=replace(seeded, seed=seed)) for seed in (0, 8)]
    mine = accumulate(scores, by="user", a=seeded)
    for theirs in others:
        with pytest.raises(uc.errors.StateMismatch, match=r"'a' was made by .*seed=7\) over .* on the other"):
            uncombine_accumulated(mine, theirs, by="user")
    with pytest.raises(Exception, match=r"StateMismatch: .*seed=7\) over .* cannot read accumulators"):
        extract_accumulated(mine.union(others[0])).collect()


def test_lost_metadata_comes_back_through_merge_udf(spark: SparkSession, scores: Any) -> None:
    stored = accumulate(scores, by="user", a=uc.Sum("score"))
    lost = spark.createDataFrame(stored.collect(), "user string, a " + stored.schema["a"].dataType.simpleString())
    with pytest.raises(uc.errors.StateMismatch, match="names no combiner"):
        merge_accumulated(lost, by="user", a=uc.Sum("score"))
    again = lost.groupBy("user").agg(merge_udf(uc.Sum("score"), scores)("a").alias("a"))
    assert rows_of(extract_accumulated(again)) == [(None, 7), ("a", 12), ("b", 10)]


def test_combiners_of_the_users_own_functions(scores: Any) -> None:
    """Their names do not tell how they work, so they are given again."""
    negated = uc.Sum("score").map(pc.negate)
    stored = accumulate(scores, by="user", a=Differ("score"), b=negated)
    with pytest.raises(uc.errors.StateMismatch, match="cannot be made from its name: give the combiner as a="):
        extract_accumulated(stored)
    merged = merge_accumulated(stored, a=Differ("score"), b=negated)
    assert rows_of(extract_accumulated(merged, a=Differ("score"), b=negated)) == [(29, -29)]


@pytest.mark.parametrize("combiner", every.EVERY.values(), ids=repr)
def test_a_combiner_is_read_back_from_its_repr(combiner: uc.Combiner) -> None:
    assert spelled.read_combiner(repr(combiner)) == combiner


x, t = uc.col("x"), uc.col("t")
COMPOSED = [
    uc.Sum("x").where((x > 2) & ~(t.is_null() | (x <= -1.5))),
    (uc.Sum("x") / uc.Count() - 1) * 2,
    uc.Max("x").where(t >= dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    uc.Max("x").where(t < dt.date(2024, 2, 29)),
    uc.Sum(uc.coalesce(x, 1) * x % 3),
    uc.Sum(uc.when(x > 0, x, 0)),
    uc.Histogram("x", [-math.inf, 0, math.inf]),
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
        "Count().bind", "Sum('x') + f",
    ],
)  # fmt: skip
def test_nothing_else_is_read(text: str) -> None:
    assert spelled.read_combiner(text) is None


def test_forms_that_cannot_retract(scores: Any) -> None:
    best = uc.Max("score", retractable=False)
    stored = accumulate(scores, by="user", best=best)
    assert rows_of(extract_accumulated(merge_accumulated(stored))) == [(9,)]
    for why, way in {
        "uncombine_accumulated retracts rows": lambda: uncombine_accumulated(stored, stored, by="user"),
        "diff= can retract rows": lambda: accumulate(scores, by="user", diff="diff", best=best),
        "uncombine_udf retracts rows": lambda: uncombine_udf(best, scores),
        "weights=True can retract rows": lambda: add_udf(best, scores, weights=True),
    }.items():
        with pytest.raises(
            uc.errors.NotRetractable, match=rf"is a MONOID combiner and {why}: use its retractable form"
        ):
            way()


WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda df: accumulate(df, by="usr", n=uc.Count()), uc.errors.UnknownColumn, "by= needs column 'usr'.*'user'"),
    (lambda df: accumulate(df, by="user", user=uc.Count()), uc.errors.InvalidArgument, "'user' is both a key column"),
    (lambda df: accumulate(df, by="user"), uc.errors.InvalidArgument, "accumulate needs at least one combiner"),
    (lambda df: accumulate(df, n=3), uc.errors.InvalidArgument, "n= takes a combiner such as"),
    (lambda df: accumulate(df, n=uc.Sum("user")), uc.errors.TypeMismatch, "takes numbers, but 'user' is string"),
    (lambda df: accumulate(df, diff="dif", n=uc.Count()), uc.errors.UnknownColumn, "diff= needs column 'dif'"),
    (lambda df: accumulate(df, diff="user", n=uc.Count()), uc.errors.TypeMismatch, "diff= takes .* but 'user' is str"),
    (lambda df: merge_accumulated(df, a=uc.Count()), uc.errors.UnknownColumn, "a= needs column 'a'"),
    (lambda df: add_udf(uc.Sum("score")), uc.errors.InvalidArgument, "add_udf.*needs the type of 'score'"),
    (
        lambda df: uncombine_accumulated(accumulate(df, n=uc.Count()), df),
        uc.errors.UnknownColumn,
        "uncombine_accumulated needs column 'n'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "kind", "says"), WRONG)
def test_wrong_use_is_found_when_it_is_built(
    scores: Any, wrong: Callable[[Any], Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        wrong(scores)


def test_a_stream_is_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(uc.errors.InvalidArgument, match="accumulate takes a bounded DataFrame"):
        accumulate(stream, n=uc.Count())


def cells(keys: list[int], of: uc.Combiner) -> tuple[accumulated._Cells, pa.Table]:
    made_by = maker.Maker(bind("n=", of, pa.schema({"k": pa.int64()})))
    return accumulated._Cells(("k",), {"n": made_by}), pa.table({"k": pa.array(keys, pa.int64())})


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
        found = dict(zip(whole["k"].to_pylist(), of.makers["n"].extract(whole["n"].chunk(0)).to_pylist(), strict=True))
        expected = pa.concat_tables(rows).group_by("k").aggregate([("k", "sum")]).to_pydict()
        assert found == dict(zip(expected["k"], expected["k_sum"], strict=True))


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 100])
def test_keys_that_lie_across_batches(cut: int) -> None:
    of, table = cells([1, 1, 1, 2, 3, 3, 3, 3, 4], uc.Count())
    single = of.makers["n"].add(Groups(np.arange(9), 9), [])
    each = pa.table({"k": table["k"], "n": single})
    gathered = pa.Table.from_batches(of.gathered(each.slice(i, cut) for i in range(0, 9, cut)))
    assert gathered["k"].to_pylist() == [1, 2, 3, 4]
    assert of.makers["n"].extract(gathered["n"].combine_chunks()).to_pylist() == [3, 1, 4, 1]


def test_what_is_nothing() -> None:
    """Null and a retracted row are nothing; an excess retraction is not, nor is a rest that rounding may hide."""
    for of, exact in ((uc.Sum("k"), True), (uc.Variance("k"), False)):
        (made_by,) = cells([], of)[0].makers.values()
        some = made_by.add(Groups(np.arange(2), 2), [pa.array([5, -5])])
        gone = made_by.uncombine(some.slice(0, 1), some.slice(0, 1))
        null = pa.nulls(1, made_by.type)
        stored = pa.concat_arrays([some, null, gone, made_by.negate(some), null])
        assert made_by.nothing(stored).tolist() == [False, False, True, exact, False, False, True]
        assert made_by.nothing(some).tolist() == [False, False]


def test_rows_without_columns_are_counted(spark: Any) -> None:
    counted = accumulate(spark.range(3).select(), n=uc.Count())
    assert extract_accumulated(counted).collect() == [(3,)]

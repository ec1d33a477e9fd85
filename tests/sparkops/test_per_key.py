"""Combining by key on Spark against the same in memory: every combiner, every kind of key, skew, weights, limits."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any

import every
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from seeds import share

import uncombine as uc
from uncombine.sparkops.per_key import combine_per_key, per_key


@pytest.mark.parametrize("form", share([(300, 0.2), (1, 0.0), (1, 1.0), (0, 0.0)]), ids=str)
def test_every_combiner(spark: SparkSession, form: tuple[int, float]) -> None:
    count, nulls = form
    table = every.rows(count, 7, nulls)
    found = combine_per_key(every.frame(spark, table), "g", **every.EVERY).toArrow()
    assert every.differing(every.EVERY, found, uc.aggregate(table, by="g", **every.EVERY), table) == []


def test_weights(spark: SparkSession) -> None:
    rows = every.rows(300, 8)
    back = rows.slice(0, 120)
    taken = back.set_column(back.schema.get_field_index("diff"), "diff", pa.array(-np.asarray(back["diff"])))
    table = pa.concat_tables([rows, taken])
    bound = {name: c.bind(table.schema).capability for name, c in every.ONE_OF_EACH.items()}
    kept = {name: every.ONE_OF_EACH[name] for name, can in bound.items() if can is not uc.Capability.MONOID}
    found = combine_per_key(every.frame(spark, table), "g", diff="diff", **kept).toArrow()
    assert every.differing(kept, found, uc.aggregate(table, by="g", diff="diff", **kept), table) == []


KEYS: dict[str, tuple[str, list[Any]]] = {
    "boolean": ("boolean", [True, False, None, True]),
    "tinyint": ("tinyint", [1, -128, None, 1]),
    "bigint": ("bigint", [2**62, -(2**62), None, 2**62]),
    "double": ("double", [0.0, -0.0, float("nan"), None, float("nan")]),
    "decimal": ("decimal(20,2)", [Decimal("1.10"), Decimal("-1.10"), None, Decimal("1.10")]),
    "string": ("string", ["", "a", None, "a"]),
    "binary": ("binary", [b"", b"a", None, b"a"]),
    "date": ("date", [dt.date(1969, 1, 1), dt.date(2024, 2, 29), None, dt.date(1969, 1, 1)]),
    "timestamp": ("timestamp", [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), None, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
    "timestamp_ntz": ("timestamp_ntz", [dt.datetime(1969, 1, 1), None, dt.datetime(2024, 1, 1)]),
    "struct": ("struct<a: int, b: string>", [(1, "x"), (1, None), None, (1, "x")]),
}


def test_keys_of_every_type_are_those_of_spark(spark: SparkSession) -> None:
    """All types at once: each is a column beside a name that says which it is."""
    columns = ", ".join(f"k_{name} {kind}" for name, (kind, _) in KEYS.items())
    given = [(name, value) for name, (_, values) in KEYS.items() for value in values]
    rows = [(*(value if other == name else None for other in KEYS), name, 1) for name, value in given]
    df = spark.createDataFrame(rows, f"{columns}, which string, v bigint").repartition(3)
    keys = [*(f"k_{name}" for name in KEYS), "which"]
    ours = combine_per_key(df, keys, n=uc.Count(), m=uc.Median("v"))
    native = df.groupBy(*keys).agg(F.count(F.lit(1)).alias("n"), F.expr("percentile(v, 0.5)").alias("m"))
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, native.collect()))


def test_a_key_with_nine_rows_in_ten(spark: SparkSession) -> None:
    rows = spark.range(200_000, numPartitions=4).select(
        F.when(F.col("id") % 10 != 0, 0).otherwise(F.col("id")).alias("k"), (F.col("id") % 1000).alias("v")
    )
    ours = combine_per_key(rows, "k", middle=uc.Median("v"), sizes=uc.CountDistinct("v"))
    native = rows.groupBy("k").agg(F.expr("percentile(v, 0.5)"), F.countDistinct("v"))
    assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, native.collect()))


@pytest.mark.parametrize("near", [False, True], ids=["by key and window", "windows of a text together"])
def test_merging_gives_away_what_is_complete(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, near: bool) -> None:
    """With limits so small that a task sends many parcels and a merge holds few of them at once."""
    from uncombine.panes.grouping.final_panes import Final
    from uncombine.sparkops import pieces
    from uncombine.sparkops.routes import tasks

    monkeypatch.setattr(sys.modules[Final.__module__], "PARCEL_CELLS", 50)
    monkeypatch.setattr(tasks, "MERGE_CELLS", 100)
    monkeypatch.setattr(pieces, "PIECE_ROWS", 700)
    rng = np.random.default_rng(3)
    kind = pa.string() if near else pa.int64()
    keys = pa.array(rng.integers(0, 900, 5000)).cast(kind)
    table = pa.table({"k": keys, "v": rng.integers(0, 100, 5000)})
    combiner = uc.Sum("v") if near else uc.Median("v")
    flow = per_key(spark.createDataFrame(table), ["k"], None, 2, {"m": combiner})
    grouping, schema = flow.stages[0].grouping, flow.source_schema
    if near:
        grouping = replace(grouping, window=uc.Fixed("1 minute"))
    lift = tasks.LiftFinal(grouping, schema, (), (0, 1))
    assert bool(lift.final.lift(2).near) == near
    merge = tasks.MergeFinal(grouping, schema)
    times = pa.array(rng.integers(0, 2, 5000) * near * 60_000_000).cast(pa.timestamp("us", "UTC"))
    source = table.append_column("uncombine_time", times).select(schema.names)
    sent = [batch for first in (0, 2500) for batch in lift([source.slice(first, 2500)])]
    rows = pa.Table.from_batches(sent)
    out, parts = [], []
    for shard in (0, 1):
        mine = rows.filter(pa.array(np.asarray(rows["shard"]) == shard)).sort_by([("lo", "ascending")])
        assert mine.num_rows > 8
        batches = list(merge(mine.to_batches(max_chunksize=3)))
        parts.append(len(batches))
        out += batches
    assert min(parts) > 2
    panes = pa.Table.from_batches(out)
    start = pc.struct_field(panes["window"], "start").cast(pa.int64()).combine_chunks()
    found = pa.table({"k": panes["k"], "start": pc.fill_null(start, 0), "m": panes["m"]})
    expected = uc.aggregate(source.append_column("start", times.cast(pa.int64())), by=["k", "start"], m=combiner)
    assert sorted(found.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)


def test_what_spark_does_as_well_is_left_to_it(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 1), ("a", 2)], "k string, v bigint")
    assert "Spark's own aggregation" in per_key(df, ["k"], None, None, {"s": uc.Sum("v")}).explain().splitlines()[0]
    assert "v=Median" not in per_key(df, ["k"], None, None, {"s": uc.Sum("v")}).explain()
    assert "no exact equivalent" in per_key(df, ["k"], None, None, {"s": uc.Median("v")}).explain()


@pytest.mark.parametrize(
    ("by", "options", "says"),
    [
        ("kk", {"n": uc.Count()}, "did you mean 'k'"),
        ("k", {"n": uc.Sum("w")}, "'w'"),
        ("k", {}, "at least one combiner"),
        ("k", {"n": uc.Count(), "diff": "x"}, "'x'"),
        ("k", {"k": uc.Count()}, "used twice"),
    ],
)
def test_wrong_use_is_found_when_it_is_built(spark: SparkSession, by: str, options: dict[str, Any], says: str) -> None:
    df = spark.createDataFrame([("a", 1)], "k string, v bigint")
    with pytest.raises(uc.UncombineError, match=says):
        combine_per_key(df, by, **options)


def test_a_stream_is_refused(spark: SparkSession) -> None:
    with pytest.raises(uc.UncombineError, match=r"uc\.flow"):
        combine_per_key(spark.readStream.format("rate").load(), "value", n=uc.Count())

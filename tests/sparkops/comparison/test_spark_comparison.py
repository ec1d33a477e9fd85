"""Comparisons on Spark: of random tables as in plain Python, and of each side that Spark or this process has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_tables import (
    TYPES,
    VALUES,
    as_changelog,
    keyed_difference,
    keyed_rows,
    near,
    repeated_pair,
    unique_pair,
    whole_difference,
    whole_rows,
)
from seeds import seeds

import uncombine as uc
from uncombine.sparkops.comparison.spark_comparison import CountKinds
from uncombine.sparkops.sql_types import dataframe_of, passed, spark_schema
from uncombine.tables.comparison.common_types import common_schema
from uncombine.tables.comparison.comparison import CHANGED, EQUAL, ONLY_OLD
from uncombine.tables.comparison.local_comparison import in_schema

OLD = pa.table({"k": ["a", "b", "c"], "n": [1, 2, 3]})
NEW = pa.table({"k": ["a", "b", "d"], "n": [1, 5, 3]})
WORDS = "old and new differ: 1 row changed, 1 only in old, 1 only in new, 1 equal"


def frame(spark: Any, table: pa.Table) -> Any:
    table = passed(in_schema(table, common_schema(table.schema, table.schema)))
    return dataframe_of(spark, table, spark_schema(table.schema)).repartition(3)


def check_keyed(comparison: Any, pair: Any, tolerance: float = 0.0) -> None:
    equal, differences = keyed_difference(pair, tolerance)
    assert comparison.equal == equal
    assert comparison.changed + comparison.only_old + comparison.only_new == differences.total()
    assert keyed_rows(comparison.df.toArrow(), pair) == differences
    assert keyed_rows(comparison.examples, pair) <= differences
    assert comparison.examples.num_rows == min(10, differences.total())
    here = uc.compare(pair.old, pair.new, keys=pair.keys, tolerance=tolerance)
    assert comparison.changed_columns == here.changed_columns
    assert comparison.examples.column_names == here.examples.column_names
    assert comparison.verdict == here.verdict


@pytest.mark.daily
@pytest.mark.parametrize("seed", seeds(12, 200))
def test_keyed_rows_differ_as_in_plain_python(spark: Any, seed: int) -> None:
    pair = unique_pair(seed)
    tolerance = [0.0, 1e-9][seed % 2]
    old = frame(spark, pair.old)
    new: Any = [pair.new, frame(spark, pair.new)][seed % 3 > 0]
    check_keyed(uc.compare(old, new, keys=pair.keys, tolerance=tolerance), pair, tolerance)


@pytest.mark.parametrize("seed", seeds(8, 200))
def test_whole_rows_differ_as_in_plain_python(spark: Any, seed: int) -> None:
    pair = repeated_pair(seed)
    comparison = uc.compare(frame(spark, pair.old), frame(spark, pair.new))
    equal, more = whole_difference(pair)
    assert comparison.equal == equal
    assert whole_rows(comparison.df.toArrow(), pair) == more
    assert comparison.only_new == sum(count for count in more.values() if count > 0)
    assert comparison.only_old == -sum(count for count in more.values() if count < 0)
    assert comparison.examples.column_names == uc.compare(pair.old, pair.new).examples.column_names


@pytest.mark.parametrize("seed", seeds(8, 100))
def test_changelogs_are_netted_first(spark: Any, seed: int) -> None:
    pair = unique_pair(seed)
    changes = frame(spark, as_changelog(seed, pair.old)), frame(spark, as_changelog(seed + 1, pair.new))
    check_keyed(uc.compare(*changes, keys=pair.keys, diff="w"), pair)
    check_keyed(uc.compare(pair.old, changes[1], keys=pair.keys, diff="w"), pair)


def test_values_are_equal_as_in_plain_python(spark: Any) -> None:
    draw = random.Random(1)
    sides = [{name: [VALUES[name](draw) for _ in range(400)] for name in TYPES} for _ in range(2)]
    tables = [
        pa.table([range(400), *(pa.array(side[name], TYPES[name][0]) for name in TYPES)], ["key", *TYPES])
        for side in sides
    ]
    for tolerance in (0.0, 1e-9):
        comparison = uc.compare(frame(spark, tables[0]), frame(spark, tables[1]), keys="key", tolerance=tolerance)
        assert comparison.changed_columns == {
            name: sum(not near(*pair, tolerance) for pair in zip(*(side[name] for side in sides), strict=True))
            for name in TYPES
        }


def test_a_slice_of_lists(spark: Any) -> None:
    steps = pa.array([[{"x": 1.0}], None, [{"x": None}], None], pa.list_(pa.struct([("x", pa.float64())])))
    rows = pa.table({"steps": steps, "deep": [[[1]], None, [None], [[]]]})
    for table in (rows.slice(1), pa.concat_tables([rows.slice(0, 1), rows.slice(1, 2), rows.slice(3)])):
        assert uc.compare(frame(spark, table), table).equal == table.num_rows
        assert uc.compare(dataframe_of(spark, table, spark_schema(table.schema)), table).same


def test_rows_that_a_changelog_lacks(spark: Any) -> None:
    old = pa.table({"x": [1, 2, 3, 4, 5], "diff": [-2, -2, 3, 0, 1]})
    new = pa.table({"x": [1, 2, 3, 5, 5], "diff": [1, -1, -1, 1, 1]})
    comparison, here = uc.compare(frame(spark, old), new), uc.compare(old, new)
    assert (comparison.equal, comparison.only_old, comparison.only_new) == (2, 4, 5)
    assert repr(comparison).splitlines()[0] == repr(here).splitlines()[0]
    order = [("x", "ascending")]
    assert comparison.df.toArrow().sort_by(order).to_pylist() == here.to_arrow().sort_by(order).to_pylist()


def test_each_form_of_the_other_side(spark: Any, tmp_path: Path) -> None:
    pq.write_table(OLD, tmp_path / "old.parquet")
    new = frame(spark, NEW)
    timed = OLD.append_column("ts", pa.array([0, 0, 0], pa.timestamp("us", "UTC")))
    forms = [
        OLD.to_pandas(),
        OLD.to_pylist(),
        str(tmp_path / "old.parquet"),
        uc.Files(tmp_path),
        uc.flow(timed).select("k", "n"),
        uc.flow(timed).select("k", "n").run(),
        uc.flow(frame(spark, timed)).select("k", "n"),
        frame(spark, pa.table({"k": [*"abczzbb"], "n": [1, 2, 3, 9, 9, 7, 7], "diff": [1, 1, 1, 1, -1, 1, -1]})),
    ]
    for form in forms:
        assert uc.compare(form, new, keys="k").verdict == WORDS
    flow = uc.flow(str(tmp_path / "old.parquet"), spark=spark, time=uc.col("n").cast_time("s")).select("k", "n")
    assert uc.compare(flow, NEW, keys="k").verdict == WORDS


def test_two_flows_over_one_source(spark: Any, tmp_path: Path) -> None:
    rows = pa.table(
        {"ts": pa.array([0, 1, 70_000_000], pa.timestamp("us", "UTC")), "user": ["a", "b", "a"], "x": [5, 2, 1]}
    )

    def totals(source: Any, combiner: Any = uc.Sum) -> uc.Flow:
        return uc.flow(source).window("1 minute").combine(by="user", total=combiner("x"))

    df = frame(spark, rows)
    assert uc.compare(totals(df), totals(df, uc.Max), keys=["user", "window"]).same
    assert uc.compare(totals(df), totals(rows)).same
    totals(rows).to_table(f"parquet:{tmp_path}/totals")
    table = pa.table(totals(rows).to_arrow(flat=True)).select(
        ["user", "total", "window_start", "window_end", "event_time"]
    )
    for keys in (None, ["user", "window"]):
        assert uc.compare(totals(df), table, keys=keys).equal == 3
    doubled = uc.compare(totals(df), totals(df).with_columns(total=uc.col("total") * 2), keys=["user", "window"])
    assert (doubled.changed, doubled.changed_columns) == (3, {"total": 3})
    every = uc.flow(df.where("false")).combine(n=uc.Count())
    assert uc.compare(every, uc.flow(rows.slice(0, 0)).combine(n=uc.Count())).same


def test_a_comparison_on_spark_reads_as_one_here(spark: Any) -> None:
    comparison = uc.compare(frame(spark, OLD), NEW, keys="k")
    assert repr(comparison) == repr(uc.compare(OLD, NEW, keys="k"))
    assert not comparison.same
    with pytest.raises(uc.errors.InvalidArgument, match="Spark has these: use df"):
        comparison.to_arrow()
    assert uc.compare(frame(spark, OLD), OLD).same
    odd = pa.table({"a.b": [1], "c`d": [2]})
    assert uc.compare(frame(spark, odd), odd.set_column(1, "c`d", pa.array([3])), keys="a.b").changed_columns == {
        "c`d": 1
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"k": [1, 1], "x": [1, 2]}, {"k": [1], "x": [1]}, "old has several rows for {'k': 1}"),
        ({"k": [1], "x": [1]}, {"k": [2, 2, 1], "x": [1, 1, 3]}, "new has several rows for {'k': 2}"),
        ({"k": [1], "x": [1], "diff": [2]}, {"k": [1], "x": [1]}, "old has several rows for {'k': 1}"),
        ({"k": [1], "x": [1]}, {"k": [1], "x": [1], "diff": [-1]}, "new retracts {'k': 1}, which it does not have"),
    ],
)
def test_keys_that_identify_no_row_are_refused(spark: Any, old: Any, new: Any, words: str) -> None:
    with pytest.raises(uc.errors.InvalidArgument) as caught:
        uc.compare(frame(spark, pa.table(old)), pa.table(new), keys="k", examples=0)
    assert str(caught.value).startswith(words)


def test_what_is_refused(spark: Any) -> None:
    df, stream = frame(spark, OLD), spark.readStream.format("rate").load()
    endless = uc.flow(stream, time="timestamp", watermark="1 minute")
    odd = spark.sql("SELECT 1 AS k, make_interval(1) AS i")
    wrong = [
        (lambda: uc.compare(df, stream), "new is a streaming DataFrame"),
        (lambda: uc.compare(endless, df), "old is a flow whose rows have no end"),
        (lambda: uc.compare(df, NEW.drop_columns(["n"])), "only old has 'n'"),
        (lambda: uc.compare(df, {"k": ["a"], "n": [1.5]}), "no type holds both: cast one"),
        (lambda: uc.compare(odd, odd), "column 'i' has a type that Arrow lacks"),
    ]
    for call, words in wrong:
        with pytest.raises(uc.UncombineError, match=words):
            call()


def test_a_task_keeps_so_many_examples_of_each_kind() -> None:
    kinds = np.array([EQUAL, CHANGED, CHANGED, ONLY_OLD, CHANGED])
    table = pa.table(
        {
            "kind": pa.array(kinds, pa.int32()),
            "equal": pa.array([1, 0, 0, 0, 0]),
            "differ": pa.array([0, 1, 1, 1, 1]),
            "columns": pa.array([None, [True, False], [True, True], None, [False, True]]),
            "row": pa.array([None, {"f": 1}, {"f": 2}, {"f": 3}, {"f": 4}]),
        }
    )
    task = CountKinds(2, table.schema.field("row").type)
    out = pa.Table.from_batches(task(iter([table, table]))).to_pylist()
    assert [row["row"]["f"] for row in out if row["row"]] == [1, 2, 3, 3]
    totals = {row["kind"]: (row["rows"], row["columns"]) for row in out if not row["row"]}
    assert totals == {EQUAL: (2, None), CHANGED: (6, [4, 4]), ONLY_OLD: (2, None)}
    assert list(task(iter([]))) == []

"""A grouping of all time without keys gives one row also of no rows, in every bounded way; others give none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import bounded_flow
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.sparkops.per_key import combine_per_key

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64(), "w": pa.int64()})
DDL = "ts timestamp, k string, x bigint, w bigint"
COMBINERS: dict[str, uc.Combiner] = {"n": uc.Count(), "total": uc.Sum("x"), "most": uc.Max("x"), "mid": uc.Median("x")}
NATIVE = {name: COMBINERS[name] for name in ("n", "total", "most")}
NOTHING = {"n": 0, "total": None, "most": None, "mid": None}


def rows(*values: tuple[int, int]) -> pa.Table:
    """Rows of a value and a weight each."""
    columns = {"ts": [10] * len(values), "k": ["a"] * len(values)}
    return pa.table({**columns, "x": [x for x, _ in values], "w": [w for _, w in values]}).cast(SCHEMA)


CANCELLED = rows((3, 1), (5, 2), (3, -1), (5, -2))
SWAPPED = rows((3, 1), (5, -1))


def shown(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, but for what all final panes say of themselves."""
    return table.drop_columns([name for name in ("diff", "pane") if name in table.column_names]).to_pylist()


def panes(flow: uc.Flow) -> pa.Table:
    """The panes, by the tasks alone: Spark puts the columns that are always the same only where there is no map()."""
    return flow.map(same).df.toArrow()


def same(table: pa.Table) -> pa.Table:
    return table


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_no_rows_are_one_row_by_the_tasks(parts: int) -> None:
    flow = bounded_flow([SCHEMA.empty_table()] * parts, "ts").window(uc.Global()).combine(**COMBINERS)
    assert shown(panes(flow)) == [{"window": None, **NOTHING, "event_time": None}]
    assert panes(flow)["pane"][0].as_py()["timing"] == "ON_TIME"
    some = bounded_flow([SCHEMA.empty_table(), rows((4, 1))], "ts").window(uc.Global()).combine(**COMBINERS)
    assert [row["n"] for row in shown(panes(some))] == [1]


@pytest.mark.weekly
@pytest.mark.parametrize("shards", [1, 3])
def test_no_rows_after_steps_over_rows_are_one_row(shards: int) -> None:
    for table in (SCHEMA.empty_table(), rows((4, 1))):
        source = bounded_flow([table], "ts", shards=shards).where(uc.col("x") > 4)
        flow = source.distinct("x").in_order().window(uc.Global()).combine(**COMBINERS)
        assert shown(panes(flow)) == [{"window": None, **NOTHING, "event_time": None}]
        assert panes(flow)["pane"][0].as_py()["timing"] == "ON_TIME"
        assert panes(flow.where(uc.col("n") > 0)).num_rows == 0
        assert panes(flow.window(uc.Global()).combine(by="n", m=uc.Count())).num_rows == 0
    some = bounded_flow([rows((4, 1))], "ts").distinct("x").window(uc.Global()).combine(n=uc.Count())
    assert panes(some)["n"].to_pylist() == [1]


@pytest.mark.parametrize("given", [CANCELLED, SWAPPED, SCHEMA.empty_table()], ids=["cancelled", "swapped", "empty"])
def test_rows_that_cancel_are_no_rows(given: pa.Table) -> None:
    flow = bounded_flow([given.slice(0, 1), given.slice(1)], "ts", diff="w").window(uc.Global()).combine(**COMBINERS)
    assert shown(panes(flow)) == [{"window": None, **NOTHING, "event_time": None}]
    assert uc.aggregate(given, diff="w", **COMBINERS).to_pylist() == [NOTHING]


def test_keys_and_windows_of_no_rows_give_none() -> None:
    flow = bounded_flow([SCHEMA.empty_table()], "ts")
    for grouped in (
        flow.window(uc.Global()).combine(by="k", **COMBINERS),
        flow.window(uc.Fixed("1 minute")).combine(**COMBINERS),
        flow.window(uc.Sessions("1 minute")).combine(**COMBINERS),
    ):
        assert panes(grouped).num_rows == 0


def test_only_the_last_grouping_gives_the_row_of_no_rows() -> None:
    first = bounded_flow([SCHEMA.empty_table()] * 2, "ts").window(uc.Global()).combine(n=uc.Count())
    assert shown(panes(first.window(uc.Fixed("1 minute")).combine(m=uc.Count()))) == []
    both = first.window(uc.Global()).combine(m=uc.Count(), most=uc.Max("n"))
    assert shown(panes(both)) == [{"window": None, "m": 0, "most": None, "event_time": None}]


def test_what_follows_sees_the_row_of_no_rows() -> None:
    flow = bounded_flow([SCHEMA.empty_table()], "ts").window(uc.Global()).combine(**COMBINERS)
    assert panes(flow.select("n", "total")).to_pylist() == [{"n": 0, "total": None}]
    assert panes(flow.where(uc.col("n") > 0)).num_rows == 0


def test_replays_are_silent() -> None:
    flow = bounded_flow([SCHEMA.empty_table()], "ts", uc.BoundedLag("1 minute"), processing_time="ts", replay=True)
    trigger = uc.Repeatedly(uc.AfterCount(1))
    assert panes(flow.window(uc.Global(), trigger=trigger).combine(**COMBINERS)).num_rows == 0


def test_every_way_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    empty = spark.createDataFrame([], DDL)
    none = spark.createDataFrame(spark.sparkContext.emptyRDD(), DDL)
    assert none.rdd.getNumPartitions() == 0
    pq.write_table(SCHEMA.empty_table(), tmp_path / "none.parquet")
    for combiners, way in ((COMBINERS, "Final panes"), (NATIVE, "Spark's own")):
        expected = {name: NOTHING[name] for name in combiners}
        for df in (empty, none, empty.repartition(3), none.where("x > 1")):
            flow = uc.flow(df, time="ts").window(uc.Global()).combine(**combiners)
            assert flow.explain().startswith(way)
            assert shown(flow.df.toArrow()) == [{"window": None, **expected, "event_time": None}]
            assert combine_per_key(df, **combiners).toArrow().to_pylist() == [expected]
            assert combine_per_key(df, "k", **combiners).toArrow().num_rows == 0
        files = (
            uc.flow(uc.Files(str(tmp_path), format="parquet"), spark=spark, time="ts")
            .window(uc.Global())
            .combine(**combiners)
        )
        assert shown(files.df.toArrow()) == [{"window": None, **expected, "event_time": None}]
    for given in (CANCELLED, SWAPPED):
        df = spark.createDataFrame(given.to_pylist(), DDL).repartition(3, F.col("x"))
        assert combine_per_key(df, diff="w", **COMBINERS).toArrow().to_pylist() == [NOTHING]

"""Several flows in one streaming query: union, join, one flow over the panes of another; each has its own progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from opened import opened
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from streams import START, read_stream, started, written

import uncombine as uc
from uncombine.sparkops.progress import FlowProgress, Progress, progress_of

SECOND = 1_000_000
SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
LAG = uc.BoundedLag("20 seconds")
MINUTE = uc.Fixed("1 minute")


def batches(seed: int, count: int = 3, size: int = 60) -> list[pa.Table]:
    """Rows of three keys that come out of order, a minute and a half to a batch, and one that ends all windows."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(count):
        times = START + (i * 90 + rng.integers(0, 110, size)) * SECOND
        out.append(table(rng.choice(["a", "b", "c"], size), times, rng.integers(0, 50, size)))
    return [*out, table(["end"], [START + 10**5 * SECOND], [0])]


def table(keys: Any, times: Any, values: Any) -> pa.Table:
    columns = [pa.array(keys, pa.string()), pa.array(times, pa.int64()).cast(SCHEMA.field("ts").type), pa.array(values)]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def frame(tables: list[pa.Table]) -> pd.DataFrame:
    """All rows but those that end the windows, with the start of their minute."""
    rows = pa.concat_tables(tables).to_pandas()
    rows = rows[rows["k"] != "end"]
    return rows.assign(start=rows["ts"].dt.floor("1min"))


def stream(spark: SparkSession, folder: Path, tables: list[pa.Table]) -> DataFrame:
    return read_stream(spark, written(tables, folder), SCHEMA)


def totals(df: DataFrame, name: str | None = None, **options: Any) -> Any:
    windows = uc.flow(df, watermark=LAG, name=name).window(MINUTE, allowed_lateness="1 hour", **options)
    return windows.combine(by="k", n=uc.Count(), total=uc.Sum("v"))


def ended(df: DataFrame, folder: Path) -> tuple[StreamingQuery, pd.DataFrame]:
    """A query that has taken all there is, and the rows of its sink."""
    query = started(df, folder)
    query.awaitTermination()
    return query, pq.read_table(sorted(folder.glob("panes/*.parquet"))).to_pandas()


def told(query: StreamingQuery) -> dict[str, list[tuple[int, ...]]]:
    """The rows, panes and retractions that each flow has counted by stage, over all batches."""
    out: dict[str, Any] = {}
    for one in query.recentProgress:
        for name, flow in progress_of(one).flows.items():
            counts = [(stage.rows_in, stage.panes, stage.retractions) for stage in flow.stages]
            before = out.setdefault(name, np.zeros((len(counts), 3), int))
            out[name] = before + np.array(counts)
    return {name: [tuple(map(int, row)) for row in counts] for name, counts in out.items()}


def test_a_union_of_two_flows(spark: SparkSession, tmp_path: Path) -> None:
    """Each tells its own rows, panes and skipped files."""
    given = batches(1, count=2), batches(2, count=1)
    flows = []
    for i, found in enumerate(given):
        folder = written(found, tmp_path / f"in{i}")
        for bad in range(i + 1):
            (folder / f"bad{bad}.parquet").write_bytes(b"PAR1 this is none PAR1")
        read = uc.flow(
            uc.Files(str(folder), on_bad_file="skip", schema=SCHEMA), spark=spark, streaming=True, watermark=LAG
        )
        flows.append(read.window(MINUTE).combine(by="k", n=uc.Count(), total=uc.Sum("v")))
    query, shown = ended(flows[0].df.union(flows[1].df), tmp_path)
    want = [by_minute(found) for found in given]
    assert values(shown, ["k", "n", "total"]) == values(pd.concat(want), ["k", "n", "total"])
    assert told(query) == {"flow #1": [(121, len(want[0]), 0)], "flow #2": [(61, len(want[1]), 0)]}
    last = uc.progress(query)
    assert last is not None
    assert {name: flow.files_skipped for name, flow in last.flows.items()} == {"flow #1": 1, "flow #2": 2}
    assert last.files_skipped == 3
    assert "; flow #1, 1 file skipped: 121 rows in, " in str(last)
    assert "; flow #2, 2 files skipped: 61 rows in, " in str(last)
    with pytest.raises(uc.UncombineError, match=r"2 flows, 'flow #1' and 'flow #2'.*flows\['flow #1'\]\.stages"):
        last.stages


def by_minute(tables: list[pa.Table]) -> pd.DataFrame:
    return frame(tables).groupby(["k", "start"])["v"].agg(n="size", total="sum").reset_index()


def values(rows: pd.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    return sorted(rows[names].itertuples(index=False, name=None))


def test_a_join_of_two_flows(spark: SparkSession, tmp_path: Path) -> None:
    left, right = batches(3, count=2), batches(4, count=2)
    clicks = totals(stream(spark, tmp_path / "clicks", left), "clicks").df.select("k", "window", "total")
    views = totals(stream(spark, tmp_path / "views", right), "views").df.select("k", "window", F.col("n").alias("seen"))
    query, shown = ended(clicks.join(views, ["k", "window"]), tmp_path)
    want = by_minute(left).merge(by_minute(right).assign(seen=lambda t: t["n"]), on=["k", "start"])
    want = want.rename(columns={"total_x": "total"})
    assert len(want) > 10
    assert values(shown, ["k", "total", "seen"]) == values(want, ["k", "total", "seen"])
    assert told(query) == {"clicks": [(121, len(by_minute(left)), 0)], "views": [(121, len(by_minute(right)), 0)]}


def test_a_flow_over_the_panes_of_another(spark: SparkSession, tmp_path: Path) -> None:
    """The second flow retracts the retractions of the first, so the rest equals the result of all rows at once."""
    tables = batches(5)
    early = uc.AfterWatermark(early=uc.AfterCount(4), late=uc.AfterCount(1))
    first = totals(stream(spark, tmp_path / "in", tables), "minutes", mode="retracting", trigger=early)
    again = uc.flow(first.df, time="event_time", watermark="1 hour", diff="diff", name="all")
    again = again.window(uc.Fixed("5 minutes"), early, "retracting", allowed_lateness="1 day")
    second = again.combine(by="k", minutes=uc.Count(), most=uc.Max("total"), total=uc.Sum("total"))
    query, shown = ended(second.df, tmp_path)
    minutes = by_minute(tables)
    groups = minutes.assign(start=minutes["start"].dt.floor("5min")).groupby(["k", "start"])["total"]
    want = groups.agg(minutes="size", most="max", total="sum").reset_index()
    left = shown.groupby(["k", "minutes", "most", "total"])["diff"].sum()
    assert sorted(left[left != 0].items()) == [(row, 1) for row in values(want, ["k", "minutes", "most", "total"])]
    counts = told(query)
    assert counts["minutes"][0][0] == 181
    assert counts["minutes"][0][2] > 10
    assert counts["all"][0][0] == sum(counts["minutes"][0][1:]), "a row of the second is a pane of the first"
    assert counts["all"][0][1] - counts["all"][0][2] == len(want)


def test_one_flow_twice_and_two_flows_of_one_source(spark: SparkSession, tmp_path: Path) -> None:
    tables = [pa.concat_tables(batches(6, count=1))]
    source = uc.flow(stream(spark, tmp_path / "in", tables), watermark=LAG, name="rows")
    minutes = source.window(MINUTE).combine(n=uc.Count())
    hours = source.window(uc.Fixed("1 hour")).combine(n=uc.Count())
    query, shown = ended(minutes.df.union(minutes.df).union(hours.df), tmp_path)
    sizes = frame(tables).groupby("start").size().tolist()
    assert sorted(shown["n"]) == sorted([*sizes, *sizes, sum(sizes)])
    assert told(query) == {"rows #1": [(61, len(sizes), 0)], "rows #2": [(61, len(sizes), 0)], "rows #3": [(61, 1, 0)]}


def test_bounded_flows_that_skip_files_can_be_united(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(batches(9, count=1), tmp_path / "in")
    (folder / "bad.parquet").write_bytes(b"PAR1 this is none PAR1")
    counted = uc.flow(uc.Files(str(folder), on_bad_file="skip"), spark=spark).window(uc.Global()).combine(n=uc.Count())
    assert [row.n for row in counted.df.union(counted.df).select("n").toLocalIterator()] == [61, 61]


def test_a_query_goes_on_under_another_name(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(10, count=1)
    folder = written(tables[:1], tmp_path / "in")
    query, before = ended(totals(read_stream(spark, folder, SCHEMA)).df, tmp_path)
    assert list(uc.progress(query).flows) == ["flow"]
    pq.write_table(tables[1], folder / "later.parquet")
    query, after = ended(totals(read_stream(spark, folder, SCHEMA), "renamed").df, tmp_path)
    assert list(uc.progress(query).flows) == ["renamed"]
    assert values(after, ["k", "n", "total"]) == values(by_minute(tables), ["k", "n", "total"])
    assert len(before) < len(after)


@pytest.mark.parametrize("name", ["", "  ", 3, "clicks #2", "two\nlines"])
def test_names_that_are_none(spark: SparkSession, name: Any) -> None:
    df = spark.createDataFrame(pa.concat_tables(batches(0)).to_pandas())
    with pytest.raises(uc.UncombineError, match=r"name= must be a text without '#' and line breaks"):
        uc.flow(df, name=name)


def test_a_progress_of_a_listener_or_of_the_past() -> None:
    from uncombine.sparkops.naming import Label

    class Row(dict[str, Any]):
        def asDict(self) -> dict[str, Any]:
            return self

    one = {"batchId": 7, "durationMs": {"triggerExecution": 1500}, "observedMetrics": {"of the user": Row(n=1)}}
    for label, part in ((Label("b", 12), 2), (Label("b", 12), 1), (Label("b", 9), 1), (Label("a 1", 1), 1)):
        one["observedMetrics"][label.metric(str(part))] = Row(counts=Row(rows_in=10 * label.number + part))
    one["observedMetrics"][Label("b", 9).metric("files")] = Row(files_skipped=4)
    found = uc.progress(one)
    assert {name: [stage.rows_in for stage in flow.stages] for name, flow in found.flows.items()} == {
        "a 1": [11],
        "b #1": [91],
        "b #2": [121, 122],
    }
    assert found.flows["b #1"].files_skipped == 4
    assert found.flows["a 1"] == FlowProgress(found.flows["a 1"].stages)
    assert pc.sum(pa.array([f.files_skipped for f in found.flows.values()])).as_py() == found.files_skipped
    assert uc.progress(json.loads(json.dumps(one))) == found  # the JSON of a progress has no rows
    assert uc.progress({"batchId": 8, "durationMs": {}}) == Progress(8, 0)  # and leaves out metrics if there are none


@pytest.mark.parametrize(
    "route",
    [*(pytest.param(name, marks=pytest.mark.soak) for name in ("native", "files")), "python", "replay"],
)
def test_a_stage_that_two_flows_of_a_batch_read_is_computed_once(
    route: str, spark: SparkSession, tmp_path: Path
) -> None:
    """The second flow reads the exchange of the first, as Spark's plan says once it has run."""
    rows = pa.concat_tables(batches(3))
    pq.write_table(rows, tmp_path / "rows.parquet")
    df = spark.read.parquet(str(tmp_path))
    window = uc.Sessions("1 minute") if route == "python" else MINUTE
    replay: dict[str, Any] = (
        {"replay": True, "processing_time": "ts", "close_at_end": True} if route == "replay" else {}
    )
    source = uc.flow(str(tmp_path), spark=spark) if route == "files" else opened(df, watermark=LAG, **replay)
    base = source.window(window).combine(by="k", s=uc.Sum("v"))
    big, small = base.where(uc.col("s") > 100), base.where(uc.col("s") <= 100)
    both = uc.union(big=big, small=small, side="side").window(uc.Global()).combine(by="side", s=uc.Sum("s"))
    found = both.df
    assert sum(row.s for row in found.collect()) == pc.sum(rows["v"]).as_py()
    assert "ReusedExchange" in found._jdf.queryExecution().executedPlan().toString()

"""Unions of flows on Spark: a replay gives the panes of a run here, and batches and streams the results of pandas."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from bounded import bounded_flow, cut
from pyspark.sql import SparkSession
from row_steps import draw_trigger, script_of
from seeds import seeds
from streams import START, panes_by_batch, read_stream, rows_flow, started, written

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.flows.fingerprint.differences import differences
from uncombine.flows.fingerprint.flow import Fingerprint
from uncombine.sparkops.routes.streaming import StreamRoute

SECOND = 1_000_000
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": TIME, "seen": TIME, "k": pa.string(), "x": pa.int64()})


def draw_rows(r: random.Random, place: int) -> pa.Table:
    """Rows of one source, which come at times of their own: no other source has them."""
    rows, seen = [], START
    for _ in range(r.randrange(1, 30)):
        seen += r.choice([0, 0, 10, 40, 300]) * SECOND
        ts = seen + place - r.randrange(100) * SECOND
        rows.append({"ts": ts, "seen": seen + place, "k": r.choice("pq"), "x": r.randrange(50)})
    return pa.Table.from_pylist(rows, SCHEMA)


def draw_strategy(r: random.Random) -> Any:
    return r.choice(
        [uc.BoundedLag("30 seconds"), uc.Monotonic(), uc.PerSource("k", "10 seconds", idle_after="2 minutes")]
    )


def draw_union(r: random.Random, sources: dict[str, uc.Flow]) -> uc.Flow:
    """Sources, some with a grouping of their own, and one or two groupings over their union."""
    flows = {}
    for name, source in sources.items():
        flow = source
        if r.random() < 0.3:
            flow = flow.where(uc.col("x") > 5)
        if r.random() < 0.4:
            flow = flow.window(uc.Fixed("1 minute"), draw_trigger(r), allowed_lateness="2 minutes")
            flow = flow.combine(by="k", x=uc.Sum("x"))
        flows[name] = flow
    both = uc.union(**flows, side="side")
    window = r.choice([uc.Fixed("2 minutes"), uc.Sessions("30 seconds"), uc.Sliding("2 minutes", "1 minute")])
    sums = both.window(window, draw_trigger(r), allowed_lateness=r.choice(["2 minutes", "5 minutes"]))
    flow = sums.combine(by=r.choice(["k", ["k", "side"]]), x=uc.Sum("x"), n=uc.Count())
    if r.random() < 0.3:
        flow = flow.window(uc.Fixed("10 minutes"), draw_trigger(r)).combine(most=uc.Max("x"), n=uc.Sum("n"))
    return flow


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(60, 2_060))
def test_a_replay_gives_the_panes_of_a_local_run(seed: int) -> None:
    r = random.Random(seed)
    tables = {name: draw_rows(r, place) for place, name in enumerate(["a", "b", "c"][: r.choice([2, 2, 3])])}
    settings: dict[str, Any] = {"processing_time": "seen", "replay": True, "close_at_end": True, "shards": 2}
    sources = {
        name: bounded_flow(cut(table, 3, seed), "ts", draw_strategy(r), seed, name=name, **settings)
        for name, table in tables.items()
    }
    flow = draw_union(r, sources)
    local = flow.run(script_of(tables))
    assert in_order(flow.df.toArrow()) == in_order(local.drop_columns(["step"]))


def in_order(panes: pa.Table) -> list[str]:
    return sorted(map(repr, panes.to_pylist()))


def frame(seed: int, count: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    times = pd.to_datetime(START + rng.integers(0, 600, count) * SECOND, unit="us", utc=True)
    return pd.DataFrame({"ts": times, "k": rng.choice(["a", "b"], count), "x": rng.integers(0, 100, count)})


def test_final_panes_of_a_union(spark: SparkSession, tmp_path: Path) -> None:
    """A DataFrame and files, of which one has a column of its own."""
    left, right = frame(1), frame(2).rename(columns={"ts": "at"}).assign(y=0.5)
    pq.write_table(pa.Table.from_pandas(right, preserve_index=False), tmp_path / "right.parquet")
    df = spark.createDataFrame(left.assign(ts=left.ts.dt.tz_localize(None)))
    both = uc.union(left=uc.flow(df), right=uc.flow(str(tmp_path), spark=spark, time="at"), side="side")
    minutes = both.window(uc.Fixed("1 minute")).combine(by=["k", "side"], x=uc.Sum("x"), y=uc.Sum("y"))
    got = sorted((row.k, row.side, row.x, row.y) for row in minutes.df.toLocalIterator())
    rows = pd.concat([left.assign(side="left"), right.rename(columns={"at": "ts"}).assign(side="right")])
    groups = rows.groupby(["k", "side", rows.ts.dt.floor("1min")])
    want = groups.agg(x=("x", "sum"), y=("y", lambda y: y.sum(min_count=1))).reset_index()
    assert len(got) == len(want)
    assert [row[:3] for row in got] == sorted((row.k, row.side, row.x) for row in want.itertuples())
    assert sum(row[3] or 0 for row in got) == pytest.approx(100.0)
    assert both.df.count() == 400


def test_a_stream_of_two_sources(spark: SparkSession, tmp_path: Path) -> None:
    """One source is grouped before the union. The one that lags behind holds the windows of the other."""
    clicks, bills = frame(3).sort_values("ts"), frame(4).sort_values("ts").rename(columns={"ts": "at"})
    end = pd.Timestamp(START + 86_400 * SECOND, unit="us", tz="UTC")
    flows = {}
    for name, rows, time in (("clicks", clicks, "ts"), ("bills", bills, "at")):
        rows = pd.concat([rows, pd.DataFrame({time: [end], "k": ["end"], "x": [0]})])
        schema = pa.schema({time: TIME, "k": pa.string(), "x": pa.int64()})
        parts = [
            pa.Table.from_pandas(rows.iloc[i : i + 67], schema, preserve_index=False) for i in range(0, len(rows), 67)
        ]
        df = read_stream(spark, written(parts, tmp_path / name), schema)
        flows[name] = uc.flow(df, time=time, watermark="30 seconds", name=name, tuning=uc.Tuning(shards=2))
    early = uc.AfterWatermark(early=uc.AfterCount(20), late=uc.AfterCount(1))
    flows["clicks"] = flows["clicks"].window(uc.Fixed("1 minute"), early).combine(by="k", x=uc.Sum("x"))
    both = uc.union(**flows, side="side")
    sums = both.window(uc.Fixed("5 minutes"), mode="retracting").combine(by=["k", "side"], x=uc.Sum("x"))
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    query = started(sums.df, tmp_path)
    query.awaitTermination()
    shown = pq.read_table(sorted((tmp_path / "panes").glob("*.parquet"))).to_pandas()
    shown = shown[shown.k != "end"]
    rows = pd.concat([clicks.assign(side="clicks"), bills.rename(columns={"at": "ts"}).assign(side="bills")])
    want = rows.groupby(["k", "side", rows.ts.dt.floor("5min")]).x.sum()
    net = shown.groupby(["k", "side", "x"])["diff"].sum()
    assert sorted((k, side, x) for (k, side, x), diff in net.items() if diff) == sorted(
        (k, side, x) for (k, side, _), x in want.items()
    )


def test_timers_of_a_stream_are_due_by_the_clocks_of_other_sources(spark: SparkSession, tmp_path: Path) -> None:
    """After the one click only bills come. By their processing time its delay is over."""
    flows = {}
    for name, seconds in {"clicks": [0, None], "bills": [1, 60]}.items():
        rows = [[] if s is None else [{"ts": START, "seen": START + s * SECOND, "k": "p", "x": s}] for s in seconds]
        folder = written([pa.Table.from_pylist(some, SCHEMA) for some in rows], tmp_path / name)
        df = read_stream(spark, folder, SCHEMA)
        flows[name] = uc.flow(df, watermark="1 hour", name=name, processing_time="seen", tuning=uc.Tuning(shards=1))
    delayed = uc.Repeatedly(uc.AfterDelay("5 seconds", "processing"))
    flows["clicks"] = flows["clicks"].window(uc.Fixed("1 hour"), delayed).combine(by="k", x=uc.Sum("x"))
    started(uc.union(**flows, side="side").df, tmp_path).awaitTermination()
    batches = [table.filter(pc.equal(table["side"], "clicks")).to_pylist() for table in panes_by_batch(tmp_path)]
    assert [len(panes) for panes in batches] == [0, 1]
    assert uc.timestamp(batches[1][0]["pane"]["processing_time"]) == START + 5 * SECOND


@pytest.mark.parametrize("replay", [False, True])
def test_explain_names_each_watermark_once(replay: bool) -> None:
    schema = pa.schema({"ts": TIME, "seen": TIME, "x": pa.int64()})
    settings: dict[str, Any] = {"replay": True, "processing_time": "seen"} if replay else {}
    rows = schema.empty_table()
    one, other = (
        bounded_flow([rows], "ts", lag, 0, shards=2, **settings) if replay else rows_flow(schema, watermark=lag)
        for lag in ("1 minute", "2 minutes")
    )
    for flow, lags in ((one, ["1 minute"]), (uc.union(one=one, other=other), ["1 minute", "2 minutes"])):
        lines = flow.window(uc.Fixed("1 minute")).combine(n=uc.Count()).explain().splitlines()
        said = [line.strip() for line in lines if "watermark:" in line]
        assert said == [f"watermark: BoundedLag(lag={lag!r})" for lag in lags]


def test_the_checkpoint_knows_the_inputs_by_their_names() -> None:
    schema = pa.schema({"ts": TIME, "x": pa.int64()})

    def print_of(*flows: uc.Flow, **named: uc.Flow) -> Fingerprint:
        flow = uc.union(*flows, **named).window(uc.Fixed("1 minute")).combine(n=uc.Count())
        streaming = StreamRoute(flow, flow.source.inputs[0].source.input)  # type: ignore[attr-defined]
        return streaming.task(streaming.graph.steps[-1], None).fingerprint

    one, other = (rows_flow(schema, watermark="1 minute") for _ in range(2))
    named = print_of(p=one, q=other)
    assert differences(named, print_of(p=other, q=one)) is None
    renamed = differences(named, print_of(p=one, r=other))
    assert renamed is not None
    assert "its inputs were p(ts), q(ts), and are p(ts), r(ts)" in renamed
    assert differences(named, print_of(q=one, p=other)) is not None
    assert print_of(one, other)["inputs"] == ["source(ts)"] * 2
    minutes = one.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    assert print_of(p=minutes, q=other)["inputs"] == ["stage 1", "q(ts)"]


def test_streams_and_bounded_flows_do_not_mix(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema({"ts": TIME, "x": pa.int64()})
    stream = uc.flow(read_stream(spark, written([schema.empty_table()], tmp_path / "in"), schema), watermark="1 minute")
    whole = uc.flow(spark.createDataFrame([], "ts timestamp, x bigint"))
    with pytest.raises(InvalidArgument, match="takes only streams or only bounded flows"):
        uc.union(stream, whole)
    with pytest.raises(InvalidArgument, match="takes flows of one engine"):
        uc.union(whole, uc.flow(schema))

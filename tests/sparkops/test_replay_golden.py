"""The published results of the Dataflow model's example by replay and in batch on Spark: all cases in one query."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded_flow, cut
from golden import KEYS, Case, cases, seen
from opened import run_script
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from scripts import apart
from streams import MARK, NOW, punctuated, timed

import uncombine as uc
from uncombine.flows.flow import Flow
from uncombine.windows import timestamp

FIRST = timestamp("2016-01-20T12:00:00Z")
SCHEMA = pa.schema({"value": pa.int64(), "event_time": pa.timestamp("us", "UTC")})
KEYED = SCHEMA.append(pa.field("key", pa.string()))
MARKED = uc.Punctuated(MARK)
SOME = ("allowed_lateness", "sessions_retracting", "global_each_minute_discarding")
"""A part of the cases that has each mode, each kind of window and of trigger, and rows that are dropped."""


def history(case: Case) -> list[Any]:
    """The script, every entry at an instant of its own: later by so little that no pane shows it."""
    return apart(timed(case.script, FIRST))


def grouped(case: Case, flow: Flow) -> Flow:
    options = {name: value for name, value in case.options.items() if name not in ("by", "time", "watermark")}
    return flow.window(**options).combine(by=case.options["by"], sum=uc.Sum("value"))


def in_order(case: Case, got: pa.Table, want: pa.Table) -> pa.Table:
    """The panes in the order of the local runner's; Spark's have none."""
    places = {repr(row): i for i, row in enumerate(want.drop_columns(["step"]).to_pylist())}
    assert len(places) == want.num_rows
    rows = got.to_pylist()
    assert sorted(map(repr, rows)) == sorted(places)
    order = sorted(range(len(rows)), key=lambda i: places[repr(rows[i])])
    return got.take(pa.array(order, pa.int64()))


def check(case: Case, got: pa.Table) -> None:
    """The panes are those that were published, and what has no place there is as the local runner has it."""
    want = run_script(history(case), sum=uc.Sum("value"), **case.options)
    ordered = in_order(case, got, want)
    for key in KEYS if case.by_key else (None,):
        ours, published = seen(case, ordered, key), [dict(pane) for pane in case.panes]
        for pane, other in zip(published, ours, strict=True):
            if "timing" not in pane:
                other.pop("timing", None)
        assert ours == published


def told() -> dict[str, Case]:
    """The cases of an input that does not end and of which rows tell the watermark."""
    return {case.name: case for case in cases() if not case.final_only and "watermark" not in case.options}


@pytest.mark.parametrize("keyed", [False, True], ids=["as written", "under three keys"])
def test_published_panes_by_replay_of_the_tasks(keyed: bool) -> None:
    for i, case in enumerate(cases(keyed)):
        if case.name in told():
            rows = pa.concat_tables(punctuated(history(case), KEYED if keyed else SCHEMA))
            settings = {"processing_time": NOW, "replay": True, "shards": 2}
            check(case, grouped(case, bounded_flow(cut(rows, 3, i), "event_time", MARKED, i, **settings)).df.toArrow())


def replayed(spark: SparkSession, chosen: list[Case]) -> None:
    """All of them as one query, since a query costs more than a flow."""
    frames = []
    for case in chosen:
        df = spark.createDataFrame(pa.concat_tables(punctuated(history(case), SCHEMA))).coalesce(1)
        flow = uc.flow(
            df, time="event_time", watermark=MARKED, processing_time=NOW, tuning=uc.Tuning(shards=1)
        ).replay()
        frames.append(grouped(case, flow).df.withColumn("case", F.lit(case.name)))
    panes = reduce(DataFrame.unionByName, frames).toArrow()
    for case in chosen:
        check(case, panes.filter(pc.equal(panes["case"], case.name)).drop_columns(["case"]))


def test_published_panes_by_replay(spark: SparkSession) -> None:
    replayed(spark, [told()[name] for name in SOME])


@pytest.mark.soak
def test_published_panes_of_all_cases_by_replay(spark: SparkSession) -> None:
    assert len(told()) == 15
    replayed(spark, list(told().values()))


def test_minutes_as_batches_by_replay() -> None:
    """The published micro-batches: each is one instant, and every window that it touches gives a pane."""
    case = next(case for case in cases() if "watermark" in case.options)
    entries = [replace(entry, at=timestamp(entry.at)) for entry in case.script]
    rows = pa.concat_tables(punctuated(entries, SCHEMA))
    flow = bounded_flow(cut(rows, 3, 5), "event_time", "each_batch", processing_time=NOW, replay=True, shards=2)
    panes = flow.window(uc.Fixed("2 minutes")).combine(sum=uc.Sum("value")).df.toArrow()
    ours, published = seen(case, panes, None), case.panes
    assert {pane.pop("timing") for pane in ours} == {"ON_TIME", "LATE"}
    assert sorted(ours, key=lambda p: (p["at"], p["window"])) == sorted(published, key=lambda p: (p["at"], p["window"]))


def test_ingress_time_by_replay() -> None:
    """Event time is when a row came, with nothing else said: the published sums, and the last when it is over."""
    for order in (1, 2):
        case = told()[f"processing_time_by_ingress_order_{order}"]
        entries = [entry for entry in case.script if isinstance(entry, uc.Elements)]
        rows = [{"value": entry.rows[0]["value"], NOW: timestamp(entry.at)} for entry in entries]
        schema = pa.schema({"value": pa.int64(), NOW: pa.timestamp("us", "UTC")})
        parts = cut(pa.Table.from_pylist(rows, schema), 3, order)
        settings = {"processing_time": NOW, "replay": True, "close_at_end": True, "shards": 2}
        flow = bounded_flow(parts, "event_time", uc.IngressTime(), **settings)
        panes = flow.window(uc.Fixed("2 minutes")).combine(sum=uc.Sum("value")).df.toArrow()
        assert results(panes) == left(case.panes, "accumulating")


def results(panes: pa.Table) -> list[tuple[str, int]]:
    assert all(diff == 1 for diff in panes["diff"].to_pylist())
    starts = [str(window and window["start"].strftime("%H:%M:%S")) for window in panes["window"].to_pylist()]
    return sorted(zip(starts, panes["sum"].to_pylist(), strict=True))


def left(panes: list[dict[str, Any]], mode: str) -> list[tuple[str, int]]:
    """The final results of published panes."""
    found: dict[tuple[str, ...], int] = {}
    for pane in panes:
        window = tuple(pane["window"] or ())
        before = 0 if mode == "accumulating" else found.get(window, 0)
        found[window] = before + pane["diff"] * pane["sum"]
    return sorted((window[0][11:19] if window else "None", value) for window, value in found.items() if value)


def batches() -> dict[str, tuple[Case, pa.Table]]:
    """The cases in which nothing is dropped, with their rows."""
    out = {}
    for case in cases():
        if not case.dropped:
            rows = pa.concat_tables(punctuated(timed(case.script, FIRST), SCHEMA))
            out[case.name] = case, rows.filter(pc.is_valid(rows["event_time"]))
    return out


def test_published_panes_in_batch_by_the_tasks() -> None:
    """The results of every case, if all rows are there from the start."""
    assert len(batches()) == 16
    for i, (case, rows) in enumerate(batches().values()):
        for seed in (i, i + 100):
            panes = grouped(case, bounded_flow(cut(rows, 3, seed), "event_time", seed=seed)).map(same).df.toArrow()
            assert results(panes) == left(case.panes, case.options["mode"])


def same(table: pa.Table) -> pa.Table:
    return table


@pytest.mark.daily
def test_published_panes_in_batch(spark: SparkSession) -> None:
    """By Spark's own aggregation where that can be, and sessions merged in Python."""
    frames, ways = [], []
    for name, (case, rows) in batches().items():
        flow = grouped(case, uc.flow(spark.createDataFrame(rows).coalesce(1), time="event_time"))
        frames.append(flow.df.withColumn("case", F.lit(name)))
        ways.append(flow.explain().splitlines()[0].split(":")[0])
    assert sorted(set(ways)) == ["Final panes, merged in Python", "Spark's own aggregation"]
    panes = reduce(DataFrame.unionByName, frames).toArrow()
    for name, (case, _) in batches().items():
        got = panes.filter(pc.equal(panes["case"], name))
        assert results(got) == left(case.panes, case.options["mode"]), name

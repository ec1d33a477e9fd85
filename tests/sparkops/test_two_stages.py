"""Two groupings in one streaming query: against the local pipeline, and against pandas over all rows at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded_flow, cut
from pipelines import Stage, pipeline
from pyspark.sql import DataFrame, SparkSession
from seeds import seeds
from streams import (
    MARK,
    NOW,
    ORIGIN,
    START,
    in_order,
    play,
    punctuated,
    punctuated_schema,
    results,
    rows_flow,
    timed,
    together,
)

import uncombine as uc

SECOND = 1_000_000
MARKED = uc.Punctuated(MARK, source=ORIGIN)
GAP = 20 * SECOND
SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
UPDATED = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
FIRST: dict[str, Any] = {"trigger": UPDATED, "mode": "retracting", "allowed_lateness": "1 hour"}
SECOND_STAGE: dict[str, Any] = {"trigger": UPDATED, "mode": "retracting", "allowed_lateness": "2 hours"}
SESSIONS = {"n": uc.Count(), "total": uc.Sum("v")}
LENGTHS = {"sessions": uc.Count(), "rows": uc.Sum("n"), "most": uc.Max("total")}


def script(seed: int) -> list[Any]:
    """Rows that come out of order and before their expiry, with a watermark before them, each at another time."""
    r = random.Random(seed)
    at, event, entries = START, 0, list[Any]()
    for _ in range(r.randint(8, 16)):
        at += SECOND
        event += r.choice([5, 20, 60])
        if r.random() < 0.7:
            times = [event + r.choice([0, 3, 10, 30, -10, -60, -600]) for _ in range(r.choice([1, 3, 8, 20]))]
            rows = [
                {"k": r.choice("abcde"), "ts": START + t * SECOND + r.choice([0, 0, 1, -1]), "v": r.randrange(9)}
                for t in times
            ]
            entries.append(uc.Elements(pa.Table.from_pylist(rows, SCHEMA), at=at))
        else:
            entries.append(uc.Watermark(START + (event - r.choice([0, 30])) * SECOND, at=at))
    if not any(isinstance(entry, uc.Elements) for entry in entries):
        return script(seed + 1_000)
    return timed([*entries, uc.Watermark(None, at=at + SECOND)])


def lengths(table: pa.Table) -> pa.Table:
    """Sessions, and whether they are longer than half a minute."""
    window = table["window"]
    length = pc.subtract(
        pc.struct_field(window, "end").cast(pa.int64()), pc.struct_field(window, "start").cast(pa.int64())
    )
    long = pc.greater(length, 30 * SECOND)
    return table.append_column("long", long)


def flow(df_flow: Any) -> Any:
    sessions = df_flow.window(uc.Sessions("20 seconds"), **FIRST).combine(by="k", **SESSIONS)
    return sessions.map(lengths).window(uc.Fixed("2 minutes"), **SECOND_STAGE).combine(by="long", **LENGTHS)


def recomputed(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """The lengths of the sessions, from all rows at once."""
    rows = rows.assign(us=rows["ts"].astype("int64") // (1 if rows["ts"].dt.unit == "us" else 1_000))
    rows = rows.sort_values(["k", "us"])
    new = (rows.groupby("k")["us"].diff().fillna(2**62) >= GAP).cumsum()
    sessions = rows.groupby(new).agg(start=("us", "min"), last=("us", "max"), n=("v", "size"), total=("v", "sum"))
    sessions["long"] = sessions["last"] + GAP - sessions["start"] > 30 * SECOND
    width = 120 * SECOND
    sessions["at"] = (sessions["last"] + GAP - 1) // width * width
    found = sessions.groupby(["long", "at"]).agg(sessions=("n", "size"), rows=("n", "sum"), most=("total", "max"))
    return [
        {"long": long, "start": at, "sessions": int(row.sessions), "rows": int(row.rows), "most": int(row.most)}
        for (long, at), row in found.iterrows()
    ]


def left_over(panes: pa.Table) -> list[dict[str, Any]]:
    """The values that remain after retractions."""
    left = results(panes, ["long", *LENGTHS])
    assert all(row["diff_sum"] == 1 for row in left)
    names = ["long", "start", *LENGTHS]
    return [
        {name: int(row[name].timestamp() * SECOND) if name == "start" else row[name] for name in names} for row in left
    ]


def check(entries: list[Any], panes: pa.Table) -> None:
    rows = pa.concat_tables([entry.rows for entry in entries if isinstance(entry, uc.Elements)]).to_pandas()
    assert sorted(left_over(panes), key=repr) == sorted(recomputed(rows), key=repr)


def locally(entries: list[Any]) -> pa.Table:
    stages = [
        Stage(uc.Sessions("20 seconds"), then=lengths, by="k", **FIRST, **SESSIONS),
        Stage(uc.Fixed("2 minutes"), by="long", **SECOND_STAGE, **LENGTHS),
    ]
    return pipeline(stages, entries, schema=SCHEMA)


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(5, 105, step=5))
def test_two_stages_with_retractions(first: int) -> None:
    """Random flows have chains such as these; here the reference is pandas, over all rows at once."""
    retracted = 0
    for seed in range(first, first + 5):
        entries = script(seed)
        source = rows_flow(punctuated_schema(SCHEMA), "ts", MARKED, 3, processing_time=NOW)
        panes = play(flow(source), punctuated(entries, SCHEMA), seed=seed, meddle=lambda engine, i: engine.restart())
        assert in_order(panes) == in_order(locally(entries))
        check(entries, panes)
        retracted += int(np.count_nonzero(np.asarray(panes["diff"]) < 0))
    assert retracted > 20


def test_two_stages_in_a_query(spark: SparkSession, tmp_path: Path) -> None:
    entries = script(104)
    panes = together(spark, {"flow": (punctuated(entries, SCHEMA), streamed)}, tmp_path)["flow"]
    assert in_order(panes) == in_order(locally(entries))
    check(entries, panes)
    assert sum(diff < 0 for diff in panes["diff"].to_pylist()) > 5


def streamed(df: DataFrame) -> Any:
    return flow(uc.flow(df, time="ts", watermark=MARKED, processing_time=NOW, tuning=uc.Tuning(shards=1)))


@pytest.mark.weekly
@pytest.mark.parametrize("window", [uc.Global(), uc.Fixed("30 days"), uc.Calendar("month")], ids=repr)
def test_panes_of_a_stage_may_lie_in_the_future(window: uc.Window) -> None:
    def totals(source: Any, trigger: uc.Trigger | None = None) -> Any:
        per_key = source.window(window, trigger).combine(by="k", total=uc.Sum("v"))
        return per_key.window(uc.Fixed("60 days"), trigger).combine(total=uc.Sum("total"))

    entries = script(3)
    batches = punctuated(entries, SCHEMA)
    rows = pa.concat_tables([entry.rows for entry in entries if isinstance(entry, uc.Elements)])
    want = [{"total": pc.sum(rows["v"]).as_py(), "diff_sum": 1}]
    batch = totals(bounded_flow(cut(rows, 3, 1), "ts")).map(lambda panes: panes).df.toArrow()
    replayed: dict[str, Any] = {"processing_time": NOW, "replay": True, "close_at_end": True}
    replay = totals(bounded_flow([pa.concat_tables(batches)], "ts", MARKED, **replayed)).df.toArrow()
    each = uc.Repeatedly(uc.AfterCount(1))
    stream = play(totals(rows_flow(punctuated_schema(SCHEMA), "ts", MARKED, processing_time=NOW), each), batches)
    for panes in (batch, replay, stream):
        assert [{name: row[name] for name in want[0]} for row in results(panes, ["total"])] == want


@pytest.mark.parametrize("seed", seeds(20))
def test_a_merge_that_runs_again_gives_the_next_stage_the_same_rows(seed: int) -> None:
    """Sums of floats depend on their order, and parcels come in any order; the stand-in compares both attempts."""
    rng = np.random.default_rng(seed)
    times = pa.array(rng.integers(0, 3_600 * SECOND, 600)).cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": times, "k": rng.choice(["a", "b", "c"], 600), "x": rng.normal(size=600)})
    hours = bounded_flow(cut(rows, 6, seed), "ts", seed=seed).window(uc.Fixed("1 hour")).combine(by="k", s=uc.Sum("x"))
    again = hours.map(lambda panes: panes).window(uc.Fixed("1 day")).combine(by="k", most=uc.Max("s"))
    got = again.map(lambda panes: panes).df.toArrow().select(["k", "most"]).to_pandas().set_index("k")["most"]
    assert np.allclose(got.sort_index(), rows.to_pandas().groupby("k")["x"].sum())

"""A shard as it runs in a worker: parcels in, a bundle for each instant of processing time, panes out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from seeds import share

import uncombine as uc
from uncombine.panes import Grouping, Operator
from uncombine.panes.grouping.lift import Lift
from uncombine.panes.parcels import MARKS, Parcel
from uncombine.panes.shard.arrivals import arrivals
from uncombine.panes.shard.shard import Shard
from uncombine.panes.watermarks.watermark_strategies import BoundedLag
from uncombine.windows import time_column
from uncombine.windows.times import MAX_TIME

SECOND = 1_000_000
START = 1_714_564_800_000_000
GAP = 120 * SECOND
BIDS = pa.schema({"bid": pa.int64(), "bidder": pa.int64(), "ts": pa.timestamp("us", "UTC"), "diff": pa.int64()})


def bids(seed: int, count: int) -> pd.DataFrame:
    """Rows of few busy and many quiet bidders, some late, some replaced by themselves, some retracted for good."""
    r = np.random.default_rng(seed)

    def seconds(values: np.ndarray) -> np.ndarray:
        return (values * SECOND).astype(np.int64)

    rows = pd.DataFrame({"bid": np.arange(count), "bidder": (r.zipf(1.4, count) - 1) % 80})
    rows["ts"] = START + seconds(np.sort(r.uniform(0, 1.2 * count, count)))
    delay = r.exponential(15, count)
    late = r.random(count) < 0.01
    delay[late] += r.uniform(300, 1800, late.sum())
    rows["seen"], rows["diff"] = rows["ts"] + seconds(delay), 1
    places = r.permutation(count)
    changed, gone = rows.iloc[places[: count // 20]], rows.iloc[places[count // 20 : count // 14]]
    again = changed.assign(seen=changed["seen"] + seconds(r.uniform(5, 900, len(changed))))
    back = gone.assign(seen=gone["seen"] + seconds(r.uniform(5, 900, len(gone))))
    whole = pd.concat([rows, again, again.assign(diff=-1), back.assign(diff=-1)])
    return whole.sort_values("seen", kind="stable").reset_index(drop=True)


def sessions(rows: pd.DataFrame) -> Counter[Any]:
    """The sessions of the rows that are left: bidder, start, end, bids."""
    left = rows.groupby(["bidder", "bid", "ts"], as_index=False)["diff"].sum()
    left = left[left["diff"] > 0].sort_values(["bidder", "ts"])
    new = (left.groupby("bidder")["ts"].diff().fillna(2**62) >= GAP).cumsum()
    found = left.groupby(new).agg(
        bidder=("bidder", "first"), start=("ts", "min"), last=("ts", "max"), n=("bid", "size")
    )
    return Counter((s.bidder, s.start, s.last + GAP, s.n) for s in found.itertuples())


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("count", "each", "batches"),
    share(pytest.param(*bundles) for bundles in [(250, 0, 1), (1_500, 30, 1), (1_500, 30, 40)]),
)
def test_sessions_over_a_changelog_are_shown_once(count: int, each: int, batches: int) -> None:
    """A history of bids, a bundle for each row or each so many seconds: a bundle brings rows of some bidders and moves
    clocks past sessions of others."""
    frame = bids(7, count)
    if each:
        frame["seen"] = -(-frame["seen"] // (each * SECOND)) * each * SECOND
    rows, seen = pa.Table.from_pandas(frame, preserve_index=False).select(BIDS.names), frame["seen"].to_numpy()
    rows = pa.table([rows[f.name].cast(f.type) for f in BIDS], schema=BIDS)
    trigger = uc.AfterWatermark(early=uc.AfterDelay("30 seconds"), late=uc.AfterCount(1))
    options: dict[str, Any] = {"mode": "retracting", "allowed_lateness": "2 hours", "by": "bidder", "diff": "diff"}
    operator = Operator(Grouping({"n": uc.CountDistinct("bid")}, uc.Sessions("2 minutes"), trigger, **options), BIDS)
    lift, lag = Lift(operator.compiled, 1, timed=True), BoundedLag("2 minutes")
    running, panes = Shard.start(operator), []
    for a, b in pairwise(np.linspace(0, len(frame), batches + 1).astype(int)):
        at = seen[a:b]
        part = rows.slice(a, b - a)
        marks = lag.marks(part, time_column(part["ts"].combine_chunks())[0], at)
        parcels = [Parcel("marks", marks), *(parcel for _, parcel in lift(part, at))]
        running, played = running.play(*arrivals(parcels), until=int(at[-1]))
        panes += [instant.panes for instant in played]
    running, played = running.close()
    panes += [instant.panes for instant in played]
    assert running.state.counts.dropped == 0
    assert (len(running.state.windows), len(running.state.atoms or ())) == (0, 0)
    net: Counter[Any] = Counter()
    for row in pa.concat_tables(panes).to_pylist():
        window = (uc.timestamp(row["window"][name]) for name in ("start", "end"))
        net[(row["bidder"], *window, row["n"])] += row["diff"]
    assert set(net.values()) <= {0, 1}
    assert +net == sessions(frame)


def test_rule_67_rows_are_judged_before_the_watermark_follows_the_hold() -> None:
    """A file of a later time is read first. The rows of the other are there when the watermark moves past them."""
    schema = pa.schema({"ts": pa.timestamp("us", "UTC")})
    operator = Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 minute")), schema)
    lift, running, panes = Lift(operator.compiled, 1), Shard.start(operator), []
    for at, second, hold in [(1, 500, 30 * SECOND), (2, 30, 200 * SECOND), (3, 200, MAX_TIME)]:
        rows = pa.table({"ts": [second * SECOND]}).cast(schema)
        marks = BoundedLag("0 seconds").marks(rows, np.array([second * SECOND]), at)
        held = pa.Table.from_pylist([{"source": None, "time": hold, "at": at}], schema=MARKS)
        parcels = [Parcel("hold", held), Parcel("marks", marks), *(parcel for _, parcel in lift(rows, at))]
        running, played = running.play(*arrivals(parcels), until=at)
        panes.append([row["window"]["start"].timestamp() for one in played for row in one.panes.to_pylist()])
    assert running.state.counts.dropped == 0
    assert panes == [[], [0.0], [180.0]]
    assert running.state.watermark == 500 * SECOND


@pytest.mark.full
def test_many_deadlines_that_have_passed_are_no_loop() -> None:
    """Each of 1,500 windows, a microsecond apart, leaves one to the step in which the next window fires."""
    rows = [{"ts": f"1970-01-01T00:00:00.{n:06}Z"} for n in range(1_500)]
    schema = pa.schema({"ts": pa.timestamp("us", "UTC")})
    trigger = uc.AfterWatermark(late=uc.AfterWatermark())
    windows = uc.flow(schema, watermark=uc.ProcessingTime("1 second")).window(
        "0.000001 seconds", trigger, allowed_lateness="1 hour"
    )
    result = windows.combine(n=uc.Count()).run([uc.Elements(rows, at=500_000), uc.Clock(3_000_000)])
    assert len(result) == 1_500


@pytest.mark.weekly
def test_a_trigger_that_sets_a_passed_deadline_for_ever_is_told() -> None:
    class Again(uc.UserTrigger):
        def on_element(self, row: Any, window: Any, ctx: Any) -> None:
            ctx.set_timer("a", window[1], "event")

        def on_timer(self, tag: str, time: int, ctx: Any) -> None:
            ctx.set_timer("a", ctx.window[1], "event")

    flow = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC")}), watermark=uc.ProcessingTime())
    windows = flow.window("10 seconds", uc.Repeatedly(Again()), allowed_lateness="2 hours")
    panes = windows.combine(n=uc.Count())
    with pytest.raises(uc.UncombineError, match="sets a timer of event time again and again that has passed already"):
        panes.run([uc.Elements([{"ts": 0}], at=15_000_000), uc.Clock(3_600_000_000)])

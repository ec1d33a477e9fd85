"""Random flows with steps over single rows, for tests that run them in several ways."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

import pyarrow as pa

import uncombine as uc

SECOND = 1_000_000
START = 1_453_291_200_000_000  # noon of 2016-01-20
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": TIME, "seen": TIME, "k": pa.string(), "id": pa.int64(), "x": pa.int64(), "w": pa.int64()})


class Totals:
    """Emits the total of each key with every fifth row, and the last total a minute of event time after a row."""

    output = pa.schema({"id": pa.int64(), "x": pa.int64()})
    state = pa.schema({"x": pa.int64(), "rows": pa.int64()})
    timers = "event_time"

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        state["x"] = (state["x"] or 0) + (row["x"] or 0) * ctx.diff
        state["rows"] = (state["rows"] or 0) + 1
        if state["rows"] % 5 == 0:
            ctx.emit({"id": state["rows"], "x": state["x"]})
        ctx.set_timer("last", ctx.time + 60 * SECOND, "event")

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"id": -1, "x": ctx.state["x"]})


class Ledger:
    """Emits each third row, each large row with its weight, and the total of a key, which replaces that before it."""

    output = pa.schema({"id": pa.int64(), "x": pa.int64()})
    outputs = {"totals": pa.schema({"x": pa.int64(), "id": pa.int64()}), "large": output}  # noqa: RUF012
    state = pa.schema({"x": pa.int64(), "rows": pa.int64(), "at": pa.int64()})
    timers = "event_time"

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        x = row["x"] or 0
        if x > 25:
            ctx.emit({"id": row["id"], "x": x}, diff=ctx.diff, to="large")
        if state["at"] is not None:
            ctx.emit({"x": state["x"]}, time=state["at"], diff=-1, to="totals")
        state |= {"x": (state["x"] or 0) + x * ctx.diff, "rows": (state["rows"] or 0) + 1, "at": ctx.time}
        ctx.emit({"x": state["x"]}, to="totals")
        ctx.set_timer("shown", ctx.time + 60 * SECOND, "event", hold=ctx.time)
        if state["rows"] % 3 == 0:
            ctx.emit({"id": state["rows"], "x": x})

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.state["at"] = None


def ledger(flow: uc.Flow) -> list[uc.Flow]:
    """The three outputs of one step."""
    rows = flow.process(by="k", function=Ledger, outputs=Ledger.outputs)
    return [rows, *map(rows.output, Ledger.outputs)]


def scored(table: pa.Table) -> pa.Table:
    """A function with one row for each row."""
    return table.append_column("score", pa.array([(x or 0) * 2 for x in table["x"].to_pylist()], pa.int64()))


def twice(table: pa.Table) -> pa.Table:
    """A function with a row for each unit of `x` beyond 30, at most two."""
    places = [i for i, x in enumerate(table["x"].to_pylist()) for _ in range(min(max((x or 0) // 15 - 1, 0), 2))]
    return table.take(pa.array(places, pa.int64())).append_column("row", pa.array(places, pa.int64()))


def draw_rows(r: random.Random, weighted: bool, place: int = 0) -> pa.Table:
    """Rows with event times of their own, late and out of order; with weights, some are retracted later."""
    rows: list[dict[str, Any]] = []
    seen = START
    for i in range(r.randrange(1, 40)):
        seen += r.choice([0, 0, 10, 40, 300]) * SECOND
        back = r.randrange(100) * SECOND
        row = {"ts": seen - back + 10 * i + place, "seen": seen + place, "k": r.choice(["p", "q", None])}
        row |= {"id": r.randrange(6), "x": r.choice([None, *range(50)]), "w": 1}
        if weighted and rows and r.random() < 0.3:
            old = r.choice(rows)
            row = {**old, "seen": seen + place, "w": -1} if old["w"] > 0 else {**row, "w": 2}
        rows.append(row)
    return pa.Table.from_pylist(rows, SCHEMA)


def draw_trigger(r: random.Random) -> Any:
    early = uc.AfterWatermark(early=r.choice([uc.AfterCount(2), uc.AfterDelay("1 minute")]), late=uc.AfterCount(1))
    return r.choice([None, early, uc.Repeatedly(uc.AfterCount(2))])


def draw_step(r: random.Random, flow: uc.Flow) -> uc.Flow:
    """One more step that keeps state, and sometimes a sample before it."""
    if r.random() < 0.15:
        flow = flow.sample(0.7, by=r.choice(["id", ("k", "x")]))
    match r.choice(["distinct", "in_order", "map", "flat_map", "process", "rolling", "window", "window"]):
        case "distinct":
            return flow.distinct(r.choice(["id", "k"]), within=r.choice(["1 minute", "1 hour"]))
        case "in_order":
            return flow.in_order(by=r.choice(["k", ()]))
        case "map":
            return flow.map(scored, remember=True, deterministic=False).select("k", "id", "x", "event_time", "diff")
        case "flat_map":
            return flow.flat_map(twice, remember=True)
        case "process":
            return r.choice([flow.process(by="k", function=Totals), *ledger(flow)])
        case "rolling":
            return draw_rolling(r, flow)
        case _:
            window = r.choice([uc.Fixed("1 minute"), uc.Sessions("30 seconds")])
            sums = flow.window(window, draw_trigger(r)).combine(by=["k", "id"], x=uc.Sum("x"))
            return sums.select("k", "id", "x", "event_time", "diff")


def draw_rolling(r: random.Random, flow: uc.Flow) -> uc.Flow:
    """Rows, or ticks, with the total of those that they see."""
    looks: dict[str, Any] = r.choice(
        [
            {"period": "30 seconds"},
            {"period": "5 minutes", "coarse": "1 minute"},
            {"period": "2 minutes", "every": "45 seconds"},
            {"rows": 3, "order": "x"},
        ]
    )
    by = ("k", "id") if "every" in looks else r.choice(["k", ("k", "id"), ()])
    if "rows" not in looks:
        looks["closed"] = r.choice(["right", "left", "both", "neither"])
    rows = flow.rolling(**looks, by=by, emit=r.choice(["at_once", "at_once", "final"]))
    totals = rows.combine(n=uc.Count(), total=uc.Sum("x"))
    return totals.with_columns(x=uc.col("total").fill_null(-7) * 3 + uc.col("n")).select(
        "k", "id", "x", "event_time", "diff"
    )


def draw_flow(r: random.Random, sources: list[uc.Flow]) -> uc.Flow:
    """One to four steps over one source, or over the union of several."""
    flow = sources[0]
    if len(sources) > 1:
        flow = uc.union(*(draw_step(r, source) if r.random() < 0.5 else source for source in sources))
    for _ in range(r.randrange(1, 4)):
        flow = draw_step(r, flow)
    return flow


def script_of(tables: dict[str, pa.Table]) -> list[Any]:
    """The rows of all sources in order of the time at which they come, and then the end."""
    rows = [(row["seen"], name, row) for name, table in tables.items() for row in table.to_pylist()]
    rows.sort(key=lambda row: row[:2])
    given = groupby(rows, key=lambda row: row[:2])
    entries = [uc.Elements([row for *_, row in some], at=at, input=name) for (at, name), some in given]
    return [*entries, uc.Watermark(None)]

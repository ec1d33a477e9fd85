"""Final panes from raw rows, in plain Python: what every way to get them is held to."""

from __future__ import annotations

import datetime as dt
import math
import random
import statistics
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from reference.byrule.times import EPOCH, MAX_TIME, MIN_TIME
from reference.byrule.windows import assign, united

import uncombine as uc

SECOND = 1_000_000
START = 1_453_291_200 * SECOND  # noon of 2016-01-20
INSTANT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    {
        "ts": INSTANT,
        "k": pa.float64(),
        "j": pa.string(),
        "x": pa.int64(),
        "d": pa.int64(),
        "window": pa.struct([pa.field("start", INSTANT), pa.field("end", INSTANT)]),
    }
)
LAST = 253_402_300_799_999_999  # of the year 9999
FIRST = -62_135_596_800_000_000  # of the year 1


def twice_or_never(times: np.ndarray) -> tuple[Any, Any, Any]:
    """Rows of odd seconds have no window, others one of 10 and one of 30 seconds."""
    row = np.flatnonzero(times // SECOND % 2 == 0)
    start = times[row] - times[row] % (10 * SECOND)
    return (
        np.concatenate([row, row]),
        np.concatenate([start, start]),
        np.concatenate([start + 10 * SECOND, start + 30 * SECOND]),
    )


def longer_or_shorter(times: np.ndarray) -> tuple[Any, Any, Any]:
    """Sessions whose gap is of the row."""
    return None, times, times + (1 + times // SECOND % 3) * 10 * SECOND


WINDOWS: tuple[uc.Window, ...] = (
    uc.Global(),
    uc.Fixed("1 minute"),
    uc.Fixed("1 minute", "-10 seconds"),
    uc.Fixed("7 seconds", "3 seconds"),
    uc.Sliding("1 minute", "20 seconds"),
    uc.Sliding("50 seconds", "20 seconds", "7 seconds"),
    uc.Sliding("50 seconds", "16.666667 seconds"),
    uc.Sliding("10 seconds", "1 minute"),
    uc.Sessions("5 seconds"),
    uc.Sessions("30 seconds"),
    uc.Calendar("day"),
    uc.Calendar("day", "America/New_York"),
    uc.Calendar("month"),
    uc.Inherit(),
    uc.Custom(twice_or_never),
    uc.Custom(longer_or_shorter, merge="overlap"),
)
COMBINERS: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    "known": uc.Count("x"),
    "total": uc.Sum("x"),
    "hi": uc.Max("x"),
    "lo": uc.Min("x"),
    "mid": uc.Median("x"),
}
POLICIES = ("end_of_window", "start_of_window", "earliest", "latest")


def rows(count: int, seed: int, changelog: bool = False) -> pa.Table:
    """Rows before and after 1970 and 2016, of few keys, some without a time; a changelog takes some of them back."""
    r = random.Random(seed)
    given = []
    for _ in range(count):
        at = r.choice([0, START]) + r.choice([0, 0, 0, 86_400, -40 * 86_400]) * SECOND
        ts = at + r.choice([r.randrange(-200, 200) * SECOND, r.randrange(-(10**8), 10**8)])
        start = ts - ts % (20 * SECOND)
        row: dict[str, Any] = {
            "ts": None if r.random() < 0.05 else ts,
            "k": r.choice([None, math.nan, 0.0, -0.0, 1.5]),
            "j": r.choice([None, "", "a", "a"]),
            "x": r.choice([None, *range(-3, 9)]),
            "d": 1,
            "window": r.choice([None, {"start": start, "end": start + r.choice([10, 40]) * SECOND}]),
        }
        given.append(row)
    if changelog:
        back = [row | {"d": -1} for row in given if r.random() < 0.5]
        given = given + back
        r.shuffle(given)
    return pa.Table.from_pylist(given, SCHEMA)


def oracle(
    table: pa.Table, window: uc.Window, by: tuple[str, ...], policy: str = "end_of_window", *, flow: bool = False
) -> list[Any]:
    """A tuple for each final pane: the keys, the window, the results and the event time.

    A whole `flow` has one of no rows, too, for all of time without keys.
    """
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    sessions: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for row in left(table):
        for span in spans(window, row):
            cells.setdefault((*(plain(row[name]) for name in by), span), []).append(row)
    if window.merging:
        for *key, span in cells:
            sessions.setdefault(tuple(key), []).append(span)
        merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for (*key, span), held in cells.items():
            hull = next(h for h in united(sessions[tuple(key)]) if h[0] <= span[0] < h[1])
            merged.setdefault((*key, hull), []).extend(held)
        cells = merged
    reach: dict[tuple[Any, ...], int] = {}  # of windows without an end, also of retracted rows
    for row in every(table):
        for span in spans(window, row):
            cell = (*(plain(row[name]) for name in by), span)
            reach[cell] = max(reach.get(cell, row["ts"]), row["ts"])
    out = []
    for (*key, span), held in cells.items():
        times = [row["ts"] for row in held]
        last = reach[*key, span] if span[1] == MAX_TIME else span[1] - 1
        start = last if span[0] == MIN_TIME else span[0]
        at = {"end_of_window": last, "start_of_window": start, "earliest": min(times), "latest": max(times)}
        whole = None if span[1] == MAX_TIME else span
        out.append((*key, whole, *results(held), min(max(at[policy], FIRST), LAST)))
    if flow and not out and not by and isinstance(window, uc.Global):
        return [(None, *results([]), None)]
    return sorted(out, key=repr)


def results(held: list[dict[str, Any]]) -> tuple[Any, ...]:
    xs = [row["x"] for row in held if row["x"] is not None]
    if not xs:
        return (len(held), 0, None, None, None, None)
    return (len(held), len(xs), sum(xs), max(xs), min(xs), float(statistics.median(xs)))


def left(table: pa.Table) -> list[dict[str, Any]]:
    """The rows that are not retracted, times in microseconds; those without a time count for nothing."""
    given = every(table, known=False)
    weights: dict[str, int] = {}
    some = {}
    for row in given:
        known = repr({name: plain(value) for name, value in row.items() if name != "d"})
        weights[known] = weights.get(known, 0) + row["d"]
        some[known] = row
    assert min(weights.values(), default=0) >= 0
    return [some[known] for known, weight in weights.items() for _ in range(weight) if some[known]["ts"] is not None]


def every(table: pa.Table, known: bool = True) -> list[dict[str, Any]]:
    """All rows, times in microseconds, with or without those whose time is not known."""
    index = table.schema.names.index("ts")
    given = table.set_column(index, "ts", table["ts"].cast(pa.int64())).to_pylist()
    return [row for row in given if row["ts"] is not None or not known]


def spans(window: uc.Window, row: dict[str, Any]) -> list[tuple[int, int]]:
    match window:
        case uc.Inherit():
            held = row["window"]
            return [(MIN_TIME, MAX_TIME)] if held is None else [(micros(held["start"]), micros(held["end"]))]
        case uc.Custom():
            _, start, end = window.assign_rows(np.array([row["ts"]]))
            return list(zip(start.tolist(), end.tolist(), strict=True))
        case uc.Calendar(tz="America/New_York"):
            zone = ZoneInfo("America/New_York")
            day = (
                (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=row["ts"])).astimezone(zone).date()
            )
            first, after = (dt.datetime(d.year, d.month, d.day, tzinfo=zone) for d in (day, day + dt.timedelta(1)))
            return [(micros(first), micros(after))]
    return assign(window, row["ts"], row)


def micros(time: dt.datetime) -> int:
    return (time - EPOCH) // dt.timedelta(microseconds=1)


def plain(value: Any) -> Any:
    """A key as groups have it: all NaN are one, and both zeros."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def found(panes: pa.Table, by: tuple[str, ...]) -> list[Any]:
    """Panes as the oracle has them."""
    times = panes["event_time"].cast(INSTANT).cast(pa.int64()).to_pylist()
    out = []
    for row, at in zip(panes.drop_columns(["event_time"]).to_pylist(), times, strict=True):
        held = row["window"]
        span = None if held is None else (micros(held["start"]), micros(held["end"]))
        out.append((*(plain(row[name]) for name in by), span, *(row[name] for name in COMBINERS), at))
    return sorted(out, key=repr)

"""Flows with a fault that the law kit of flows must find with its default options, and the right flow of each.

Most faults are of a microsecond, or of rows that a step leaves out without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc

from .flows import (
    EARLY,
    ROWS,
    Frame,
    both,
    by_two_steps,
    first_rows,
    hops,
    looking_back,
    minutes,
    pairs,
    plain,
    rolled,
    seen,
    seen_by_left,
    sessions,
    signed,
    sizes,
    sums,
    ticks,
    united,
)

Right = tuple[uc.Flow, Callable[..., Any], dict[str, Any]]

NO_LATE = {"late": False}
"""Of sessions: a late row that is in time does not meet a session that has expired."""


def shifted_minutes(rows: Frame) -> Frame:
    """Minutes that begin seven seconds after the full minute."""
    shift = pd.Timedelta("7s")
    found = minutes(rows.assign(ts=rows.ts - shift)).reset_index()
    return found.assign(**{"window.start": found["window.start"] + shift})


def joined(
    within: tuple[str, str] = ("-30 seconds", "1 minute"), how: str = "inner", left: Any = None, right: Any = None
) -> uc.Flow:
    one, other = left or signed(name="left", watermark="20 seconds"), right or plain(name="right")
    return one.join(other, on="k", how=how, within=within).select("k", "x_left", "x_right", "event_time", "diff")


def distinct(within: str = "1 hour", by: str = "k") -> uc.Flow:
    return signed().distinct(by, within=within).select("k", "ts", "diff")


def moved(at_most_back: str = "90 seconds", by: str = "90s") -> uc.Flow:
    return sums(plain().with_time(uc.col("ts") - pd.Timedelta(by), at_most_back))


def days(zone: str = "UTC") -> uc.Flow:
    return sums(plain(), uc.Calendar("day", zone), by=())


def of_days(rows: Frame) -> Frame:
    return rows.groupby(rows.ts.dt.floor("1D").rename("window.start")).agg(n=("ts", "size"))


def in_micros(table: pa.Table) -> np.ndarray:
    return np.asarray(table["ts"].cast(pa.int64()).fill_null(0))


def with_times(table: pa.Table, times: Any) -> pa.Table:
    """The table with other event times; those that were null stay null."""
    given = pa.array(np.asarray(times), pa.int64(), mask=np.asarray(table["ts"].is_null()))
    return table.set_column(0, "ts", given.cast(ROWS.field("ts").type))


def to_seconds(table: pa.Table) -> pa.Table:
    """Times are rounded to seconds."""
    return with_times(table, (in_micros(table) + 500_000) // 1_000_000 * 1_000_000)


def to_millis(table: pa.Table) -> pa.Table:
    """Times are cut to milliseconds."""
    return with_times(table, in_micros(table) // 1_000 * 1_000)


def until_the_end(times: Any) -> Any:
    """Minutes that have their end and not their start."""
    start = (times - 1) // 60_000_000 * 60_000_000
    return None, start, start + 60_000_000


def without_the_last(times: Any) -> Any:
    """Minutes that lack their last microsecond."""
    start = times // 60_000_000 * 60_000_000
    row = np.flatnonzero(times % 60_000_000 != 59_999_999)
    return row, start[row], start[row] + 60_000_000


def forgets(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """A function that leaves rows of one value without a time."""

    def function(table: pa.Table) -> pa.Table:
        time = "event_time" if "event_time" in table.column_names else "ts"
        here = pc.fill_null(pc.equal(table[name], value), False)
        place = table.column_names.index(time)
        return table.set_column(place, time, pc.if_else(here, None, table[time]))

    return function


def by_two(between: Callable[[uc.Flow], uc.Flow] = lambda panes: panes, **second: Any) -> uc.Flow:
    """The number of keys with each number of rows in each minute."""
    first = plain().window(uc.Fixed("1 minute"), EARLY, allowed_lateness="1 minute").combine(by="k", n=uc.Count())
    given = {"window": uc.Fixed("1 minute"), "trigger": EARLY, "mode": "retracting", **second}
    return between(first).window(**given).combine(by="n", keys=uc.Count())


def positive(table: pa.Table) -> list[bool]:
    """Leaves out retractions."""
    return [weight > 0 for weight in table["w"].to_pylist()]


def finishing(trigger: uc.Trigger) -> uc.Flow:
    return sums(plain(), trigger=trigger, allow_finish=True)


RIGHT_FLOWS: dict[str, Right] = {
    "minutes": (sums(plain()), minutes, {}),
    "minutes of a changelog": (sums(signed(), allowed_lateness="1 minute"), minutes, {}),
    "shifted minutes": (sums(plain(), uc.Fixed("1 minute", offset="7 seconds")), shifted_minutes, {}),
    "hops": (sums(plain(), uc.Sliding("1 minute", "30 seconds"), by=()), hops, {}),
    "days": (days(), of_days, {}),
    "sessions": (sums(signed(), uc.Sessions("30 seconds")), sessions, NO_LATE),
    "join": (joined(), pairs, {}),
    "left join": (joined(how="left"), lambda frames: pairs(frames, "left"), {}),
    "distinct": (distinct(), first_rows, {}),
    "moved": (moved(), lambda rows: minutes(rows.assign(ts=rows.ts - pd.Timedelta("90s"))), {}),
    "two steps": (by_two_steps(), sizes, {}),
    "union": (both(), united, {}),
    "filter": (plain().where(uc.col("x") > 4), lambda rows: rows[rows.x > 4], {}),
    "rolling": (rolled(), seen, {}),
    "rolling join": (looking_back(), seen_by_left, {}),
    "ticks": (rolled(every="30 seconds"), ticks, {}),
}

WRONG_FLOWS: dict[str, tuple[str, uc.Flow]] = {
    # Windows.
    "windows are a microsecond too long": ("minutes", sums(plain(), uc.Fixed("60.000001 seconds"))),
    "windows begin a microsecond late": ("minutes", sums(plain(), uc.Fixed("1 minute", offset="0.000001 seconds"))),
    "windows have their end": ("minutes", sums(plain(), uc.Custom(until_the_end))),
    "windows lack their last microsecond": ("minutes", sums(plain(), uc.Custom(without_the_last))),
    "the offset is forgotten": ("shifted minutes", sums(plain())),
    "the offset is a microsecond too large": (
        "shifted minutes",
        sums(plain(), uc.Fixed("1 minute", offset="7.000001 seconds")),
    ),
    "each key has windows of its own": ("minutes", sums(plain(), uc.Fixed("1 minute", per_key_phase=True))),
    "hops are too long": ("hops", sums(plain(), uc.Sliding("75 seconds", "30 seconds"), by=())),
    "hops have another period": ("hops", sums(plain(), uc.Sliding("1 minute", "20 seconds"), by=())),
    "hops begin a microsecond late": (
        "hops",
        sums(plain(), uc.Sliding("1 minute", "30 seconds", "0.000001 seconds"), by=()),
    ),
    "days are those of another place": ("days", days("Europe/Berlin")),
    "the gap is a microsecond too long": ("sessions", sums(signed(), uc.Sessions("30.000001 seconds"))),
    "the gap is a microsecond too short": ("sessions", sums(signed(), uc.Sessions("29.999999 seconds"))),
    "times are rounded to seconds": ("minutes", sums(plain().map(to_seconds))),
    # Joins and steps over rows.
    "the low bound is a second too high": ("join", joined(("-29 seconds", "1 minute"))),
    "the low bound is a second too low": ("join", joined(("-31 seconds", "1 minute"))),
    "the low bound is a microsecond too high": ("join", joined(("-29.999999 seconds", "1 minute"))),
    "the low bound is a microsecond too low": ("join", joined(("-30.000001 seconds", "1 minute"))),
    "the high bound is a microsecond too high": ("join", joined(("-30 seconds", "60.000001 seconds"))),
    "the high bound is a microsecond too low": ("join", joined(("-30 seconds", "59.999999 seconds"))),
    "times of the right side are cut to milliseconds": (
        "join",
        joined(right=plain(name="right").map(to_millis)),
    ),
    "rows without a match are forgotten": ("left join", joined(how="inner")),
    "the bound of a left join is a microsecond too low": (
        "left join",
        joined(("-30 seconds", "59.999999 seconds"), how="left"),
    ),
    "rows are hidden for a microsecond too long": ("distinct", distinct("3600.000001 seconds")),
    "rows are hidden for a microsecond too short": ("distinct", distinct("3599.999999 seconds")),
    "the period of rolling is a microsecond too long": ("rolling", rolled("60.000001 seconds")),
    "the period of rolling is a microsecond too short": ("rolling", rolled("59.999999 seconds")),
    "rows do not see rows of their time": ("rolling", rolled(closed="left")),
    "the first instant is seen": ("rolling", rolled(closed="both")),
    "a rolling join looks a microsecond too far": ("rolling join", looking_back("60.000001 seconds")),
    "labels do not see events of their time": ("rolling join", looking_back(closed="neither")),
    "ticks come a second late": ("ticks", rolled(every="31 seconds")),
    "a tick sees a microsecond too far": ("ticks", rolled("60.000001 seconds", every="30 seconds")),
    "ticks do not see rows of their time": ("ticks", rolled(every="30 seconds", closed="left")),
    "labels see events of any key": ("rolling join", looking_back(by=())),
    # Rows that a step leaves out.
    "all rows lose their time": ("moved", moved("89 seconds")),
    "all rows lose their time by a microsecond": ("moved", moved("89.999999 seconds")),
    "rows of a key lose their time": ("minutes", sums(plain().map(forgets("k", "a")))),
    "panes lose their time before the second step": ("two steps", by_two(lambda panes: panes.map(forgets("k", "a")))),
    "a trigger finishes with its first rows": ("minutes", finishing(uc.AfterCount(2))),
    "a trigger finishes after three panes": ("minutes", finishing(uc.RepeatCount(uc.AfterCount(1), 3))),
    # Retractions and weights.
    "retractions are left out": ("minutes of a changelog", sums(signed().where(positive), allowed_lateness="1 minute")),
    "a filter takes one value more": ("filter", plain().where(uc.col("x") >= 4)),
}

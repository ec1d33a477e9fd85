"""Flows over rows of (`ts`, `k`, `x`), and functions of pandas that compute their results."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
SIGNED = ROWS.append(pa.field("w", pa.int64()))
EARLY = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
MINUTE = uc.Fixed("1 minute")
Frame = pd.DataFrame


def starts(times: pd.Series, size: str) -> pd.Series:
    return times.dt.floor(size).rename("window.start")


def plain(**options: Any) -> uc.Flow:
    return uc.flow(ROWS, **options)


def signed(**options: Any) -> uc.Flow:
    return uc.flow(SIGNED, diff="w", **options)


def sums(flow: uc.Flow, window: Any = MINUTE, by: Any = "k", **options: Any) -> uc.Flow:
    given = {"trigger": EARLY, "mode": "retracting", **options}
    return flow.window(window, **given).combine(by=by, x=uc.Sum("x"), n=uc.Count())


def minutes(rows: Frame) -> Frame:
    groups = rows.groupby(["k", starts(rows.ts, "1min")], dropna=False)
    return groups.agg(x=("x", lambda x: x.sum(min_count=1)), n=("ts", "size"))


def sessions(rows: Frame) -> Frame:
    rows = rows.sort_values(["k", "ts"])
    opens = (rows.ts.diff() >= pd.Timedelta("30s")) | ~rows.k.fillna("null").eq(rows.k.fillna("null").shift())
    groups = rows.groupby(opens.cumsum().rename("session"))
    found = groups.agg(k=("k", "first"), start=("ts", "min"), n=("ts", "size"))
    return found.rename(columns={"start": "window.start"})


def hops(rows: Frame) -> Frame:
    pieces = [rows.assign(start=rows.ts.dt.floor("30s") - pd.Timedelta(seconds=30 * back)) for back in (0, 1)]
    return pd.concat(pieces).groupby("start").agg(n=("ts", "size")).rename_axis("window.start").reset_index()


def sizes(rows: Frame) -> Frame:
    """The number of keys with each number of rows in each minute."""
    return minutes(rows).reset_index().groupby(["n", "window.start"]).agg(keys=("x", "size"))


def first_rows(rows: Frame) -> Frame:
    """One row of each key in an hour, by rule 51; the columns that are compared do not tell rows of one time apart."""
    shown: dict[Any, Any] = {}
    out = []
    for key, time in rows.sort_values("ts")[["k", "ts"]].itertuples(index=False):
        if key not in shown or time >= shown[key] + pd.Timedelta("1h"):
            shown[key] = time
            out.append({"k": key, "ts": time})
    return Frame(out, columns=["k", "ts"])


def first_to_come(rows: Frame) -> Frame:
    """The rows that are an hour or more from all rows of their key shown before, by rule 52."""
    shown: dict[Any, list[Any]] = {}
    out = []
    for key, time in rows.sort_values(["step", "ts"], kind="stable")[["k", "ts"]].itertuples(index=False):
        if all(abs(time - other) >= pd.Timedelta("1h") for other in shown.setdefault(key, [])):
            shown[key].append(time)
            out.append({"k": key, "ts": time})
    return Frame(out, columns=["k", "ts"])


def united(frames: dict[str, Frame]) -> Frame:
    rows = pd.concat([frame.assign(side=name) for name, frame in frames.items()])
    return rows.groupby(["side", starts(rows.ts, "1min")]).agg(x=("x", lambda x: x.sum(min_count=1)), n=("ts", "size"))


def doubled(table: pa.Table) -> pa.Table:
    return table.set_column(2, "x", pc.multiply(table["x"], 2))


def joined(how: str) -> uc.Flow:
    left, right = signed(name="left", watermark="20 seconds"), plain(name="right")
    pairs = left.join(right, on="k", how=how, within=("-30 seconds", "1 minute"))
    return pairs.select("k", "x_left", "x_right", "event_time", "diff")


def pairs(frames: dict[str, Frame], how: str = "inner") -> Frame:
    """Rows of one key whose times fit; null keys match nothing."""
    left, right = (frames[name].reset_index(drop=True) for name in ("left", "right"))
    both = left.dropna(subset="k").reset_index().merge(right.dropna(subset="k"), on="k", suffixes=("_left", "_right"))
    apart = both.ts_right - both.ts_left
    both = both[(apart >= pd.Timedelta("-30s")) & (apart <= pd.Timedelta("1min"))]
    alone = left[~left.index.isin(both["index"])].rename(columns={"x": "x_left"}).assign(x_right=None)
    rows = pd.concat([both, alone]) if how == "left" and len(alone) else both
    return rows[["k", "x_left", "x_right"]]


def by_two_steps() -> uc.Flow:
    counts = plain().window(uc.Fixed("1 minute"), EARLY, allowed_lateness="1 minute").combine(by="k", n=uc.Count())
    return counts.window(uc.Fixed("1 minute"), EARLY, mode="retracting").combine(by="n", keys=uc.Count())


def both(**options: Any) -> uc.Flow:
    whole = uc.union(left=signed(), right=plain(), side="side")
    return sums(whole, by="side", **options)


def rolled(period: str = "1 minute", source: uc.Flow | None = None, **options: Any) -> uc.Flow:
    """Each row with the rows of its key that it sees."""
    rolling = (source or signed()).rolling(period, by="k", **options)
    return rolling.combine(n=uc.Count(), total=uc.Sum("x"))


def looking_back(period: str = "1 minute", by: Any = "k", **options: Any) -> uc.Flow:
    """Each left row with the right rows of its key that it sees."""
    left, right = signed(name="left", watermark="20 seconds"), signed(name="right")
    return left.join_rolling(right, period, by=by, **options).combine(n=uc.Count(), total=uc.Sum("x"))


def seen(rows: Frame, others: Frame | None = None) -> Frame:
    """The rows with what each sees of its key in the minute up to it; of other rows a null key sees none."""
    at, out = rows if others is None else others, []
    for key, time in rows[["k", "ts"]].itertuples(index=False):
        same = at.k == key
        if pd.isna(key):
            same = at.k.isna() & (others is None)
        near = at[same & (at.ts <= time) & (at.ts > time - pd.Timedelta("1min"))]
        total = int(near.x.sum()) if near.x.count() else None
        out.append({"k": key, "ts": time, "n": len(near), "total": total})
    return Frame(out, columns=["k", "ts", "n", "total"])


def seen_by_left(frames: dict[str, Frame]) -> Frame:
    return seen(frames["left"], frames["right"])


def ticks(rows: Frame) -> Frame:
    """The number of rows of each key in the minute up to each half minute, and the first time it is zero."""
    out, half, minute = [], pd.Timedelta("30s"), pd.Timedelta("1min")
    for key, mine in rows.groupby("k", dropna=False):
        tick, held = mine.ts.min().floor("30s"), 0
        while held or tick <= mine.ts.max() + half:
            n = int(((mine.ts <= tick) & (mine.ts > tick - minute)).sum())
            if n or held:
                out.append({"k": None if pd.isna(key) else key, "event_time": tick, "n": n})
            tick, held = tick + half, n
            if not held and (later := mine.ts[mine.ts > tick - half]).size:
                tick = max(tick, later.min().floor("30s"))
    return Frame(out, columns=["k", "event_time", "n"])

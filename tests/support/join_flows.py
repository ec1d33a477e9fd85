"""Random flows with joins, for tests that run them in several ways; and the join of rows by pandas."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pandas as pd
from row_steps import draw_step, draw_trigger, scored

import uncombine as uc

KINDS = [
    *((how, "at_once") for how in ("inner", "left", "right", "full", "semi", "anti")),
    *((how, "final") for how in ("left", "right", "full", "anti")),
]
WITHIN = [("-1 minute", "2 minutes"), ("0 seconds", "5 minutes"), ("30 seconds", "2 minutes"), ("0 s", "0 s")]


def kept(flow: uc.Flow, *names: str) -> uc.Flow:
    """The flow with these columns, its time and its weight."""
    return flow.select(*(name for name in (*names, "ts", "event_time", "w", "diff") if name in flow.schema.names))


def draw_join(r: random.Random, left: uc.Flow, right: uc.Flow) -> uc.Flow:
    """A join of rows, or of panes of one window, with the columns that random steps read."""
    how, unmatched = r.choice(KINDS)
    given: dict[str, Any] = {"on": "k", "how": how, "unmatched": unmatched}
    if r.random() < 0.3:
        sides = [
            side.window(uc.Fixed("2 minutes"), draw_trigger(r)).combine(by=["k", "id"], x=uc.Sum("x"))
            for side in (left, right)
        ]
        joined = sides[0].join(sides[1].select("k", "window", "x", "event_time", "diff"), **given)
        return joined.with_columns(x=uc.col("x" if how in ("semi", "anti") else "x_left")).select(
            "k", "id", "x", "event_time", "diff"
        )
    left, right = (draw_step(r, side) if r.random() < 0.4 else side for side in (left, right))
    other = r.choice(["k", "other"])
    right = kept(right.with_columns(y=uc.col("x"), **{other: uc.col("k")}), other, "y")
    options = draw_options(r, how, unmatched)
    joined = kept(left, "k", "id", "x").join(right, **{**given, "on": {"k": other}, **options})
    return joined.select("k", "id", "x", "event_time", "diff")


def draw_options(r: random.Random, how: str, unmatched: str) -> dict[str, Any]:
    """Bounds in time, a lookup in the place of the kind of join, or lengths for which the rows of each side stay."""
    match r.choice(["within", "within", "lookup", "keep"]):
        case "within":
            return {"within": r.choice(WITHIN)}
        case "lookup":
            return {
                "how": r.choice(["lookup", "left_lookup"]),
                "unmatched": "at_once",
                "allowed_lateness": r.choice([None, "1 minute"]),
            }
    ever = {"left": [1], "semi": [1], "anti": [1], "right": [0], "full": [0, 1]}.get(how, [])
    keep = [None if side in ever else r.choice([None, "30 seconds", "3 minutes"]) for side in range(2)]
    return {"keep": tuple(keep)}


def draw_flow(r: random.Random, sources: list[uc.Flow]) -> uc.Flow:
    """A join of the first two sources, and what may come after it."""
    flow = draw_join(r, *sources[:2])
    for source in sources[2:]:
        flow = draw_join(r, flow, source) if r.random() < 0.5 else uc.union(flow, kept(source, "k", "id", "x"))
    match r.choice(["nothing", "window", "map", "where"]):
        case "window":
            flow = flow.window(uc.Fixed("1 minute"), draw_trigger(r)).combine(by="k", x=uc.Sum("x"), n=uc.Count())
        case "map":
            flow = flow.map(scored, remember=True, deterministic=False)
        case "where":
            flow = flow.where(uc.col("k") == "p")
    return flow


def joined(
    left: pd.DataFrame, right: pd.DataFrame, how: str, low: int | None, high: int | None, on: list[str]
) -> Counter[tuple[Any, ...]]:
    """The join by pandas: key, left value and time, right value and time, and how often.

    The tables have columns of the key, `x`, `t` and `w`, the number of equal rows. Without bounds only keys match.
    """
    left, right = (side.reset_index(drop=True).rename_axis("place").reset_index() for side in (left, right))
    pairs = left.dropna(subset=on).merge(right.dropna(subset=on), on=on, suffixes=("_l", "_r"))
    if low is not None and high is not None:
        pairs = pairs[(pairs.t_r - pairs.t_l).between(low, high)]
    out: Counter[tuple[Any, ...]] = Counter()
    if how not in ("semi", "anti"):
        for row in pairs.to_dict("records"):
            out[*(row[name] for name in on), row["x_l"], row["t_l"], row["x_r"], row["t_r"]] += row["w_l"] * row["w_r"]
    alone_left, alone_right = (
        side[~side.place.isin(pairs[f"place_{end}"])] for side, end in ((left, "l"), (right, "r"))
    )
    if how == "semi":
        alone_left = left[left.place.isin(pairs.place_l)]
    for side, here in ((alone_left, ("left", "full", "anti", "semi")), (alone_right, ("right", "full"))):
        for row in side.to_dict("records") if how in here else ():
            mine, none = (row["x"], row["t"]), (None, None)
            values = (*mine, *none) if side is alone_left else (*none, *mine)
            out[*(none_of(row[name]) for name in on), *values] += row["w"]
    return out


def none_of(value: Any) -> Any:
    """Null as Python has it."""
    return None if value is None or value != value else value

"""Rolling aggregates of rows in the order of time, against Polars and pandas, and against each other.

Polars runs on two threads. Times are processor times of all threads, so that other work of the machine does not count.
`UNCOMBINE_ROLLING_ROWS=20000000` measures more rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import numpy as np
import polars as pl
import pyarrow as pa
from harness import Row, pair, wall

import uncombine as uc
from uncombine.combiners.rows.groups import Groups

TITLE = "Rolling aggregates"

ROWS = int(os.environ.get("UNCOMBINE_ROLLING_ROWS", 2_000_000))
DAYS = 30
DAY = 86_400_000_000
COMBINERS = {
    "sum": (uc.Sum("x"), pl.col("x").sum(), 1.0),
    "mean": (uc.Mean("x"), pl.col("x").mean(), 1.0),
    "count": (uc.Count(), pl.len(), 1.0),
    "max": (uc.Max("x"), pl.col("x").max(), 1.0),
    "median": (uc.Median("x"), pl.col("x").median(), 4.0),
    "distinct": (uc.CountDistinct("n"), pl.col("n").n_unique(), 0.1),
}
OVER = {
    "sum": (pl.col("x").rolling_sum_by, 3.0),
    "max": (pl.col("x").rolling_max_by, 5.0),
    "median": (pl.col("x").rolling_median_by, 4.0),
}

SLID = {
    "count": (uc.Count(), 10_000, 20_000),
    "exact sum": (uc.Sum("x", exact=True), 10_000, 20_000),
    "distinct": (uc.CountDistinct("n"), 100, 2_000),
    "max": (uc.Max("x"), 100, 2_000),
    "median": (uc.Median("x"), 100, 2_000),
}
TREES = {"mode": uc.Mode("n"), "top 10": uc.TopK("n", 10), "distinct, sketched": uc.ApproxCountDistinct("n")}


def rows() -> Iterator[Row]:
    """All rows of the table."""
    for keys in (100, 10_000):
        for days in (1, 7):
            what = f"{keys:,} keys, {days} {'day' if days == 1 else 'days'}"
            for name, (combiner, theirs, goal) in COMBINERS.items():
                here = goal if name != "distinct" or (keys, days) == (100, 7) else None
                grouped = "rolling(group_by) of Polars"
                yield pair(
                    f"{name}, {what}", _ours(keys, days, combiner), _polars(keys, days, theirs), grouped, here, 3
                )
            for name, (by_time, goal) in OVER.items():
                over = _over(keys, by_time("ts", f"{days}d").over("k"))
                ours = _ours(keys, days, COMBINERS[name][0])
                yield pair(f"{name}, {what}", ours, over, "rolling_*_by().over() of Polars", goal, 3)
    plain = _ours(100, 1, uc.Sum("x"))
    yield pair("exact sum of cents", _ours(100, 1, uc.Sum("x", exact=True)), plain, "plain sum", 3, 3)
    five = {f"d{days}": f"{days} days" for days in (1, 2, 3, 7, 14)}
    yield wall(
        "five look-backs, by the clock",
        lambda: uc.rolling(_table(100), five, by="k", r=uc.Sum("x")),
        plain,
        "one",
        2.5,
        3,
    )
    yield from _ticks()
    yield pair("sum, 100 keys, 1 day", plain, _pandas(100), "groupby.rolling of pandas", 1 / 3, 1)
    for name, options in SLID.items():
        yield _slid(name, *options)
    for name, combiner in TREES.items():
        yield pair(f"{name}, 10,000 rows a range", _dense(combiner), _dense(uc.Median("n")), "median", None, 1)
    yield from _skewed()
    yield _join_asof()


@cache
def _table(keys: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, DAYS * DAY, ROWS))).view(pa.timestamp("us")),
            "k": rng.integers(0, keys, ROWS),
            "x": rng.integers(0, 100_000, ROWS) / 100,
            "n": rng.integers(0, 5_000, ROWS),
        }
    )


@cache
def _frame(keys: int) -> pl.DataFrame:
    frame = pl.from_arrow(_table(keys))
    assert isinstance(frame, pl.DataFrame)
    return frame.set_sorted("ts")


def _ours(keys: int, days: int, combiner: uc.Combiner) -> Callable[[], Any]:
    return lambda: uc.rolling(_table(keys), f"{days} days", by="k", r=combiner)


def _polars(keys: int, days: int, expression: pl.Expr) -> Callable[[], Any]:
    return lambda: _frame(keys).rolling("ts", period=f"{days}d", group_by="k").agg(expression)


def _over(keys: int, expression: pl.Expr) -> Callable[[], Any]:
    return lambda: _frame(keys).select(expression)


def _pandas(keys: int) -> Callable[[], Any]:
    frame = _table(keys).select(["ts", "k", "x"]).to_pandas().set_index("ts")
    return lambda: frame.groupby("k")["x"].rolling("1D").sum()


def _slid(name: str, combiner: uc.Combiner, keys: int, rows: int) -> Row:
    """A year of days, moved on by a day: one day added and one retracted, against merging 365 days."""
    rng = np.random.default_rng(2)
    columns = {"x": rng.integers(0, 100_000, rows) / 100, "n": rng.integers(0, 5_000, rows)}
    table = pa.table({name: pa.array(np.tile(values, 2)) for name, values in columns.items()})
    fn = combiner.bind(table.schema)

    def day(start: int) -> Any:
        part = table.slice(start * 7 % rows, rows).combine_chunks()
        groups = Groups((np.arange(rows) * 31 + start) % keys, keys)
        return fn.add(groups, *(part[column].combine_chunks() for column in fn.columns))

    def merged(parts: list[Any]) -> Any:
        joined = tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
        return fn.merge(Groups.repeated(keys, len(parts)), joined)

    days = [day(start) for start in range(366)]
    year = merged(days[:365])
    ours = lambda: fn.extract(fn.uncombine(merged([year, days[365]]), days[0]))  # noqa: E731
    theirs = lambda: fn.extract(merged(days[1:]))  # noqa: E731
    assert ours() == theirs()
    return pair(f"a year by day, {name}, {keys:,} keys", ours, theirs, "365 days merged", 1.0, 3)


def _dense(combiner: uc.Combiner, rows: int = 40_000) -> Callable[[], Any]:
    """One key, of which each row sees 10,000."""
    table = pa.table(
        {"ts": pa.array(range(rows), pa.timestamp("s")), "n": np.random.default_rng(1).integers(0, 5_000, rows)}
    )
    return lambda: uc.rolling(table, "10000 seconds", r=combiner)


def _skewed() -> Iterator[Row]:
    """A third of all rows in one key, against keys of one size."""
    table = _table(10_000)
    keys = np.asarray(table["k"].combine_chunks()).copy()
    keys[::3] = 0
    skewed = table.set_column(1, "k", pa.array(keys))
    for name in ("sum", "max", "median", "distinct"):
        combiner = COMBINERS[name][0]
        ours = lambda combiner=combiner: uc.rolling(skewed, "1 day", by="k", r=combiner)  # noqa: E731
        yield pair(f"{name}, a key with a third of all rows", ours, _ours(10_000, 1, combiner), "no such key", None, 1)


def _ticks() -> Iterator[Row]:
    """The sum of a day at each hour: ticks, windows that overlap, and the groups of Polars."""
    table, frame = _table(100), _frame(100)
    ours = lambda: uc.rolling(table, "1 day", by="k", every="1 hour", r=uc.Sum("x"))  # noqa: E731
    options = {"every": "1h", "period": "1d", "group_by": "k", "closed": "right", "label": "right"}
    theirs = lambda: frame.group_by_dynamic("ts", **options).agg(pl.col("x").sum())  # noqa: E731
    yield pair("a day each hour, 100 keys", ours, theirs, "group_by_dynamic of Polars", None, 3)
    windows = uc.flow(table).window(uc.Sliding("1 day", "1 hour"))
    yield pair("a day each hour, 100 keys", ours, lambda: windows.combine(by="k", r=uc.Sum("x")).run(), "Sliding", None)


def _join_asof() -> Row:
    left, right = _table(100), _table(100).rename_columns(["ts", "k", "y", "m"])
    frames = [pl.from_arrow(table) for table in (left, right)]
    a, b = (frame.set_sorted("ts") for frame in frames if isinstance(frame, pl.DataFrame))
    ours = lambda: uc.flow(left).join_asof(uc.flow(right), by="k").run()  # noqa: E731
    theirs = lambda: a.join_asof(b, on="ts", by="k", check_sortedness=False)  # noqa: E731
    return pair("join_asof, 100 keys", ours, theirs, "join_asof of Polars", 1.3, 3)

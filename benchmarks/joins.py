"""Steps of the join operator over a million rows of 100,000 keys on each side, against `pandas.merge`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from harness import Row, pair

from uncombine.panes.join.join import Join
from uncombine.panes.join.operator import JoinOperator
from uncombine.panes.lookup.lookup import Lookup
from uncombine.panes.lookup.operator import LookupOperator
from uncombine.sparkops.tuning.malloc import keep_memory

TITLE = "Steps of the join operator"

ROWS = 1_000_000
KEYS = 100_000
HOUR = 3_600_000_000
STAMP = pa.timestamp("us", "UTC")
WINDOWS = 10
WITHIN = ("-5 minutes", "10 minutes")
"""A quarter of the hour, in which a key has 10 rows: 2.5 matches a row, less at the edges."""


def rows() -> Iterator[Row]:
    """All rows of the table."""
    keep_memory()  # as Spark's workers do, where steps run
    merge_of_windows = "pandas.merge by key and window"
    yield pair("inner, windows, 1 match a row", _windows("inner"), _merge_windows("inner"), merge_of_windows, 3)
    yield pair("left, windows, 1 match a row", _windows("left"), _merge_windows("left"), merge_of_windows, 3)
    yield pair("full, windows, 1 match a row", _windows("full"), _merge_windows("outer"), merge_of_windows, 3)
    yield pair(
        "left, windows, the right rows in a second step", _second_step("left"), _windows("left"), "one step", None
    )
    merge = "pandas.merge by key, rows within the bounds"
    yield pair("inner, within, 2.4 matches a row", _first_step(ROWS, "inner"), _merge(ROWS), merge, 3, runs=3)
    inner = "inner"
    yield pair("left, within", _first_step(ROWS, "left"), _first_step(ROWS, "inner"), inner, 1.5, runs=3)
    yield pair("anti, within, final", _first_step(ROWS, "anti", "final"), _first_step(ROWS, "inner"), inner, 1, runs=3)
    in_table = "pandas.merge by key"
    yield pair("lookup of 1,000,000 rows in a table of 100,000 keys", _lookup(None), _merge_table(), in_table, 8)
    yield pair("the same, rows that can be retracted", _lookup("diff"), _lookup(None), "rows that cannot", 4)
    few = "the same with 10,000 held"
    for how in ("inner", "left"):
        yield pair(f"1,000 rows, 1,000,000 held, {how}", _small_step(ROWS, how), _small_step(10_000, how), few, 3)
    yield pair(
        "1,000 retractions, 1,000,000 held", _small_step(ROWS, "inner", -1), _small_step(10_000, "inner", -1), few, 3
    )
    yield pair("1 row, 100,000 held of its key", _skewed(100_000), _skewed(1), "the same with 1 held", None)


@cache
def _sides(count: int) -> tuple[pa.Table, pa.Table]:
    """Rows of both sides in order of time, an hour of them, ten a key."""
    rng = np.random.default_rng(0)
    tables = []
    for name in ("x", "y"):
        times = np.sort(rng.integers(0, HOUR, count))
        start = times // (HOUR // WINDOWS) * (HOUR // WINDOWS)
        bounds = [pa.array(bound).cast(STAMP) for bound in (start, start + HOUR // WINDOWS)]
        columns = {
            "k": rng.integers(0, count // 10, count),
            "event_time": pa.array(times).cast(STAMP),
            name: rng.integers(0, 1000, count),
            "window": pa.StructArray.from_arrays(bounds, ["start", "end"]),
            "diff": np.ones(count, np.int64),
        }
        tables.append(pa.table(columns))
    return tables[0], tables[1]


def _operator(how: str, unmatched: str = "at_once", within: Any = WITHIN, diff: str | None = None) -> JoinOperator:
    names = {"left_time": "event_time", "right_time": "event_time", "left_diff": diff, "right_diff": diff}
    left, right = (_plain(side, within, diff).schema for side in _sides(ROWS))
    return JoinOperator(Join("k", how, within, unmatched, **names), left, right)


def _plain(table: pa.Table, within: Any, diff: str | None) -> pa.Table:
    gone = [*([] if within is None else ["window"]), *([] if diff else ["diff"])]
    return table.drop_columns(gone)


def _step(operator: JoinOperator, sides: tuple[pa.Table, pa.Table], within: Any) -> Callable[[], Any]:
    tables = [_plain(side, within, None) for side in sides]
    return lambda: operator.step(operator.initial(), tables, watermark=0)


def _first_step(count: int, how: str, unmatched: str = "at_once") -> Callable[[], Any]:
    return _step(_operator(how, unmatched), _sides(count), WITHIN)


def _windows(how: str) -> Callable[[], Any]:
    return _step(_operator(how, within=None), _sides(ROWS), None)


def _second_step(how: str) -> Callable[[], Any]:
    """A step in which the right rows come to the left ones that are held, whose null rows are retracted."""
    operator = _operator(how, within=None)
    left, right = (_plain(side, None, None) for side in _sides(ROWS))
    state = operator.step(operator.initial(), (left, right.slice(0, 0)), watermark=0).state
    return lambda: operator.step(state, (left.slice(0, 0), right), watermark=0)


def _frames(count: int) -> list[pd.DataFrame]:
    frames = []
    for side in _sides(count):
        start = side["window"].combine_chunks().field("start")
        frames.append(side.drop_columns(["window", "diff"]).append_column("window", start).to_pandas())
    return frames


def _merge_windows(how: Any) -> Callable[[], Any]:
    left, right = _frames(ROWS)
    return lambda: left.merge(right, on=["k", "window"], how=how)


def _merge(count: int) -> Callable[[], Any]:
    left, right = (frame.drop(columns="window") for frame in _frames(count))
    low, high = (pd.Timedelta(bound) for bound in WITHIN)

    def merged() -> pd.DataFrame:
        pairs = left.merge(right, on="k")
        return pairs[(pairs["event_time_y"] - pairs["event_time_x"]).between(low, high)]

    return merged


@cache
def _table() -> pa.Table:
    """A row for each key."""
    keys = np.arange(KEYS)
    return pa.table({"k": keys, "at": pa.array(keys).cast(STAMP), "city": [f"city {key % 1000}" for key in keys]})


def _lookup(diff: str | None) -> Callable[[], Any]:
    """A step of a million left rows, beside a table that is held."""
    left, right = _plain(_sides(ROWS)[0], WITHIN, diff), _table()
    times = {"left_time": "event_time", "right_time": "at"}
    operator = LookupOperator(Lookup("k", left_diff=diff, **times), left.schema, right.schema)
    state = operator.step(operator.initial(), (left.slice(0, 0), right), watermark=0).state
    return lambda: operator.step(state, (left, right.slice(0, 0)), watermark=0)


def _merge_table() -> Callable[[], Any]:
    left, right = _frames(ROWS)[0].drop(columns="window"), _table().to_pandas()
    return lambda: left.merge(right, on="k")


def _small_step(held: int, how: str, weight: int = 1) -> Callable[[], Any]:
    """A step with 500 rows on each side; with weight -1 it retracts rows that are held."""
    operator, sides = _operator(how, diff="diff"), _sides(held)
    tables = [_plain(side, WITHIN, "diff") for side in sides]
    state = operator.step(operator.initial(), tables, watermark=0).state
    chosen = pa.array(np.random.default_rng(1).choice(held, 500, replace=False))
    bundle = [table.take(chosen).drop_columns("diff") for table in tables]
    bundle = [some.append_column("diff", pa.array(np.full(500, weight))) for some in bundle]
    # The first look-up sorts the index of what is held, which is done once.
    operator.step(state, bundle, watermark=0)
    return lambda: operator.step(state, bundle, watermark=0)


def _skewed(held: int) -> Callable[[], Any]:
    """A step with one right row whose key has so many left rows, two of them within its bounds."""
    operator = _operator("inner", within=("0 seconds", "1 second"))
    left, right = (_plain(side, WITHIN, None) for side in _sides(ROWS))
    many = left.slice(0, held).set_column(0, "k", pa.array(np.zeros(held, np.int64)))
    many = many.set_column(1, "event_time", pa.array(np.arange(held) * 500_000).cast(STAMP))
    state = operator.step(operator.initial(), (many, right.slice(0, 0)), watermark=0).state
    one = right.slice(0, 1).set_column(0, "k", pa.array([0]))
    bundle = (left.slice(0, 0), one.set_column(1, "event_time", pa.array([0]).cast(STAMP)))
    operator.step(state, bundle, watermark=0)
    return lambda: operator.step(state, bundle, watermark=0)

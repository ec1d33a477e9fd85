"""One step of the grouping operator over a million rows of 100,000 keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from harness import Row, pair

import uncombine as uc
from uncombine.panes import Grouping, Operator
from uncombine.sparkops.tuning.malloc import keep_memory

TITLE = "Steps of the grouping operator"

ROWS = 1_000_000
KEYS = 100_000
MINUTE = 60_000_000
STAMP = pa.timestamp("us", "UTC")


def rows() -> Iterator[Row]:
    """All rows of the table."""
    keep_memory()  # as Spark's workers do, where steps run
    table, few = _rows(KEYS), _rows(1_000)
    bare = "uc.aggregate by key"
    yield pair("Fixed, 1 minute", _first_step(table, uc.Fixed("1 minute")), _aggregate(table), bare, 2.5)
    for gap in ("10 seconds", "30 seconds"):
        yield pair(f"Sessions, gap {gap}", _first_step(table, uc.Sessions(gap)), _aggregate(table), bare, 3.5)
    yield pair(
        "10,000 windows touched of 2,000,000 held", _touch(2_000_000), _touch(20_000), "the same of 20,000 held", 3
    )
    yield pair("retracting", _later_step(table, "retracting"), _later_step(table, "accumulating"), "accumulating", 1.5)
    deep = uc.Repeatedly(
        uc.FirstOf(
            uc.AllOf(uc.AfterCount(3), uc.AfterDelay("1 minute")),
            uc.SequenceOf(uc.AfterCount(1000), uc.AfterWatermark()),
        )
    )
    yield pair(
        "a trigger nested to depth 4",
        _first_step(table, uc.Fixed("1 minute"), trigger=deep),
        _first_step(table, uc.Fixed("1 minute"), trigger=uc.AfterWatermark()),
        "AfterWatermark",
        1.5,
    )
    yield pair(
        "Sliding, 60 seconds every second, 1,000 keys",
        _first_step(few, uc.Sliding("60 seconds", "1 second")),
        _first_step(few, uc.Fixed("60 seconds")),
        "Fixed, 60 seconds",
        60,
        runs=3,
    )
    yield pair(
        "Sliding, 60 minutes every minute, 1,000 keys",
        _first_step(few, uc.Sliding("60 minutes", "1 minute")),
        _first_step(few, uc.Fixed("60 minutes")),
        "Fixed, 60 minutes",
        60,
        runs=3,
    )


@cache
def _rows(keys: int) -> pa.Table:
    """Three minutes of rows in order of time."""
    rng = np.random.default_rng(0)
    times = np.sort(rng.integers(0, 3 * MINUTE, ROWS))
    return pa.table(
        {
            "k": rng.integers(0, keys, ROWS),
            "ts": pa.array(times).cast(STAMP),
            "x": rng.integers(0, 1000, ROWS),
        }
    )


def _operator(table: pa.Table, window: Any, **options: Any) -> Operator:
    return Operator(Grouping({"s": uc.Sum("x"), "c": uc.Count()}, window, by="k", **options), table.schema)


def _aggregate(table: pa.Table) -> Callable[[], Any]:
    return lambda: uc.aggregate(table, by=["k"], s=uc.Sum("x"), c=uc.Count())


def _first_step(table: pa.Table, window: Any, **options: Any) -> Callable[[], Any]:
    operator = _operator(table, window, **options, allow_finish=True)
    return lambda: operator.step(operator.initial(), table, watermark=0, processing_time=MINUTE * 3)


def _later_step(table: pa.Table, mode: str) -> Callable[[], Any]:
    """A step in which every window has fired before and fires again."""
    trigger = uc.AfterWatermark(early=uc.AfterCount(1))
    operator = _operator(table, uc.Fixed("1 minute"), mode=mode, trigger=trigger)
    state = operator.step(operator.initial(), table, watermark=0, processing_time=0).state
    return lambda: operator.step(state, table, watermark=0, processing_time=0)


def _touch(held: int) -> Callable[[], Any]:
    """A step with one row for each of 10,000 keys out of those that have a window."""
    table = _ones(np.arange(held))
    trigger = uc.AfterWatermark(early=uc.AfterCount(1000), late=uc.AfterCount(1))
    operator = _operator(table, uc.Fixed("1 hour"), trigger=trigger)
    state = operator.step(operator.initial(), table, watermark=0, processing_time=0).state
    bundle = _ones(np.random.default_rng(1).choice(held, 10_000, replace=False))
    # The first touch sorts the index of the windows held, once.
    state = operator.step(state, bundle, watermark=0, processing_time=0).state
    return lambda: operator.step(state, bundle, watermark=0, processing_time=0)


def _ones(keys: np.ndarray) -> pa.Table:
    times = pa.array(np.zeros(len(keys), np.int64)).cast(STAMP)
    return pa.table({"k": keys, "ts": times, "x": np.ones(len(keys), np.int64)})

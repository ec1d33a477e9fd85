"""A random flow with the bundles that come to it, as values, and how to build the flow over any source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from by_words import said

import uncombine as uc
from reference.byrule.times import FIRST_YEAR, LAST_YEAR
from reference.byrule.transcripts import has_own
from uncombine.flows.flow import Flow
from uncombine.panes.watermarks.watermark_strategies import WatermarkStrategy
from uncombine.triggers import signals_of

SECOND = 1_000_000
FIVE, BACK = 5 * SECOND, 20 * SECOND
NOON = 1_453_291_200 * SECOND
NOW, MARK, ORIGIN = "proc", "mark", "origin"
_TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    {"ts": _TIME, "k": pa.string(), "j": pa.int64(), "x": pa.int64(), "d": pa.int64()}
    | {NOW: _TIME, MARK: _TIME, ORIGIN: pa.string()}
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Evens(uc.WatermarkStrategy):
    """A user's own: rows of even and of odd x are two sources, and a row reports its time if its j is 0."""

    idle_after: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return ("x", "j")

    @property
    def idle(self) -> uc.Span | None:
        return None if self.idle_after is None else uc.span(self.idle_after)

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
        x, j = (np.asarray(rows[name].fill_null(0)) for name in self.columns)
        return np.where(x % 2 == 0, "even", "odd").astype(object), np.where(j == 0, times, self.NONE)


@dataclass(frozen=True)
class Stage:
    """A grouping, and the steps before it: of panes the column `g` and a filter, of the source's rows a filter."""

    window: uc.windows.Window
    options: Mapping[str, Any]
    by: tuple[str, ...]
    most: bool
    """True if it has the maximum, which no difference can show."""
    filtered: bool = False
    moved: bool = False
    """True if rows get other event times, five seconds for each x before their own, which is bad beyond `BACK`."""

    @property
    def combiners(self) -> dict[str, Any]:
        return {"n": uc.Count(), "x": uc.Sum("x")} | ({"hi": uc.Max("x")} if self.most else {})


@dataclass(frozen=True)
class Bundle:
    """Rows of one processing time, with the watermark reports that they carry."""

    at: int
    rows: tuple[Row, ...]

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_pylist([{**row, NOW: self.at} for row in self.rows], SCHEMA)


@dataclass(frozen=True)
class Case:
    """A flow and its bundles, each later than the one before it."""

    seed: int
    stages: tuple[Stage, ...]
    strategy: WatermarkStrategy
    changelog: bool
    ends: bool
    """True if a run in this process and a replay end the input after the last bundle, as a stream never does."""
    clocked: bool
    """True if a stream takes the times of its micro-batches for those of the rows, and wakes for its timers."""
    bundles: tuple[Bundle, ...] = field(default=())

    @property
    def one_shard(self) -> bool:
        """True if several shards may give something else.

        They put rows of one key, bundle and event time in another order, which triggers see that are asked for each
        row. And they judge which rows are before the output watermark, each by its own, so that other rows count for
        the times of results.
        """
        by_clock = isinstance(self.strategy, uc.ProcessingTime) and len(self.stages) > 1
        of_rows = by_clock or any(stage.options["timestamp"] in ("earliest", "latest") for stage in self.stages)
        return self.in_order or of_rows or any(stage.window == uc.Global() for stage in self.stages)

    @property
    def in_order(self) -> bool:
        """True if a trigger sees rows one by one, so that the order of a bundle's rows counts."""
        return any(
            stage.options["granularity"] == "record" or has_own(stage.options["trigger"] or uc.AfterWatermark())
            for stage in self.stages
        )

    @property
    def shards(self) -> int:
        return 1 if self.one_shard else (2, 3, 1, 3)[self.seed % 4]

    @property
    def settings(self) -> dict[str, Any]:
        return {"diff": "d" if self.changelog else None, "processing_time": NOW}


def grouped(source: Flow, stages: Sequence[Stage], between: Callable[[Flow], Flow] = lambda flow: flow) -> Flow:
    """The groupings of a case over a source, with a step `between` two of them."""
    flow = source
    for part in signals_of(stages[0].options.get("trigger") or uc.Always()):
        object.__setattr__(part, "flow", source)
    for i, stage in enumerate(stages):
        if i:
            flow = between(flow)
            flow = flow.with_columns(g=uc.col("n"))
        if stage.filtered:
            flow = flow.where(uc.col("x") > 0)
        if stage.moved:
            time = uc.col("event_time" if i else "ts")
            flow = flow.with_time(time - (uc.col("x").fill_null(0) * FIVE).cast(pa.duration("us")), "20 seconds")
        options = stage.options | {"trigger": said(stage.options.get("trigger"))}
        flow = flow.window(said(stage.window), **options).combine(by=stage.by, **stage.combiners)
    return flow


def prepared(stage: Stage, rows: Sequence[Row], first: bool) -> list[Row]:
    """The rows after the steps before a grouping."""
    made = list(rows) if first else [{**row, "g": row["n"]} for row in rows]
    kept = [row for row in made if not stage.filtered or (row["x"] is not None and row["x"] > 0)]
    return [{**row, "ts": _moved(row)} for row in kept] if stage.moved else kept


def _moved(row: Row) -> int | None:
    by = (row["x"] or 0) * FIVE
    if row["ts"] is None or by > BACK or not FIRST_YEAR <= row["ts"] - by <= LAST_YEAR:
        return None
    return int(row["ts"] - by)

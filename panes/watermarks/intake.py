"""Intake: event times, watermark reports and transforms of the rows of a source, before the first grouping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.rows.columns import flat, int64_column
from ...windows import Span, time_column, timestamps
from ...windows.times import MAX_TIME, MIN_TIME
from ..parcels import AT, MARKS
from ..transforms import Transform, applied
from .watermark_strategies import IngressTime, Punctuated, WatermarkStrategy


@dataclass(frozen=True)
class TimedRows:
    """Rows for a grouping, their processing time (one for all, or one each), and the watermark reports with them."""

    rows: pa.Table
    at: int | np.ndarray
    reports: pa.Table


@dataclass(frozen=True)
class Intake:
    """Prepares the rows of a source for the first grouping of a flow.

    >>> import numpy as np, pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.watermarks.intake import Intake
    >>> intake = Intake(None, "ts", uc.Monotonic(), ())
    >>> rows = pa.table({"ts": pa.array([7, 9], pa.timestamp("us", "UTC"))})
    >>> intake(rows, np.array([20, 20])).reports["time"].to_pylist()
    [9, None]
    """

    max_future: Span | None
    """The longest time by which a row that reports may be after the processing time; None means no limit."""
    time: str
    """The event time column of the source, from which `strategy` makes watermark reports."""
    strategy: WatermarkStrategy | None
    transforms: Sequence[Transform]
    guards: bool = False
    """True if a row beyond `max_future` loses its time, so that the step counts it as a bad row."""
    until: int | None = None
    """The event time from which on rows are of another run; None means none."""
    latest: int | None = None
    """The last event time that a row of a history may have: one after it reports nothing, and loses its time."""
    step_time: str | None = None
    """The event time column of the step, in which such a row loses its time; None means that of the source."""

    def __call__(self, rows: pa.Table, at: np.ndarray) -> TimedRows:
        """Prepare rows; `at` has the processing time of each."""
        if self.until is not None:
            times, valid = time_column(flat(rows[self.time]))
            before = ~valid | (times < self.until)
            rows, at = rows.filter(pa.array(before)), at[before]
        strategy = self.strategy
        # A clock that has not started bounds no row.
        bounds = self.guards and self.max_future is not None and bool((at != MIN_TIME).any())
        if strategy is None and not bounds and self.latest is None:
            return transformed(self.transforms, rows, at, MARKS.empty_table())
        if isinstance(strategy, IngressTime):
            rows = _with_time(rows, self.time, at)
        times, valid = time_column(flat(rows[self.time]))
        given_null = np.asarray(rows[self.time].is_null())
        far = np.zeros(len(times), np.bool_)
        if (ahead := self.max_future) is not None:
            latest = at + np.minimum(int(ahead), MAX_TIME - np.maximum(at, 0))
            far = (times > latest) & (at != MIN_TIME)  # a clock that has not started bounds no row
        if self.latest is not None:
            far |= times > self.latest
        reports = MARKS.empty_table()
        if strategy is not None:
            reports = strategy.marks(rows, np.where(valid & ~far, times, MIN_TIME), at)
        judged = not self.guards and self.step_time is not None  # by the step, which sees the times of its own
        if (self.guards or self.latest is not None) and not judged and far.any():
            rows = _without_times(rows, self.time, valid & far)
        if isinstance(strategy, Punctuated):  # a row that only carries a report is no row of the grouping
            only_report = np.asarray(rows[strategy.column].is_valid()) & given_null
            rows, at = rows.filter(pa.array(~only_report)), at[~only_report]
        timed = transformed(self.transforms, rows, at, reports)
        return replace(timed, rows=self._until_latest(timed.rows)) if judged else timed

    def _until_latest(self, rows: pa.Table) -> pa.Table:
        """The rows for a step, of which those that are too late for a history have no time."""
        if self.latest is None or self.step_time is None:
            return rows
        times, valid = time_column(flat(rows[self.step_time]))
        beyond = valid & (times > self.latest)
        return _without_times(rows, self.step_time, beyond) if beyond.any() else rows


def transformed(transforms: Sequence[Transform], rows: pa.Table, at: int | np.ndarray, reports: pa.Table) -> TimedRows:
    """The rows after the transforms; each keeps the processing time of the row it was made from."""
    if isinstance(at, np.ndarray) and len(at) and transforms:
        carrying = rows.append_column(AT, pa.array(at))
        for transform in transforms:
            carrying = transform.carrying(carrying, AT)
        return TimedRows(rows=carrying.drop_columns([AT]), at=int64_column(carrying[AT]), reports=reports)
    return TimedRows(rows=applied(transforms, rows), at=at, reports=reports)


def _without_times(rows: pa.Table, name: str, far: np.ndarray) -> pa.Table:
    """The rows, of which some lose their event time."""
    times = flat(rows[name])
    column = pc.if_else(pa.array(far), pa.scalar(None, times.type), times)
    return rows.set_column(rows.column_names.index(name), name, column)


def _with_time(rows: pa.Table, name: str, at: np.ndarray) -> pa.Table:
    """The rows with their processing time as event time."""
    column = timestamps(at)
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), name, column)
    return rows.append_column(name, column)

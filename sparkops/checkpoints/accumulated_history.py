"""The past of a flow as stored accumulators, which become the contents of its windows.

The idea: a column of `uc.Accumulator` and the contents of a window are the same accumulators, so a day that was stored
as one row for each key is as good as its rows, for a grouping that does not look at them one by one.

Guarded by tests/sparkops/checkpoints/test_accumulated_history.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.key_codes import normal_keys
from ...errors import InvalidArgument, StateMismatch, TypeMismatch, require_column
from ...flows.flow import Flow
from ...flows.graph import Feed
from ...panes.grouping.cells import Cells
from ...panes.grouping.compiled import CompiledGrouping
from ...panes.grouping.lift import Lift
from ...panes.grouping.stage import GroupingStage
from ...windows import Calendar, Fixed, Global
from ...windows.times import MAX_TIME, MIN_TIME, UTC_MICROS
from ..inputs import DataFrameInput
from ..routes.history import History
from ..routes.tasks import LiftLive
from ..sql_types import bind
from ..stored.codec import Maker, maker_of
from ..wire import WIRE_DDL, wire_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True, eq=False)
class AccumulatedHistory(History):
    """Runs a flow over stored accumulators in the place of the rows of its source."""

    accumulators: Any = None
    """The DataFrame of stored accumulators."""

    def _sent(self, feed: Feed, lift: LiftLive) -> DataFrame:
        if feed.leaf is None:
            return super()._sent(feed, lift)
        task = LiftAccumulators(lift)
        grouping = task.compiled.grouping
        columns = [*grouping.by, *window_columns(self.accumulators), *grouping.combiners]
        return DataFrameInput(self.accumulators).mapped(task, columns, None, WIRE_DDL, self.metric)


def window_columns(df: DataFrame) -> Sequence[str]:
    """The columns of a DataFrame that say which window a row is of."""
    if "window" in df.columns:
        return ("window",)
    for name in _BOUNDS:
        require_column(name, df.columns, "accumulators= without a column 'window'")
    return _BOUNDS


def check_accumulators(flow: Flow, lift: LiftLive, accumulators: Any) -> None:
    """Raise unless a DataFrame has the accumulators of the first grouping of a flow."""
    if not hasattr(accumulators, "mapInArrow"):
        raise TypeMismatch(
            "accumulators= takes a DataFrame of Spark with columns of uc.Accumulator, but was given a "
            f"{type(accumulators).__name__}"
        )
    if getattr(accumulators, "isStreaming", False):
        raise InvalidArgument(
            "accumulators= takes a DataFrame that ends, and this one is streaming: read it with spark.read"
        )
    if len(flow.source.inputs) or not isinstance(lift.stage, GroupingStage):
        raise InvalidArgument(
            "accumulators= are those of windows, so the first step of the flow must be a grouping of one source: give "
            "the rows of the past as history"
        )
    task = LiftAccumulators(lift)
    compiled, grouping = task.compiled, task.compiled.grouping
    if not isinstance(grouping.window, Fixed | Calendar | Global):
        raise InvalidArgument(
            f"accumulators= fill windows that do not depend on rows, and {grouping.window!r} are others: give the rows "
            "of the past as history"
        )
    if task.lift.as_rows or compiled.facts or grouping.extents:
        raise InvalidArgument(
            "the trigger or the times of the panes of this grouping depend on single rows, which accumulators= do not "
            "tell: give the rows of the past as history"
        )
    window_columns(accumulators)
    for name in (*grouping.by, *grouping.combiners):
        require_column(name, accumulators.columns, "accumulators=")
    for name, maker in task.makers.items():
        maker_of(name, accumulators.schema[name], grouping.combiners[name], task.live.lifted)
        kinds = [compiled.plan.fields[place].type for place in compiled.plan.places_of(name)]
        if kinds != [field.type for field in maker.bound.fields]:
            raise StateMismatch(
                f"stored accumulators of {name}={grouping.combiners[name]!r} can take rows back, and the flow keeps "
                "smaller ones, since its rows are never retracted: give uc.flow() diff=, or the rows as history"
            )


@dataclass(frozen=True)
class LiftAccumulators:
    """Sends stored accumulators to the shards of a grouping, as cells."""

    live: LiftLive

    @property
    def lift(self) -> Lift:
        """The lift that makes the parcels."""
        lift = self.live.lift
        assert isinstance(lift, Lift)
        return lift

    @property
    def compiled(self) -> CompiledGrouping:
        """The grouping."""
        return self.lift.compiled

    @property
    def makers(self) -> dict[str, Maker]:
        """The maker of each column of accumulators."""
        schema, combiners = self.live.lifted, self.compiled.grouping.combiners
        return {name: Maker(bind(name, combiner, schema)) for name, combiner in combiners.items()}

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        lift, makers = self.lift, self.makers
        for table in tables:
            parcels = lift.parcels(self._cells(lift.compiled, makers, table), MIN_TIME)
            sent = (
                (self.live.ids[shard], parcel.lo, replace(parcel, input=self.live.input)) for shard, parcel in parcels
            )
            yield wire_batch((shard, lo, parcel.pack()) for shard, lo, parcel in sent)

    def _cells(self, compiled: CompiledGrouping, makers: dict[str, Maker], table: pa.Table) -> Cells:
        start, end = _bounds(compiled, table)
        acc: list[Any] = [None] * len(compiled.plan.fields)
        counts = np.full(table.num_rows, -1)
        zero = compiled.plan.zero(1)
        for name, maker in makers.items():
            valid, rows, fields = maker.unpack(flat(table[name]))
            there = np.ones(table.num_rows, np.bool_) if valid is None else valid
            own = np.zeros(table.num_rows, np.int64)
            own[there] = rows
            if name != next(iter(makers)) and not np.array_equal(own, counts):
                raise StateMismatch(
                    f"the accumulators in {name!r} are of other rows than those in {next(iter(makers))!r}: make all "
                    "columns of the same rows"
                )
            counts = own
            for place, values in zip(compiled.plan.places_of(name), fields, strict=True):
                acc[place] = _filled(values, there, zero[place])
        cells = Cells(
            keys=[normal_keys(flat(table[name])) for name in compiled.grouping.by],
            start=start,
            end=end,
            acc=tuple(acc),
            count=counts,
            weight=counts,
            earliest=np.full(len(start), MAX_TIME),
            latest=np.full(len(start), MIN_TIME),
        )
        return cells.take(counts != 0)


def _filled(values: pa.Array, there: np.ndarray, zero: pa.Array) -> pa.Array:
    """The accumulators of all rows; that of nothing where a row has none."""
    places = np.where(there, np.cumsum(there) - 1, len(values))
    return pa.concat_arrays([values, zero.cast(values.type)]).take(pa.array(places))


def _bounds(compiled: CompiledGrouping, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The start and the end of the window of each row; raises for one that is no window of the grouping."""
    if "window" in table.column_names:
        window = flat(table["window"])
        bounds = [window.field("start"), window.field("end")]
    else:
        bounds = [flat(table[name]) for name in _BOUNDS]
    if any(bound.null_count for bound in bounds):
        raise InvalidArgument("accumulators= has a row without a window: leave such rows out")
    start, end = (np.asarray(bound.cast(UTC_MICROS).cast(pa.int64())) for bound in bounds)
    own = compiled.grouping.window.assign(start)
    wrong = (own.start != start) | (own.end != end)
    if isinstance(compiled.grouping.window, Global):
        return own.start, own.end
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InvalidArgument(
            f"accumulators= has the window {bounds[0][place]} - {bounds[1][place]}, which is none of "
            f"{compiled.grouping.window!r}: store the accumulators of the flow's own windows"
        )
    return start, end


__all__ = ["AccumulatedHistory", "check_accumulators"]

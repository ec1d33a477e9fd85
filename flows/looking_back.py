"""Rows that look back, before `combine`; and labels and events as one flow, in which labels look back over events.

Both get the columns of `panes/rolled/labels.py` before they run as one.

Guarded by tests/flows/test_join_rolling.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Never, TypeVar

import numpy as np
import pyarrow as pa

from ..advice import Adviser, no_such_step_before_combine, own_names
from ..combiners.column_names import check_named
from ..combiners.combiner import Combiner
from ..combiners.plan import Plan
from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..panes.grouping.grouping import DIFF, EVENT_TIME
from ..panes.rolled.labels import COLUMN, IS_LABEL, KNOWN, SEEN
from ..panes.rows.options import held_type
from ..panes.stage import StageInput
from ..panes.state.pane_type import PANE
from ..windows.times import UTC_MICROS, time_column
from .cast_to import CastTo
from .flow_steps import Steps
from .join_step import JoinSide, check_whole
from .settings import Settings, check_kept, shared
from .settle import farthest

JOIN_ROLLING_OPTIONS = ("by", "available", "closed", "coarse", "min_rows", "allowed_lateness", "emit")
ROLLING_OPTIONS = ("period", "rows", "by", "closed", "every", "order", "coarse", "min_rows", "allowed_lateness", "emit")
Combined = TypeVar("Combined")
"""The flow that `combine` gives."""


@dataclass(frozen=True, eq=False, repr=False)
class RollingRows(Adviser, Generic[Combined]):
    """Rows that look back over a period, of which `combine` gives each with its aggregates.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "score": pa.int64()}))
    >>> rows.rolling("1 hour").combine(best=uc.Max("score")).schema.names
    ['ts', 'score', 'best', 'event_time', 'diff']
    """

    _combined: Callable[[Mapping[str, Combiner]], Combined]

    def _no_such(self, name: str) -> AttributeError:
        return no_such_step_before_combine(name, "rolling")

    def __repr__(self) -> str:
        return "rows that look back over a period, which .combine(...) gives with their aggregates"

    def __dir__(self) -> list[str]:
        return sorted(own_names(type(self)))

    def combine(self, *unnamed: Never, **combiners: Combiner) -> Combined:
        """Give each row with the results of `combiners`, each after the name of its result: `n=uc.Count()`."""
        check_named("combine()", unnamed)
        return self._combined(combiners)

    agg = combine


@dataclass(frozen=True)
class LabelColumns(CastTo):
    """Gives labels, or events, the columns that they share, with times in microseconds."""

    times: Mapping[str, str] = field(default_factory=dict)
    """The column of the rows for a column of times."""
    keys: Sequence[str] = ()
    """Columns of the shared schema that no row may lack; rows without them are left out."""

    def apply(self, table: pa.Table) -> pa.Table:
        cast = super().apply(table)
        for name in self.keys:
            if cast[name].null_count:
                cast = cast.filter(cast[name].is_valid())
        return cast

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        cast = super().apply(table).append_column(column, table[column])
        for name in self.keys:
            cast = cast.filter(cast[name].is_valid())
        return cast

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        known = {"available": self.times[KNOWN]} if KNOWN in self.times else {}
        return {**super().meaning(columns), **known}

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return frozenset([*self.columns.values(), *self.times.values()])

    def sources(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return self.before(columns)

    def _column(self, table: pa.Table, column: pa.Field) -> pa.Array | pa.ChunkedArray:
        if column.name not in self.times:
            return super()._column(table, column)
        times, usable = time_column(flat(table[self.times[column.name]]))
        if column.name == EVENT_TIME and KNOWN in self.times:
            # An event that was never known has no usable time.
            usable = usable & time_column(flat(table[self.times[KNOWN]]))[1]
        return pa.array(times, pa.int64(), mask=np.logical_not(usable)).view(UTC_MICROS)


@dataclass(frozen=True)
class Labelled:
    """The columns and options that labels and events share, and the transform of each."""

    schema: pa.Schema
    rows: StageInput
    settings: Settings
    fits: tuple[LabelColumns, LabelColumns]

    def fitted(self, inputs: Sequence[Steps]) -> tuple[Steps, ...]:
        """The flows of labels and events with their transforms."""
        both = zip(inputs, self.fits, strict=True)
        return tuple(replace(flow, transforms=(*flow.transforms, fit)) for flow, fit in both)


def check_watermark(options: Mapping[str, Any], settings: Settings, who: str) -> None:
    """Raise if rows are to be given when they are final, or ticks when they are over, and nothing says when that is."""
    named = who.replace("()", "(emit='final')")
    if options["emit"] == "final" and settings.each_batch:
        raise InvalidArgument(f"{named} needs a watermark that says when rows are final: leave it out")
    if options.get("every") is not None and settings.each_batch:
        raise InvalidArgument(
            "rolling(every=) needs a watermark that says when a tick is over: use another than watermark='each_batch'"
        )


def labelled(
    labels: JoinSide,
    events: JoinSide,
    by: Sequence[tuple[str, str]],
    available: str | None,
    combiners: Mapping[str, Combiner],
) -> Labelled:
    """The flow of labels and events whose columns `combiners` read."""
    for side, name in ((labels, "labels"), (events, "events")):
        check_kept(side.rows, side.schema, f"the flow of {name}")
        for grouping in side.groupings:
            check_whole(grouping)
    _check_names(labels, events, by, available)
    own = [f for f in labels.schema if f.name not in (labels.rows.diff, EVENT_TIME) and f.type != PANE]
    read = Plan(combiners, events.schema, append_only=True).columns
    fields = [*own, *(pa.field(COLUMN + name, events.schema.field(name).type) for name in read)]
    fields += [pa.field(IS_LABEL, pa.bool_()), pa.field(EVENT_TIME, UTC_MICROS)]
    fields += [pa.field(KNOWN, UTC_MICROS)] if available is not None else []
    weights = any(side.rows.diff is not None for side in (labels, events))
    fields += [pa.field(DIFF, pa.int64())] if weights else []
    schema = pa.schema([f.with_nullable(True) for f in fields])
    fits = (
        LabelColumns(
            schema=schema,
            columns={f.name: f.name for f in own} | _weight(labels),
            values={IS_LABEL: True, DIFF: 1},
            times={EVENT_TIME: labels.rows.time},
        ),
        LabelColumns(
            schema=schema,
            columns=dict(by) | {COLUMN + name: name for name in read} | _weight(events),
            values={IS_LABEL: False, DIFF: 1},
            times={EVENT_TIME: events.rows.time} | ({} if available is None else {KNOWN: available}),
            keys=[left for left, _ in by],
        ),
    )
    lateness = [s.rows.allowed_lateness for s in (labels, events) if s.rows.allowed_lateness is not None]
    rows = StageInput(
        time=EVENT_TIME,
        diff=DIFF if weights else None,
        retracts=labels.rows.retracts or events.rows.retracts,
        allowed_lateness=max(lateness, default=None),
        max_future=farthest([labels.rows.max_future, events.rows.max_future]),
    )
    return Labelled(
        schema=schema, rows=rows, settings=shared([labels.settings, events.settings], rows, "join_rolling()"), fits=fits
    )


def _weight(side: JoinSide) -> dict[str, str]:
    return {} if side.rows.diff is None else {DIFF: side.rows.diff}


def _check_names(labels: JoinSide, events: JoinSide, by: Sequence[tuple[str, str]], available: str | None) -> None:
    for left, right in by:
        for name, side, who in ((left, labels, "labels"), (right, events, "events")):
            require_column(name, side.schema.names, f"join_rolling(by=) of the {who}")
        kinds = [held_type(side.schema.field(name).type) for side, name in ((labels, left), (events, right))]
        if kinds[0] != kinds[1]:
            raise TypeMismatch(
                f"the key {left!r} of the labels is {kinds[0]} and {right!r} of the events is {kinds[1]}: cast one of "
                "them to the type of the other"
            )
    if available is not None:
        require_column(available, events.schema.names, "join_rolling(available=)")
        time_column(pa.array([], events.schema.field(available).type))
    for name in labels.schema.names:
        if name.startswith(SEEN):
            raise InvalidArgument(
                f"join_rolling() keeps columns that begin with {SEEN!r}: rename {name!r} of the labels"
            )


__all__ = [
    "JOIN_ROLLING_OPTIONS",
    "ROLLING_OPTIONS",
    "LabelColumns",
    "Labelled",
    "RollingRows",
    "check_watermark",
    "labelled",
]

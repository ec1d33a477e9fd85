"""A stage of a flow: a step that keeps state, and the transforms before it. A grouping is one, and so is `distinct`.

Guarded by tests/sparkops/test_steps.py and tests/local/test_local_flows.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..combiners import Plan
from ..panes.distinct.distinct import Distinct
from ..panes.distinct.operator import DistinctOperator
from ..panes.grouping.compiled import Compiled
from ..panes.grouping.grouping import Grouping
from ..panes.grouping.lift import Lift
from ..panes.grouping.operator import Operator
from ..panes.in_order.in_order import InOrder
from ..panes.in_order.operator import InOrderOperator
from ..panes.parcels import Parcel
from ..panes.process.operator import ProcessOperator
from ..panes.process.process import Process
from ..panes.remember.operator import RememberOperator
from ..panes.remember.remember import Remember
from ..panes.row_lift import RowLift
from ..panes.rows.operator import RowOperator
from ..panes.rows.options import RowOptions
from ..panes.state.operator import StatefulOperator
from ..panes.transforms import Transform
from ..panes.upserts.operator import UpsertsOperator
from ..panes.upserts.upserts import Upserts
from ..triggers import AfterBytes, OnPunctuation, UserTrigger, uses_processing_time, walk
from ..windows import Span, span
from .settle import DIFF, EVENT_TIME, Asked, Before


class Lifting(Protocol):
    """The part of a stage that runs where rows are read: it makes parcels for the shards."""

    @property
    def whole_keys(self) -> bool:
        """True if all rows of a key are in one shard."""

    @property
    def near(self) -> int:
        """The microseconds within which windows of a key are in one shard; 0 if each may be in a shard of its own."""

    def __call__(self, rows: pa.Table, at: int | np.ndarray) -> list[tuple[int, Parcel]]:
        """The parcels of rows that arrived `at`, each with the place of its shard."""


@dataclass(frozen=True)
class Stage(ABC):
    """A step that keeps state, and the transforms before it."""

    transforms: tuple[Transform, ...]

    @abstractmethod
    def operator(self, *schemas: pa.Schema) -> StatefulOperator:
        """The operator over rows of these schemas, one for each port; raises if it does not fit."""

    @abstractmethod
    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> Lifting:
        """The lift of rows of this schema for a port.

        `timed` if each row may have its own processing time, and `rows` if all rows must travel as rows.
        """

    @abstractmethod
    def before(self) -> Before:
        """The input that the stage is for the one after it."""

    @abstractmethod
    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        """The columns that the stage reads; None means all."""

    @abstractmethod
    def kept(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        """The options that decide the layout or the meaning of the state."""

    @property
    @abstractmethod
    def code(self) -> Mapping[str, Any]:
        """The values in which functions and objects of the user may be, each under its name."""

    @property
    def filters_may_change(self) -> bool:
        """True if rows that a filter let through before, and others now, are both right in its state."""
        return False

    @property
    def of_source(self) -> bool:
        """True for the step with which a source makes rows of messages."""
        return False

    @abstractmethod
    def describe(self) -> list[str]:
        """The stage in one or two lines."""

    @property
    def drops_late(self) -> bool:
        """True if late rows are left out, False if they have windows of their own."""
        return True

    @property
    @abstractmethod
    def max_future(self) -> Span | None:
        """The longest time by which a row may be after the processing time; None means no limit."""

    @property
    @abstractmethod
    def wakes(self) -> bool:
        """True if timers of processing time can be due without new rows."""

    @property
    def may_wake(self) -> bool:
        """True if a query that is told to wake runs batches without data for the stage."""
        return self.wakes


@dataclass(frozen=True)
class GroupingStage(Stage):
    """A grouping and the transforms before it."""

    grouping: Grouping
    asked: Asked
    """The options that the user gave. Options left open are settled again when another grouping follows."""

    def operator(self, *schemas: pa.Schema) -> Operator:
        (schema,) = schemas
        return Operator(self.grouping, schema)

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> Lift:
        return Lift(Compiled.of(self.grouping, schema), shards, timed, rows)

    def before(self) -> Before:
        return Before.of(self.grouping)

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        grouping = self.grouping
        sees_rows = any(isinstance(t, UserTrigger | OnPunctuation | AfterBytes) for t in walk(grouping.asked))
        if sees_rows:
            return None
        plan = Plan(grouping.combiners, schema, append_only=not grouping.changelog)
        names = {*grouping.by, grouping.time, *grouping.window.columns, *plan.columns}
        if grouping.diff is not None:
            names.add(grouping.diff)
        return frozenset(names)

    def kept(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        (schema,) = schemas
        options = ("window", "trigger", "mode", "only_updated", "diff", "granularity", "timestamp")
        return {
            "by": [[name, str(schema.field(name).type)] for name in self.grouping.by],
            "combiners": [[name, repr(combiner)] for name, combiner in self.grouping.combiners.items()],
            **{name: repr(getattr(self.grouping, name)) for name in options},
        }

    @property
    def code(self) -> Mapping[str, Any]:
        grouping = self.grouping
        return {**grouping.combiners, "window": grouping.window, "trigger": grouping.asked}

    @property
    def filters_may_change(self) -> bool:
        return not self.grouping.changelog

    def describe(self) -> list[str]:
        grouping = self.grouping
        names = ", ".join(f"{name}={combiner!r}" for name, combiner in grouping.combiners.items())
        first = f"{grouping.window!r} by {list(grouping.by)}: {names}; {grouping.mode} panes at"
        return [first, f"  {grouping.asked!r}"]

    @property
    def drops_late(self) -> bool:
        return self.grouping.late == "drop"

    @property
    def max_future(self) -> Span | None:
        return None if self.grouping.max_future is None else span(self.grouping.max_future)

    @property
    def wakes(self) -> bool:
        return uses_processing_time(self.grouping.asked)


_OPERATORS: Mapping[type[RowOptions], Callable[[Any, pa.Schema], RowOperator]] = {
    Distinct: DistinctOperator,
    InOrder: InOrderOperator,
    Process: ProcessOperator,
    Remember: RememberOperator,
    Upserts: UpsertsOperator,
}


@dataclass(frozen=True)
class RowStage(Stage):
    """A step over single rows, and the transforms before it."""

    options: RowOptions

    def operator(self, *schemas: pa.Schema) -> RowOperator:
        (schema,) = schemas
        return _OPERATORS[type(self.options)](self.options, schema)

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> RowLift:
        return RowLift(self.keys(schema), shards)

    def keys(self, schema: pa.Schema) -> Sequence[str]:
        """The columns of which equal values must meet in one shard."""
        match self.options:
            case Distinct(by=by) | InOrder(by=by) | Process(by=by) | Upserts(by=by):
                return tuple(by)
            case _:  # a row and its retraction are equal
                user = self.options.columns(schema, "map()").user
                return tuple(dict.fromkeys([*user.names, self.options.time]))

    def before(self) -> Before:
        options = self.options
        if isinstance(options, Upserts):  # its rows are those of a source with weights
            return Before(options.time, options.diff, max_future=options.max_future)
        weighted = isinstance(options, Process) or options.diff is not None
        ordered = isinstance(options, InOrder)
        lateness = span("0 seconds") if ordered else span(options.allowed_lateness)
        return Before(EVENT_TIME, DIFF if weighted else None, True, weighted and not ordered, lateness, None)

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        options = self.options
        if isinstance(options, Upserts):
            return frozenset(name for name in (*options.row, *options.order, options.diff) if name is not None)
        return None

    def kept(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        (schema,) = schemas
        # The state has times to which the allowed lateness was added.
        may_change = ("max_future", "bounded", "by", "keep_deletes")
        options = {name: text for name, text in self.options.given().items() if name not in may_change}
        by = [[name, str(schema.field(name).type)] for name in getattr(self.options, "by", ())]
        columns = [[f.name, str(f.type)] for f in schema]
        return {"step": type(self.options).__name__, "by": by, **options, "columns": columns}

    @property
    def of_source(self) -> bool:
        return isinstance(self.options, Upserts)

    @property
    def code(self) -> Mapping[str, Any]:
        return {"function": self.options}

    def describe(self) -> list[str]:
        return [repr(self.options)]

    @property
    def max_future(self) -> Span | None:
        return None if self.options.max_future is None else span(self.options.max_future)

    @property
    def wakes(self) -> bool:
        return isinstance(self.options, Process) and self.options.wakes

    @property
    def may_wake(self) -> bool:
        return isinstance(self.options, Process)


__all__ = ["GroupingStage", "Lifting", "RowStage", "Stage"]

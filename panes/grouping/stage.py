"""The stage of a grouping: its options and its operator.

Guarded by tests/flows/test_stages.py and tests/sparkops/test_steps.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...combiners import Combiner, Plan
from ...triggers import AfterBytes, OnPunctuation, UserTrigger, uses_processing_time, walk
from ...windows import Span, Window, span
from ..signals import BITS, SIDES, SignalInput, SignalLift
from ..stage import Stage, StageInput, StageLift
from .compiled import CompiledGrouping
from .grouping import DIFF, EVENT_TIME, Grouping
from .lift import Lift
from .operator import Operator


@dataclass(frozen=True)
class OpenGrouping:
    """A grouping as a user wrote it; options that are not named are open.

    >>> import uncombine as uc
    >>> from uncombine.flows.settle import settled
    >>> from uncombine.panes.grouping.stage import OpenGrouping
    >>> per_user = OpenGrouping({"n": uc.Count()}, uc.Fixed("1 minute"), {"by": "user", "allowed_lateness": "1 hour"})
    >>> sizes = OpenGrouping({"users": uc.Count()}, uc.Fixed("1 minute"), {"by": "n"})
    >>> [(stage.time, stage.diff, stage.mode) for stage in settled([per_user, sizes])]
    [('ts', None, 'retracting'), ('event_time', 'diff', 'retracting')]
    """

    combiners: Mapping[str, Combiner]
    window: Window
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by = self.options.get("by", ())
        if isinstance(by, Iterable) and not isinstance(by, str):  # an iterator could be read only once
            object.__setattr__(self, "options", {**self.options, "by": tuple(by)})


@dataclass(frozen=True)
class GroupingStage(Stage):
    """A grouping and the transforms before it."""

    grouping: Grouping
    open_grouping: OpenGrouping
    """The options that the user gave. Options left open are settled again when another grouping follows."""
    signals: tuple[SignalInput, ...] = ()
    """The flows of signals for which the trigger waits, one for each port after the first."""

    def operator(self, *schemas: pa.Schema) -> Operator:
        schema, *signals = schemas
        return Operator(self.grouping, schema, *signals, inputs=self.signals)

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> StageLift:
        if port:
            return SignalLift(self.signals[port - 1].time, shards)
        return Lift(CompiledGrouping.of(self.grouping, schema), shards, timed, rows)

    @property
    def sides(self) -> tuple[str, ...]:
        return SIDES[: 1 + len(self.signals)]

    def output(self) -> StageInput:
        return panes_of(self.grouping)

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        grouping = self.grouping
        if BITS in schema.names:
            return frozenset({BITS, *(input.time for input in self.signals)}) & frozenset(schema.names)
        sees_rows = any(
            isinstance(t, UserTrigger | OnPunctuation | AfterBytes) for t in walk(grouping.effective_trigger)
        )
        if sees_rows:
            return None
        plan = Plan(grouping.combiners, schema, append_only=not grouping.changelog)
        names = {*grouping.by, grouping.time, *grouping.window.columns, *plan.columns}
        if grouping.diff is not None:
            names.add(grouping.diff)
        return frozenset(names)

    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        schema, *_ = schemas
        options = ("window", "trigger", "mode", "only_updated", "diff", "granularity", "timestamp")
        return {
            "by": [[name, str(schema.field(name).type)] for name in self.grouping.by],
            "combiners": [[name, repr(combiner)] for name, combiner in self.grouping.combiners.items()],
            **{name: repr(getattr(self.grouping, name)) for name in options},
            "lateness": str(int(span(self.grouping.allowed_lateness))),
        }

    @property
    def code(self) -> Mapping[str, Any]:
        grouping = self.grouping
        return {**grouping.combiners, "window": grouping.window, "trigger": grouping.effective_trigger}

    @property
    def filters_may_change(self) -> bool:
        return not self.grouping.changelog

    def describe(self) -> list[str]:
        grouping = self.grouping
        names = ", ".join(f"{name}={combiner!r}" for name, combiner in grouping.combiners.items())
        first = f"{grouping.window!r} by {list(grouping.by)}: {names}; {grouping.mode} panes at"
        return [first, f"  {grouping.effective_trigger!r}"]

    @property
    def drops_late(self) -> bool:
        return self.grouping.late == "drop"

    @property
    def time(self) -> str:
        return self.grouping.time

    @property
    def max_future(self) -> Span | None:
        return None if self.grouping.max_future is None else span(self.grouping.max_future)

    @property
    def wakes(self) -> bool:
        return uses_processing_time(self.grouping.effective_trigger)


def panes_of(grouping: Grouping) -> StageInput:
    """The panes of a grouping, as the stage after it gets them."""
    return StageInput(
        time=EVENT_TIME,
        diff=DIFF if carries_retractions(grouping) else None,
        panes=True,
        retracts=grouping.retracting,
        allowed_lateness=span(grouping.allowed_lateness),
        max_future=None,
    )


def carries_retractions(grouping: Grouping) -> bool:
    """True if the panes of a grouping are a changelog for the next: retractions, or differences."""
    return grouping.retracting or grouping.changelog


__all__ = ["GroupingStage", "OpenGrouping", "carries_retractions", "panes_of"]

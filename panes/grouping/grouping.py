"""The options of one grouping operator, checked when they are built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import pyarrow as pa

from ...combiners import Capability, Combiner, Plan
from ...combiners.aggregate import weights_of
from ...errors import InvalidArgument, NamedOptions, NotRetractable, TypeMismatch, nearest, require_column
from ...triggers import (
    AfterWatermark,
    Clearing,
    Repeatedly,
    Trigger,
    UserTrigger,
    as_trigger,
    check_children,
    check_inputs,
    check_trigger,
    walk,
)
from ...windows import Global, Span, Window, as_window, policy, span

Mode: TypeAlias = Literal[
    "discarding",
    "discarding_by_default",
    "accumulating_by_default",
    "accumulating",
    "retracting_by_default",
    "retracting",
]
"""The relation of a pane to those before it."""

MODES: tuple[str, ...] = get_args(Mode)
"""The accumulation modes, from "always clear" to "always accumulate", and then with retractions."""

RESERVED = ("window", "event_time", "diff", "pane", "step")
"""Names of columns that every pane has. No key and no result may have one of them."""

MAX_FUTURE = span("1 day")
"""The longest time by which a row may be after the processing time, unless a grouping says otherwise."""


EVENT_TIME, DIFF = "event_time", "diff"
"""The columns of results that the next stage reads."""


def check_time_and_weights(schema: pa.Schema, time: str, diff: str | None) -> None:
    """Raise unless the columns of event time and of weights are there, in types that fit."""
    require_column(time, schema.names, "time=")
    if diff is not None:
        weights_of(schema.empty_table(), diff)
    kind = schema.field(time).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise TypeMismatch(
            f"time= takes a timestamp column, but {time!r} is {kind}: cast it to timestamp first, or give uc.flow() "
            "time_format=, such as 'ms' for numbers or '%d.%m.%Y' for texts"
        )


class GroupingOptions(TypedDict, total=False):
    """The options of a grouping that `flow.window` takes by name; `Grouping` says what each is."""

    time: str
    diff: str | None
    allowed_lateness: Span | str
    on_time: Literal["always", "non_empty"]
    closing: Literal["non_empty", "always", "never"]
    only_updated: bool
    eager_retractions: bool
    late: Literal["drop", "duplicate"]
    granularity: Literal["bundle", "record"]
    timestamp: Literal["end_of_window", "start_of_window", "earliest", "latest", "watermark"] | None
    allow_finish: bool


@dataclass(frozen=True)
class Grouping(NamedOptions):
    """The options of a grouping operator, as a value.

    Parameters
    ----------
    combiners
        The name of each result, and its combiner.
    window
        The windows of event time in which rows are grouped, or their words.
    trigger
        The trigger that decides when panes are emitted, or its words; `Repeatedly(AfterWatermark())` if not given.
    mode
        The relation of a pane to those before it: "discarding", "accumulating" or "retracting". For triggers that ask
        to clear a window there are also "discarding_by_default", "accumulating_by_default" and "retracting_by_default".
    by
        The key columns; without any, all rows of a window are combined.
    time
        The event time column.
    diff
        The weight column of a changelog input, or None.
    allowed_lateness
        The time after its end for which a window accepts late rows; then it expires.
    on_time
        "always": the on-time firing gives a pane even if no row came since the last pane. "non_empty": only if one did.
    closing
        The pane at expiry: "non_empty" (if the window has rows that no pane has shown), "always" or "never".
    only_updated
        True leaves out a pane with the same values as the last one of the same window. Not for mode="discarding".
    eager_retractions
        True retracts the panes of windows that a merge ends at once, and not with the next pane.
    late
        The treatment of rows whose window has expired: "drop" (they are in `left_out`) or "duplicate" (they get a
        window of their own, which nothing retracts: not for mode="retracting", nor with diff=).
    granularity
        "bundle": triggers are evaluated once a bundle; "record": once for each record of a key.
    timestamp
        The event time of a result: "end_of_window", "start_of_window", "earliest", "latest" or "watermark". None means
        "latest" for `Global()`, which has no end, and "end_of_window" for other windows.
    allow_finish
        True accepts a trigger that can finish, after which later rows of the window are lost.
    max_future
        The longest time by which the event time of a row may be after the processing time; other rows are bad rows.
        None means no limit.
    bounded
        True if the input ends, so that the watermark reaches the end of time.

    Examples
    --------
    >>> import uncombine as uc
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), by="user").mode
    'accumulating'
    """

    combiners: Mapping[str, Combiner]
    window: Window
    trigger: Trigger | None = None
    mode: str = "accumulating"
    by: Sequence[str] | str = ()
    time: str = "ts"
    diff: str | None = None
    allowed_lateness: Span | Any = field(default_factory=lambda: span("0 seconds"))
    on_time: str = "always"
    closing: str = "non_empty"
    only_updated: bool = False
    eager_retractions: bool = False
    late: str = "drop"
    granularity: str = "bundle"
    timestamp: str | None = None
    allow_finish: bool = False
    max_future: Span | Any | None = MAX_FUTURE
    bounded: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", as_window(self.window))
        trigger = Repeatedly(AfterWatermark()) if self.trigger is None else as_trigger(self.trigger)
        check_children(trigger)
        if not isinstance(self.by, str | Iterable):
            raise InvalidArgument(f"by= takes the name of a column or several names, but was given {self.by!r}")
        if not isinstance(self.combiners, Mapping):
            raise InvalidArgument(
                f"Grouping(combiners) takes combiners by the names of their results, such as {{'n': Count()}}, but was "
                f"given {self.combiners!r}"
            )
        keys = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        changes: dict[str, Any] = {"trigger": trigger, "by": keys, "allowed_lateness": span(self.allowed_lateness)}
        changes["max_future"] = None if self.max_future is None else span(self.max_future)
        changes["combiners"] = dict(self.combiners)
        for name, value in changes.items():
            object.__setattr__(self, name, value)
        _one_of("mode", self.mode, MODES)
        _one_of("on_time", self.on_time, ("always", "non_empty"))
        _one_of("closing", self.closing, ("non_empty", "always", "never"))
        if self.late not in ("drop", "duplicate"):
            raise InvalidArgument(
                f"late= is {self.late!r}: it must be 'drop' or 'duplicate', and rows that were dropped are in left_out"
            )
        _one_of("granularity", self.granularity, ("bundle", "record"))
        if self.timestamp is None:
            object.__setattr__(self, "timestamp", "latest" if isinstance(self.window, Global) else "end_of_window")
        policy(self.policy)
        if self.allowed_lateness < 0:
            raise InvalidArgument(f"allowed_lateness= must not be negative, but is {self.allowed_lateness!r}")
        if not self.combiners:
            raise InvalidArgument("a grouping needs at least one combiner, such as n=Count()")
        self._check_names()
        self._check_modes()
        self.check_trigger()

    def check_trigger(self, each_batch: bool = False) -> None:
        """Raise for a trigger that would lose rows or never fire. With `each_batch` windows do not expire."""
        check_trigger(
            self.effective_trigger,
            self.window,
            span(self.allowed_lateness),
            self.bounded,
            self.allow_finish,
            each_batch,
        )

    def _check_names(self) -> None:
        names: dict[str, str] = {}
        for name in (*self.by, *self.combiners):
            plain = str(name).casefold()
            if plain in RESERVED:
                called = repr(name) if plain == name else f"{name!r} differs only by case from {plain!r}, which"
                raise InvalidArgument(f"{called} is a column of every result: give the key or combiner another name")
            if names.get(plain, name) != name:
                raise InvalidArgument(
                    f"{names[plain]!r} and {name!r} differ only by case, so Spark takes them for one column: "
                    "rename one of them"
                )
            if plain in names:
                raise InvalidArgument(f"{name!r} is used twice among the keys and combiners: rename one of them")
            names[plain] = name

    def _check_modes(self) -> None:
        if self.late == "duplicate" and (self.retracting or self.changelog):
            what = "mode='retracting'" if self.retracting else "diff="
            raise InvalidArgument(
                f"late='duplicate' shows late rows in a separate window that nothing retracts, so it cannot be used "
                f"with {what}: use late='drop', and read them with left_out"
            )
        asks = any(isinstance(part, UserTrigger) for part in walk(self.effective_trigger))
        if any(isinstance(part, Clearing) for part in walk(self.effective_trigger)) and not self.mode.endswith(
            "_by_default"
        ):
            raise InvalidArgument(
                f"{self.effective_trigger!r} asks to empty its window, which mode={self.mode!r} does not do: use "
                "mode='retracting_by_default', or take Clearing() away"
            )
        if self.only_updated and (self.mode == "discarding" or (self.mode == "discarding_by_default" and not asks)):
            raise InvalidArgument(
                f"only_updated=True leaves out panes that repeat the last one, but in mode={self.mode!r} each pane "
                "shows other rows: leave only_updated= out"
            )

    @property
    def effective_trigger(self) -> Trigger:
        """The trigger; never None."""
        assert self.trigger is not None
        return self.trigger

    @property
    def policy(self) -> str:
        """The policy for the event time of a result; never None."""
        assert self.timestamp is not None
        return self.timestamp

    @property
    def splits(self) -> bool:
        """True if a retraction can split a window in two."""
        return self.changelog and self.window.merging

    @property
    def extents(self) -> tuple[str, ...]:
        """The times of rows that a window keeps: its earliest, its latest, both or neither."""
        if self.policy == "earliest" or (self.policy == "latest" and self.splits):
            return ("earliest", "latest")
        return ("latest",) if self.policy == "latest" or self.window.may_be_endless else ()

    @property
    def changelog(self) -> bool:
        """True if input rows can be retractions."""
        return self.diff is not None

    @property
    def retracting(self) -> bool:
        """True if a pane comes with the retraction of the pane before it."""
        return self.mode in ("retracting", "retracting_by_default")

    @property
    def keeps_last(self) -> bool:
        """True if the last pane of a window must be kept in state."""
        return self.retracting or self.only_updated

    def with_mode(self, mode: str) -> Grouping:
        """This grouping in another mode."""
        return replace(self, mode=mode)

    def plan(self, schema: pa.Schema) -> Plan:
        """Compile the combiners on this schema; raise if the input does not fit or cannot be retracted."""
        for name in (*self.by, *([] if self.diff is None else [self.diff])):
            require_column(name, schema.names, "the grouping")
        check_time_and_weights(schema, self.time, self.diff)
        self.window.check(schema)
        for name in self.by:
            if not _is_key(schema.field(name).type):
                raise TypeMismatch(
                    f"by= takes columns of single values or structs of them, but {name!r} is "
                    f"{schema.field(name).type}: name a column with a part of it, or with its text"
                )
        plan = Plan(self.combiners, schema, append_only=not self.changelog)
        if self.changelog:
            self._check_changelog(plan)
        keys = [schema.field(name) for name in self.by]
        keys = [key.with_type(key.type.value_type) if pa.types.is_dictionary(key.type) else key for key in keys]
        check_inputs(self.effective_trigger, schema, pa.schema([*keys, *plan.outputs]))
        return plan

    def _check_changelog(self, plan: Plan) -> None:
        plan.require_retractable("the input carries retractions (diff=)")
        if self.mode in ("accumulating", "accumulating_by_default"):
            raise NotRetractable(
                f"mode={self.mode!r} cannot show that retractions have emptied a window: use mode='retracting'"
            )
        if self.mode == "discarding_by_default":
            raise NotRetractable(
                f"mode={self.mode!r} lets a trigger show rows again, so the panes of a changelog are not "
                "differences: use mode='retracting'"
            )
        if self.mode == "retracting_by_default":
            raise NotRetractable(
                f"mode={self.mode!r} lets a trigger forget rows, which could not be retracted then: use "
                "mode='retracting'"
            )
        if self.mode == "discarding" and self.window.merging:
            raise NotRetractable(
                f"mode={self.mode!r} cannot show as a difference that a retraction (diff=) splits a window of "
                f"{self.window!r}: use mode='retracting'"
            )
        if self.mode == "discarding":
            self.check_differences(plan, f"in mode={self.mode!r} on a changelog")

    def check_differences(self, plan: Plan, why: str) -> None:
        """Raise for a combiner whose panes of separate rows do not add up to the pane of all rows."""
        for name, one in plan.compiled.items():
            if one.capability is not Capability.GROUP or not one.additive:
                raise NotRetractable(
                    f"{name}= cannot show its changes as differences {why}, because its results do not add up as those "
                    "of Count and Sum do: use mode='retracting'"
                )


def _is_key(kind: pa.DataType) -> bool:
    """True if rows can be grouped by values of the type."""
    if pa.types.is_struct(kind):
        return all(_is_key(field.type) for field in kind)
    return not pa.types.is_nested(kind) and not pa.types.is_interval(kind)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgument(f"{name}= is {value!r}: {nearest(str(value), allowed)}")

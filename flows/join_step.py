"""The stage of a step over two inputs, such as a join, built from what is known of both.

Guarded by tests/panes/join/test_join_flows.py, tests/sparkops/test_join.py and
tests/panes/process/test_broadcast_flows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from ..panes.grouping.grouping import Grouping
from ..panes.join.join import LOOKUPS, SIDES, Join
from ..panes.join.kept import KeptJoin
from ..panes.join.stage import JoinStage
from ..panes.join_asof.join_asof import JoinAsof
from ..panes.join_asof.stage import JoinAsofStage
from ..panes.lookup.lookup import Lookup
from ..panes.lookup.stage import LookupStage
from ..panes.process.broadcast import BroadcastInput
from ..panes.process.process import Process
from ..panes.process.stage import ProcessStage
from ..panes.signals import MOST, SignalInput, Signals
from ..panes.signals import SIDES as SIGNAL_SIDES
from ..panes.stage import Stage, StageInput
from ..triggers import OnSignal, Trigger, check_signals, signals_of
from ..windows import Global, Inherit, Span, Window, span
from .engine import FlowSource
from .flow_steps import (
    FlowSteps,
    Steps,
    followed_flow,
    input_of,
    last_groupings,
    leaves_of,
    windows_of,
    with_name,
    without_counts,
)
from .settings import Settings, check_free, check_kept, check_sources, shared
from .settle import check_lateness, farthest, shows_again

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti", "lookup", "left_lookup"]
"""The rows that a join gives."""

Direction: TypeAlias = Literal["backward", "forward", "nearest"]
"""The side in time on which an as-of join looks for a match."""

Keep: TypeAlias = Span | str | Sequence[Span | str | None] | Mapping[str, Span | str | None] | None
"""The time for which the rows of both sides stay, or of each; None for ever, and nothing for a join of another kind."""

_OF_A_LOOKUP = ("on", "how", "suffixes", "allowed_lateness")


@dataclass(frozen=True)
class JoinSide:
    """One input of a join, as far as the join looks at it."""

    schema: pa.Schema
    rows: StageInput
    windows: Sequence[Window]
    """The windows of its rows, if they are known."""
    groupings: Sequence[Grouping]
    """The last groupings before it."""
    settings: Settings

    @classmethod
    def of(cls, flow: FlowSteps) -> JoinSide:
        """The side that a flow is."""
        return cls(
            schema=flow.schema,
            rows=input_of(flow),
            windows=windows_of(flow),
            groupings=last_groupings(flow),
            settings=flow.settings,
        )


Joined: TypeAlias = tuple[Stage, pa.Schema, Settings]
"""The stage of a step over two inputs, the columns of its flow, and the options of it."""


def join_stage(sides: Sequence[JoinSide], options: Mapping[str, Any]) -> Joined:
    """The stage of a join with the options that a user gave."""
    keep = options["keep"]
    given = {name: value for name, value in options.items() if name == "on" or (name != "keep" and value is not None)}
    if given["how"] in LOOKUPS:
        return _lookup_stage(sides, given, keep)
    if keep == ():
        return _joined(sides, JoinStage((), Join(**_all_options(sides, given))))
    if "within" in given:
        raise InvalidArgument(
            "join() takes within=, which says how long rows stay, or keep=, with which all rows of a key match, and "
            "not both: leave one of them out"
        )
    return _joined(sides, JoinStage((), KeptJoin(**_all_options(sides, given), keep=keep)))


def _lookup_stage(sides: Sequence[JoinSide], given: Mapping[str, Any], keep: Keep) -> Joined:
    """The stage of a lookup join with the options that a user gave."""
    how, left = given["how"], sides[0]
    if "within" in given:
        raise InvalidArgument(
            f"how={how!r} meets the right rows that are valid when a left row comes, whatever their times: leave "
            "within= out, or write join_asof() for those of the time of the left row"
        )
    if given["unmatched"] != "at_once":
        raise InvalidArgument(f"how={how!r} gives a left row when it comes, with a match or none: leave unmatched= out")
    if keep != ():
        raise InvalidArgument(
            f"how={how!r} keeps right rows until they are retracted, and of left rows that may be retracted what they "
            "met, for allowed_lateness=: leave keep= out"
        )
    own = {"allowed_lateness": left.rows.allowed_lateness or span("0 seconds"), **given}
    lookup = Lookup(**_all_options(sides, {name: value for name, value in own.items() if name in _OF_A_LOOKUP}))
    # No right row is late, so that its lateness does not matter.
    return _joined(sides, LookupStage((), lookup), sides[:1])


def join_asof_stage(sides: Sequence[JoinSide], options: Mapping[str, Any]) -> Joined:
    """The stage of an as-of join with the options that a user gave."""
    if options["allowed_lateness"] is None:
        options = {name: value for name, value in options.items() if name != "allowed_lateness"}
    return _joined(sides, JoinAsofStage((), JoinAsof(**_all_options(sides, options))))


def broadcast_stage(make: Callable[..., Process], options: Mapping[str, Any], sides: Sequence[JoinSide]) -> Joined:
    """The stage of `process` with broadcast rows, the second side, with the options that a user gave."""
    keyed, broadcast = sides
    for side, name in ((keyed, "rows with keys"), (broadcast, "broadcast rows")):
        check_kept(side.rows, side.schema, f"the flow of {name}")
    lateness = keyed.rows.allowed_lateness
    process = make(
        **{
            "time": keyed.rows.time,
            "diff": keyed.rows.diff,
            "max_future": None,
            "broadcast": BroadcastInput(time=broadcast.rows.time, diff=broadcast.rows.diff),
            **({} if lateness is None else {"allowed_lateness": lateness}),
            **options,
        }
    )
    if lateness is not None and keyed.rows.diff is not None:
        check_lateness(span(process.allowed_lateness), lateness, "process()")
    stage = ProcessStage((), process)
    schema = stage.operator(keyed.schema, broadcast.schema).output_schema
    check_free(schema)
    return stage, schema, shared([side.settings for side in sides], stage.output(), "process(broadcast=)")


def with_signals(flow: Steps, trigger: Trigger | None, who: type) -> tuple[Steps, tuple[SignalInput, ...]]:
    """The flow with the signals for which a trigger waits beside its rows, and what the stage knows of each flow."""
    parts = () if trigger is None else signals_of(trigger)
    if not parts:
        return flow, ()
    if len(parts) > MOST:
        raise InvalidArgument(f"the trigger has {len(parts)} OnSignal(), and {MOST} are the most: unite their flows")
    by_flow: dict[int, list[tuple[int, OnSignal]]] = {}
    for place, part in enumerate(parts):
        if not issubclass(type(part.flow), who):
            raise InvalidArgument(f"{part!r} takes a flow of signals, not a {type(part.flow).__name__}")
        check_signals(part, part.flow.schema)
        by_flow.setdefault(id(part.flow), []).append((1 << place, part))
    told = [
        without_counts(followed_flow(with_name(some[0][1].flow, SIGNAL_SIDES[port])))
        for port, some in enumerate(by_flow.values(), 1)
    ]
    flow = with_name(flow, SIGNAL_SIDES[0])
    check_sources([leaf for one in (flow, *told) for leaf in leaves_of(one)], "OnSignal()")
    own, *others = [input_of(one) for one in (flow, *told)]
    check_kept(own, flow.schema, "the flow before the window")
    for one, rows, some in zip(told, others, by_flow.values(), strict=True):
        check_kept(rows, one.schema, f"the flow of {some[0][1]!r}")
    inputs = [
        replace(one, transforms=(*one.transforms, Signals(tuple(some), rows.diff)))
        for one, rows, some in zip(told, others, by_flow.values(), strict=True)
    ]
    rows = replace(own, max_future=farthest([side.max_future for side in (own, *others)]))
    source = FlowSource(schema=flow.schema, inputs=(flow, *inputs), output=rows, ports=tuple(range(len(inputs) + 1)))
    settings = shared([one.settings for one in (flow, *told)], rows, "OnSignal()")
    made = type(flow)(source=source, settings=settings, source_schema=flow.schema)
    return made, tuple(SignalInput(time=side.time) for side in others)


def _all_options(sides: Sequence[JoinSide], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a join, with those that its inputs decide; raises if an input does not fit."""
    left, right = sides
    for side, name in zip(sides, SIDES, strict=True):
        check_kept(side.rows, side.schema, f"the {name} flow of the join")
        if side.settings.each_batch:
            raise InvalidArgument(
                "a join needs a watermark of its rows: in place of watermark='each_batch' write one such as '1 hour', "
                "by which rows may be later than others, or uc.ProcessingTime('1 minute') for a table as it is now"
            )
        for grouping in side.groupings:
            check_whole(grouping)
    lateness = [side.rows.allowed_lateness for side in sides if side.rows.allowed_lateness is not None]
    return {
        "allowed_lateness": max(lateness, default=span("0 seconds")),
        **options,
        "left_time": left.rows.time,
        "right_time": right.rows.time,
        "left_diff": left.rows.diff,
        "right_diff": right.rows.diff,
    }


def _joined(sides: Sequence[JoinSide], stage: JoinStage, judged: Sequence[JoinSide] | None = None) -> Joined:
    left, right = sides
    for side in sides if judged is None else judged:
        if side.rows.allowed_lateness is not None and side.rows.diff is not None:
            check_lateness(span(stage.join.allowed_lateness), side.rows.allowed_lateness, "the join")
    schema = stage.operator(left.schema, right.schema).output_schema
    check_free(schema)
    if judged is None:
        _check_units(left, right)
    if stage.join.reach is None:
        _check_windows(left, right)
    return stage, schema, shared([side.settings for side in sides], stage.output(), "the join")


def check_whole(grouping: Grouping) -> None:
    if grouping.mode.startswith("discarding") and shows_again(grouping):
        raise InvalidArgument(
            f"mode={grouping.mode!r} can show a window in several panes, and a join would match each of them as a row "
            "of its own: use mode='retracting'"
        )


def _check_units(left: JoinSide, right: JoinSide) -> None:
    kinds = [side.schema.field(side.rows.time).type for side in (left, right)]
    units = [kind.unit if pa.types.is_timestamp(kind) else "day" for kind in kinds]
    if units[0] != units[1]:
        raise TypeMismatch(
            f"the left time {left.rows.time!r} is {kinds[0]} and the right time {right.rows.time!r} is {kinds[1]}: "
            "cast one of them to the unit of the other"
        )


def _check_windows(left: JoinSide, right: JoinSide) -> None:
    """Raise unless both inputs have the same windows, as far as these are known."""
    for side, name in zip((left, right), SIDES, strict=True):
        if any(isinstance(window, Global) for window in side.windows):
            raise InvalidArgument(
                f"a join without within= matches rows of one window, and the {name} input is grouped by Global(), "
                "which gives none: give within= or keep=, or another window"
            )
    windows = [window for window in (*left.windows, *right.windows) if not isinstance(window, Inherit)]
    if other := [window for window in windows if repr(window) != repr(windows[0])]:
        raise InvalidArgument(
            f"a join without within= matches rows of one window, and its inputs have {windows[0]!r} and {other[0]!r}: "
            "give within= or keep=, or group both by the same window"
        )


__all__ = [
    "Direction",
    "How",
    "JoinSide",
    "Joined",
    "Keep",
    "broadcast_stage",
    "check_whole",
    "join_asof_stage",
    "join_stage",
    "with_signals",
]

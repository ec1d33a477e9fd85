"""The stage of a join, built from what is known of its two inputs.

Guarded by tests/panes/join/test_join_flows.py and tests/sparkops/test_join.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from ..panes.grouping.grouping import Grouping
from ..panes.join.join import SIDES, Join
from ..panes.join.operator import JoinOperator
from ..panes.row_lift import RowLift
from ..windows import Global, Inherit, Window, span
from .settings import Settings, check_free, check_kept, shared
from .settle import DIFF, EVENT_TIME, Before, check_lateness, shows_again
from .steps import Stage


@dataclass(frozen=True)
class JoinStage(Stage):
    """A join of two inputs; each has its transforms in its own flow."""

    join: Join

    def operator(self, *schemas: pa.Schema) -> JoinOperator:
        left, right = schemas
        return JoinOperator(self.join, left, right)

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> RowLift:
        return RowLift([pair[port] for pair in self.join.on], shards)

    def before(self) -> Before:
        join = self.join
        weighted = join.left_diff is not None or join.right_diff is not None
        changes = weighted or (not join.final and (join.alone("left") or join.alone("right")))
        # The output watermark is held by the lateness of the join, so that a later stage needs none.
        return Before(EVENT_TIME, DIFF if changes else None, True, changes, span("0 seconds"), None)

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        return None

    def kept(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        columns = [[[f.name, str(f.type)] for f in schema] for schema in schemas]
        return {"step": repr(self.join), "columns": columns}

    @property
    def code(self) -> Mapping[str, Any]:
        return {}

    def describe(self) -> list[str]:
        return [self.join.words]

    @property
    def max_future(self) -> None:
        return None

    @property
    def wakes(self) -> bool:
        return False


@dataclass(frozen=True)
class Joined:
    """One input of a join, as far as the join looks at it."""

    schema: pa.Schema
    before: Before
    windows: Sequence[Window]
    """The windows of its rows, if they are known."""
    groupings: Sequence[Grouping]
    """The last groupings before it."""
    settings: Settings


def join_stage(sides: Sequence[Joined], options: Mapping[str, Any]) -> tuple[JoinStage, pa.Schema, Settings]:
    """The stage of a join with the options that a user gave, its columns, and the options of its flow."""
    left, right = sides
    for side, name in zip(sides, SIDES, strict=True):
        check_kept(side.before, side.schema, f"the {name} flow of the join")
        if side.settings.each_batch:
            raise InvalidArgument("a join needs a watermark of its rows: use another one than watermark='each_batch'")
        for grouping in side.groupings:
            _check_whole(grouping)
    lateness = [side.before.allowed_lateness for side in sides if side.before.allowed_lateness is not None]
    known = {name: value for name, value in options.items() if value is not None or name == "on"}
    join = Join(
        **{"allowed_lateness": max(lateness, default=span("0 seconds")), **known},
        left_time=left.before.time,
        right_time=right.before.time,
        left_diff=left.before.diff,
        right_diff=right.before.diff,
    )
    for side in sides:
        if side.before.allowed_lateness is not None and side.before.diff is not None:
            check_lateness(span(join.allowed_lateness), side.before.allowed_lateness, "the join")
    stage = JoinStage((), join)
    schema = stage.operator(left.schema, right.schema).output_schema
    check_free(schema)
    _check_units(left, right)
    if join.within is None:
        _check_windows(left, right)
    return stage, schema, shared([side.settings for side in sides], stage.before(), "the join")


def _check_whole(grouping: Grouping) -> None:
    if grouping.mode.startswith("discarding") and shows_again(grouping):
        raise InvalidArgument(
            f"mode={grouping.mode!r} can show a window in several panes, and a join would match each of them as a row "
            "of its own: use mode='retracting'"
        )


def _check_units(left: Joined, right: Joined) -> None:
    kinds = [side.schema.field(side.before.time).type for side in (left, right)]
    units = [kind.unit if pa.types.is_timestamp(kind) else "day" for kind in kinds]
    if units[0] != units[1]:
        raise TypeMismatch(
            f"the left time {left.before.time!r} is {kinds[0]} and the right time {right.before.time!r} is {kinds[1]}: "
            "cast one of them to the unit of the other"
        )


def _check_windows(left: Joined, right: Joined) -> None:
    """Raise unless both inputs have the same windows, as far as these are known."""
    for side, name in zip((left, right), SIDES, strict=True):
        if any(isinstance(window, Global) for window in side.windows):
            raise InvalidArgument(
                f"a join without within= matches rows of one window, and the {name} input is grouped by Global(), "
                "which gives none: give within=, or another window"
            )
    known = [window for window in (*left.windows, *right.windows) if not isinstance(window, Inherit)]
    if other := [window for window in known if repr(window) != repr(known[0])]:
        raise InvalidArgument(
            f"a join without within= matches rows of one window, and its inputs have {known[0]!r} and {other[0]!r}: "
            "give within=, or group both by the same window"
        )


__all__ = ["JoinStage", "Joined", "join_stage"]

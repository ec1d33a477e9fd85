"""Groupings in a chain: options that a user leaves open are settled here, by the groupings before and after.

Every way to run a chain uses this module, so that a stage means the same on a laptop, in a replay and in a stream.
`tests/flows/test_stages.py` compares it with runs of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..combiners import Combiner
from ..errors import InvalidArgument
from ..panes.grouping.grouping import DIFF, EVENT_TIME, MAX_FUTURE, Grouping
from ..triggers import UserTrigger, fires_ever, fires_once, fires_only_at_the_end, walk
from ..windows import Global, Span, Window, span


@dataclass(frozen=True)
class Asked:
    """A grouping as a user asked for it; options that are not named are open.

    >>> import uncombine as uc
    >>> from uncombine.flows.settle import Asked, settled
    >>> per_user = Asked({"n": uc.Count()}, uc.Fixed("1 minute"), {"by": "user", "allowed_lateness": "1 hour"})
    >>> sizes = Asked({"users": uc.Count()}, uc.Fixed("1 minute"), {"by": "n"})
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
class Before:
    """The input of a grouping: its columns of event time and weights, and the demands of the steps before it."""

    time: str = "ts"
    diff: str | None = None
    panes: bool = False
    """True if rows come from a grouping, so that their times may lie in the future."""
    retracts: bool = False
    """True if a grouping before it retracts panes."""
    allowed_lateness: Span | None = None
    """The allowed lateness of the groupings before it, and None if there are none."""
    max_future: Span | Any | None = MAX_FUTURE
    """The longest time by which a row of the source may be after the processing time; None means no limit."""

    @classmethod
    def of(cls, grouping: Grouping) -> Before:
        """The input that a grouping is for the one after it."""
        diff = DIFF if carries_retractions(grouping) else None
        return cls(EVENT_TIME, diff, True, grouping.retracting, span(grouping.allowed_lateness), None)


def farthest(limits: Sequence[Span | Any | None]) -> Span | Any | None:
    """The largest of some values of `max_future`, of which None is no limit."""
    known = [limit for limit in limits if limit is not None]
    return max(known, key=int) if len(known) == len(limits) else None


def settled(
    asked: Sequence[Asked],
    before: Before = Before(),
    bounded: bool = True,
    each_batch: bool = False,
    number: int = 1,
) -> list[Grouping]:
    """Settle the open options of a whole chain of groupings; `number` is that of the first stage."""
    out: list[Grouping] = []
    for i, stage in enumerate(asked):
        options = {"bounded": bounded, **stage.options}
        _after(before if i == 0 else Before.of(out[-1]), options, number + i)
        alone = Grouping(stage.combiners, stage.window, **{**options, "mode": options.get("mode") or _alone(options)})
        if i + 1 < len(asked):
            alone = followed(alone, stage, number + i, each_batch)
        out.append(alone)
    return out


def shows_again(grouping: Grouping, each_batch: bool = False) -> bool:
    """True if two panes can show the same row: the window fires again, or merges after it fired.

    False only if that is certain for all rows: either the window fires only when it expires, or its trigger is finished
    after it fires. `each_batch` is for a watermark that runs to the end of time in each bundle.

    >>> import uncombine as uc
    >>> from uncombine.flows.settle import shows_again
    >>> shows_again(uc.Grouping({"n": uc.Count()}, uc.Fixed("1 minute")))
    False
    >>> shows_again(uc.Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), allowed_lateness="1 hour"))
    True
    """
    trigger, window = grouping.asked, grouping.window
    if not fires_ever(trigger):
        return False
    if grouping.closing == "always":
        return True
    # No row is after the end of the window of all time, so allowed lateness does not keep that window.
    leaves_at_its_end = not each_batch and (grouping.allowed_lateness == 0 or isinstance(window, Global))
    if leaves_at_its_end and fires_only_at_the_end(trigger):
        return False
    return window.merging or not fires_once(trigger)


def carries_retractions(grouping: Grouping) -> bool:
    """True if the panes of a grouping are a changelog for the next: retractions, or differences."""
    return grouping.retracting or grouping.changelog


def check_followed(grouping: Grouping, schema: pa.Schema, each_batch: bool = False) -> None:
    """Raise if the next grouping cannot add up the panes of this one, because a row can be in several of them."""
    if grouping.mode.startswith("discarding") and shows_again(grouping, each_batch):
        why = f"in mode={grouping.mode!r}, so the next grouping would count rows more than once"
        grouping.check_differences(grouping.plan(schema), why)


def _alone(options: Mapping[str, Any]) -> str:
    return "accumulating" if options.get("diff") is None else "retracting"


def _after(before: Before, options: dict[str, Any], number: int) -> None:
    """Settle the options of a grouping by what comes before it."""
    options.setdefault("time", before.time)
    options["max_future"] = before.max_future
    if before.diff is not None or not before.panes:
        options.setdefault("diff", before.diff)
    if options.get("diff") is None and before.retracts:
        raise InvalidArgument(
            f"diff=None of stage {number} would count rows that the stage before it retracts: leave diff= out, "
            f"or name the column that has the weights"
        )
    if before.allowed_lateness is None:
        return
    options.setdefault("allowed_lateness", before.allowed_lateness)
    if before.diff is not None:
        check_lateness(span(options["allowed_lateness"]), before.allowed_lateness, f"stage {number}")


def check_lateness(own: Span, before: Span, stage: str) -> None:
    """Raise if the stage before a stage can retract rows later than the stage takes them."""
    if own < before:
        raise InvalidArgument(
            f"allowed_lateness={own!r} of {stage} is less than the {before!r} of the stage before it, whose "
            "retractions would then come too late: leave it out, or give at least as much"
        )


def followed(grouping: Grouping, asked: Asked, number: int, each_batch: bool = False) -> Grouping:
    """The grouping, settled for another one after it."""
    if grouping.late == "duplicate":
        raise InvalidArgument(
            f"late='duplicate' of stage {number} shows late rows any length of time after the watermark has passed "
            "them, so the next step would lose them as late: use late='drop', and read them with left_out, or give "
            "more allowed_lateness="
        )
    open_mode = asked.options.get("mode") is None
    window = grouping.window
    known = not window.merging and window.first_start(0) is not None
    if grouping.policy == "start_of_window" and not known and window != Global():
        raise InvalidArgument(
            f"timestamp='start_of_window' of stage {number} with {window!r} can be any length of time before the "
            "watermark, so the next grouping would lose results: use timestamp='earliest'"
        )
    again = shows_again(grouping, each_batch)
    if open_mode:
        return grouping.with_mode("retracting") if again else grouping
    if not again or grouping.retracting:
        return grouping
    if grouping.mode.startswith("accumulating"):
        raise InvalidArgument(
            f"mode={grouping.mode!r} of stage {number} can show a window more than once, and the next grouping would "
            "count it each time: use mode='retracting', or leave mode= out"
        )
    if grouping.mode == "discarding_by_default" and any(isinstance(t, UserTrigger) for t in walk(grouping.asked)):
        raise InvalidArgument(
            f"mode='discarding_by_default' of stage {number} lets its trigger show rows again, and the next grouping "
            "would count them each time: use mode='discarding' or mode='retracting'"
        )
    return grouping


__all__ = [
    "DIFF",
    "EVENT_TIME",
    "Asked",
    "Before",
    "carries_retractions",
    "check_followed",
    "check_lateness",
    "farthest",
    "followed",
    "settled",
    "shows_again",
]

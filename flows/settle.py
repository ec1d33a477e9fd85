"""Groupings in a chain: options that a user leaves open are settled here, by the groupings before and after.

Every way to run a chain uses this module, so that a stage means the same on a laptop, in a replay and in a stream.
`tests/flows/test_stages.py` compares it with runs of the operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument
from ..panes.grouping.grouping import Grouping
from ..panes.grouping.stage import OpenGrouping, panes_of
from ..panes.stage import StageInput
from ..triggers import UserTrigger, fires_ever, fires_once, fires_only_at_the_end, walk
from ..windows import Global, Span, span


def farthest(limits: Sequence[Span | Any | None]) -> Span | Any | None:
    """The largest of some values of `max_future`, of which None is no limit."""
    finite = [limit for limit in limits if limit is not None]
    return max(finite, key=int) if len(finite) == len(limits) else None


_OF_A_SOURCE = StageInput()


def settled(
    chain: Sequence[OpenGrouping],
    rows: StageInput = _OF_A_SOURCE,
    bounded: bool = True,
    each_batch: bool = False,
    number: int = 1,
) -> list[Grouping]:
    """Settle the open options of a whole chain of groupings; `number` is that of the first stage."""
    out: list[Grouping] = []
    for i, grouping in enumerate(chain):
        options = {"bounded": bounded, **grouping.options}
        _after(rows if i == 0 else panes_of(out[-1]), options, number + i)
        mode = options.get("mode") or _alone(options)
        alone = Grouping(grouping.combiners, grouping.window, **{**options, "mode": mode})
        if i + 1 < len(chain):
            alone = followed(alone, grouping, number + i, each_batch)
        out.append(alone)
    return out


def shows_again(grouping: Grouping, each_batch: bool = False) -> bool:
    """True if two panes can show the same row: the window fires again, or merges after it fired.

    False only if that is certain for all rows: either the window fires only when it expires, or its trigger is finished
    after it fires. `each_batch` is for a watermark that runs to the end of time in each bundle.

    >>> import uncombine as uc
    >>> from uncombine.flows.settle import shows_again
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> shows_again(Grouping({"n": uc.Count()}, uc.Fixed("1 minute")))
    False
    >>> shows_again(Grouping({"n": uc.Count()}, uc.Fixed("1 minute"), allowed_lateness="1 hour"))
    True
    """
    trigger, window = grouping.effective_trigger, grouping.window
    if not fires_ever(trigger):
        return False
    if grouping.closing == "always":
        return True
    # No row is after the end of the window of all time, so allowed lateness does not keep that window.
    leaves_at_its_end = not each_batch and (grouping.allowed_lateness == 0 or isinstance(window, Global))
    if leaves_at_its_end and fires_only_at_the_end(trigger):
        return False
    return window.merging or not fires_once(trigger)


def check_followed(grouping: Grouping, schema: pa.Schema, each_batch: bool = False) -> None:
    """Raise if the next grouping cannot add up the panes of this one, because a row can be in several of them."""
    if grouping.mode.startswith("discarding") and shows_again(grouping, each_batch):
        why = f"in mode={grouping.mode!r}, so the next grouping would count rows more than once"
        grouping.check_differences(grouping.plan(schema), why)


def _alone(options: Mapping[str, Any]) -> str:
    return "accumulating" if options.get("diff") is None else "retracting"


def _after(rows: StageInput, options: dict[str, Any], number: int) -> None:
    """Settle the options of a grouping by the rows that it gets."""
    options.setdefault("time", rows.time)
    options["max_future"] = rows.max_future
    if rows.diff is not None or not rows.panes:
        options.setdefault("diff", rows.diff)
    if options.get("diff") is None and rows.retracts:
        raise InvalidArgument(
            f"diff=None of stage {number} would count rows that the stage before it retracts: leave diff= out, "
            f"or name the column that has the weights"
        )
    if rows.allowed_lateness is None:
        return
    options.setdefault("allowed_lateness", rows.allowed_lateness)
    if rows.diff is not None:
        check_lateness(span(options["allowed_lateness"]), rows.allowed_lateness, f"stage {number}")


def check_lateness(own: Span, before: Span, stage: str) -> None:
    """Raise if the stage before a stage can retract rows later than the stage takes them."""
    if own < before:
        raise InvalidArgument(
            f"allowed_lateness={own!r} of {stage} is less than the {before!r} of the stage before it, whose "
            "retractions would then come too late: leave it out, or give at least as much"
        )


def followed(grouping: Grouping, written: OpenGrouping, number: int, each_batch: bool = False) -> Grouping:
    """The grouping, settled for another one after it."""
    if grouping.late == "duplicate":
        raise InvalidArgument(
            f"late='duplicate' of stage {number} shows late rows any length of time after the watermark has passed "
            "them, so the next step would lose them as late: use late='drop', and read them with left_out, or give "
            "more allowed_lateness="
        )
    open_mode = written.options.get("mode") is None
    window = grouping.window
    has_start = not window.merging and window.first_start(0) is not None
    if grouping.policy == "start_of_window" and not has_start and window != Global():
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
    if grouping.mode == "discarding_by_default" and any(
        isinstance(t, UserTrigger) for t in walk(grouping.effective_trigger)
    ):
        raise InvalidArgument(
            f"mode='discarding_by_default' of stage {number} lets its trigger show rows again, and the next grouping "
            "would count them each time: use mode='discarding' or mode='retracting'"
        )
    return grouping


__all__ = [
    "check_followed",
    "check_lateness",
    "farthest",
    "followed",
    "settled",
    "shows_again",
]

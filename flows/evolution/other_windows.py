"""Changes of the windows of the last grouping, which are right only as long as no window has expired.

A window that has expired is in no state, so it stays as it was shown. Its rows would count again in a window of now
that has not expired; and rows of a window that has not, but of one of now that has, would be retracted and not shown
again. So the first event time of the history decides. Not promised: an answer before the history is played where
windows depend on more than the time of a row, such as sessions; what is computed is looked at then.

Guarded by tests/flows/evolution/test_other_windows.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...combiners import Min
from ...errors import StateMismatch, UncombineError
from ...panes.grouping.stage import GroupingStage
from ...windows import Span, Window, as_window
from ...windows.times import MIN_TIME, time_text
from ..fingerprint.flow import Fingerprint
from ..flow import Flow
from ..flow_steps import input_of
from ..graph import graph_of
from .plan import Planned

FIRST = "first"
"""The name of the result that has the first event time."""

_UNITS = tuple(size * 1_000_000 for size in (86_400, 3_600, 60, 1))
"""The lengths to whole ones of which a lateness is rounded up: days, hours, minutes and seconds."""


@dataclass(frozen=True)
class FormerWindows:
    """The windows of the last grouping as its state has them."""

    watermark: int
    """The furthest watermark that a shard has reached."""
    start: Callable[[], int]
    """The start of the first window that the state has; the end of time if it has none."""
    closed: int = MIN_TIME
    """The end of the last windows that expired under a shorter lateness."""


def first_times(past: Flow) -> list[Flow]:
    """Flows that give the first event time of the rows of a history, one for each way to a step."""
    out = []
    for step in graph_of(past).steps:
        for feed in step.feeds:
            if (leaf := feed.leaf) is not None:
                settings = replace(leaf.settings, replay=False, watermark=None, diff=None, processing_time=None)
                rows = Flow(
                    source=leaf.source, settings=settings, source_schema=leaf.schema, transforms=feed.transforms
                )
                out.append(rows.window("global", "each row").combine(first=Min(input_of(rows).time)))
    return out


def require_none_expired(plan: Planned, former: FormerWindows, first: Callable[[], int | None]) -> None:
    """Raise if windows change and some have expired; `first` gives the first event time of the history."""
    if not plan.computed or plan.same_windows or former.watermark == MIN_TIME:
        return
    last, time = plan.steps[-1], first()
    stage = last.step.stage
    if time is None or not isinstance(stage, GroupingStage):
        return
    was, lateness = plan.former_last, int(stage.grouping.allowed_lateness)
    before = _windows_of(_window_of(was), time)
    start = time if before is None else before[0]
    passed = time + int(was.get("lateness", lateness)) < former.watermark or time < former.closed
    if passed and start < former.start():
        named = f", such as that from {_span(*before)}" if before is not None else ""
        raise StateMismatch(
            f"windows of the former flow have expired{named}, and stay as they were shown, so that their rows would "
            "count again in the windows of now: start the changed flow from flow.seed(history, to=) into a new table"
        )
    now = _windows_of(stage.grouping.window, time)
    if now is not None and now[1] + lateness <= former.watermark:
        raise StateMismatch(
            f"windows of the changed flow have expired, such as that from {_span(*now)}, so that their rows would "
            f"leave what was shown: give it allowed_lateness={_suffices(former.watermark - now[1])!r} or more, or "
            "start it from flow.seed(history, to=) into a new table"
        )


def _window_of(made_by: Fingerprint) -> Window | None:
    """The window that a fingerprint has as text; None of one that no text tells."""
    try:
        return as_window(made_by["window"]) if "window" in made_by else None
    except UncombineError:  # one of a function
        return None


def _windows_of(window: Window | None, time: int) -> tuple[int, int] | None:
    """The bounds of the first window that a row of this time has; None where more than the time decides."""
    if window is None or window.merging or window.columns or window.needs_key_hash:
        return None
    windows = window.assign(np.array([time]))
    if not len(windows.start):
        return None
    first = int(np.argmin(windows.end))
    return int(windows.start[first]), int(windows.end[first])


def _span(start: int, end: int) -> str:
    return f"{time_text(start)} to {time_text(end)}"


def _suffices(least: int) -> str:
    """A length of time above the least one, in whole units.

    >>> _suffices(0), _suffices(59_999_999), _suffices(90_000_000_000)
    ('1 second', '1 minute', '2 days')
    """
    unit = next((unit for unit in _UNITS if least >= unit), _UNITS[-1])
    return str(Span((least // unit + 1) * unit))


__all__ = ["FIRST", "FormerWindows", "first_times", "require_none_expired"]

"""Holds: the output watermark that each window allows, so that its panes to come are in time later on (rule 37).

There are two bounds. The time of an on-time pane to come is not before the output watermark. The time of any other row
to come, of a late pane or a retraction, is before the output watermark by less than the allowed lateness. So a next
stage that allows as much has not expired the window of that row, which ends after the row's time; and a pane and its
retraction are both in time or both too late.

For panes at the end of their window the second bound always holds, as a window leaves when the watermark is there.
`tests/flows/test_chains.py` checks the bounds, and `tests/sparkops/test_flows.py` does so with random flows.
"""

from __future__ import annotations

import numpy as np

from ...triggers.program import Deadlines, where
from ...windows import holds
from ...windows.grid import later
from ...windows.times import MAX_TIME, MIN_TIME
from .grouping import Grouping
from .loaded_windows import LoadedWindows, extent


def times_before_the_end(grouping: Grouping) -> bool:
    """True if rows of output of a window may have a time before the window's end."""
    if grouping.policy != "end_of_window" or grouping.splits:
        return True
    return grouping.retracting and (grouping.window.merging or grouping.window.may_be_endless)


def window_holds(grouping: Grouping, windows: LoadedWindows, done: np.ndarray, floor: int) -> Deadlines:
    """The least output watermark that each window allows; `done` is where its trigger has finished."""
    num = windows.num
    closes = {"always": True, "non_empty": num["fresh"], "never": False}[grouping.closing]
    shows = ~(done & ~np.asarray(closes, np.bool_))
    times = _times(grouping, windows, floor)
    hold = where(shows & ~(num["on_time_given"] | num["born_late"]), times)
    if not times_before_the_end(grouping):
        return hold
    least = np.where(shows | grouping.window.merging, times, MAX_TIME)
    if grouping.splits:
        least = np.minimum(least, grouping.window.first_end(num["start"]) - 1)
    if grouping.retracting and windows.outstanding is not None and len(windows.outstanding):
        shown = windows.outstanding
        np.minimum.at(least, shown.owner, np.minimum(shown.number("event_time"), shown.number("end") - 1))
    allowed = int(grouping.allowed_lateness)
    return np.minimum(hold, later(least, allowed) if allowed else least)


def furthest(grouping: Grouping, watermark: int) -> int:
    """The greatest output watermark that windows still to come allow."""
    if grouping.policy != "start_of_window" or not MIN_TIME < watermark < MAX_TIME:
        return watermark
    allowed = int(grouping.allowed_lateness)
    in_time, late = (grouping.window.first_start(watermark - wait) for wait in (0, allowed))
    return watermark if in_time is None or late is None else min(watermark, in_time, late + allowed)


def _times(grouping: Grouping, windows: LoadedWindows, floor: int) -> np.ndarray:
    """The least time of the panes to come of each window."""
    num, policy = windows.num, grouping.policy
    earliest, latest = extent(num)
    if policy == "latest" and grouping.splits:
        policy = "earliest"  # what is left after a split may be only the first of the rows
    if not grouping.window.may_be_endless:
        return holds(policy, num["start"], num["end"], earliest, latest)
    idle = ~num["fresh"] & grouping.mode.startswith("discarding")
    return holds(policy, num["start"], num["end"], earliest, latest, floor, idle)

"""The event time of a result, which the option `timestamp=` of a grouping chooses.

`tests/windows/test_policies.py` guards it.
"""

from __future__ import annotations

import numpy as np

from ..errors import InvalidArgument, nearest
from .times import MAX_TIME, MIN_TIME

POLICIES = ("end_of_window", "start_of_window", "earliest", "latest", "watermark")
"""The names of the policies for the event time of a result."""


def policy(name: str) -> str:
    """The name of a policy for the event time of a result, checked.

    >>> from uncombine.windows import policy
    >>> policy("latest")
    'latest'
    """
    if name not in POLICIES:
        raise InvalidArgument(f"timestamp= is {name!r}: {nearest(str(name), POLICIES)}")
    return name


def result_times(
    name: str,
    start: np.ndarray,
    end: np.ndarray,
    earliest: np.ndarray,
    latest: np.ndarray,
    watermark: int,
    floor: int | None = None,
) -> np.ndarray:
    """The event time of each window's result under a policy.

    `end_of_window` is the last microsecond of the window, because the end itself is not part of it. That time also
    replaces a missing one: `earliest` and `latest` of a window in which no row counts (they are MAX_TIME and MIN_TIME
    then), `watermark` at the beginning or the end of time, and `start_of_window` of a window without a start.

    `floor` is the output watermark if windows may have no end, and None if all windows have one. A window without an
    end has the time of its latest row, but not less than the floor.

    >>> import numpy as np
    >>> from uncombine.windows import MAX_TIME, result_times
    >>> start, end, earliest, latest = (np.array([time]) for time in (0, 60, 5, 50))
    >>> result_times("end_of_window", start, end, earliest, latest, watermark=70).tolist()
    [59]
    >>> result_times("latest", start, end, earliest, latest, watermark=70).tolist()
    [50]
    >>> endless = np.array([MAX_TIME])
    >>> result_times("end_of_window", start, endless, earliest, latest, watermark=70, floor=40).tolist()
    [50]
    """
    last, endless = _last(end, latest, floor)
    match policy(name):
        case "start_of_window":
            return np.where(start == MIN_TIME, last, start)
        case "earliest":
            return np.where(earliest == MAX_TIME, last, earliest)
        case "latest":
            return np.where((latest == MIN_TIME) | endless, last, latest)
        case "watermark" if MIN_TIME < watermark < MAX_TIME:
            return np.full(len(end), watermark, np.int64)
        case _:
            return last


def holds(
    name: str,
    start: np.ndarray,
    end: np.ndarray,
    earliest: np.ndarray,
    latest: np.ndarray,
    floor: int | None = None,
    idle: np.ndarray | None = None,
) -> np.ndarray:
    """The least event time that a later result of each window may have under a policy.

    MAX_TIME where that time is the output watermark itself, so that the window does not hold it back. That is so under
    `watermark`, and in windows without an end whose latest row is before the output watermark, or that are `idle`:
    they have nothing to show except rows that are still to come.

    >>> import numpy as np
    >>> from uncombine.windows import holds
    >>> holds("end_of_window", np.array([0]), np.array([60]), np.array([5]), np.array([50])).tolist()
    [59]
    """
    if name == "watermark":
        return np.full(len(end), MAX_TIME)
    times = result_times(name, start, end, earliest, latest, MAX_TIME, floor)
    if floor is None:
        return times
    last, endless = _last(end, latest, floor)
    free = endless & (times == last) & (latest < floor if idle is None else idle | (latest < floor))
    return np.where(free, MAX_TIME, times)


def _last(end: np.ndarray, latest: np.ndarray, floor: int | None) -> tuple[np.ndarray, np.ndarray | bool]:
    """The last instant of each window, or its substitute in windows without an end, and a mask of these windows."""
    if floor is None:
        return end - 1, False
    endless = end == MAX_TIME
    return np.where(endless, np.maximum(latest, floor), end - 1), endless

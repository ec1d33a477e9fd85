"""The event time that a result carries."""

from __future__ import annotations

import numpy as np

from ..errors import InvalidArgument, nearest
from .times import MAX_TIME, MIN_TIME

POLICIES = ("end_of_window", "start_of_window", "earliest", "latest", "watermark")
"""The names of the result timestamp policies."""


def policy(name: str) -> str:
    """The name of a result timestamp policy, checked.

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

    The end of a window is not in it, so `end_of_window` is a microsecond before. What a window has not is replaced by
    that: `earliest` and `latest` where no row counts (they are MAX_TIME and MIN_TIME then), `watermark` where it is at
    the beginning or the end of time, `start_of_window` where there is no start.

    `floor` is the output watermark where windows may have no end, and None where all have one. The time of a window
    without an end is that of its latest row, but not before the floor.

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
    """The least event time that a result still to come of each window may carry, as far as its policy says.

    MAX_TIME where that is the output watermark itself, which nothing falls behind: under `watermark`, and in windows
    without an end whose latest row is behind it, or that are `idle`: they have nothing to show but their rows to come.

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
    """The last instant of each window, or what stands for it where there is none, and where that is so."""
    if floor is None:
        return end - 1, False
    endless = end == MAX_TIME
    return np.where(endless, np.maximum(latest, floor), end - 1), endless

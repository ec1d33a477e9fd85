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
    watermark: int | np.ndarray,
) -> np.ndarray:
    """The event time of each window's result under a policy.

    The end of a window is not in it, so `end_of_window` is a microsecond before. `earliest` and `latest` are
    those of the rows that count, MAX_TIME and MIN_TIME in windows where none does, which fall back to
    `end_of_window`.

    >>> import numpy as np
    >>> from uncombine.windows import result_times
    >>> start, end, earliest, latest = (np.array([time]) for time in (0, 60, 5, 50))
    >>> result_times("end_of_window", start, end, earliest, latest, watermark=70).tolist()
    [59]
    >>> result_times("latest", start, end, earliest, latest, watermark=70).tolist()
    [50]
    """
    match policy(name):
        case "start_of_window":
            return start
        case "earliest":
            return np.where(earliest == MAX_TIME, end - 1, earliest)
        case "latest":
            return np.where(latest == MIN_TIME, end - 1, latest)
        case "watermark":
            return np.full(len(end), watermark, np.int64)
        case _:
            return end - 1


def holds(name: str, start: np.ndarray, end: np.ndarray, earliest: np.ndarray, latest: np.ndarray) -> np.ndarray:
    """The least event time that a result still to come of each window may carry, as far as its policy says.

    MAX_TIME where that is the watermark itself: what is emitted at the watermark is never behind it.

    >>> import numpy as np
    >>> from uncombine.windows import holds
    >>> holds("end_of_window", np.array([0]), np.array([60]), np.array([5]), np.array([50])).tolist()
    [59]
    """
    if name == "watermark":
        return np.full(len(end), MAX_TIME)
    return result_times(name, start, end, earliest, latest, 0)

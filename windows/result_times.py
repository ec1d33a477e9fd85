"""The event time that a result carries."""

from __future__ import annotations

import numpy as np

from ..errors import InvalidArgument, nearest
from .times import MAX_TIME, MIN_TIME

POLICIES = ("end_of_window", "start_of_window", "earliest", "latest", "watermark")


def policy(name: str) -> str:
    """The name of a result timestamp policy, checked."""
    if name not in POLICIES:
        raise InvalidArgument(f"timestamp= is {name!r}: {nearest(str(name), POLICIES)}")
    return name


def result_times(
    name: str, start: np.ndarray, end: np.ndarray, earliest: np.ndarray, latest: np.ndarray, watermark: int
) -> np.ndarray:
    """The result time of each window; `earliest` and `latest` are MAX_TIME and MIN_TIME where there was no such row."""
    match name:
        case "start_of_window":
            return start
        case "earliest":
            return np.where(earliest == MAX_TIME, end - 1, earliest)
        case "latest":
            return np.where(latest == MIN_TIME, end - 1, latest)
        case "watermark":
            return np.full(len(end), watermark)
        case _:
            return end - 1


def holds(name: str, start: np.ndarray, end: np.ndarray, earliest: np.ndarray, latest: np.ndarray) -> np.ndarray:
    """The least result time that a pane of each window may still carry; MAX_TIME where that is the watermark's affair."""
    if name == "watermark":
        return np.full(len(end), MAX_TIME)
    return result_times(name, start, end, earliest, latest, 0)

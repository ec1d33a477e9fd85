"""Arithmetic on times that stops at the ends of time instead of wrapping around."""

from __future__ import annotations

import numpy as np

from .times import MAX_TIME, MIN_TIME


def since_grid(times: np.ndarray, step: int, origin: int | np.ndarray) -> np.ndarray:
    """How long ago, at each time, the last instant `origin + k * step` was (k any integer).

    The origin is brought into [0, step) first: a difference of two remainders cannot wrap, as that of two
    times can.
    """
    since = np.mod(times, step)
    since -= origin % step
    since += (since >> 63) & step  # the step where it is negative, without a branch for each time
    return since


def earlier(times: np.ndarray, by: np.ndarray | int) -> np.ndarray:
    """Times earlier by lengths that are not negative, at least the beginning of time."""
    if len(times) and int(times.min()) - int(np.max(by)) < MIN_TIME:
        return np.where(times < MIN_TIME + by, MIN_TIME, times - by)
    return times - by


def later(times: np.ndarray, by: np.ndarray | int) -> np.ndarray:
    """Times later by lengths that are not negative, at most the end of time."""
    if len(times) and int(times.max()) + int(np.max(by)) > MAX_TIME:
        return np.where(times > MAX_TIME - by, MAX_TIME, times + by)
    return times + by

"""Arithmetic on times that stops at the ends of time instead of wrapping around."""

from __future__ import annotations

import numpy as np

from .times import MAX_TIME, MIN_TIME


def grid_numbers(times: np.ndarray, step: int, origin: int) -> np.ndarray:
    """The k of the last instant `origin + k * step` that is not after each time; the origin is in [0, step).

    >>> import numpy as np
    >>> from uncombine.windows.grid import grid_numbers
    >>> grid_numbers(np.array([-1, 0, 9, 10]), 10, 0).tolist()
    [-1, 0, 0, 1]
    """
    number: np.ndarray = times // step
    if origin:
        number -= times - number * step < origin
    return number


def grid_bounds(number: np.ndarray, step: int, origin: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the steps of these numbers start and end, no further than the ends of time.

    >>> import numpy as np
    >>> from uncombine.windows.grid import grid_bounds
    >>> [bound.tolist() for bound in grid_bounds(np.array([-1, 1]), 10, 5)]
    [[-5, 15], [5, 25]]
    """
    start = number * step + origin
    end = start + step
    if len(number):
        # Only the outermost steps in which there are times can reach beyond the ends, and there they wrap around.
        first, last = int(number.min()), int(number.max())
        if first * step + origin < MIN_TIME:
            start[number == first] = MIN_TIME
        if (last + 1) * step + origin > MAX_TIME:
            end[number == last] = MAX_TIME
    return start, end


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

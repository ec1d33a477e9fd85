"""Arithmetic on times that stops at the ends of time instead of wrapping around.

`tests/windows/test_aligned.py` guards it.
"""

from __future__ import annotations

import numpy as np

from .times import MAX_TIME, MIN_TIME


def grid_numbers(times: np.ndarray, step: int, origin: int) -> np.ndarray:
    """The number of the step that contains each time: step k starts at `origin + k * step`; 0 <= origin < step.

    >>> import numpy as np
    >>> from uncombine.windows.grid import grid_numbers
    >>> grid_numbers(np.array([-1, 0, 9, 10]), 10, 0).tolist()
    [-1, 0, 0, 1]
    """
    number: np.ndarray = times // step
    if origin:
        number -= times - number * step < origin
    return number


def grid_bounds(number: np.ndarray, step: int, origin: int, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The start of the steps with these numbers, and the end, or the time of this size after the start.

    Both are cut off at the ends of time. Each step, or what is as long as `size` from its start, has some of time.

    >>> import numpy as np
    >>> from uncombine.windows.grid import grid_bounds
    >>> [bound.tolist() for bound in grid_bounds(np.array([-1, 1]), 10, 5)]
    [[-5, 15], [5, 25]]
    """
    size = step if size is None else size
    start = number * step + origin
    end = start + size
    if len(number):
        first, last = int(number.min()), int(number.max())
        # Bounds that cross an end of time have wrapped around.
        if first * step + origin < MIN_TIME:
            start[number < -((origin - MIN_TIME) // step)] = MIN_TIME
        if last * step + origin + size > MAX_TIME:
            end[number > (MAX_TIME - size - origin) // step] = MAX_TIME
    return start, end


def since_grid(times: np.ndarray, step: int, origin: int | np.ndarray) -> np.ndarray:
    """The time since the last instant `origin + k * step` at or before each time, for any integer k.

    The origin is reduced to [0, step) first: the difference of two remainders cannot wrap around, and the
    difference of two times can.
    """
    since = np.mod(times, step)
    since -= origin % step
    since += (since >> 63) & step  # adds the step where it is negative, without a branch for each time
    return since


def earlier(times: np.ndarray, by: np.ndarray | int) -> np.ndarray:
    """The times less lengths of at least zero, cut off at the beginning of time."""
    if len(times) and int(times.min()) - int(np.max(by)) < MIN_TIME:
        return np.where(times < MIN_TIME + by, MIN_TIME, times - by)
    return times - by


def later(times: np.ndarray, by: np.ndarray | int) -> np.ndarray:
    """The times plus lengths of at least zero, cut off at the end of time."""
    if len(times) and int(times.max()) + int(np.max(by)) > MAX_TIME:
        return np.where(times > MAX_TIME - by, MAX_TIME, times + by)
    return times + by

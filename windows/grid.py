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


def grid_bounds(number: np.ndarray, step: int, origin: int) -> tuple[np.ndarray, np.ndarray]:
    """The start and the end of the steps with these numbers, cut off at the ends of time.

    >>> import numpy as np
    >>> from uncombine.windows.grid import grid_bounds
    >>> [bound.tolist() for bound in grid_bounds(np.array([-1, 1]), 10, 5)]
    [[-5, 15], [5, 25]]
    """
    start = number * step + origin
    end = start + step
    if len(number):
        # Only the first and the last step can cross an end of time, and their bounds wrap around there.
        first, last = int(number.min()), int(number.max())
        if first * step + origin < MIN_TIME:
            start[number == first] = MIN_TIME
        if (last + 1) * step + origin > MAX_TIME:
            end[number == last] = MAX_TIME
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

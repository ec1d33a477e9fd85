"""The union of intervals: windows of a key that share an instant become one.

`tests/windows/test_sessions.py` guards it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Hulls:
    """Hulls of windows; `window_id` is the number of the hull for each window that was given."""

    window_id: np.ndarray
    code: np.ndarray
    start: np.ndarray
    end: np.ndarray


def union_intervals(codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Hulls:
    """Merge the half-open intervals of each code that share an instant, transitively, into their hulls.

    Intervals that only touch stay apart. The merged intervals are in the order of (code, start). Codes are
    whole numbers of at least 0.

    >>> import numpy as np
    >>> from uncombine.windows import union_intervals
    >>> union_intervals(np.array([0, 0, 0]), np.array([0, 5, 15]), np.array([10, 15, 20])).end.tolist()
    [15, 20]
    """
    if len(codes) == 0:
        return Hulls(*(np.empty(0, np.int64) for _ in range(4)))
    order = _by_code_and_start(codes, start)
    if order is not None:
        codes, start, end = codes[order], start[order], end[order]
    runs = np.concatenate([[0], np.flatnonzero(codes[1:] != codes[:-1]) + 1])
    heads, reach = union_runs(runs, start, end)
    number = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(codes)))
    if order is not None:
        window_id = np.empty(len(number), np.int64)
        window_id[order] = number
        number = window_id
    return Hulls(window_id=number, code=codes[heads], start=start[heads], end=reach)


def union_runs(runs: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The union of intervals that are sorted by code and start: the first place and the end of each hull.

    `runs` has the first place of each code.

    >>> import numpy as np
    >>> from uncombine.windows import union_runs
    >>> union_runs(np.array([0, 2]), np.array([0, 5, 15]), np.array([10, 15, 20]))
    (array([0, 2]), array([15, 20]))
    """
    if len(start) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    reach = _running_end(runs, end)
    fresh = np.empty(len(start), np.bool_)
    np.greater_equal(start[1:], reach[:-1], out=fresh[1:])
    fresh[runs] = True
    heads = np.flatnonzero(fresh)
    return heads, reach[np.append(heads[1:], len(start)) - 1]


def _by_code_and_start(codes: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    """An order by code, then start; None if the intervals are in that order already.

    The codes are sorted first, which is cheap by digits of 16 bits. The rest is within short runs, which are often
    in order already; timsort is fast for these. For it, the number of the code and the start are packed into 64
    bits. Where they do not fit, the last bits of the starts are left out and compared only between equals.
    """
    ordered = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (start[1:] >= start[:-1]))
    if bool(ordered.all()):
        return None
    order = _by_code(codes)
    number = _numbered(codes[order])
    # Differences of unsigned numbers are right even where differences of signed numbers wrap around.
    low = int(start.min())
    since = start[order].view(np.uint64) - np.uint64(low % 2**64)
    bits = (int(start.max()) - low).bit_length()
    left_out = np.uint64(max(bits + int(number[-1]).bit_length() - 64, 0))
    packed = number << (np.uint64(bits) - left_out) | since >> left_out
    finer = np.argsort(packed, kind="stable")
    if left_out:
        rest = since[finer] & ((np.uint64(1) << left_out) - np.uint64(1))
        finer = finer[np.argsort(_numbered(packed[finer]) << left_out | rest, kind="stable")]
    return order[finer]


def _numbered(values: np.ndarray) -> np.ndarray:
    """The number of each value among the distinct values; equal values must be neighbours."""
    return np.cumsum(np.concatenate([[False], values[1:] != values[:-1]])).view(np.uint64)


def _by_code(codes: np.ndarray) -> np.ndarray:
    """A stable order by code."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    for shift in range(16, int(codes.max()).bit_length(), 16):
        order = order[np.argsort((codes[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def _running_end(runs: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each interval, the latest end among the intervals of its run up to it."""
    shorter = np.zeros(len(end), np.bool_)
    np.less(end[1:], end[:-1], out=shorter[1:])
    shorter[runs] = False
    if not shorter.any():
        return end
    low = int(end.min())
    width = int(end.max()) - low + 1
    number = np.repeat(np.arange(len(runs)), np.diff(runs, append=len(end)))
    if (int(number[-1]) + 1) * width < 2**63:
        # Each code gets a range of its own above that of the code before, so that one running maximum is enough.
        base = number * width
        return np.maximum.accumulate(end - low + base) - base + low
    reach, step = end.copy(), 1
    while step < len(end):
        # Now `reach` covers the last `step` intervals. If no earlier interval ends later, none ever will.
        further = (number[step:] == number[:-step]) & (reach[:-step] > reach[step:])
        if not further.any():
            break
        reach[step:] = np.where(further, reach[:-step], reach[step:])
        step *= 2
    return reach

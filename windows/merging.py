"""The union of intervals: windows of a key that share an instant become one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Merged:
    """Merged windows, in the order of (code, start), and for each window that went in which of them it is part of."""

    window_id: np.ndarray
    code: np.ndarray
    start: np.ndarray
    end: np.ndarray


def union_intervals(codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> Merged:
    """Join the half-open intervals of each code that overlap, transitively; intervals that only touch stay apart.

    >>> import numpy as np
    >>> union_intervals(np.array([0, 0, 0]), np.array([0, 5, 15]), np.array([10, 15, 20])).end
    array([15, 20])
    """
    if len(codes) == 0:
        return Merged(*(np.empty(0, np.int64) for _ in range(4)))
    order = _by_code_and_start(codes, start)
    code, begin, stop = (codes, start, end) if order is None else (codes[order], start[order], end[order])
    reach = _running_end(code, stop)
    fresh = np.empty(len(code), np.bool_)
    fresh[0] = True
    fresh[1:] = (code[1:] != code[:-1]) | (begin[1:] >= reach[:-1])
    number = np.cumsum(fresh) - 1
    heads = np.flatnonzero(fresh)
    ends = reach[np.append(heads[1:], len(code)) - 1]
    if order is None:
        return Merged(number, code[heads], begin[heads], ends)
    window_id = np.empty(len(code), np.int64)
    window_id[order] = number
    return Merged(window_id, code[heads], begin[heads], ends)


def _by_code_and_start(codes: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    """The order by code, then start; None if that is how they stand."""
    rises = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (start[1:] >= start[:-1]))
    if bool(rises.all()):
        return None
    low, high = int(start.min()), int(start.max())
    most = int(codes.max()) + 1
    if most * (high - low + 1) < 2**63:
        return np.argsort(codes * (high - low + 1) + (start - low), kind="stable")
    return np.lexsort((start, codes))


def _running_end(code: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """For each interval, the furthest end of its code so far."""
    low = int(stop.min())
    width = int(stop.max()) - low + 1
    numbered = np.cumsum(np.concatenate([[False], code[1:] != code[:-1]]))
    if (int(numbered[-1]) + 1) * width < 2**63:
        return np.maximum.accumulate(stop - low + numbered * width) - numbered * width + low
    heads = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
    pieces = np.split(stop, heads[1:])  # ends too far apart for one running maximum over all codes
    return np.concatenate([np.maximum.accumulate(piece) for piece in pieces])

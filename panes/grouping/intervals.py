"""Pairs of intervals of one key that share an instant, and pairs of equal numbers; all found at once."""

from __future__ import annotations

import numpy as np

from .cells import Pairs


def overlaps(
    code_a: np.ndarray,
    start_a: np.ndarray,
    end_a: np.ndarray,
    code_b: np.ndarray,
    start_b: np.ndarray,
    end_b: np.ndarray,
) -> Pairs:
    """Pairs (a, b) of intervals of one code that share an instant, by a and then by start of b.

    The intervals b of a code do not overlap each other, or are so few that those that do are found again by `end`.
    """
    if len(code_a) == 0 or len(code_b) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.lexsort((start_b, code_b))
    code, start, end = code_b[order], start_b[order], end_b[order]
    first_of_code = np.searchsorted(code, code_a, side="left")
    # Within a code, candidates are all b that start before a ends; those that end too early are left out after.
    stop = _search(code, start, code_a, end_a)
    sizes = np.maximum(stop - first_of_code, 0)
    a = np.repeat(np.arange(len(code_a)), sizes)
    b = np.repeat(first_of_code, sizes) + np.arange(len(a)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    mask = end[b] > start_a[a]
    return a[mask], order[b[mask]]


def equal_pairs(wanted: np.ndarray, key: np.ndarray, value: np.ndarray) -> Pairs:
    """Pairs (place in wanted, value) of equal keys; the keys are sorted."""
    first, stop = np.searchsorted(key, wanted, side="left"), np.searchsorted(key, wanted, side="right")
    sizes = stop - first
    at = np.repeat(np.arange(len(wanted)), sizes)
    return at, value[np.repeat(first, sizes) + np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)]


def _search(code: np.ndarray, start: np.ndarray, code_a: np.ndarray, end_a: np.ndarray) -> np.ndarray:
    """For each a, the first place in (code, start) order that is not before (code_a, end_a)."""
    both_code = np.concatenate([code, code_a])
    both_time = np.concatenate([start, end_a])
    is_a = np.concatenate([np.zeros(len(code), np.int64), np.ones(len(code_a), np.int64)])
    order = np.lexsort((1 - is_a, both_time, both_code))
    before = np.cumsum(is_a[order] == 0)
    out = np.empty(len(code_a), np.int64)
    where = order[is_a[order] == 1] - len(code)
    out[where] = before[is_a[order] == 1]
    return out

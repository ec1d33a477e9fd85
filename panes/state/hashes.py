"""Hashes for looking up the windows of a shard: hashes of keys, an index over them, and parts of all hashes.

Only the upper half of a hash is compared. A window that is found by mistake is put back unchanged.

Guarded by tests/panes/state/test_store.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.groups import stable_order
from ...combiners.rows.hashing import hash_arrays


def key_hashes(keys: Sequence[pa.Array], count: int, start: np.ndarray | None = None) -> np.ndarray:
    """A hash of each row of the key columns; with `start`, of the key and the start of the window."""
    hashes = hash_arrays(keys) if keys else np.zeros(count, np.uint64)
    return hashes if start is None else with_start(hashes, start)


def with_start(hashes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The hash of each key with the start of its window, or another whole number."""
    mixed = start.astype(np.int64, copy=False).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed ^= hashes
    return mixed


def upper_half(hashes: np.ndarray) -> np.ndarray:
    """The upper 32 bits of 64-bit hashes."""
    return (hashes >> np.uint64(32)).astype(np.uint32)


def lookup(hashes: np.ndarray) -> np.ndarray:
    """Hashes in the form for `Store.take`: upper halves, sorted, unique."""
    upper = upper_half(hashes)
    ordered = upper[stable_order(upper.astype(np.int64), 1 << 32)]
    differs = np.ones(len(ordered), np.bool_)
    differs[1:] = ordered[1:] != ordered[:-1]
    return ordered[differs]


class Index:
    """An index from hashes to places. It is sorted at the first lookup."""

    __slots__ = ("_hashes", "_order", "_sorted")

    def __init__(self, hashes: np.ndarray, order: np.ndarray | None = None, ordered: np.ndarray | None = None) -> None:
        self._hashes = hashes
        self._order = order
        self._sorted = ordered

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The order of the hashes, and their upper halves in that order."""
        if self._order is None or self._sorted is None:
            upper = upper_half(self._hashes)
            self._order = stable_order(upper.astype(np.int64), 1 << 32)
            self._sorted = upper[self._order]
        return self._order, self._sorted

    def places(self, touched: np.ndarray) -> np.ndarray:
        """The places of all hashes that are in `touched` (from `lookup`), in any order."""
        if len(touched) == 0:
            return np.empty(0, np.int64)
        order, ordered = self.arrays()
        if len(touched) > len(ordered):
            at = np.minimum(np.searchsorted(touched, ordered), len(touched) - 1)
            return order[touched[at] == ordered]
        first = np.searchsorted(ordered, touched, side="left")
        sizes = np.searchsorted(ordered, touched, side="right") - first
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return order[np.repeat(first, sizes) + within]


@dataclass(frozen=True)
class Part:
    """One of the parts into which all hashes are divided by their upper halves."""

    number: int
    of: int

    def has(self, upper: np.ndarray) -> np.ndarray:
        """True for the upper halves of this part."""
        inside: np.ndarray = upper % np.uint32(self.of) == self.number
        return inside

"""The outstanding panes of windows in hand: records in a pool, and the places in it of those of each window.

Records are wide, and windows in hand fire, merge and leave. So only places move; the records themselves are moved when
they are shown or stored. A pool may have records that are outstanding no more, but not more of them than of others.

Guarded by tests/panes/grouping/test_outstanding.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.groups import Groups


def with_one_more(sizes: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of groups after some of them, in their order, got one more; and where the new ones are among all.

    >>> import numpy as np
    >>> with_one_more(np.array([1, 0, 2]), np.array([0, 1]))
    (array([2, 1, 2]), array([False,  True,  True, False, False]))
    """
    after = sizes.copy()
    after[windows] += 1
    end = np.cumsum(after)
    is_new = np.zeros(int(end[-1]) if len(end) else 0, np.bool_)
    is_new[end[windows] - 1] = True
    return after, is_new


@dataclass(frozen=True)
class OutstandingPanes:
    """The outstanding panes of windows, window by window."""

    records: pa.StructArray
    """The pool."""
    places: np.ndarray
    """The place of each outstanding pane in the pool."""
    sizes: np.ndarray
    """The number of outstanding panes of each window."""

    @classmethod
    def none(cls, kind: pa.StructType, windows: int) -> OutstandingPanes:
        """Windows without outstanding panes."""
        return cls(records=pa.array([], kind), places=np.empty(0, np.int64), sizes=np.zeros(windows, np.int64))

    @classmethod
    def of(cls, lists: pa.ListArray) -> OutstandingPanes:
        """The outstanding panes of stored windows."""
        records = lists.flatten()
        return cls(
            records=records, places=np.arange(len(records)), sizes=np.diff(np.asarray(lists.offsets).astype(np.int64))
        )

    def lists(self) -> pa.ListArray:
        """The outstanding panes as a column, to be stored."""
        offsets = np.zeros(len(self.sizes) + 1, np.int32)
        np.cumsum(self.sizes, out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), self._compact().records)

    def __len__(self) -> int:
        """The number of outstanding panes of all windows."""
        return len(self.places)

    @property
    def owner(self) -> np.ndarray:
        """The window of each outstanding pane."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def number(self, name: str) -> np.ndarray:
        """A whole number of each outstanding pane."""
        values: np.ndarray = np.asarray(self.records.field(name))[self.places]
        return values

    def of_windows(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The outstanding panes of some windows: which of these windows has each, and its place in the pool."""
        many = self.sizes[windows]
        first = (np.cumsum(self.sizes) - self.sizes)[windows]
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return np.repeat(np.arange(len(windows)), many), self.places[np.repeat(first, many) + within]

    def take(self, windows: np.ndarray) -> OutstandingPanes:
        """The outstanding panes of the windows at these places, in this order."""
        return OutstandingPanes(records=self.records, places=self.of_windows(windows)[1], sizes=self.sizes[windows])

    def joined(self, other: OutstandingPanes) -> OutstandingPanes:
        """The outstanding panes of these windows, and of others after them."""
        return OutstandingPanes(
            records=pa.concat_arrays([self.records, other.records]),
            places=np.concatenate([self.places, len(self.records) + other.places]),
            sizes=np.concatenate([self.sizes, other.sizes]),
        )

    def regrouped(self, into: np.ndarray, count: int) -> OutstandingPanes:
        """The outstanding panes of `count` windows; `into` is the one in which each window goes on."""
        groups = Groups(np.repeat(into, self.sizes), count)
        in_order = bool(np.all(into[1:] >= into[:-1]))
        return replace(self, places=self.places if in_order else self.places[groups.order], sizes=groups.sizes)

    def where(self, mask: np.ndarray) -> OutstandingPanes:
        """The outstanding panes where `mask` is true."""
        return replace(self, places=self.places[mask], sizes=np.bincount(self.owner[mask], minlength=len(self.sizes)))

    def without(self, windows: np.ndarray) -> OutstandingPanes:
        """The same, where windows for which `windows` is true have no outstanding panes."""
        return self.where(~windows[self.owner])

    def followed(self, records: pa.StructArray, windows: np.ndarray) -> OutstandingPanes:
        """The same and a record of each of these windows, after those that the window has."""
        pool = pa.concat_arrays([self.records, records]) if len(self) else records
        sizes, is_new = with_one_more(self.sizes, windows)
        places = np.empty(len(is_new), np.int64)
        places[~is_new], places[is_new] = self.places, np.arange(len(pool) - len(records), len(pool))
        after = OutstandingPanes(records=pool, places=places, sizes=sizes)
        return after._compact() if len(pool) > 2 * len(places) else after

    def _compact(self) -> OutstandingPanes:
        """The same over a pool in the order of windows, without other records."""
        if len(self.places) == len(self.records) and bool(np.all(self.places == np.arange(len(self.places)))):
            return self
        return replace(self, records=self.records.take(pa.array(self.places)), places=np.arange(len(self.places)))

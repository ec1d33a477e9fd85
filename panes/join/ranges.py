"""Rows in the order of key and time, and the ranges of this order that match rows of the other side.

Guarded by tests/panes/join/test_join_ranges.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...combiners.rows.groups import stable_order
from ...lookbacks.sorted_rows import Ranges

_ROOM = 2**62

FAR = 2**60
"""Lengths are cut off here: it is more than lies between any two times, and sums with times stay in 64 bits."""


@dataclass(frozen=True)
class Layout:
    """The layout of one number that sorts by a key's code and a time; without times, by the code alone."""

    codes: int
    """The number of codes."""
    span: int = 0
    """The number of different times, with one more at each end; 0 without times."""
    least: int = 0
    """One less than the least time."""
    instants: np.ndarray | None = None
    """All times, sorted, where their span is too wide for numbers of 64 bits."""

    @classmethod
    def of(cls, codes: int, times: tuple[np.ndarray, np.ndarray]) -> Layout:
        """The layout for codes below a number and the times of both sides."""
        filled = [side for side in times if len(side)]
        least = min((int(side.min()) for side in filled), default=0) - 1
        span = max((int(side.max()) for side in filled), default=0) - least + 2
        if codes * span < _ROOM:
            return cls(codes=codes, span=span, least=least)
        instants = np.unique(np.concatenate(times))
        return cls(codes=codes, span=len(instants) + 2, least=-1, instants=instants)

    def numbers(self, codes: np.ndarray, times: np.ndarray, by: int = 0, upper: bool = False) -> np.ndarray:
        """The number of each row at its time plus a length; `upper` for the end of a range that is included."""
        if not self.span:
            return codes
        start = codes * self.span
        if abs(by) >= FAR:  # as far as there are times
            start += 0 if by < 0 else self.span - 1
            return start
        out = times + by if by else times.copy()
        if self.instants is not None:
            out = np.searchsorted(self.instants, out, side="right" if upper else "left")
            out -= upper
        out -= self.least
        if not -1 <= by <= 1:  # no farther than the room at each end
            np.clip(out, 0, self.span - 1, out=out)
        out += start
        return out

    def order(self, codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The order of rows by their numbers; rows that come by time are sorted by their codes alone."""
        if self.span and not bool(np.all(times[1:] >= times[:-1])):
            return stable_order(self.numbers(codes, times), self.codes * self.span)
        return stable_order(codes, self.codes)


@dataclass(frozen=True)
class RowOrder:
    """The rows of a side in the order of their numbers."""

    order: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, layout: Layout, codes: np.ndarray, times: np.ndarray) -> RowOrder:
        """The order of rows with these codes and times."""
        order = layout.order(codes, times)
        return cls(order, layout.numbers(codes, times).take(order, mode="clip"))

    def where(self, chosen: np.ndarray) -> RowOrder:
        """The rows where a mask, by number of the row, is true."""
        mask = chosen[self.order]
        return RowOrder(self.order[mask], self.numbers[mask])

    def matches(
        self, layout: Layout, codes: np.ndarray, times: np.ndarray, low: int, high: int, able: np.ndarray | None
    ) -> Ranges:
        """The matches of rows of the other side, whose order should be near this one; none where not `able`."""
        if not layout.span:
            bounds = np.zeros(layout.codes + 1, np.int64)
            np.cumsum(np.bincount(self.numbers, minlength=layout.codes), out=bounds[1:])
            first, stop = bounds[codes], bounds[codes + 1]
            return Ranges(low=first, high=stop if able is None else np.where(able, stop, first))
        first = np.searchsorted(self.numbers, layout.numbers(codes, times, low), side="left")
        stop = np.searchsorted(self.numbers, layout.numbers(codes, times, high, upper=True), side="right")
        if able is not None:
            stop = np.where(able, stop, first)
        return Ranges(low=first, high=stop)

"""The right rows that left rows may meet, in order; and the one that each left row meets.

Right rows are sorted by key and time, and rows of one time so that the last by `order=` comes last. A left row looks
for two places in this order by bisection, so that no row is compared with another one.

Guarded by tests/panes/join_asof/test_join_asof.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows_128
from ...combiners.rows.ordering import has_order, order_keys, require_order
from ...errors import InvalidArgument, require_column
from ..join.compiled import Side
from ..join.loaded_rows import LoadedRows
from ..join.ranges import FAR, Layout, RowOrder
from ..join.side_changes import hashable
from .join_asof import JoinAsof

NONE = -1
"""The number of the match of a row that has none."""


@dataclass(frozen=True)
class Asking:
    """Left rows that look for their matches: their numbers, codes of keys, and times; `able` is False for null keys."""

    rows: np.ndarray
    codes: np.ndarray
    times: np.ndarray
    able: np.ndarray | None


@dataclass(frozen=True)
class Candidates:
    """Right rows in order of key and time, and of rows of one time the last by `order=` at the end."""

    layout: Layout
    ordered: RowOrder
    times: np.ndarray
    """The time of each right row, by its number."""

    @classmethod
    def of(cls, right: LoadedRows, codes: np.ndarray, layout: Layout, ties: Sequence[str]) -> Candidates:
        """The order of the rows of a side by their keys and times; the columns `ties` order rows of one time."""
        ordered = in_order(RowOrder.of(layout, codes, right.times), ties, lambda rows: right.values(rows, ties))
        return cls(layout, ordered, right.times)

    def where(self, chosen: np.ndarray) -> Candidates:
        """The candidates where a mask, by number of the row, is true."""
        if chosen.all():
            return self
        return Candidates(self.layout, self.ordered.where(chosen), self.times)

    def matches(self, asof: JoinAsof, asking: Asking) -> np.ndarray:
        """The number of the right row that each asking row meets, or `NONE`."""
        found = np.full(len(asking.rows), NONE)
        if not len(self.ordered.order):
            return found
        # Bisections one after the other in the order of the numbers find theirs in the cache.
        order = self.layout.order(asking.codes, asking.times)
        codes, times = asking.codes.take(order), asking.times.take(order)
        far = FAR if asof.tolerance is None else min(int(asof.tolerance), FAR)
        near = 0 if asof.allow_exact else 1
        before = after = np.empty(0, np.int64)
        if asof.direction != "forward":
            before = self._last(codes, times, -far, -near)
        if asof.direction != "backward":
            after = self._first(codes, times, near, far)
        match asof.direction:
            case "backward":
                found[order] = before
            case "forward":
                found[order] = after
            case _:
                apart = [np.abs(self.times.take(rows, mode="clip") - times) for rows in (before, after)]
                later = (after != NONE) & ((before == NONE) | (apart[1] <= apart[0]))
                found[order] = np.where(later, after, before)
        if asking.able is not None:
            found[~asking.able] = NONE
        return found

    def _last(self, codes: np.ndarray, times: np.ndarray, low: int, high: int) -> np.ndarray:
        """The last row of each key between two bounds, and `NONE` if there is none."""
        numbers = self.ordered.numbers
        places = np.searchsorted(numbers, self.layout.numbers(codes, times, high, upper=True), side="right") - 1
        within = numbers.take(places, mode="clip") >= self.layout.numbers(codes, times, low)
        return self._rows(places, within & (places >= 0))

    def _first(self, codes: np.ndarray, times: np.ndarray, low: int, high: int) -> np.ndarray:
        """The last row of the first time of each key between two bounds, and `NONE` if there is none."""
        numbers = self.ordered.numbers
        places = np.searchsorted(numbers, self.layout.numbers(codes, times, low), side="left")
        within = numbers.take(places, mode="clip") <= self.layout.numbers(codes, times, high, upper=True)
        return self._rows(self._last_of_its_time(places), within & (places < len(numbers)))

    def _rows(self, places: np.ndarray, exist: np.ndarray) -> np.ndarray:
        return np.where(exist, self.ordered.order.take(places, mode="clip"), NONE)

    def _last_of_its_time(self, places: np.ndarray) -> np.ndarray:
        numbers = self.ordered.numbers
        last = np.ones(len(numbers), np.bool_)
        last[:-1] = numbers[1:] != numbers[:-1]
        if last.all():
            return places
        ends = np.flatnonzero(last)
        return ends.take(np.searchsorted(ends, places), mode="clip")


def in_order(ordered: RowOrder, ties: Sequence[str], read: Callable[[np.ndarray], pa.Table]) -> RowOrder:
    """The order in which rows of one key and time are sorted by columns, which `read` gives for ascending numbers."""
    numbers, order = ordered.numbers, ordered.order
    same = numbers[1:] == numbers[:-1]
    if not ties or not same.any():
        return ordered
    tied = np.zeros(len(numbers), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    rows = np.sort(order[places])
    ranks = _ranks(read(rows), len(rows)).take(np.searchsorted(rows, order[places]))
    changed = order.copy()
    changed[places] = order[places[np.lexsort((ranks, numbers[places]))]]
    return RowOrder(changed, numbers)


def _ranks(table: pa.Table, count: int) -> np.ndarray:
    """Numbers that sort rows by their columns: null first, then by value, and nested values by their hash."""
    columns = list[Column]()
    for column in table.columns:
        values = flat(column)
        if has_order(values.type):
            columns.append(Column(values))
        else:
            columns += [Column(pa.array(half)) for half in hash_rows_128([hashable(values)])]
    return order_keys(columns).dense().keys if columns else np.zeros(count, np.int64)


def tie_columns(asof: JoinAsof, right: Side) -> list[str]:
    """The stored columns by which right rows of one time are sorted: those of `order=`, and then all others."""
    named = []
    for name in asof.order:
        if name not in right.values:
            _refuse(name, right)
        at = right.values.index(name)
        require_order(right.stored.field(f"value.{at}").type, "order=", name)
        named.append(at)
    rest = [at for at in range(len(right.values)) if at not in named]
    return [f"value.{at}" for at in (*named, *rest)]


def _refuse(name: str, right: Side) -> None:
    if name in right.keys:
        raise InvalidArgument(f"order= names {name!r}, which by= has too, so that it tells no rows apart: leave it out")
    if name in (right.diff, right.time):
        raise InvalidArgument(f"order= names {name!r}, the time or the weight of the right flow: name another column")
    require_column(name, right.schema.names, "order=")
    raise InvalidArgument(f"order= names {name!r}, which a join leaves out: name another column")


__all__ = ["NONE", "Asking", "Candidates", "in_order", "tie_columns"]

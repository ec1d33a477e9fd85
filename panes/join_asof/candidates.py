"""The right rows that left rows may meet, in order; and the one that each left row meets.

Right rows are sorted by key and time, and rows of one time so that the last by `order=` comes last. A left row looks
for two places in this order by bisection, so that no row is compared with another one.

Guarded by tests/panes/join_asof/test_join_asof.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.groups import Groups
from ...combiners.rows.hashing import hash_rows_128
from ...combiners.rows.ordering import has_order, order_keys, require_order
from ...errors import InvalidArgument, require_column
from ...lookbacks.sorted_rows import SortedRows
from ..join.compiled import Side
from ..join.loaded_rows import LoadedRows
from ..join.ranges import FAR
from ..join.side_changes import hashable
from .join_asof import JoinAsof

NONE = -1
"""The number of the match of a row that has none."""


@dataclass(frozen=True)
class Asking:
    """Left rows that look for their matches: their numbers, codes of keys, and times; `able` is False for null keys."""

    rows: np.ndarray
    keys: Groups
    times: np.ndarray
    able: np.ndarray | None

    @cached_property
    def sorted_rows(self) -> SortedRows:
        """The rows by key and time: bisections in this order find what they look at in the cache."""
        return SortedRows.of(self.keys, self.times)


@dataclass(frozen=True)
class Candidates:
    """Right rows in order of key and time, and of rows of one time the last by `order=` at the end."""

    sorted_rows: SortedRows

    @classmethod
    def of(cls, right: LoadedRows, keys: Groups, ties: Sequence[str]) -> Candidates:
        """The order of the rows of a side by their keys and times; the columns `ties` order rows of one time."""
        return cls(in_order(SortedRows.of(keys, right.times), ties, lambda rows: right.values(rows, ties)))

    def where(self, chosen: np.ndarray) -> Candidates:
        """The candidates where a mask, by number of the row, is true."""
        return self if chosen.all() else Candidates(self.sorted_rows.where(chosen[self.sorted_rows.order]))

    def matches(self, asof: JoinAsof, asking: Asking) -> np.ndarray:
        """The number of the right row that each asking row meets, or `NONE`."""
        if not len(self.sorted_rows):
            return np.full(len(asking.rows), NONE)
        asked = asking.sorted_rows
        if asof.direction != "forward":
            before = self._last(asof, asked)
        if asof.direction != "backward":
            after = self._first(asof, asked)
        match asof.direction:
            case "backward":
                places = before
            case "forward":
                places = after
            case _:
                times = self.sorted_rows.times
                apart = [np.abs(times.take(at, mode="clip") - asked.times) for at in (before, after)]
                later = (after != NONE) & ((before == NONE) | (apart[1] <= apart[0]))
                places = np.where(later, after, before)
        rows = self.sorted_rows.order.take(places, mode="clip")
        rows[places == NONE] = NONE
        found = np.empty(len(rows), np.int64)
        found[asked.order] = rows
        if asking.able is not None:
            found[~asking.able] = NONE
        return found

    def _last(self, asof: JoinAsof, asked: SortedRows) -> np.ndarray:
        """The place of the last row not after each, and `NONE` if there is none or it is too far."""
        rows = self.sorted_rows
        places = rows.first_in_runs(asked.bounds, asked.times + 1 if asof.allow_exact else asked.times)
        none = places == np.repeat(rows.bounds[:-1], np.diff(asked.bounds))
        places -= 1
        if asof.tolerance is not None:
            none |= rows.times.take(places, mode="clip") < asked.times - min(int(asof.tolerance), FAR)
        places[none] = NONE
        return places

    def _first(self, asof: JoinAsof, asked: SortedRows) -> np.ndarray:
        """The place of the last row of the first time not before each, and `NONE` if there is none or it is too far."""
        rows = self.sorted_rows
        places = rows.first_in_runs(asked.bounds, asked.times if asof.allow_exact else asked.times + 1)
        none = places == np.repeat(rows.bounds[1:], np.diff(asked.bounds))
        if asof.tolerance is not None:
            none |= rows.times.take(places, mode="clip") > asked.times + min(int(asof.tolerance), FAR)
        if not rows.fresh.all():
            ends = np.append(np.flatnonzero(rows.fresh)[1:], len(rows)) - 1
            places = ends.take(np.searchsorted(ends, places), mode="clip")
        places[none] = NONE
        return places


def in_order(rows: SortedRows, ties: Sequence[str], read: Callable[[np.ndarray], pa.Table]) -> SortedRows:
    """The rows with those of one key and time sorted by columns, which `read` gives for ascending numbers."""
    same = ~rows.fresh[1:]
    if not ties or not same.any():
        return rows
    tied = np.zeros(len(rows), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    numbers = np.sort(rows.order[places])
    ranks = _ranks(read(numbers), len(numbers)).take(np.searchsorted(numbers, rows.order[places]))
    order = rows.order.copy()
    order[places] = order[places[np.lexsort((ranks, np.cumsum(rows.fresh)[places]))]]
    return replace(rows, order=order)


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

"""The good rows of a bundle: those with a usable time, with their keys and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.aggregate import weights_of
from ...combiners.algebra import Weights
from ...combiners.rows.columns import Column, flat
from ...combiners.rows.groups import Groups
from ...combiners.rows.hashing import hash_rows
from ...combiners.rows.key_codes import group_keys
from ...combiners.rows.ordering import order_keys
from ...windows import time_column
from ...windows.times import MAX_TIME, MIN_TIME
from .cells import Cells
from .grouping import Grouping


@dataclass(frozen=True)
class Rows:
    """The good rows of a bundle, and the number of the others."""

    table: pa.Table
    keys: list[pa.Array]
    times: np.ndarray
    weights: Weights
    bad: int
    places: np.ndarray
    """The place of each row in the bundle."""
    bad_places: np.ndarray
    """The places in the bundle of the bad rows; none where these came as cells."""

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def none(cls, schema: pa.Schema, bad: int) -> Rows:
        """No good rows, and this number of bad ones."""
        nowhere = np.empty(0, np.int64)
        return cls(
            table=schema.empty_table(),
            keys=[],
            times=nowhere,
            weights=None,
            bad=bad,
            places=nowhere,
            bad_places=nowhere,
        )

    def take(self, places: np.ndarray) -> Rows:
        """The rows at these places, in this order."""
        at = pa.array(places)
        weights = None if self.weights is None else self.weights[places]
        keys = [k.take(at) for k in self.keys]
        return Rows(
            table=self.table.take(at),
            keys=keys,
            times=self.times[places],
            weights=weights,
            bad=0,
            places=self.places[places],
            bad_places=places[:0],
        )

    def places_in(self, cells: Cells) -> np.ndarray:
        """The places in the bundle of those of the rows that are in these cells."""
        return np.unique(self.places[cells.of_row()[0]])


def good_rows(grouping: Grouping, table: pa.Table, processing_time: int) -> Rows:
    """The rows with a usable time; bad rows are counted."""
    times, valid = time_column(flat(table[grouping.time]))
    if (latest := latest_time(grouping, processing_time)) < MAX_TIME:
        valid = valid & (times <= latest)
    bad = len(valid) - int(np.count_nonzero(valid))
    places = np.arange(len(valid))
    bad_places = places[:0]
    if bad:
        table, times = table.filter(pa.array(valid)), times[valid]
        places, bad_places = np.flatnonzero(valid), np.flatnonzero(~valid)
    keys = [group_keys(flat(table[name])) for name in grouping.by]
    weights = None if grouping.diff is None else weights_of(table, grouping.diff)
    return Rows(table=table, keys=keys, times=times, weights=weights, bad=bad, places=places, bad_places=bad_places)


def latest_time(grouping: Grouping, processing_time: int) -> int:
    """The last event time that is not too far in the future."""
    if processing_time == MIN_TIME or grouping.max_future is None:
        return MAX_TIME
    return min(processing_time + int(grouping.max_future), MAX_TIME)


def rounds(rows: Rows) -> list[Rows]:
    """Rounds of rows with one row of each key: the first of each, the second, ...; by event time, then input order."""
    codes = np.zeros(len(rows), np.int64)
    if rows.keys:
        codes = order_keys([Column(pa.array(hash_rows([Column(k) for k in rows.keys])))]).dense().keys
    order = np.lexsort((np.arange(len(rows)), rows.times, codes))
    groups = Groups(codes[order], int(codes.max()) + 1)
    rank = np.arange(len(rows)) - np.repeat(groups.starts, groups.sizes)
    return [rows.take(order[rank == r]) for r in range(int(rank.max()) + 1)]

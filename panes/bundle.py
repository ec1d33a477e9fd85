"""A bundle of rows made into cells: one for each (key, window), its rows combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..combiners.aggregate import weights_of
from ..combiners.algebra import Weights
from ..combiners.columns import Column, flat
from ..combiners.groups import Groups, keyed_groups
from ..combiners.hashing import hash_rows
from ..combiners.keycodes import key_codes, normal_keys
from ..combiners.ordering import order_keys
from ..combiners.segments import extreme, sum_int64, sum_weights
from ..combiners.sorting import argsort_in_groups
from ..windows import Assigned, Inherit, Sliding, Window, time_column, union_runs
from ..windows.times import MAX_TIME, MIN_TIME
from .cells import Cells
from .compiled import Compiled
from .grouping import Grouping
from .live import EXTENT
from .slices import windows_from_slices


@dataclass(frozen=True)
class Rows:
    """The good rows of a bundle."""

    table: pa.Table
    keys: list[pa.Array]
    times: np.ndarray
    weights: Weights
    bad: int
    places: np.ndarray
    """Where in the bundle each row stood."""

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def none(cls, schema: pa.Schema, bad: int) -> Rows:
        """No good rows, and a number of bad ones."""
        nowhere = np.empty(0, np.int64)
        return cls(schema.empty_table(), [], nowhere, None, bad, nowhere)

    def take(self, places: np.ndarray) -> Rows:
        """Some of the rows, in this order."""
        at = pa.array(places)
        weights = None if self.weights is None else self.weights[places]
        keys = [k.take(at) for k in self.keys]
        return Rows(self.table.take(at), keys, self.times[places], weights, 0, self.places[places])


def good_rows(grouping: Grouping, table: pa.Table, processing_time: int) -> Rows:
    """The rows with a usable time; bad rows are counted."""
    times, valid = time_column(flat(table[grouping.time]))
    if processing_time > MIN_TIME and grouping.max_future is not None:
        valid = valid & (times <= min(processing_time + int(grouping.max_future), MAX_TIME))
    bad = len(valid) - int(np.count_nonzero(valid))
    places = np.arange(len(valid))
    if bad:
        table, times, places = table.filter(pa.array(valid)), times[valid], np.flatnonzero(valid)
    keys = [normal_keys(flat(table[name])) for name in grouping.by]
    weights = None if grouping.diff is None else weights_of(table, grouping.diff)
    return Rows(table, keys, times, weights, bad, places)


def rounds(rows: Rows) -> list[Rows]:
    """Rows by their rank within their key, in event time, then input order."""
    codes = (
        order_keys([Column(pa.array(hash_rows([Column(k) for k in rows.keys])))]).dense().keys
        if rows.keys
        else (np.zeros(len(rows), np.int64))
    )
    order = np.lexsort((np.arange(len(rows)), rows.times, codes))
    groups = Groups(codes[order], int(codes.max()) + 1)
    rank = np.arange(len(rows)) - np.repeat(groups.starts, groups.sizes)
    return [rows.take(order[rank == r]) for r in range(int(rank.max()) + 1)]


def cells_of(compiled: Compiled, rows: Rows, output_watermark: int, slices: bool = False) -> Cells:
    """The cells of some rows, windows merged among them where they cannot fall apart again.

    Sliding windows are combined by slice first, so that rows are not multiplied, and stay so with `slices`.
    """
    window = compiled.grouping.window
    assigned = _assign(window, rows)
    row = assigned.row
    unassigned = len(rows) - len(np.unique(row)) if row is not None else 0
    keys = rows.keys if row is None else [k.take(pa.array(row)) for k in rows.keys]
    merging = window.merging and not compiled.grouping.splits
    grouped = merge_in_order(window, keys, assigned) if merging else by_key_and_window(keys, assigned)
    cells = _combine(compiled, rows, row, grouped, output_watermark, unassigned)
    return windows_from_slices(window, compiled.plan, cells) if isinstance(window, Sliding) and not slices else cells


@dataclass(frozen=True)
class Grouped:
    """Rows by (key, window)."""

    groups: Groups
    keys: list[pa.Array]
    start: np.ndarray
    end: np.ndarray


def by_key_and_window(keys: Sequence[pa.Array], assigned: Assigned) -> Grouped:
    """Windows of each key, which have nothing to do with each other."""
    # Rows come more or less in the order of time: with windows before keys, what is close is close in memory too.
    if assigned.number is not None:
        groups, (number, *found) = keyed_groups([pa.array(assigned.number), *keys], len(assigned.number))
        start, end = assigned.bounds_of(np.asarray(number))
    else:
        bounds = [pa.array(assigned.start), pa.array(assigned.end)]
        groups, (first, last, *found) = keyed_groups([*bounds, *keys], len(assigned.start))
        start, end = np.asarray(first), np.asarray(last)
    return Grouped(groups, found, start, end)


def merge_in_order(window: Window, keys: Sequence[pa.Array], assigned: Assigned) -> Grouped:
    """Windows of each key merged; sorted here first, key by key, faster than all at once."""
    starts = assigned.start if assigned.number is None else assigned.number
    known = key_codes(keys, len(starts))
    if known.sparse:
        known = known.dense()
    by_key = Groups(known.codes, known.size)
    present = np.flatnonzero(by_key.sizes)
    sizes = by_key.sizes[present]
    first_of_key = np.cumsum(sizes) - sizes
    in_time = bool(np.all(starts[1:] >= starts[:-1]))
    # Rows that came in order of time only have to be put by key.
    order = by_key.order if in_time else argsort_in_groups(by_key, starts)[0]
    start, end = assigned.bounds(order)
    if window.merges_by_overlap:
        heads, reach = union_runs(first_of_key, start, end)
        groups = Groups.of_runs(order, np.diff(heads, append=len(order)), stable=in_time)
        new_key = np.zeros(len(order), np.bool_)
        new_key[first_of_key] = True
        code, start, end = np.cumsum(new_key[heads]) - 1, start[heads], reach
    else:
        merged = window.merge(np.repeat(np.arange(len(present)), sizes), start, end)
        codes = np.empty(len(order), np.int64)
        codes[order] = merged.window_id
        groups = Groups(codes, len(merged.start))
        code, start, end = merged.code, merged.start, merged.end
    return Grouped(groups, known.decode(present[code]), start, end)


def _assign(window: Window, rows: Rows) -> Assigned:
    if isinstance(window, Inherit):
        return window.assign_column(flat(rows.table["window"]))
    if isinstance(window, Sliding):
        return window.slices.assign(rows.times, None)
    hashed = hash_rows([Column(k) for k in rows.keys]) if window.needs_key_hash and rows.keys else None
    return window.assign(rows.times, hashed)


def _combine(
    compiled: Compiled,
    rows: Rows,
    row: np.ndarray | None,
    grouped: Grouped,
    output_watermark: int,
    unassigned: int,
) -> Cells:
    """Rows combined by group; `row` is the row of each entry of the groups, where they are not the rows themselves."""
    extents = compiled.grouping.extents
    table, times, weights, groups = rows.table, rows.times, rows.weights, grouped.groups
    if row is not None:
        table, times = table.take(pa.array(row)), times[row]
        weights = None if weights is None else weights[row]
    earliest, latest = (np.broadcast_to(nothing, groups.count) for _, nothing in EXTENT.values())
    if "earliest" in extents:
        ahead = times >= output_watermark
        earliest = extreme(groups.take(ahead), times[ahead], MAX_TIME, np.minimum)
    if "latest" in extents:
        same = len(times) > 0 and bool((times == times[0]).all())
        latest = np.full(groups.count, times[0]) if same else extreme(groups, times, MIN_TIME, np.maximum)
    cells = Cells(
        grouped.keys,
        grouped.start,
        grouped.end,
        compiled.plan.add(groups, table, weights),
        groups.sizes,
        sum_weights(groups, weights),
        earliest,
        latest,
        {fact.name: sum_int64(groups, fact.of(table)) for fact in compiled.facts},
        lambda: (np.arange(len(rows)) if row is None else row, groups.codes),
        unassigned,
    )
    return cells.counted(output_watermark) if "latest" in extents else cells

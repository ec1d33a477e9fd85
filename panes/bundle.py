"""A bundle of rows made into cells: one for each (key, window), its rows combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..combiners import Plan
from ..combiners.aggregate import flat, weights_of
from ..combiners.algebra import Weights
from ..combiners.columns import Column
from ..combiners.groups import Groups, group_rows, normal_keys
from ..combiners.hashing import hash_rows
from ..combiners.segments import extreme, sum_int64, sum_weights
from ..combiners.sorting import argsort_in_groups
from ..triggers.program import Fact
from ..windows import Inherit, Merged, Sliding, Window, time_column
from .cells import Cells
from .grouping import Grouping
from .live import MAX_TIME, MIN_TIME
from .slices import windows_from_slices


@dataclass
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
    if processing_time > MIN_TIME:
        valid = valid & (times <= min(processing_time + int(grouping.max_future), MAX_TIME))
    bad = len(valid) - int(np.count_nonzero(valid))
    places = np.arange(len(valid))
    if bad:
        table, times, places = table.filter(pa.array(valid)), times[valid], np.flatnonzero(valid)
    keys = [normal_keys(flat(table[name])) for name in grouping.by]
    weights = None if grouping.diff is None else weights_of(table, grouping.diff)
    return Rows(table, keys, times, weights, bad, places)


def cells_of(
    grouping: Grouping,
    plan: Plan,
    facts: Sequence[Fact],
    rows: Rows,
    output_watermark: int,
    merge: bool = True,
    slices: bool = False,
) -> Cells:
    """The cells of some rows, windows merged among them unless told not to.

    Sliding windows are combined by slice first, so that rows are not multiplied, and stay so with `slices`.
    """
    window = grouping.window
    row, start, end = _assign(window, rows)
    unassigned = len(rows) - len(np.unique(row)) if row is not None else 0
    keys = rows.keys if row is None else [k.take(pa.array(row)) for k in rows.keys]
    if window.merging and merge:
        merged, first = merge_in_order(window, group_rows(keys, len(start))[0], start, end)
        groups = Groups(merged.window_id, len(merged.start))
        start, end = merged.start, merged.end
    else:
        bounds = [pa.array(start), pa.array(end)] if not window.end_follows_start else [pa.array(start)]
        groups, first = group_rows([*keys, *bounds], len(start))
        start, end = start[first], end[first]
    cells = _combine(plan, facts, rows, row, groups, first, start, end, output_watermark, grouping.timestamp)
    cells.unassigned = unassigned
    return windows_from_slices(window, plan, cells) if isinstance(window, Sliding) and not slices else cells


def merge_in_order(window: Window, keys: Groups, start: np.ndarray, end: np.ndarray) -> tuple[Merged, np.ndarray]:
    """Windows of each key merged, and a row of each; sorted here first, key by key, faster than all at once."""
    if bool(np.all(start[1:] >= start[:-1])):
        # Rows that came in order of time only have to be put by key.
        order = keys.order
        begin = start[order]
    else:
        order, begin = argsort_in_groups(keys, start)
    merged = window.merge(np.repeat(np.arange(keys.count), keys.sizes), begin, end[order])
    window_id = np.empty(len(order), np.int64)
    window_id[order] = merged.window_id
    some_row = np.empty(len(merged.start), np.int64)
    some_row[merged.window_id] = order
    return replace(merged, window_id=window_id), some_row


def key_hashes(keys: Sequence[pa.Array], count: int, start: np.ndarray | None = None) -> np.ndarray:
    """A hash of the key (and of the window's start, where windows do not merge) to find windows by."""
    hashes = hash_rows([Column(key) for key in keys]) if keys else np.zeros(count, np.uint64)
    if start is not None:
        mixed = start.astype(np.int64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        hashes = hashes ^ (mixed ^ (mixed >> np.uint64(29)))
    return hashes


def _assign(window: Window, rows: Rows) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    if isinstance(window, Inherit):
        assigned = window.assign_column(flat(rows.table["window"]))
        return assigned.row, assigned.start, assigned.end
    if isinstance(window, Sliding):
        assigned = window.slices.assign(rows.times, None)
    else:
        hashed = hash_rows([Column(k) for k in rows.keys]) if window.needs_key_hash and rows.keys else None
        assigned = window.assign(rows.times, hashed)
    return assigned.row, assigned.start, assigned.end


def _combine(
    plan: Plan,
    facts: Sequence[Fact],
    rows: Rows,
    row: np.ndarray | None,
    groups: Groups,
    first: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    output_watermark: int,
    policy: str,
) -> Cells:
    table, times, weights = rows.table, rows.times, rows.weights
    keys = rows.keys
    if row is not None:
        table, times = table.take(pa.array(row)), times[row]
        weights = None if weights is None else weights[row]
        first_rows = row[first]
    else:
        first_rows = first
    earliest, latest = np.full(groups.count, MAX_TIME), np.full(groups.count, MIN_TIME)
    if policy in ("earliest", "latest"):
        ahead = times >= output_watermark
        timed, shown = groups.take(ahead), times[ahead]
        earliest, latest = extreme(timed, shown, MAX_TIME, np.minimum), extreme(timed, shown, MIN_TIME, np.maximum)
    return Cells(
        [k.take(pa.array(first_rows)) for k in keys],
        start,
        end,
        plan.add(groups, table, weights),
        groups.sizes,
        sum_weights(groups, weights),
        earliest,
        latest,
        {fact.name: sum_int64(groups, fact.of(table)) for fact in facts},
        lambda: (np.arange(len(rows)) if row is None else row, groups.codes),
    )

"""Rows made into cells: the rows of each (key, window) combined to one entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column
from ...combiners.rows.group_sums import extreme, sum_int64, sum_weights
from ...combiners.rows.groups import Groups, keyed_groups
from ...combiners.rows.hashing import hash_rows
from ...combiners.rows.key_codes import key_codes
from ...combiners.rows.sorting import argsort_in_groups
from ...windows import RowWindows, Sliding, Window, union_runs
from ...windows.times import MAX_TIME, MIN_TIME
from .cells import Cells
from .compiled import CompiledGrouping
from .loaded_windows import EXTENT
from .rows import Rows
from .slices import windows_from_slices


def cells_of(compiled: CompiledGrouping, rows: Rows, output_watermark: int) -> Cells:
    """The cells of rows. Windows that merge are merged among these rows, unless retractions may split them again.

    Rows of sliding windows are combined by slice first, so that no row is copied.
    """
    window = compiled.grouping.window
    cells = combined(compiled, rows, assign(window, rows), output_watermark)
    return windows_from_slices(window, compiled.plan, cells) if isinstance(window, Sliding) else cells


def combined(
    compiled: CompiledGrouping, rows: Rows, assigned: RowWindows, output_watermark: int, coded: bool = False
) -> Cells:
    """The same of rows whose windows are assigned; sliding windows stay slices. With `coded` texts of keys are
    dictionaries.
    """
    window, row = compiled.grouping.window, assigned.row
    unassigned = len(rows) - len(np.unique(row)) if row is not None else 0
    keys = rows.keys if row is None else [k.take(pa.array(row)) for k in rows.keys]
    merging = window.merging and not compiled.grouping.splits
    grouped = (merge_in_order if merging else by_key_and_window)(window, keys, assigned, coded)
    return _combine(compiled, rows, row, grouped, output_watermark, unassigned)


@dataclass(frozen=True)
class GroupedRows:
    """Rows by (key, window)."""

    groups: Groups
    keys: list[pa.Array]
    start: np.ndarray
    end: np.ndarray


def by_key_and_window(
    window: Window, keys: Sequence[pa.Array], assigned: RowWindows, coded: bool = False
) -> GroupedRows:
    """Rows grouped by key and window, for windows that do not merge."""
    # Rows come more or less in the order of time: with windows before keys, what is close is close in memory too.
    if assigned.number is not None:
        groups, (number, *group_keys) = keyed_groups([pa.array(assigned.number), *keys], len(assigned.number), coded)
        start, end = assigned.bounds_of(np.asarray(number))
    else:
        bounds = [pa.array(assigned.start), pa.array(assigned.end)]
        groups, (first, last, *group_keys) = keyed_groups([*bounds, *keys], len(assigned.start), coded)
        start, end = np.asarray(first), np.asarray(last)
    return GroupedRows(groups=groups, keys=group_keys, start=start, end=end)


def merge_in_order(window: Window, keys: Sequence[pa.Array], assigned: RowWindows, coded: bool = False) -> GroupedRows:
    """Rows grouped by key and merged window."""
    starts = assigned.start if assigned.number is None else assigned.number
    numbering = key_codes(keys, len(starts), coded)
    if numbering.sparse:
        numbering = numbering.dense()
    by_key = Groups(numbering.codes, numbering.size)
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
    return GroupedRows(groups=groups, keys=numbering.decode(present[code]), start=start, end=end)


def assign(window: Window, rows: Rows) -> RowWindows:
    """The windows of rows; of sliding windows their slices."""
    if isinstance(window, Sliding):
        return window.slices.assign(rows.times)
    hashed = hash_rows([Column(k) for k in rows.keys]) if window.needs_key_hash and rows.keys else None
    return window.assign(rows.times, hashed, rows.table)


def _combine(
    compiled: CompiledGrouping,
    rows: Rows,
    row: np.ndarray | None,
    grouped: GroupedRows,
    output_watermark: int,
    unassigned: int,
) -> Cells:
    """Rows combined by group; `row` is the row of each entry of the groups, where they are not the rows themselves."""
    extents = compiled.grouping.extents
    table, times, weights, groups = rows.table, rows.times, rows.weights, grouped.groups
    if row is not None:
        table, times = table.take(pa.array(row)), times[row]
        weights = None if weights is None else weights[row]
    earliest, latest = (np.broadcast_to(value, groups.count) for _, value in EXTENT.values())
    if "earliest" in extents:
        in_time = times >= output_watermark
        earliest = extreme(groups.take(in_time), times[in_time], MAX_TIME, np.minimum)
    if "latest" in extents:
        same = len(times) > 0 and bool((times == times[0]).all())
        latest = np.full(groups.count, times[0]) if same else extreme(groups, times, MIN_TIME, np.maximum)
    cells = Cells(
        keys=grouped.keys,
        start=grouped.start,
        end=grouped.end,
        acc=compiled.plan.add(groups, table, weights),
        count=groups.sizes,
        weight=sum_weights(groups, weights),
        earliest=earliest,
        latest=latest,
        facts={fact.name: sum_int64(groups, fact.of(table)) for fact in compiled.facts},
        of_row=lambda: (np.arange(len(rows)) if row is None else row, groups.codes),
        unassigned=unassigned,
    )
    return cells.counted(output_watermark) if "latest" in extents else cells

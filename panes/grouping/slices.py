"""Sliding windows made of slices, with far fewer merges than a window has slices.

A window of k whole periods is put together from runs of 1, 2, 4, 8, ... periods, each made of two of half the length:
about 2 log2(k) merges of all cells at once, where copying every slice into each of its windows would take k. If its
size is no multiple of the period, a part of the next period comes last. Every run starts where a window starts, so
there are no more cells than windows.

Guarded by tests/panes/grouping/test_rules.py, test_slices.py and test_reference.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...combiners import Plan
from ...combiners.rows.groups import group_rows
from ...windows import Sliding
from .cells import Cells, Pairs


def windows_from_slices(window: Sliding, plan: Plan, slices: Cells) -> Cells:
    """The cells of sliding windows from those of the windows' slices."""
    if len(slices) == 0:
        return slices
    shape = window.slices
    number, is_head = shape.periods(slices.start)
    keys, first = group_rows(slices.keys, len(slices))
    parts = replace(slices, keys=[pa.array(keys.codes)], start=number)
    whole = _run_of_periods(plan, parts, shape.whole, cut=bool(shape.head)) if shape.whole else None
    if shape.head:
        heads = parts.take(is_head)
        whole = heads if whole is None else _after(plan, whole, heads, shape.whole)
    assert whole is not None
    codes, numbers = whole.keys[0], whole.start
    at = pa.array(first[np.asarray(codes)])
    start, end = shape.bounds(numbers)
    homeless = ~is_head if shape.whole == 0 else np.zeros(len(slices), np.bool_)

    def of_row() -> Pairs:
        row, slice_ = slices.of_row()
        place, number = shape.windows(slices.start)
        sizes = np.bincount(place, minlength=len(slices))
        first_of = np.cumsum(sizes) - sizes
        many = sizes[slice_]
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        chosen = np.repeat(first_of[slice_], many) + within
        both, _ = group_rows(
            [
                pa.concat_arrays([codes, pa.array(keys.codes[place[chosen]])]),
                pa.concat_arrays([pa.array(numbers), pa.array(number[chosen])]),
            ],
            len(numbers) + len(chosen),
        )
        cell_of = np.empty(both.count, np.int64)
        cell_of[both.codes[: len(numbers)]] = np.arange(len(numbers))
        return np.repeat(row, many), cell_of[both.codes[len(numbers) :]]

    return replace(
        whole,
        keys=[key.take(at) for key in slices.keys],
        start=start,
        end=end,
        of_row=of_row,
        unassigned=slices.unassigned + int(slices.count[homeless].sum()),
        bad=slices.bad,
    )


def _run_of_periods(plan: Plan, parts: Cells, wanted: int, cut: bool) -> Cells:
    """The cells of so many periods in a row, by the number of the first one; `cut` if a period may be two slices."""
    run = _together(plan, parts) if cut else parts
    length, done = 1, 0
    whole: Cells | None = None
    while True:
        if wanted & length:
            whole = run if whole is None else _after(plan, whole, run, done)
            done += length
        if done == wanted:
            return whole if whole is not None else run
        run = _after(plan, run, run, length)
        length *= 2


def _after(plan: Plan, first: Cells, second: Cells, shift: int) -> Cells:
    """At each period: the run `first` that starts there, and the run `second` that starts `shift` periods later."""
    return _together(plan, first.joined(replace(second, start=second.start - shift)))


def _together(plan: Plan, cells: Cells) -> Cells:
    """One cell for each key and period."""
    groups, _ = group_rows([cells.keys[0], pa.array(cells.start)], len(cells))
    return cells.summed(plan, groups)

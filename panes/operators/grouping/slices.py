"""Sliding windows made of slices, with far fewer merges than a window has slices.

A window of k slices is put together from runs of 1, 2, 4, 8, ... slices, each made of two of half the length: about
2 log2(k) merges of all cells at once, where copying every slice into each of its windows would take k.

Guarded by tests/panes/test_rules.py and test_reference.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ....combiners import Plan
from ....combiners.rows.groups import group_rows
from ....windows import Sliding
from .cells import Cells, Pairs


def windows_from_slices(window: Sliding, plan: Plan, slices: Cells) -> Cells:
    """The cells of sliding windows from those of the windows' slices."""
    if len(slices) == 0:
        return slices
    size, period, offset = int(window.size), int(window.period), int(window.offset)
    step = int(window.slices.size)
    keys, first = group_rows(slices.keys, len(slices))
    run = replace(slices, keys=[pa.array(keys.codes)])
    length, wanted = 1, size // step
    whole: Cells | None = None
    done = 0
    while True:
        if wanted & length:
            whole = run if whole is None else _after(plan, whole, run, done * step)
            done += length
        if done == wanted:
            break
        run = _after(plan, run, run, length * step)
        length *= 2
    assert whole is not None
    whole = whole.take((whole.start - offset) % period == 0)
    codes, starts = whole.keys[0], whole.start
    at = pa.array(first[np.asarray(codes)])
    homeless = (slices.start - offset) % period >= size

    def of_row() -> Pairs:
        row, slice_ = slices.of_row()
        spread = window.windows_of_slices(slices.start)
        source = np.arange(len(slices)) if spread.row is None else spread.row
        order = np.argsort(source, kind="stable")
        sizes = np.bincount(source, minlength=len(slices))
        first_of = np.cumsum(sizes) - sizes
        many = sizes[slice_]
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        place = order[np.repeat(first_of[slice_], many) + within]
        both, _ = group_rows(
            [
                pa.concat_arrays([codes, pa.array(keys.codes[source[place]])]),
                pa.concat_arrays([pa.array(starts), pa.array(spread.start[place])]),
            ],
            len(starts) + len(place),
        )
        cell_of = np.empty(both.count, np.int64)
        cell_of[both.codes[: len(starts)]] = np.arange(len(starts))
        return np.repeat(row, many), cell_of[both.codes[len(starts) :]]

    return replace(
        whole,
        keys=[key.take(at) for key in slices.keys],
        end=starts + size,
        of_row=of_row,
        unassigned=slices.unassigned + int(slices.count[homeless].sum()),
        bad=slices.bad,
    )


def _after(plan: Plan, first: Cells, second: Cells, shift: int) -> Cells:
    """At each start: the run `first` that starts there, and the run `second` that starts `shift` later."""
    both = first.joined(replace(second, start=second.start - shift))
    groups, _ = group_rows([both.keys[0], pa.array(both.start)], len(both))
    return both.summed(plan, groups)

"""Cells meet the windows in hand: windows merge, rows of expired windows are set aside, the other rows go in.

Guarded by tests/panes/grouping/test_rules.py and test_reference.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.group_sums import sum_counts, sum_int64
from ...combiners.rows.groups import Groups, group_rows
from .carry_over import carry_over
from .cells import Cells, Pairs
from .clocks import Clocks
from .compiled import CompiledGrouping
from .loaded_windows import LoadedWindows
from .rows import Rows


@dataclass(frozen=True)
class Admission:
    """The windows in hand after rows went in, with a mask of those that got rows."""

    windows: LoadedWindows
    got: np.ndarray
    """True where rows went in."""
    born: np.ndarray
    """True where the window came to be with these rows."""
    facts: dict[str, np.ndarray]
    """The sums over the rows of each window that the trigger needs."""
    lineage: Pairs
    """Pairs (window before, window after): the second goes on from the first."""
    late: Cells | None
    """The cells of windows that have expired."""
    finished: Cells | None
    """The cells of windows whose trigger has finished."""
    rows_of: Callable[[], Pairs]
    """Pairs (row, window) of a row and a window that it went into; computed when called."""

    def beside(self, others: LoadedWindows, places: np.ndarray, others_places: np.ndarray) -> Admission:
        """The same with other windows that got nothing; both places are those in hand before the rows."""
        before, after = self.lineage
        count = len(others)
        nothing = np.zeros(count, np.bool_)
        zeros = np.zeros(count, np.int64)
        return replace(
            self,
            windows=self.windows.joined(others),
            got=np.concatenate([self.got, nothing]),
            born=np.concatenate([self.born, nothing]),
            facts={name: np.concatenate([values, zeros]) for name, values in self.facts.items()},
            lineage=(
                np.concatenate([places[before], others_places]),
                np.concatenate([after, len(self.windows) + np.arange(count)]),
            ),
        )

    def arrivals(self, rows: Rows) -> Callable[[], dict[int, list[dict[str, Any]]]]:
        """A function that gives the raw rows of each window, for triggers of users."""

        def by_window() -> dict[int, list[dict[str, Any]]]:
            out: dict[int, list[dict[str, Any]]] = {}
            row_numbers, windows = (np.asarray(side).tolist() for side in self.rows_of())
            for row, window in sorted(zip(row_numbers, windows, strict=True)):  # user triggers see rows one by one
                out.setdefault(window, []).append(rows.table.slice(row, 1).to_pylist()[0])
            return out

        return by_window


@dataclass(frozen=True)
class Placement:
    """The windows that windows in hand and cells become together: the number of each, and the bounds by number."""

    of_windows: np.ndarray
    of_cells: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def without(self, gone: np.ndarray) -> Placement:
        """The same without the cells of some windows; no window in hand goes into these."""
        number = np.cumsum(~gone) - 1
        mask = ~gone[self.of_cells]
        return Placement(
            of_windows=number[self.of_windows],
            of_cells=number[self.of_cells[mask]],
            start=self.start[~gone],
            end=self.end[~gone],
        )


def take_in(compiled: CompiledGrouping, windows: LoadedWindows, cells: Cells, clocks: Clocks) -> Admission:
    """Merge cells into the windows in hand."""
    placed = place(compiled, windows, cells)
    late = None
    expired = clocks.expired(compiled, placed.end)
    expired[placed.of_windows] = False  # held under a longer lateness, with which the state was written
    if expired.any():
        gone = expired[placed.of_cells]
        late, cells = cells.take(gone), cells.take(~gone)
        placed = placed.without(expired)
    lineage = (np.arange(len(windows)), placed.of_windows)
    keys = first_keys(windows, cells, placed)
    out = carry_over(compiled, windows, lineage, keys, placed.start, placed.end, clocks)
    done = compiled.trigger.done(out.trigger)[placed.of_cells]
    finished = None
    if done.any():
        finished, cells = cells.take(done), cells.take(~done)
        placed = replace(placed, of_cells=placed.of_cells[~done])
    got, born = np.zeros(len(placed), np.bool_), np.ones(len(placed), np.bool_)
    got[placed.of_cells] = True
    born[placed.of_windows] = False
    return Admission(
        windows=_with_contents(compiled, out, got, windows, cells, placed),
        got=got,
        born=born,
        facts=facts_by_window(Groups(placed.of_cells, len(placed)), cells.facts, cells.count),
        lineage=lineage,
        late=late,
        finished=finished,
        rows_of=lambda: (cells.of_row()[0], placed.of_cells[cells.of_row()[1]]),
    )


def facts_by_window(groups: Groups, facts: dict[str, np.ndarray], count: np.ndarray) -> dict[str, np.ndarray]:
    """The facts of cells summed by window, and the number of rows as the fact "rows"."""
    return {name: sum_int64(groups, values) for name, values in {**facts, "rows": count}.items()}


def place(compiled: CompiledGrouping, windows: LoadedWindows, cells: Cells) -> Placement:
    """The windows that windows in hand and cells become once those that belong together are merged."""
    if len(windows) == 0:
        return Placement(
            of_windows=np.empty(0, np.int64), of_cells=np.arange(len(cells)), start=cells.start, end=cells.end
        )
    keys = [pa.concat_arrays([a, b]) for a, b in zip(windows.keys, cells.keys, strict=True)]
    start = np.concatenate([windows.num["start"], cells.start])
    end = np.concatenate([windows.num["end"], cells.end])
    cut, window = len(windows), compiled.grouping.window
    if window.merging:
        merged = window.merge(group_rows(keys, len(start))[0].codes, start, end)
        return Placement(
            of_windows=merged.window_id[:cut], of_cells=merged.window_id[cut:], start=merged.start, end=merged.end
        )
    groups, first = group_rows([*keys, pa.array(start), pa.array(end)], len(start))
    return Placement(of_windows=groups.codes[:cut], of_cells=groups.codes[cut:], start=start[first], end=end[first])


def first_keys(windows: LoadedWindows, cells: Cells, placed: Placement) -> list[pa.Array]:
    """The keys of the windows of a placement."""
    if len(windows) == 0 and len(cells) == len(placed):
        return cells.keys
    members = np.concatenate([placed.of_windows, placed.of_cells])
    first = np.full(len(placed), len(members))
    np.minimum.at(first, members, np.arange(len(members)))
    at = pa.array(first)
    return [pa.concat_arrays([a, b]).take(at) for a, b in zip(windows.keys, cells.keys, strict=True)]


def _with_contents(
    compiled: CompiledGrouping,
    out: LoadedWindows,
    got: np.ndarray,
    windows: LoadedWindows,
    cells: Cells,
    placed: Placement,
) -> LoadedWindows:
    """The windows `out` with the contents of the windows in hand and the cells that go into them."""
    num, count = {**out.num, "fresh": out.num["fresh"] | got}, len(placed)
    if len(windows) == 0 and len(cells) == count:
        num |= {name: getattr(cells, name) for name in ("weight", "earliest", "latest") if name in num}
        return replace(out, num=num, acc=cells.acc)
    for name, further in (("earliest", np.minimum), ("latest", np.maximum)):
        if name in num:
            num[name] = num[name].copy()
            further.at(num[name], placed.of_windows, windows.num[name])
            further.at(num[name], placed.of_cells, getattr(cells, name))
    groups = Groups(np.concatenate([placed.of_windows, placed.of_cells]), count)
    num["weight"] = sum_counts(groups, np.concatenate([windows.num["weight"], cells.weight]))
    both = tuple(pa.concat_arrays([a, b]) for a, b in zip(windows.acc, cells.acc, strict=True))
    return replace(out, num=num, acc=compiled.plan.merge(groups, both))

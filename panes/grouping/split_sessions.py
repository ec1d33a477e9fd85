"""Windows that merge and may split again, as sessions over a changelog do: computed from atoms when rows come.

The outstanding panes of an old window go to the first window that now stands in its place, and the trigger's state
goes to all of them. A window that lost all its rows stays, without contents, until it expires.

Rows touch a key: then all its windows and atoms are in hand. A clock touches a window: then the other windows of its
key may be in the store, so the window passes through unchanged, and of its key only the expired atoms are in hand.

Guarded by tests/panes/grouping/test_reference.py and test_properties.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.groups import Groups, group_rows
from .admission import Admission, facts_by_window, first_keys, place
from .atoms import Atoms, merged_cells
from .carry_over import carry_over
from .cells import NUMBERS, Cells, Pairs
from .clocks import Clocks
from .compiled import CompiledGrouping
from .intervals import equal_pairs, overlaps
from .loaded_windows import EXTENT, LoadedWindows


def take_in_and_split(
    compiled: CompiledGrouping, windows: LoadedWindows, atoms: Atoms, cells: Cells, clocks: Clocks
) -> tuple[Admission, Atoms]:
    """Put cells into the atoms, and compute the windows of their keys again; windows of other keys stay."""
    cells, late = _in_time(compiled, atoms.key_atoms, cells, clocks)
    finished = None
    if compiled.trigger.done(windows.trigger).any():
        done = _finished(compiled, windows, cells, clocks)
        finished, cells = cells.take(done), cells.take(~done)
    atoms = atoms.with_cells(compiled, cells)
    mine, places = atoms.key_atoms, np.arange(len(windows))
    of_windows, of_atoms = _of_keys(cells, windows, mine)
    others = places[~of_windows]
    if not of_atoms.all():
        mine = mine.take(of_atoms)
    touched = windows.take(places[of_windows]) if len(others) else windows
    admission = _computed(compiled, touched, mine, cells, late, finished, clocks)
    if len(others):
        admission = admission.beside(windows.take(others), places[of_windows], others)
    return admission, atoms


def _computed(
    compiled: CompiledGrouping,
    windows: LoadedWindows,
    atoms: Cells,
    cells: Cells,
    late: Cells | None,
    finished: Cells | None,
    clocks: Clocks,
) -> Admission:
    """All windows of some keys, computed from the atoms of these keys, with the new cells among them."""
    new = merged_cells(compiled, atoms)
    keys = [pa.concat_arrays(list(columns)) for columns in zip(windows.keys, new.keys, cells.keys, strict=True)]
    codes = group_rows(keys, len(windows) + len(new) + len(cells))[0].codes
    old_code, new_code, cell_code = np.split(codes, np.cumsum([len(windows), len(new)]))
    pairs = _going_on(windows, old_code, new, new_code)
    emptied = np.setdiff1d(np.arange(len(windows)), pairs[0])
    start, end = (np.concatenate([getattr(new, name), windows.num[name][emptied]]) for name in ("start", "end"))
    code, count = np.concatenate([new_code, old_code[emptied]]), len(start)
    overlapped = overlaps(cell_code, cells.start, cells.end, code, start, end)
    at, window = _with_heirs(overlapped, cells, cell_code, windows, old_code, pairs, start, end)
    got, born = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    got[window] = True
    born[pairs[1]] = False
    born[len(new) :] = False
    lineage = (
        np.concatenate([pairs[0], emptied]),
        np.concatenate([pairs[1], len(new) + np.arange(len(emptied))]),
    )
    left = pa.array(emptied)
    keys = [pa.concat_arrays([a, b.take(left)]) for a, b in zip(new.keys, windows.keys, strict=True)]
    out = carry_over(compiled, windows, lineage, keys, start, end, clocks)
    facts = facts_by_window(
        Groups(window, count), {name: values[at] for name, values in cells.facts.items()}, cells.count[at]
    )

    def rows_of() -> Pairs:
        row, cell = cells.of_row()
        place, reached = equal_pairs(cell, at, window)
        return row[place], reached

    return Admission(
        windows=_with_contents(compiled, out, got, new),
        got=got,
        born=born,
        facts=facts,
        lineage=lineage,
        late=late,
        finished=finished,
        rows_of=rows_of,
    )


def _with_contents(compiled: CompiledGrouping, out: LoadedWindows, got: np.ndarray, new: Cells) -> LoadedWindows:
    """The windows `out` with the contents of the new windows; the windows after these lost all rows and get none."""
    count = len(out) - len(new)
    # A window without rows cannot hold the output watermark by the times of the rows that it had.
    empty = {"weight": 0, **{name: value for name, (_, value) in EXTENT.items()}}
    numbers = {
        name: np.concatenate([getattr(new, name), np.full(count, empty[name])])
        for name in NUMBERS
        if name in empty and name in out.num
    }
    zero = compiled.plan.zero(count)
    acc = tuple(pa.concat_arrays([contents, none]) for contents, none in zip(new.acc, zero, strict=True))
    return replace(out, num={**out.num, **numbers, "fresh": out.num["fresh"] | got}, acc=acc)


def _with_heirs(
    overlapped: Pairs,
    cells: Cells,
    cell_code: np.ndarray,
    windows: LoadedWindows,
    old_code: np.ndarray,
    pairs: Pairs,
    start: np.ndarray,
    end: np.ndarray,
) -> Pairs:
    """Pairs (cell, window), by cell: windows that a cell overlaps, and those that came of the window it was in."""
    first, last = windows.num["start"], windows.num["end"]
    old, new = pairs
    ended = (first[old] != start[new]) | (last[old] != end[new])
    if not ended.any():
        return overlapped
    gone, heir = old[ended], new[ended]
    once = np.unique(gone)
    cell, was = overlaps(cell_code, cells.start, cells.start + 1, old_code[once], first[once], last[once])
    at, heirs = equal_pairs(once[was], gone, heir)
    both = np.concatenate([np.stack(overlapped), np.stack([cell[at], heirs])], axis=1)
    cell, window = np.unique(both, axis=1)
    return cell, window


def _in_time(compiled: CompiledGrouping, atoms: Cells, cells: Cells, clocks: Clocks) -> tuple[Cells, Cells | None]:
    """The cells that are in time; and the others, merged among themselves.

    A row is judged by the window that it opens, since it may be alone in it when others are retracted. A row of an
    atom that is held is in time, as the atom was.
    """
    late = clocks.expired(compiled, cells.end)
    if not late.any():
        return cells, None
    both = atoms.joined(replace(cells, facts={}))
    atom = group_rows([*both.keys, pa.array(both.start), pa.array(both.end)], len(both))[0].codes
    late &= ~np.isin(atom[len(atoms) :], atom[: len(atoms)])
    left = cells.take(~late)
    return left, merged_cells(compiled, cells.take(late)) if late.any() else None


def _finished(compiled: CompiledGrouping, windows: LoadedWindows, cells: Cells, clocks: Clocks) -> np.ndarray:
    """True where the window of a cell, merged with all windows that it joins, has a trigger that has finished."""
    placed = place(compiled, windows, cells)
    keys = first_keys(windows, cells, placed)
    lineage = (np.arange(len(windows)), placed.of_windows)
    out = carry_over(compiled, windows, lineage, keys, placed.start, placed.end, clocks)
    return compiled.trigger.done(out.trigger)[placed.of_cells]


def _of_keys(cells: Cells, windows: LoadedWindows, atoms: Cells) -> tuple[np.ndarray, np.ndarray]:
    """True where windows, and where atoms, are of keys that have cells."""
    keys = [pa.concat_arrays(list(columns)) for columns in zip(windows.keys, atoms.keys, cells.keys, strict=True)]
    codes = group_rows(keys, len(windows) + len(atoms) + len(cells))[0].codes
    of_windows, of_atoms, of_cells = np.split(codes, np.cumsum([len(windows), len(atoms)]))
    present = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    present[of_cells] = True
    return present[of_windows], present[of_atoms]


def _going_on(windows: LoadedWindows, old_code: np.ndarray, merged: Cells, new_code: np.ndarray) -> Pairs:
    """Pairs (old window, new window) of which the second goes on from the first.

    A window whose bounds are the same goes on from itself alone. One that ended goes on in those that it overlaps.
    """
    start, end = windows.num["start"], windows.num["end"]
    old, new = overlaps(old_code, start, end, new_code, merged.start, merged.end)
    same = (start[old] == merged.start[new]) & (end[old] == merged.end[new])
    if same.all():
        return old, new
    stays, equal = np.zeros(len(windows), np.bool_), np.zeros(len(merged), np.bool_)
    stays[old[same]], equal[new[same]] = True, True
    mask = same | ~(stays[old] | equal[new])
    return old[mask], new[mask]

"""Merging windows over a changelog: what a window is made of is kept apart, so that it can fall apart again.

A row that is taken back may be the one that bridged two bursts. So for inputs that carry retractions the contents are
kept by (key, row's own window), here called atoms, and the merged windows of a key are worked out anew from its atoms
whenever rows touch it. What an old window had emitted is owed by the first window that now stands in its place; its
trigger's state goes to all of them. A window that lost all its rows stays, with nothing in it, as long as it owes.

Rows touch a key: then all its windows and atoms are in hand. A clock touches a window: then the other windows of its
key may be in the store, so the window goes through as it is, and of its key only the atoms that expire are in hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.groups import Groups, group_rows
from ..combiners.segments import sum_int64
from ..triggers.program import Moment
from ..windows import Merged
from ..windows.times import NEVER
from .cells import NUMBERS, Cells, Pairs
from .compiled import Compiled
from .hashes import Part
from .incorporate import (
    IDENTITY,
    Incorporated,
    carry_over,
    eager_ghosts,
    first_keys,
    place,
)
from .live import EXTENT, Live, Shape, regroup
from .store import Store


def atom_schema(shape: Shape) -> pa.Schema:
    """The columns of stored atoms."""
    keys = [(f"key.{i}", kind) for i, kind in enumerate(shape.key_types)]
    numbers = [(f"num.{name}", pa.int64()) for name in NUMBERS]
    return pa.schema([*keys, *numbers, *((f"acc.{i}", f.type) for i, f in enumerate(shape.acc_fields))])


@dataclass
class Atoms:
    """The atoms that a step has in hand."""

    op: Compiled
    store: Store
    held: Cells
    """All atoms of the keys that rows touch."""
    due: Cells
    """Of other keys, the atoms of windows that a clock has passed."""

    @classmethod
    def take(
        cls, op: Compiled, store: Store, touched: np.ndarray, clocks: dict[str, int], part: Part | None = None
    ) -> Atoms:
        """Out of the store, by the hashes of the keys that rows touch and by clocks; of a part of all hashes."""
        held, store = store.take(touched, {}, part)
        due, store = store.take(np.empty(0, np.uint32), clocks, part)
        return cls(op, store, _cells(held, op.shape), _cells(due, op.shape))

    def put(self, watermark: int) -> Store:
        """Back into the store, without the atoms of windows that have expired."""
        held = self.held.joined(self.due) if len(self.due) else self.held
        if len(held) == 0:
            return self.store
        merged = self._merged(held)
        expiry = self.op.expiry(merged.end)[merged.window_id]
        kept = expiry > watermark
        if not kept.all():
            held, expiry = held.take(kept), expiry[kept]
        columns = {f"key.{i}": key for i, key in enumerate(held.keys)}
        columns.update({f"num.{name}": pa.array(getattr(held, name)) for name in NUMBERS})
        columns.update({f"acc.{i}": a for i, a in enumerate(held.acc)})
        never = np.full(len(held), NEVER)
        wake = {"event": expiry, "processing": never, "hold": never}
        return self.store.put(self.op.hashes(held.keys, held.start), pa.table(columns, schema=self.store.schema), wake)

    def incorporate(self, live: Live, cells: Cells, before: int, moment_of: Callable[[Live], Moment]) -> Incorporated:
        """Cells go into the atoms, and the windows of their keys are worked out anew; other windows stay."""
        cells, late = self._horizon(cells, before)
        finished = 0
        if self.op.trigger.done(live.num).any():
            done = self._finished(live, cells, before, moment_of)
            finished = int(cells.count[done].sum())
            cells = cells.take(~done)
        self.held = self._with(cells)
        atoms, places = self.held, np.arange(len(live))
        of_cells = _keys_of(cells, live.keys, atoms.keys, [len(live), len(atoms)])
        others = places[~of_cells[0]]
        if not of_cells[1].all():
            atoms = atoms.take(of_cells[1])
        mine = live.take(places[of_cells[0]]) if len(others) else live
        taken = self._anew(mine, atoms, cells, before, moment_of)
        taken.finished, taken.late = finished, late
        taken.dropped = int(late.count.sum()) if late is not None else 0
        return taken.beside(live.take(others), places[of_cells[0]], others) if len(others) else taken

    def _anew(
        self, live: Live, atoms: Cells, cells: Cells, before: int, moment_of: Callable[[Live], Moment]
    ) -> Incorporated:
        """What becomes of all windows of some keys, whose atoms these are."""
        op = self.op
        fresh = atoms.summed(op.plan, _numbered(self._merged(atoms).window_id), hull=True)
        keys = [pa.concat_arrays(list(columns)) for columns in zip(live.keys, fresh.keys, cells.keys, strict=True)]
        codes = group_rows(keys, len(live) + len(fresh) + len(cells))[0].codes
        old_code, new_code, cell_code = np.split(codes, np.cumsum([len(live), len(fresh)]))
        pairs = _going_on(live, fresh, old_code, new_code)
        emptied = np.setdiff1d(np.arange(len(live)), pairs[0])
        out = self._carry_over(live, fresh, pairs, emptied, before, moment_of)
        code = np.concatenate([new_code, old_code[emptied]])
        told = self._told(cells, cell_code, live, old_code, out, code, pairs)
        got = np.zeros(len(out), np.bool_)
        got[told[1]] = True
        out.num["fresh"] |= got
        heard = Groups(told[1], len(out))
        facts = {name: sum_int64(heard, values[told[0]]) for name, values in cells.facts.items()}
        facts["rows"] = sum_int64(heard, cells.count[told[0]])
        born = np.ones(len(out), np.bool_)
        born[pairs[1]] = False
        born[len(fresh) :] = False

        def rows_of() -> Pairs:
            row, cell = cells.of_row()
            at, window = _joined(cell, *told)
            return row[at], window

        carried = (
            np.concatenate([pairs[0], emptied]),
            np.concatenate([pairs[1], len(fresh) + np.arange(len(emptied))]),
        )
        return Incorporated(out, got, born, facts, carried, ghosts=eager_ghosts(op, out), rows_of=rows_of)

    def _told(
        self,
        cells: Cells,
        cell_code: np.ndarray,
        live: Live,
        old_code: np.ndarray,
        out: Live,
        code: np.ndarray,
        pairs: Pairs,
    ) -> Pairs:
        """Which windows hear of which cells: those that they meet, and what became of the one that they were in."""
        near = _overlaps(cell_code, cells.start, cells.end, code, out.num["start"], out.num["end"])
        ended = ~_alike(live, out, *pairs)
        if not ended.any():
            return near
        gone, part = pairs[0][ended], pairs[1][ended]
        old, bounds = np.unique(gone), live.num
        inside = _overlaps(
            cell_code, cells.start, cells.start + 1, old_code[old], bounds["start"][old], bounds["end"][old]
        )
        at, parts = _joined(old[inside[1]], gone, part)
        both = np.concatenate([np.stack(near), np.stack([inside[0][at], parts])], axis=1)
        cell, window = np.unique(both, axis=1)
        return cell, window

    def _horizon(self, cells: Cells, before: int) -> tuple[Cells, Cells | None]:
        """The cells that are in time; and the others, merged among themselves.

        A row is judged by the window that it opens, since it may be alone in it when others are retracted. One of an
        atom that is there shares the fate of that.
        """
        late = self.op.expiry(cells.end) <= before
        if not late.any():
            return cells, None
        both = self.held.joined(replace(cells, facts={}))
        atom = group_rows([*both.keys, pa.array(both.start), pa.array(both.end)], len(both))[0].codes
        late &= ~np.isin(atom[len(self.held) :], atom[: len(self.held)])
        left = cells.take(~late)
        if not late.any():
            return left, None
        cells = cells.take(late)
        return left, cells.summed(self.op.plan, _numbered(self._merged(cells).window_id), hull=True)

    def _finished(self, live: Live, cells: Cells, before: int, moment_of: Callable[[Live], Moment]) -> np.ndarray:
        """Where the window of a cell, with all windows that it joins, is one whose trigger has finished."""
        placed = place(self.op, live, cells)
        joined = carry_over(self.op, live, placed, first_keys(live, cells, placed), before, moment_of)
        done: np.ndarray = self.op.trigger.done(joined.num)[placed.of_cells]
        return done

    def _with(self, cells: Cells) -> Cells:
        both = self.held.joined(replace(cells, facts={}))
        groups, _ = group_rows([*both.keys, pa.array(both.start), pa.array(both.end)], len(both))
        joined = both.summed(self.op.plan, groups)
        return joined.take((joined.weight != 0) | ~self.op.plan.is_zero(joined.acc))

    def _merged(self, cells: Cells) -> Merged:
        codes = group_rows(cells.keys, len(cells))[0].codes
        return self.op.grouping.window.merge(codes, cells.start, cells.end)

    def _carry_over(
        self,
        live: Live,
        fresh: Cells,
        pairs: tuple[np.ndarray, np.ndarray],
        emptied: np.ndarray,
        before: int,
        moment_of: Callable[[Live], Moment],
    ) -> Live:
        op, count = self.op, len(fresh) + len(emptied)
        at = pa.array(emptied)
        keys = [pa.concat_arrays([new, old.take(at)]) for new, old in zip(fresh.keys, live.keys, strict=True)]
        # An emptied window has no rows, so that none of those that it had can hold the output watermark.
        none_left = {"weight": 0, **{name: nothing for name, (_, nothing) in EXTENT.items()}}
        given = {}
        for name in NUMBERS:
            left = np.full(len(emptied), none_left[name]) if name in none_left else live.num[name][emptied]
            given[name] = np.concatenate([getattr(fresh, name), left])
        out = op.shape.fresh(count, keys, given=given)
        op.trigger.begin(out.num, np.ones(count, np.bool_), moment_of(out))
        zero = op.plan.zero(len(emptied))
        out.acc = tuple(pa.concat_arrays([new, nothing]) for new, nothing in zip(fresh.acc, zero, strict=True))
        old = np.concatenate([pairs[0], emptied])
        into = np.concatenate([pairs[1], len(fresh) + np.arange(len(emptied))])
        sources = {name: values[old] for name, values in live.num.items()}
        same = _alike(live, out, old, into)
        known = np.zeros(count, np.bool_)
        known[into[same]] = True
        out.num["born_late"] = ~known & (before >= out.num["end"])
        for name in IDENTITY:
            out.num[name][into[same]] = sources[name][same]
        np.logical_or.at(out.num["fresh"], into, sources["fresh"])
        alone = (np.bincount(old, minlength=len(live))[old] == 1) & (np.bincount(into, minlength=count)[into] == 1)
        plain = same & alone
        for name in op.trigger.columns():
            out.num[name][into[plain]] = sources[name][plain]
        op.trigger.merge(sources, out.num, into, ~plain, moment_of(out))
        if live.owed is not None:
            _, first = np.unique(old, return_index=True)
            out.owed = regroup(live.owed.take(pa.array(old[first])), into[first], count)
        return out


def _cells(table: pa.Table, shape: Shape) -> Cells:
    """Atoms out of a stored table."""
    keys = [_flat(table, f"key.{i}") for i in range(len(shape.key_types))]
    numbers: dict[str, Any] = {name: np.asarray(_flat(table, f"num.{name}")) for name in NUMBERS}
    acc = tuple(_flat(table, f"acc.{i}") for i in range(len(shape.acc_fields)))
    return Cells(keys, acc=acc, count=np.zeros(table.num_rows, np.int64), **numbers)


def _keys_of(cells: Cells, live: list[pa.Array], atoms: list[pa.Array], counts: list[int]) -> list[np.ndarray]:
    """Which windows and which atoms are of keys that have cells, by the keys of each and how many there are."""
    keys = [pa.concat_arrays(list(columns)) for columns in zip(live, atoms, cells.keys, strict=True)]
    codes = group_rows(keys, sum(counts) + len(cells))[0].codes
    *others, wanted = np.split(codes, np.cumsum(counts))
    present = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    present[wanted] = True
    return [present[code] for code in others]


def _going_on(live: Live, fresh: Cells, old_code: np.ndarray, new_code: np.ndarray) -> Pairs:
    """Pairs (old window, new window) of which the second goes on from the first.

    A window that is there again goes on from itself alone; one that ended goes on in the new ones that it overlaps.
    """
    start, end = live.num["start"], live.num["end"]
    old, new = _overlaps(old_code, start, end, new_code, fresh.start, fresh.end)
    same = (start[old] == fresh.start[new]) & (end[old] == fresh.end[new])
    if same.all():
        return old, new
    stays, known = np.zeros(len(live), np.bool_), np.zeros(len(fresh), np.bool_)
    stays[old[same]], known[new[same]] = True, True
    kept = same | ~(stays[old] | known[new])
    return old[kept], new[kept]


def _alike(live: Live, out: Live, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Which pairs of an old and a new window are the same window."""
    same: np.ndarray = (live.num["start"][old] == out.num["start"][new]) & (live.num["end"][old] == out.num["end"][new])
    return same


def _joined(wanted: np.ndarray, key: np.ndarray, value: np.ndarray) -> Pairs:
    """Pairs (place in wanted, value) of equal keys; the keys are sorted."""
    first, stop = np.searchsorted(key, wanted, side="left"), np.searchsorted(key, wanted, side="right")
    sizes = stop - first
    at = np.repeat(np.arange(len(wanted)), sizes)
    return at, value[np.repeat(first, sizes) + np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)]


def _overlaps(
    code_a: np.ndarray,
    start_a: np.ndarray,
    end_a: np.ndarray,
    code_b: np.ndarray,
    start_b: np.ndarray,
    end_b: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (a, b) of intervals of one code that share an instant, by a and then by start of b.

    The intervals b of a code do not overlap each other, or are so few that those that do are found again by `end`.
    """
    if len(code_a) == 0 or len(code_b) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.lexsort((start_b, code_b))
    code, start, end = code_b[order], start_b[order], end_b[order]
    first_of_code = np.searchsorted(code, code_a, side="left")
    # Within a code, candidates are all b that start before a ends; those that end too early are left out after.
    stop = _search(code, start, code_a, end_a)
    sizes = np.maximum(stop - first_of_code, 0)
    a = np.repeat(np.arange(len(code_a)), sizes)
    b = np.repeat(first_of_code, sizes) + np.arange(len(a)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = end[b] > start_a[a]
    return a[kept], order[b[kept]]


def _search(code: np.ndarray, start: np.ndarray, code_a: np.ndarray, end_a: np.ndarray) -> np.ndarray:
    """For each a, the first place in (code, start) order that is not before (code_a, end_a)."""
    both_code = np.concatenate([code, code_a])
    both_time = np.concatenate([start, end_a])
    is_a = np.concatenate([np.zeros(len(code), np.int64), np.ones(len(code_a), np.int64)])
    order = np.lexsort((1 - is_a, both_time, both_code))
    before = np.cumsum(is_a[order] == 0)
    out = np.empty(len(code_a), np.int64)
    where = order[is_a[order] == 1] - len(code)
    out[where] = before[is_a[order] == 1]
    return out


def _numbered(numbers: np.ndarray) -> Groups:
    return Groups(numbers, int(numbers.max(initial=-1)) + 1)


def _flat(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])

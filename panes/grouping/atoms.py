"""Atoms: the rows of merging windows over a changelog, kept by key and by the window that each row opens alone.

A retraction may remove the row that joined two bursts. So the contents of such windows are kept apart, and the windows
of a key are computed from its atoms whenever rows of the key come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.groups import Groups, group_rows
from ...windows import Hulls
from ...windows.times import NEVER
from ..state.hashes import Part
from ..state.store import Store
from .cells import NUMBERS, Cells
from .compiled import CompiledGrouping
from .loaded_windows import Shape


def atom_schema(shape: Shape) -> pa.Schema:
    """The schema of stored atoms."""
    keys = [(f"key.{i}", kind) for i, kind in enumerate(shape.key_types)]
    numbers = [(f"num.{name}", pa.int64()) for name in NUMBERS]
    return pa.schema([*keys, *numbers, *((f"acc.{i}", f.type) for i, f in enumerate(shape.acc_fields))])


@dataclass(frozen=True)
class Atoms:
    """The atoms that a step has in hand, and the store with the others."""

    store: Store
    key_atoms: Cells
    """All atoms of the keys that rows touch."""
    due: Cells
    """Of other keys, the atoms of windows that a clock has passed."""

    @classmethod
    def take(
        cls, compiled: CompiledGrouping, store: Store, touched: np.ndarray, clocks: Mapping[str, int], part: Part | None
    ) -> Atoms:
        """Take atoms out of the store, by the hashes of the keys that rows touch and by clocks; of a part of all."""
        key_atoms, store = store.take(touched, {}, part)
        due, store = store.take(np.empty(0, np.uint32), dict(clocks), part)
        return cls(store=store, key_atoms=_cells(key_atoms, compiled.shape), due=_cells(due, compiled.shape))

    def put(self, compiled: CompiledGrouping, watermark: int) -> Store:
        """The store with these atoms again, but for those of windows that have expired."""
        atoms = self.key_atoms.joined(self.due) if len(self.due) else self.key_atoms
        if len(atoms) == 0:
            return self.store
        windows = merged(compiled, atoms)
        expiry = compiled.expiry(windows.end)[windows.window_id]
        alive = expiry > watermark
        if not alive.all():
            atoms, expiry = atoms.take(alive), expiry[alive]
        columns = {f"key.{i}": key for i, key in enumerate(atoms.keys)}
        columns.update({f"num.{name}": pa.array(getattr(atoms, name)) for name in NUMBERS})
        columns.update({f"acc.{i}": a for i, a in enumerate(atoms.acc)})
        never = np.full(len(atoms), NEVER)
        wake = {"event": expiry, "processing": never, "hold": never}
        return self.store.put(
            compiled.hashes(atoms.keys, atoms.start), pa.table(columns, schema=self.store.schema), wake
        )

    def with_cells(self, compiled: CompiledGrouping, cells: Cells) -> Atoms:
        """The atoms after these cells went in; atoms that are empty now are left out."""
        both = self.key_atoms.joined(replace(cells, facts={}))
        groups, _ = group_rows([*both.keys, pa.array(both.start), pa.array(both.end)], len(both))
        atoms = both.summed(compiled.plan, groups)
        return replace(self, key_atoms=atoms.take((atoms.weight != 0) | ~compiled.is_zero(atoms.start, atoms.acc)))


def merged(compiled: CompiledGrouping, cells: Cells) -> Hulls:
    """The windows that cells are in once those of a key are merged."""
    codes = group_rows(cells.keys, len(cells))[0].codes
    return compiled.grouping.window.merge(codes, cells.start, cells.end)


def merged_cells(compiled: CompiledGrouping, cells: Cells) -> Cells:
    """One cell for each merged window."""
    numbers = merged(compiled, cells).window_id
    return cells.summed(compiled.plan, Groups(numbers, int(numbers.max(initial=-1)) + 1), hull=True)


def _cells(table: pa.Table, shape: Shape) -> Cells:
    """The atoms of a stored table."""
    keys = [flat(table[f"key.{i}"]) for i in range(len(shape.key_types))]
    numbers: dict[str, Any] = {name: np.asarray(flat(table[f"num.{name}"])) for name in NUMBERS}
    acc = tuple(flat(table[f"acc.{i}"]) for i in range(len(shape.acc_fields)))
    return Cells(keys, acc=acc, count=np.zeros(table.num_rows, np.int64), **numbers)

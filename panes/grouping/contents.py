"""The contents of windows in hand together with their deposits, and the deposits that a step finds and puts aside.

Deposits of a window are joined as they pile up, so that each byte is written few times and a window has few of them.
Only accumulators whose sums do not depend on the order are divided, so results are the same to the last bit.

Guarded by tests/panes/grouping/test_deposits.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...combiners.algebra import Accumulators
from ...combiners.rows.columns import flat
from ...combiners.rows.decoded_sizes import row_bytes
from ...combiners.rows.groups import Groups, group_rows
from ..state.hashes import lookup
from ..state.store import Store
from ..state.store_rows import StoreRows
from .compiled import CompiledGrouping
from .deposits import Deposits
from .intervals import overlaps
from .loaded_windows import LoadedWindows

DEPOSIT_BYTES = 1 << 16
"""Contents of so many bytes are put aside."""

_FANOUT = 4
"""Deposits are joined with what came after them once that has more than a fourth of their size."""


def deposit_schema(compiled: CompiledGrouping) -> pa.Schema | None:
    """The schema of stored deposits; None for a grouping whose windows have none.

    Windows that a function of the user merges may lie in each other, and those that may split are made of atoms.
    """
    shape, window, places = compiled.shape, compiled.grouping.window, compiled.plan.divisible
    if not places or compiled.grouping.splits or (window.merging and not window.merges_by_overlap):
        return None
    keys = [(f"key.{i}", kind) for i, kind in enumerate(shape.key_types)]
    numbers = [(f"num.{name}", pa.int64()) for name in ("start", "end", "bytes")]
    return pa.schema([*keys, *numbers, *((f"acc.{i}", shape.acc_fields[i].type) for i in places)])


def deposit_weight(
    windows: Store, touched: np.ndarray, clocks: dict[str, int], deposits: Store, below: int
) -> tuple[int, int]:
    """The bytes, roughly, and the number of the deposits of the windows that a step takes; 0 if all have few bytes."""
    if sum(chunk.living_bytes for chunk in deposits.chunks) <= below:
        return 0, 0
    return deposits.weight(lookup(StoreRows.of(windows, touched, clocks, windows.schema).hashes()), {}, below)


def with_deposits(compiled: CompiledGrouping, windows: LoadedWindows, store: Store | None) -> LoadedWindows:
    """The windows that a step has taken, with the places of their deposits in the store."""
    if store is None or not len(store) or not len(windows):
        return windows
    rows = StoreRows.of(store, lookup(compiled.hashes(windows.keys, windows.num["start"])), {}, store.schema)
    if not len(rows):
        return windows
    columns = rows.read([name for name in store.schema.names if not name.startswith("acc.")])
    start, end, sizes = (np.asarray(flat(columns[f"num.{name}"])) for name in ("start", "end", "bytes"))
    keys = [pa.concat_arrays([key, flat(columns[f"key.{i}"])]) for i, key in enumerate(windows.keys)]
    cut, owner = len(windows), np.full(len(rows), -1)
    if compiled.grouping.window.merging:
        codes = group_rows(keys, cut + len(rows))[0].codes
        bounds = windows.num["start"], windows.num["end"]
        deposit, window = overlaps(codes[cut:], start, start + 1, codes[:cut], *bounds)
        owner[deposit] = window
    else:
        bounds = np.concatenate([windows.num["start"], start]), np.concatenate([windows.num["end"], end])
        groups, _ = group_rows([*keys, *map(pa.array, bounds)], cut + len(rows))
        window_of = np.full(groups.count, -1)
        window_of[groups.codes[:cut]] = np.arange(cut)
        owner = window_of[groups.codes[cut:]]
    mine = owner >= 0  # others are of windows that stay in the store
    if not mine.any():
        return windows
    return replace(windows, deposits=Deposits(rows=rows.where(mine), sizes=sizes[mine], owner=owner[mine]))


def contents(compiled: CompiledGrouping, windows: LoadedWindows, places: np.ndarray) -> Accumulators:
    """The whole contents of the windows at these places."""
    at = pa.array(places)
    acc = [a.take(at) for a in windows.acc]
    if windows.deposits is None:
        return tuple(acc)
    divisible = compiled.plan.divisible
    whole = _joined(compiled, [acc[i] for i in divisible], windows.deposits, *windows.deposits.of_windows(places))
    for i, column in zip(divisible, whole, strict=True):
        acc[i] = column
    return tuple(acc)


def put_deposits(compiled: CompiledGrouping, windows: LoadedWindows, store: Store) -> tuple[LoadedWindows, Store]:
    """Put large contents aside, and leave out deposits of windows that are gone; the windows and the store after."""
    deposits, divisible = windows.deposits, [windows.acc[i] for i in compiled.plan.divisible]
    gone = np.zeros(0, np.bool_) if deposits is None else deposits.owner < 0
    size = np.zeros(len(windows), np.int64)
    if sum(column.nbytes for column in divisible) >= DEPOSIT_BYTES:
        size = _bytes(divisible)
    large = np.flatnonzero(size >= DEPOSIT_BYTES)
    columns = [column.take(pa.array(large)) for column in divisible]
    if deposits is not None and len(large):
        outgrown = _outgrown(deposits, size)
        owner = np.searchsorted(large, deposits.owner[outgrown])
        columns = _joined(compiled, columns, deposits, owner, np.flatnonzero(outgrown))
        gone = gone | outgrown
    if deposits is not None and gone.any():
        store = deposits.rows.where(gone).removed()
    return (windows, store) if not len(large) else _aside(compiled, windows, store, large, columns)


def _aside(
    compiled: CompiledGrouping, windows: LoadedWindows, store: Store, large: np.ndarray, columns: list[pa.Array]
) -> tuple[LoadedWindows, Store]:
    """Put these contents of the large windows into the store, where they are still large."""
    size = _bytes(columns)
    stays = size < DEPOSIT_BYTES  # deposits may have cancelled out
    stored, rest = pa.array(np.flatnonzero(~stays)), pa.array(np.flatnonzero(stays))
    at = pa.array(large[~stays])
    keys = [key.take(at) for key in windows.keys]
    start, end = (windows.num[name][large[~stays]] for name in ("start", "end"))
    deposits = columns if not stays.any() else [column.take(stored) for column in columns]
    numbers = [pa.array(values) for values in (start, end, size[~stays])]
    table = pa.table([*keys, *numbers, *deposits], schema=store.schema)
    others = np.setdiff1d(np.arange(len(windows)), large)
    places = np.full(len(windows), len(windows) - len(stored))
    places[others], places[large[stays]] = np.arange(len(others)), len(others) + np.arange(len(rest))
    acc, nothing = list(windows.acc), compiled.plan.zero(1)
    for i, column in zip(compiled.plan.divisible, columns, strict=True):
        of_others = windows.acc[i].take(pa.array(others))
        acc[i] = pa.concat_arrays([of_others, column.take(rest), nothing[i]]).take(pa.array(places))
    return replace(windows, acc=tuple(acc)), store.put(compiled.hashes(keys, start), table, {})


def _outgrown(deposits: Deposits, size: np.ndarray) -> np.ndarray:
    """True for deposits of large windows that are small beside what came after them; `size` is that of each window."""
    total = np.append(size, 0)
    grows = total >= DEPOSIT_BYTES  # the last is False, for deposits that no window has
    order = np.lexsort((deposits.sizes, deposits.owner))
    owner = deposits.owner[order]
    rank = np.arange(len(order)) - np.searchsorted(owner, owner)
    outgrown = np.zeros(len(order), np.bool_)
    for nth in range(int(rank.max(initial=-1)) + 1):  # the deposits of a window, least first, of all windows at once
        place = order[rank == nth]
        window = deposits.owner[place]
        joins = grows[window] & (deposits.sizes[place] < _FANOUT * total[window])
        outgrown[place] = joins
        total[window[joins]] += deposits.sizes[place[joins]]
        grows[window[~joins]] = False
    return outgrown


def _joined(
    compiled: CompiledGrouping, columns: list[pa.Array], deposits: Deposits, owner: np.ndarray, numbers: np.ndarray
) -> list[pa.Array]:
    """Divisible columns of some windows and the deposits with these numbers added up; `owner` is the window of each."""
    if not len(numbers):
        return columns
    order = np.argsort(numbers)
    some = np.flatnonzero(~_empty(columns))  # what is alone in its window need not be sorted
    groups = Groups(np.concatenate([some, owner[order]]), len(columns[0]))
    parts = zip(columns, deposits.read(numbers[order]), strict=True)
    both = [_concatenated([column.take(pa.array(some)), *chunks]) for column, chunks in parts]
    return list(compiled.plan.merge_divisible(groups, tuple(both)))


def _concatenated(arrays: list[pa.Array]) -> pa.Array:
    """Some arrays as one; a single one that has rows is not copied."""
    filled = [array for array in arrays if len(array)] or arrays[:1]
    return filled[0] if len(filled) == 1 else pa.concat_arrays(filled)


def _empty(columns: list[pa.Array]) -> np.ndarray:
    """True for accumulators of no rows: all of their lists are empty, and all of their values null."""
    empty = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        if pa.types.is_list(column.type):
            empty &= np.diff(np.asarray(column.offsets)) == 0
        else:
            empty &= np.asarray(column.is_null())
    return empty


def _bytes(columns: list[pa.Array]) -> np.ndarray:
    """The bytes of each row of some columns together."""
    return np.asarray(np.sum([row_bytes(column) for column in columns], axis=0, dtype=np.int64))

"""The rows of a stored state in the words of a user, by the fingerprint of the step that keeps them.

Guarded by tests/sparkops/checkpoints/test_contents.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...combiners.rows.decoded_sizes import fixed_bytes, row_bytes
from ...errors import InvalidArgument, nearest
from ...flows.evolution.deletion import user_columns
from ...panes.grouping.pane_columns import TIMINGS, VALUE
from ...panes.rolled.operator import RESULT
from ...panes.state.hashes import key_hashes
from ...panes.state.operator_state import OF_ALL_SHARDS, OperatorState
from ...panes.state.store import Store
from ...windows import timestamps
from ...windows.grid import later
from ...windows.times import NEVER
from .results import results_now

PARTS: Mapping[str, str] = {
    "windows": "windows",
    "atoms": "rows of windows",
    "deposits": "large contents",
    "known": "ids",
    "rows": "rows",
    "ticks": "ticks",
    "due_tick": "next tick",
    "sent": "versions of values",
    "keys": "keys",
    OF_ALL_SHARDS: "shared state",
    "left": "left rows",
    "right": "right rows",
    "left_early": "left retractions",
    "right_early": "right retractions",
    "left_seen": "left rows seen",
    "right_seen": "right rows seen",
    "right_last": "last right rows",
}
"""The parts of a state, by the names of its stores."""

_CLOCKS = {"event": "waits_for_watermark", "processing": "waits_for_clock", "percentile": "waits_for_percentile"}
_SHOWN = ("start", "end", "event_time", "index")


def part_named(name: str | None, parts: Sequence[str], step: str) -> str:
    """The store of a part of a step; the first one if none is named."""
    words = {PARTS.get(store, store): store for store in parts}
    if name is None:
        return parts[0]
    if name not in words:
        raise InvalidArgument(f"{step} keeps no {name!r}: {nearest(name, words)}")
    return words[name]


def shown_state(name: str, state: OperatorState, made_by: Mapping[str, Any]) -> pa.Table:
    """The rows of a store of a shard in the words of a user."""
    store = state.stores.get(name)
    if store is None or not len(store):
        return pa.table({})
    parts = [chunk.living() for chunk in store.chunks]
    table = pa.concat_tables([table for _, table, _ in parts])
    wake = {clock: np.concatenate([wake[clock] for *_, wake in parts]) for clock in parts[0][2]}
    columns = {**_columns(name, table, made_by), **_waits(wake)}
    size = _bytes(table)
    deposits = state.stores.get("deposits")
    if name == "windows":
        if "lateness" in made_by:  # earlier versions did not note it
            columns["expires"] = timestamps(later(np.asarray(table["num.end"]), int(made_by["lateness"])))
        beside = np.zeros(len(size), np.int64) if deposits is None else _deposited(table, deposits)
        columns |= results_now(table, made_by, beside > 0, state.since)
        size += beside
    return pa.table({**columns, "bytes": pa.array(size)})


def _columns(store: str, table: pa.Table, made_by: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that mean something to a user, under its names."""
    out: dict[str, Any] = dict(user_columns(store, table, made_by))
    names = table.column_names
    for name in names:
        if name in ("state", "timers", "results", "weight", OF_ALL_SHARDS):
            out[name] = table[name]
        elif name.startswith(RESULT):
            out[name.removeprefix(RESULT)] = table[name]
    if "shown" in names and any(name.startswith(RESULT) for name in names):
        out["shown"] = table["shown"]
    if {"low", "high"} <= set(names):
        halves = zip(table["high"].to_pylist(), table["low"].to_pylist(), strict=True)
        out["id"] = pa.array([f"{high:016x}{low:016x}" for high, low in halves])
    if {"num.start", "num.end"} <= set(names):
        out["window"] = _window(table["num.start"], table["num.end"])
    for name, word in (
        ("num.weight", "rows"),
        ("num.fresh", "has_new_rows"),
        ("num.index", "panes"),
        ("num.t.done", "finished"),
    ):
        if name in names:
            out[word] = table[name]
    if "outstanding" in names:
        out["shown"] = _shown(flat(table["outstanding"]))
    return out


def _window(start: pa.ChunkedArray, end: pa.ChunkedArray) -> pa.StructArray:
    bounds = [timestamps(np.asarray(bound)) for bound in (start, end)]
    return pa.StructArray.from_arrays(bounds, names=["start", "end"])


def _shown(lists: pa.ListArray) -> pa.ListArray:
    """The panes of each window that are shown and not retracted: their results, their time and how they came."""
    records = lists.flatten()
    names = [field.name for field in records.type]
    fields = {name.removeprefix(VALUE): records.field(name) for name in names if name.startswith(VALUE)}
    window = pa.StructArray.from_arrays(
        [timestamps(_numbers(records, name)) for name in ("start", "end")], names=["start", "end"]
    )
    fields |= {"window": window, "event_time": timestamps(_numbers(records, "event_time"))}
    fields |= {"index": records.field("index"), "timing": pa.array(TIMINGS).take(records.field("timing"))}
    structs = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    offsets = pa.array(np.asarray(lists.offsets) - lists.offsets[0].as_py(), pa.int32())
    return pa.ListArray.from_arrays(offsets, structs)


def _numbers(records: pa.StructArray, name: str) -> np.ndarray:
    return np.asarray(records.field(name))


def _waits(wake: Mapping[str, np.ndarray]) -> dict[str, pa.Array]:
    """The readings at which each row is needed next; null for a clock that never brings it."""
    waits = {_CLOCKS[clock]: times for clock, times in wake.items() if clock in _CLOCKS}
    return {
        name: pa.array(timestamps(times).to_pylist(), timestamps(times).type, mask=times == NEVER)
        for name, times in waits.items()
    }


def _bytes(table: pa.Table) -> np.ndarray:
    """The bytes of each row, without compression."""
    fixed = sum(fixed_bytes(kind) for kind in table.schema.types)
    size = np.full(table.num_rows, fixed, np.int64)
    for column in table.columns:
        size += row_bytes(flat(column))
    return size


def _deposited(windows: pa.Table, deposits: Store) -> np.ndarray:
    """The bytes of the large contents of each window."""
    sizes: dict[int, int] = {}
    for chunk in deposits.chunks:
        _, table, _ = chunk.living()
        for window, size in zip(_places(table).tolist(), _bytes(table).tolist(), strict=True):
            sizes[window] = sizes.get(window, 0) + size
    return np.array([sizes.get(window, 0) for window in _places(windows).tolist()], np.int64)


def _places(table: pa.Table) -> np.ndarray:
    """A hash of the key and the start of each window."""
    keys = [flat(table[name]) for name in table.column_names if name.startswith("key.")]
    return key_hashes(keys, table.num_rows, np.asarray(table["num.start"]))


__all__ = ["PARTS", "part_named", "shown_state"]

"""The operator of feeds without old values: it keeps the last row of each key, and retracts it when another comes.

Of a deleted key it keeps, where there is an order, the version of the deletion for a while, so that an older version
that comes after it is not taken for a new row.

Guarded by tests/panes/upserts/test_upserts.py and tests/panes/upserts/test_unsent.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows_128, require_hash
from ...errors import TypeMismatch
from ...windows.times import MAX_TIME, MIN_TIME, NEVER
from ..rows.clocks import Clocks
from ..rows.equal_rows import groups_of
from ..rows.operator import RowOperator, Stores, step_result, store_of
from ..rows.options import ROW, AdmittedRows, key_arrays
from ..state.hashes import lookup
from ..state.operator_state import OperatorState, StepResult
from ..state.store import Store
from ..state.store_rows import StoreRows
from .sent import SENT, SentVersions
from .unsent import Filled, KeyVersions, marked
from .upserts import Upserts, Versions


class UpsertsOperator(RowOperator):
    """`Upserts` for the schema of its input.

    >>> import pyarrow as pa
    >>> from uncombine.panes.upserts.upserts import Upserts
    >>> schema = pa.schema({"id": pa.string(), "n": pa.int64(), "diff": pa.int64()})
    >>> op = UpsertsOperator(Upserts(by=("id",), row=("id", "n"), diff="diff"), schema)
    >>> old, new = (pa.table({"id": ["a"], "n": [n], "diff": [1]}) for n in (1, 2))
    >>> first = op.step(op.initial(), old, watermark=0)
    >>> op.step(first.state, new, watermark=0).panes.to_pylist()
    [{'id': 'a', 'n': 1, 'diff': -1}, {'id': 'a', 'n': 2, 'diff': 1}]
    """

    columns: Versions

    def __init__(self, upserts: Upserts, schema: pa.Schema) -> None:
        columns = upserts.checked(schema)
        super().__init__(columns, columns.output, 0)
        self.upserts, self.user = upserts, columns.user
        self.compares = all(map(_has_hash, columns.user.types))
        own = [("low", pa.uint64()), ("high", pa.uint64()), ("lives", pa.bool_())]
        own += [(f"version {i}", pa.int64()) for i in range(len(upserts.order))]
        self.stored_schema = pa.schema([*(pa.field(ROW + f.name, f.type) for f in columns.user), *own])

        self.may_lack = [f.name for f in columns.user if upserts.may_lack(f)]

    def initial(self) -> OperatorState:
        """The state before any row."""
        stores = {"rows": Store(self.stored_schema)}
        return OperatorState({**stores, "sent": Store(SENT)} if self.may_lack and self.upserts.order else stores)

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store are found again."""
        return rows["low"].to_numpy()

    def count_entries(self, state: OperatorState) -> int:
        """The number of keys in the state."""
        return len(store_of(state, "rows"))

    def step(
        self,
        state: OperatorState,
        bundle: pa.Table,
        watermark: int,
        processing_time: int = MIN_TIME,
        percentiles: Mapping[float, int] | None = None,
        each_batch: bool = False,
    ) -> StepResult:
        """Take one bundle. A row without a value that no known row of its key has is a bad row."""
        clocks = Clocks.of(state, watermark, processing_time, each_batch)
        rows = self.columns.take(bundle, clocks)
        panes, stores, lacking = self._taken(state, rows, clocks)
        if len(lacking):
            places = np.setdiff1d(np.arange(bundle.num_rows), rows.bad)[lacking]
            rows = replace(rows, bad=np.sort(np.concatenate([rows.bad, places])))
        return step_result(state, clocks, rows, (panes, stores, clocks.after))

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        panes, stores, _ = self._taken(state, bundle, clocks)
        return panes, stores, clocks.after

    def _taken(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, np.ndarray]:
        """The rows of output, the stores after the bundle, and the places of rows that lack a value."""
        low, high = hash_rows_128([Column(key) for key in key_arrays(bundle.rows, self.upserts.by)])
        assert bundle.weights is not None
        touched = lookup(low)
        store_rows = StoreRows.of(store_of(state, "rows"), touched, {}, self.stored_schema)
        old_rows, old = store_rows.read(), len(store_rows)
        low, high = (
            np.concatenate([old_rows["low"].to_numpy(), low]),
            np.concatenate([old_rows["high"].to_numpy(), high]),
        )
        lives = np.concatenate([old_rows["lives"].to_numpy(), bundle.weights > 0])
        versions = [
            np.concatenate([old_rows[f"version {i}"].to_numpy(), version])
            for i, version in enumerate(self.columns.versions(bundle.rows))
        ]
        rows = pa.concat_tables(
            [old_rows.rename_columns(self._names).select(self.user.names), _user(bundle, self.user)]
        )
        rows = rows.combine_chunks()
        groups = groups_of(low, high)[0]
        before = np.full(groups.count, -1)
        before[groups.codes[:old]] = np.arange(old)
        sent, filled = None, None
        if self.may_lack:
            numbers = np.stack(versions, axis=1) if versions else np.zeros((len(lives), 0), np.int64)
            every = KeyVersions(codes=groups.codes, count=groups.count, old=old, lives=lives, numbers=numbers)
            if "sent" in state.stores:
                sent = SentVersions.of(store_of(state, "sent"), touched, (len(self.may_lack), len(versions)))
            filled = self._filled(rows, every, sent, low, high)
        if filled is None:
            last, lacking = _last(groups.codes, groups.count, versions), np.zeros(0, np.int64)
            changed, value = last >= old, last
        else:
            last, lacking = filled.last, np.flatnonzero(filled.lacking[old:])
            changed, value = (last >= old) | filled.corrected, last.copy()
            keys = np.flatnonzero(changed & lives[last])
            value[keys] = rows.num_rows + np.arange(len(keys))
            rows = pa.concat_tables([rows, filled.whole(rows, keys, self.may_lack)]).combine_chunks()
        replaces = changed & (before >= 0)
        # The rows of keys that are found by mistake, or whose version is the last already, stay in the store.
        store = store_rows.where(replaces[groups.codes[:old]]).removed()
        retracted = replaces & lives[before]
        added = changed & lives[last]
        panes = self._panes(rows, before, value, retracted, added)
        survivors = np.flatnonzero(changed & (lives[last] | bool(self.upserts.order)))
        places_kept = last[survivors]
        stored = rows.take(pa.array(value[survivors], mask=~lives[places_kept]))
        own = [pa.array(values[places_kept]) for values in (low, high, lives, *versions)]
        table = pa.Table.from_arrays([*stored.columns, *own], schema=self.stored_schema)
        until = np.where(lives[places_kept], NEVER, self._forgets(clocks))
        store = store.put(low[places_kept], table, {"event": until})
        stores: Stores = {"rows": store.without_due(clocks.leaves)}
        if sent is not None:
            keys = np.flatnonzero(changed)
            now = (np.zeros((len(keys), 0)), np.zeros(len(keys), np.bool_)) if filled is None else filled.sent_now(keys)
            stores["sent"] = sent.replaced(low[last[keys]], high[last[keys]], *now).without_due(clocks.leaves)
        return panes, stores, lacking

    def _filled(
        self, rows: pa.Table, every: KeyVersions, sent: SentVersions | None, low: np.ndarray, high: np.ndarray
    ) -> Filled | None:
        """The versions of the keys by the values that each lacks; None if none lacks one, or ever did."""
        assert self.upserts.mark is not None
        columns = [marked(flat(rows[name]), self.upserts.mark) for name in self.may_lack]
        marks = np.stack(columns, axis=1) & every.lives[:, None]
        marks[: every.old] = False
        own = np.repeat(every.numbers[:, None, :], len(self.may_lack), axis=1)
        was_filled = False
        if sent is not None:
            own[: every.old], was_filled = sent.over(own[: every.old], low[: every.old], high[: every.old])
        return Filled(all=every, marks=marks, sent=own) if was_filled or marks.any() else None

    @property
    def _names(self) -> list[str]:
        return [*self.user.names, *self.stored_schema.names[len(self.user) :]]

    def _forgets(self, clocks: Clocks) -> int:
        """The watermark at which a key that is deleted now leaves the state."""
        if clocks.after in (MIN_TIME, MAX_TIME):
            return NEVER
        return min(clocks.after + self.upserts.keep + 1, MAX_TIME)

    def _panes(
        self, rows: pa.Table, before: np.ndarray, last: np.ndarray, retracted: np.ndarray, added: np.ndarray
    ) -> pa.Table:
        """The rows of output: retractions first, and none of a row that stays as it is."""
        both = np.flatnonzero(retracted & added)
        if self.compares and len(both):
            old, new = (
                hash_rows_128([Column(column) for column in rows.take(pa.array(places[both])).columns])
                for places in (before, last)
            )
            same = both[(old[0] == new[0]) & (old[1] == new[1])]
            retracted[same] = added[same] = False
        gone, come = before[retracted], np.sort(last[added])
        weights = np.concatenate([np.full(len(gone), -1), np.ones(len(come), np.int64)])
        panes = rows.take(pa.array(np.concatenate([gone, come])))
        return pa.Table.from_arrays([*panes.columns, pa.array(weights, pa.int64())], schema=self.output_schema)


def _last(codes: np.ndarray, count: int, versions: list[np.ndarray]) -> np.ndarray:
    """The place of the last version of each key: of those that are equal, the one that arrived last."""
    last = np.empty(count, np.int64)
    order = np.lexsort((*reversed(versions), codes)) if versions else np.argsort(codes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(codes[order])), len(codes) - 1) if len(codes) else order
    last[codes[order[ends]]] = order[ends]
    return last


def _user(bundle: AdmittedRows, user: pa.Schema) -> pa.Table:
    return bundle.rows.select(user.names)


def _has_hash(kind: pa.DataType) -> bool:
    try:
        require_hash(kind, "it", "it")
    except TypeMismatch:
        return False
    return True


__all__ = ["UpsertsOperator"]

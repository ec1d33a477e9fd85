"""The operator of feeds without old values: it keeps the last row of each key, and retracts it when another comes.

Of a deleted key it keeps, where there is an order, the version of the deletion for a while, so that an older version
that comes after it is not taken for a new row.

Guarded by tests/panes/upserts/test_upserts.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column
from ...combiners.rows.hashing import hash_rows_128, require_hash
from ...errors import TypeMismatch
from ...windows.times import MAX_TIME, MIN_TIME, NEVER
from ..rows.clocks import Clocks
from ..rows.equal_rows import groups_of
from ..rows.operator import RowOperator, Stores, store_of
from ..rows.options import ROW, AdmittedRows, key_arrays
from ..state.hashes import lookup
from ..state.operator_state import OperatorState
from ..state.store import Store
from ..state.store_rows import StoreRows
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

    def initial(self) -> OperatorState:
        """The state before any row."""
        return OperatorState({"rows": Store(self.stored_schema)})

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store are found again."""
        return rows["low"].to_numpy()

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        low, high = hash_rows_128([Column(key) for key in key_arrays(bundle.rows, self.upserts.by)])
        assert bundle.weights is not None
        store_rows = StoreRows.of(store_of(state, "rows"), lookup(low), {}, self.stored_schema)
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
        groups = groups_of(low, high)[0]
        last = _last(groups.codes, groups.count, versions)
        before = np.full(groups.count, -1)
        before[groups.codes[:old]] = np.arange(old)
        changed = last >= old
        replaces = changed & (before >= 0)
        # The rows of keys that are found by mistake, or whose version is the last already, stay in the store.
        store = store_rows.where(replaces[groups.codes[:old]]).removed()
        retracted = replaces & lives[before]
        added = changed & lives[last]
        rows = pa.concat_tables(
            [old_rows.rename_columns(self._names).select(self.user.names), _user(bundle, self.user)]
        )
        rows = rows.combine_chunks()
        panes = self._panes(rows, before, last, retracted, added)
        survivors = np.flatnonzero(changed & (lives[last] | bool(self.upserts.order)))
        places_kept = last[survivors]
        stored = rows.take(pa.array(places_kept, mask=~lives[places_kept]))
        own = [pa.array(values[places_kept]) for values in (low, high, lives, *versions)]
        table = pa.Table.from_arrays([*stored.columns, *own], schema=self.stored_schema)
        until = np.where(lives[places_kept], NEVER, self._forgets(clocks))
        store = store.put(low[places_kept], table, {"event": until})
        return panes, {"rows": store.without_due(clocks.leaves)}, clocks.after

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

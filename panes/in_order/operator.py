"""The operator of `in_order`: it keeps rows until the watermark is after their time plus the allowed lateness.

Equal rows of a changelog are netted as they come, so that the state follows the rows that wait and not their history.

Guarded by tests/panes/in_order/test_in_order.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...windows.times import MAX_TIME, MIN_TIME, NEVER
from ..rows.clocks import Clocks
from ..rows.equal_rows import netted
from ..rows.operator import RowOperator, Stores, store_of
from ..rows.options import ROW, AdmittedRows, key_arrays, output, restored, stored, stored_schema
from ..rows.unmet import tell_unmet
from ..state.hashes import key_hashes, lookup
from ..state.operator_state import OperatorState
from ..state.store import Store
from .in_order import InOrder

OWN = [("weight", pa.int64()), ("order", pa.int64())]
"""The number of equal rows, and the place of the row in the order of arrival."""


class InOrderOperator(RowOperator):
    """`InOrder` for the schema of its input.

    >>> import pyarrow as pa
    >>> from uncombine.panes.in_order.in_order import InOrder
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    >>> op = InOrderOperator(InOrder(), schema)
    >>> rows = pa.table({"ts": [7, 3, 5], "x": [1, 2, 3]}).cast(schema)
    >>> result = op.step(op.initial(), op.bundle([rows], (), 0), watermark=6, processing_time=9)
    >>> result.panes["x"].to_pylist(), op.count_entries(result.state)
    ([2, 3], 1)
    """

    def __init__(self, in_order: InOrder, schema: pa.Schema) -> None:
        columns = in_order.checked(schema)
        super().__init__(columns, columns.output, output_lateness=0)
        self.in_order = in_order
        self.stored_schema = stored_schema(columns.rows, OWN)

    def initial(self) -> OperatorState:
        """The state before any row."""
        return OperatorState({"rows": Store(self.stored_schema)})

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        rows, store = self._net(store_of(state, "rows"), bundle)
        due, store = store.take(np.empty(0, np.uint32), {"event": clocks.after})
        ready = times_of(rows) + self.in_order.wait < clocks.after
        store = self._put(store, rows.filter(pa.array(~ready)))
        panes = self._output(pa.concat_tables([due, rows.filter(pa.array(ready))]).combine_chunks())
        hold = clocks.after if clocks.after == MAX_TIME else max(clocks.after - self.in_order.wait, MIN_TIME)
        return panes, {"rows": store}, hold

    def count_waiting(self, state: OperatorState) -> int:
        """The number of rows that wait for the watermark."""
        return self.count_entries(state)

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows are found again; rows that are only added are never looked up."""
        if self.in_order.diff is None:
            return np.zeros(rows.num_rows, np.uint64)
        return self.columns.row_hashes(restored(rows, self.columns.rows))[0]

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        return key_hashes(key_arrays(rows, [ROW + name for name in self.in_order.by]), rows.num_rows)

    def _net(self, store: Store, bundle: AdmittedRows) -> tuple[pa.Table, Store]:
        """The rows of the bundle, netted with those in the store that may equal them, and the store without these."""
        last = store.least("order")
        first = 0 if last == NEVER else 1 - last
        weights = np.ones(len(bundle), np.int64) if bundle.weights is None else bundle.weights
        own = {"weight": weights, "order": np.arange(first, first + len(bundle))}
        rows = stored(bundle.rows, own, self.stored_schema)
        if bundle.weights is None:
            return rows, store
        old_rows, store = store.take(lookup(self.hashes("rows", rows)), {})
        rows = pa.concat_tables([old_rows, rows]).combine_chunks()
        low, high = self.columns.row_hashes(restored(rows, self.columns.rows))
        _, places, sums = netted(low, high, np.asarray(rows["weight"].to_numpy()))
        rows = rows.take(pa.array(places)).set_column(rows.num_columns - 2, "weight", pa.array(sums))
        return rows.filter(pa.array(sums != 0)), store

    def _put(self, store: Store, rows: pa.Table) -> Store:
        order = np.asarray(rows["order"].to_numpy())
        wake = {"event": times_of(rows) + (self.in_order.wait + 1), "order": -order}
        return store.put(self.hashes("rows", rows), rows, wake)

    def _output(self, rows: pa.Table) -> pa.Table:
        """The rows in the order of time and arrival; retractions whose row never came are left out."""
        came = np.asarray(rows["weight"].to_numpy()) > 0
        tell_unmet("in_order", rows.filter(pa.array(~came)))
        rows = rows.filter(pa.array(came))
        places = pa.array(np.lexsort((np.asarray(rows["order"].to_numpy()), times_of(rows))))
        weights = np.asarray(rows["weight"].take(places).to_numpy())
        return output(restored(rows, self.columns.rows).take(places), weights, self.output_schema)


def times_of(rows: pa.Table) -> np.ndarray:
    """The event times of stored rows."""
    return np.asarray(rows["row.event_time"].cast(pa.int64()).to_numpy())


__all__ = ["InOrderOperator"]

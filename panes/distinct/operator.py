"""The operator of `distinct`.

Of an append-only input it keeps a hash of 128 bits and a time for each row that it showed. Of a changelog it keeps the
rows themselves as long as retractions of them can come, because the next row of an id takes the place of a retracted
one; after that it keeps a hash and a time as well.

Guarded by tests/panes/distinct/test_distinct.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column
from ...combiners.rows.hashing import hash_rows_128
from ...windows.times import NEVER
from ..rows.clocks import Clocks
from ..rows.equal_rows import groups_of
from ..rows.operator import RowOperator, Stores, store_of
from ..rows.options import AdmittedRows, key_arrays, output
from ..state.hashes import lookup
from ..state.operator_state import OperatorState
from ..state.store import Store
from ..state.store_rows import StoreRows
from .chain import chain, near
from .distinct import Distinct
from .waiting import WaitingRows

HASHES = pa.schema([("low", pa.uint64()), ("high", pa.uint64())])
"""The hash of an id. The clock of an entry has its time."""


class DistinctOperator(RowOperator):
    """`Distinct` for the schema of its input.

    >>> import pyarrow as pa
    >>> from uncombine.panes.distinct.distinct import Distinct
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.string()})
    >>> op = DistinctOperator(Distinct("id", within="1 hour"), schema)
    >>> rows = pa.table({"ts": [5, 3, 3], "id": ["a", "a", "b"]}).cast(schema)
    >>> result = op.step(op.initial(), op.bundle([rows], (), 0), watermark=4, processing_time=9)
    >>> result.panes["id"].to_pylist(), result.panes["event_time"].cast("int64").to_pylist()
    (['a', 'b'], [3, 3])
    """

    def __init__(self, distinct: Distinct, schema: pa.Schema) -> None:
        columns = distinct.checked(schema)
        super().__init__(columns, columns.output, distinct.wait)
        self.distinct = distinct
        self.waiting = None if distinct.diff is None else WaitingRows(distinct, columns)

    def initial(self) -> OperatorState:
        """The state before any row."""
        waiting = None if self.waiting is None else Store(self.waiting.schema)
        return OperatorState({"known": Store(HASHES), "rows": waiting})

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        low, high = hash_rows_128([Column(key) for key in key_arrays(bundle.rows, self.distinct.by)])
        ids, rows = store_of(state, "known"), state.stores["rows"]
        if rows is None or self.waiting is None:
            panes, low, high, times = self._first(ids, bundle, low, high)
        else:
            before = self._shown_ids(ids, low)
            panes, rows, (low, high, times) = self.waiting.step(rows, before, bundle, low, high, clocks)
        ids = self._remembered(ids.without_due(clocks.leaves), low, high, times, clocks)
        return panes, {"known": ids, "rows": rows}, clocks.after

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store are found again."""
        return rows["low"].to_numpy()

    def _first(
        self, store: Store, bundle: AdmittedRows, low: np.ndarray, high: np.ndarray
    ) -> tuple[pa.Table, np.ndarray, np.ndarray, np.ndarray]:
        """The rows that are shown at once, and their ids and times."""
        known_low, known_high, known_times = self._shown_ids(store, low)
        old = len(known_low)
        codes = groups_of(np.concatenate([known_low, low]), np.concatenate([known_high, high]))[0].codes
        places = np.arange(len(bundle))
        if old:
            places = np.flatnonzero(~near(codes[old:], bundle.times, codes[:old], known_times, self.distinct.reach))
        new = codes[old:][places]
        places = places[chain(new, bundle.times[places], [places], self.distinct.reach)]
        whole = len(places) == len(bundle)
        rows = bundle.rows if whole else bundle.rows.take(pa.array(places))
        panes = output(rows, np.ones(len(places), np.int64), self.output_schema)
        return panes, low[places], high[places], bundle.times[places]

    def _shown_ids(self, store: Store, low: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ids and times of shown rows whose ids may be among these."""
        rows = StoreRows.of(store, lookup(low), {}, HASHES)
        table, distinct = rows.read(), self.distinct
        times = np.zeros(len(rows), np.int64)  # without `within` any row of the id hides others, whatever its time
        if distinct.within is not None:
            times = rows.clock("event") - (distinct.reach + distinct.wait)
        return table["low"].to_numpy(), table["high"].to_numpy(), times

    def _remembered(self, store: Store, low: np.ndarray, high: np.ndarray, times: np.ndarray, clocks: Clocks) -> Store:
        """The store with the rows that were shown now and can still hide others."""
        distinct = self.distinct
        forever = distinct.within is None
        until = np.full(len(times), NEVER) if forever else times + (distinct.reach + distinct.wait)
        if not clocks.each_batch:
            alive = until > clocks.after
            if not alive.all():
                low, high, times, until = low[alive], high[alive], times[alive], until[alive]
        table = pa.Table.from_arrays([pa.array(low), pa.array(high)], schema=HASHES)
        return store.put(low, table, {"event": until})


__all__ = ["DistinctOperator"]

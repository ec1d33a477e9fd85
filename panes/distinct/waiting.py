"""The rows of a changelog that `distinct` keeps, because they or those before them may still be retracted.

Guarded by tests/panes/distinct/test_distinct.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...windows.times import FIRST
from ..rows.clocks import Clocks
from ..rows.equal_rows import groups_of, netted
from ..rows.options import AdmittedRows, Columns, output, restored, stored, stored_schema
from ..state.hashes import lookup
from ..state.store import Store
from .chain import chain
from .distinct import Distinct

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The ids, in two halves, and the times of rows that were shown for good."""

OWN = [
    ("low", pa.uint64()),
    ("high", pa.uint64()),
    ("row_low", pa.uint64()),
    ("row_high", pa.uint64()),
    ("weight", pa.int64()),
    ("shown", pa.bool_()),
]
"""The hashes of the id and of the row, how many equal rows there are, and whether the row is shown now."""


class WaitingRows:
    """The rows of each id that still wait for their retraction, in one store."""

    def __init__(self, distinct: Distinct, columns: Columns) -> None:
        self.distinct, self.columns = distinct, columns
        self.schema = stored_schema(columns.rows, OWN)

    def step(
        self, store: Store, entries: Entries, bundle: AdmittedRows, low: np.ndarray, high: np.ndarray, clocks: Clocks
    ) -> tuple[pa.Table, Store, Entries]:
        """The rows of output, the store after the bundle, and the rows that are now shown for good."""
        old_rows, store = store.take(lookup(low), {})
        due, store = store.take(np.empty(0, np.uint32), clocks.leaves)
        assert bundle.weights is not None
        row_low, row_high = self.columns.row_hashes(bundle.rows)
        own = {
            "low": low,
            "high": high,
            "row_low": row_low,
            "row_high": row_high,
            "weight": bundle.weights,
            "shown": np.zeros(len(bundle), np.bool_),
        }
        rows = pa.concat_tables([old_rows, stored(bundle.rows, own, self.schema)]).combine_chunks()
        rows, shown = self._netted(rows)
        shows = self._shows(rows, entries)
        change = shows.astype(np.int64) - shown
        panes = self._output(rows, change)
        rows = rows.set_column(rows.schema.get_field_index("shown"), self.schema.field("shown"), pa.array(shows))
        rows = rows.filter(pa.array(_numbers(rows, "weight") != 0))
        if clocks.each_batch:
            return panes, self._put(store, rows), _entries(rows.slice(0, 0))
        final = _times(rows) + self.distinct.wait < clocks.after
        store = self._put(store, rows.filter(pa.array(~final)))
        ended = pa.concat_tables([due, rows.filter(pa.array(final))]).combine_chunks()
        return panes, store, _entries(ended.filter(ended["shown"]))

    def _netted(self, rows: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """One row of each set of equal rows, as it was stored first; and which of them are shown."""
        _, first, weights = netted(_numbers(rows, "row_low"), _numbers(rows, "row_high"), _numbers(rows, "weight"))
        rows = rows.take(pa.array(first))
        rows = rows.set_column(rows.schema.get_field_index("weight"), self.schema.field("weight"), pa.array(weights))
        return rows, np.asarray(rows["shown"])

    def _shows(self, rows: pa.Table, entries: Entries) -> np.ndarray:
        """A mask of the rows that are to be shown."""
        old, reach, times = len(entries[0]), self.distinct.reach, _times(rows)
        low, high = (np.concatenate([entries[i], _numbers(rows, name)]) for i, name in enumerate(("low", "high")))
        groups = groups_of(low, high)[0]
        free = np.full(groups.count, FIRST)
        np.maximum.at(free, groups.codes[:old], entries[2] + reach)
        codes = groups.codes[old:]
        places = np.flatnonzero((_numbers(rows, "weight") > 0) & (times >= free[codes]))
        ties = [_numbers(rows, name)[places] for name in ("row_low", "row_high")]
        shows = np.zeros(rows.num_rows, np.bool_)
        shows[places] = chain(codes[places], times[places], ties, reach)
        return shows

    def _output(self, rows: pa.Table, change: np.ndarray) -> pa.Table:
        """The changes, retractions first, then by time, id and row."""
        places = np.flatnonzero(change)
        by = [_numbers(rows, name)[places] for name in ("row_high", "row_low", "high", "low")]
        places = places[np.lexsort((*by, _times(rows)[places], change[places]))]
        chosen = restored(rows, self.columns.rows).take(pa.array(places))
        return output(chosen, change[places], self.columns.output)

    def _put(self, store: Store, rows: pa.Table) -> Store:
        return store.put(_numbers(rows, "low"), rows, {"event": _times(rows) + (self.distinct.wait + 1)})


def _entries(rows: pa.Table) -> Entries:
    return _numbers(rows, "low"), _numbers(rows, "high"), _times(rows)


def _times(rows: pa.Table) -> np.ndarray:
    return np.asarray(rows["row.event_time"].cast(pa.int64()).to_numpy())


def _numbers(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(rows[name].to_numpy())


__all__ = ["WaitingRows"]

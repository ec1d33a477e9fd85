"""The operator of `map` and `flat_map` with `remember=True`.

Over a changelog it keeps, for each row that may still be retracted, a hash of 128 bits, how many equal rows there are,
and the results that the function gave. A retraction gives these results again and never calls the function.

Guarded by tests/panes/remember/test_remember.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows_128
from ...windows import timestamps
from ..rows.clocks import Clocks
from ..rows.equal_rows import netted
from ..rows.operator import RowOperator, Stores
from ..rows.options import EVENT_TIME, AdmittedRows, key_arrays, output, output_schema
from ..state.hashes import lookup
from ..state.operator_state import OperatorState
from ..state.store import Store
from .remember import Remember
from .results import Function


class RememberOperator(RowOperator):
    """`Remember` for the schema of its input.

    >>> import random
    >>> import pyarrow as pa
    >>> from uncombine.panes.remember.remember import Remember
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "w": pa.int64()})
    >>> def guess(table):
    ...     return pa.table({"guess": pa.array([random.random() for _ in range(table.num_rows)], pa.float64())})
    >>> op = RememberOperator(Remember(guess, diff="w"), schema)
    >>> first, again = (pa.table({"ts": [5], "w": [w]}).cast(schema) for w in (1, -1))
    >>> given = op.step(op.initial(), first, watermark=0)
    >>> retracted = op.step(given.state, again, watermark=0)
    >>> given.panes["guess"].equals(retracted.panes["guess"]), retracted.panes["diff"].to_pylist()
    (True, [-1])
    """

    def __init__(self, remember: Remember, schema: pa.Schema) -> None:
        columns = remember.columns(schema, remember.step)
        self.remember, self.function = remember, Function.of(remember, columns)
        super().__init__(columns, output_schema(self.function.user), remember.wait)
        own = [("low", pa.uint64()), ("high", pa.uint64()), ("weight", pa.int64()), ("time", pa.int64())]
        self.stored_schema = pa.schema([*own, ("results", self.function.kind)])

    def initial(self) -> OperatorState:
        """The state before any row."""
        return OperatorState({"rows": None if self.remember.diff is None else Store(self.stored_schema)})

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        store = state.stores["rows"]
        if store is None:
            panes = self.output_schema.empty_table()
            if len(bundle):
                results = self.function(bundle.rows, bundle.times)
                panes = self._output(results, bundle.times, np.ones(len(bundle), np.int64))
        else:
            panes, store = self._changes(store, bundle, clocks)
        return panes, {"rows": store}, clocks.after

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store are found again."""
        return rows["low"].to_numpy()

    def _changes(self, store: Store, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Store]:
        """The rows of output for the rows of a changelog, and the store after them."""
        # By the columns that the lift reads, so that the hash of a stored row says which shard it belongs to.
        names = [name if name in self.columns.user.names else EVENT_TIME for name in self.columns.read]
        low, high = hash_rows_128([Column(key) for key in key_arrays(bundle.rows, names)])
        old_rows, store = store.take(lookup(low), {})
        old = old_rows.num_rows
        assert bundle.weights is not None
        new_numbers = {"low": low, "high": high, "weight": bundle.weights, "time": bundle.times}
        numbers = {name: np.concatenate([old_rows[name].to_numpy(), values]) for name, values in new_numbers.items()}
        groups, first, weights = netted(numbers["low"], numbers["high"], numbers["weight"])
        before = np.where(first < old, numbers["weight"][first], 0)
        change = np.maximum(weights, 0) - np.maximum(before, 0)
        row = np.full(groups.count, len(bundle))
        np.minimum.at(row, groups.codes[old:], np.arange(len(bundle)))
        results = self._results(old_rows, bundle, row, first, (before <= 0) & (weights > 0), before > 0)
        times = numbers["time"][first]
        places = np.flatnonzero(change)
        by = [numbers[name][first][places] for name in ("high", "low")]
        places = places[np.lexsort((*by, times[places], change[places] > 0))]
        panes = self._output(results.take(pa.array(places)), times[places], change[places])
        alive = weights != 0
        if not clocks.each_batch:
            alive &= times + self.remember.wait >= clocks.after
        places_alive = np.flatnonzero(alive)
        columns = [pa.array(values[first][places_alive]) for values in (numbers["low"], numbers["high"])]
        columns += [pa.array(weights[places_alive]), pa.array(times[places_alive])]
        stays = np.where(weights > 0, np.arange(groups.count), -1)[places_alive]
        columns.append(results.take(pa.array(stays, mask=stays < 0)))
        table = pa.Table.from_arrays(columns, schema=self.stored_schema)
        wake = {"event": times[places_alive] + (self.remember.wait + 1)}
        return panes, store.without_due(clocks.leaves).put(table["low"].to_numpy(), table, wake)

    def _results(
        self,
        old_rows: pa.Table,
        bundle: AdmittedRows,
        row: np.ndarray,
        first: np.ndarray,
        new: np.ndarray,
        old: np.ndarray,
    ) -> pa.Array:
        """The results of each group: those that are remembered, or else those that the function gives now, or null."""
        remembered = flat(old_rows["results"])
        place = np.where(old, first, -1)
        if new.any():
            rows = row[new]
            made = self.function(bundle.rows.take(pa.array(rows)), bundle.times[rows])
            place[new] = len(remembered) + np.arange(len(rows))
            remembered = pa.concat_arrays([remembered, made])
        return remembered.take(pa.array(place, mask=place < 0))

    def _output(self, results: pa.Array, times: np.ndarray, weights: np.ndarray) -> pa.Table:
        """The rows of output of some lists of results, of which none appears with both signs."""
        owner = np.asarray(results.value_parent_indices()).astype(np.int64)
        fields = results.flatten().flatten()
        times, weights = times[owner], weights[owner]
        rows = pa.Table.from_arrays([*fields, timestamps(times)], names=self.output_schema.names[:-1])
        if len(weights) and int(weights.min()) < 0 < int(weights.max()):
            low, high = hash_rows_128([Column(column) for column in rows.columns])
            _, first, sums = netted(low, high, weights)
            places = first[sums != 0]
            weights = sums[sums != 0]
            order = np.argsort(weights > 0, kind="stable")
            rows, weights = rows.take(pa.array(places[order])), weights[order]
        return output(rows, weights, self.output_schema)


__all__ = ["RememberOperator"]

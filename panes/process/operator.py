"""The operator of `process`: Python calls for each row and each timer, with typed state and timers in a store.

A step takes out the keys that its rows touch or whose timers are due, and puts them back with their new state.

Guarded by tests/panes/process/test_process.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...windows.times import MAX_TIME, MIN_TIME, NEVER
from ..rows.clocks import Clocks
from ..rows.equal_rows import netted
from ..rows.operator import RowOperator, Stores, store_of
from ..rows.options import AdmittedRows, key_arrays, output_schema
from ..state.hashes import key_hashes, lookup
from ..state.operator_state import OperatorState
from ..state.store import Store
from .broadcast import BroadcastRows
from .calls import Calls, emitted_table
from .context import Scene
from .keys import Keys, stored_keys
from .process import Process


class ProcessOperator(RowOperator):
    """`Process` for the schema of its input.

    >>> import pyarrow as pa
    >>> from uncombine.panes.process.process import Process
    >>> class Silence:
    ...     '''Tells of each key that had no row for 10 microseconds.'''
    ...     output = pa.schema({"rows": pa.int64()})
    ...     state = pa.schema({"rows": pa.int64()})
    ...     def on_row(self, row, state, ctx):
    ...         state["rows"] = (state["rows"] or 0) + 1
    ...         ctx.set_timer("silent", ctx.time + 10, "event")
    ...     def on_timer(self, tag, ctx):
    ...         ctx.emit({"rows": ctx.state["rows"]})
    ...         ctx.clear()
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string()})
    >>> op = ProcessOperator(Process(Silence, by="user"), schema)
    >>> rows = pa.table({"ts": [1, 5, 9], "user": ["a", "a", "b"]}).cast(schema)
    >>> result = op.step(op.initial(), rows, watermark=16)
    >>> result.panes["user"].to_pylist(), result.panes["rows"].to_pylist(), op.count_entries(result.state)
    (['a'], [2], 1)
    """

    def __init__(self, process: Process, schema: pa.Schema) -> None:
        columns = process.checked(schema)
        self.process, self.keys = process, process.keys(schema)
        self.stored_schema = stored_keys(self.keys, process.state)
        super().__init__(columns, output_schema(pa.schema([*self.keys, *process.emitted])), process.wait)

    def initial(self) -> OperatorState:
        """The state before any row."""
        return OperatorState({"keys": Store(self.stored_schema)})

    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""
        return self.called(state, bundle, clocks)

    def called(
        self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks, broadcast: BroadcastRows | None = None
    ) -> tuple[pa.Table, Stores, int]:
        """The result of `take_in`, with the calls for broadcast rows among those for the rows."""
        bundle = self._ordered(bundle)
        end = MAX_TIME - 1 if clocks.each_batch else clocks.after
        arrays = key_arrays(bundle.rows, self.process.by)
        touched = lookup(key_hashes(arrays, len(bundle)))
        every = broadcast is not None and broadcast.calls_keys
        due = {"event": NEVER if every else end, "processing": clocks.now}
        old_keys, store = store_of(state, "keys").take(touched, due)
        floor = state.output_watermark
        least = max(floor - self.process.wait, MIN_TIME)
        process = self.process
        scene = Scene(
            outputs={name or None: frozenset(schema.names) for name, schema in process.by_output.items()},
            least=least,
            floor=floor,
            watermark=clocks.before,
            processing_time=clocks.now,
            check_timers=process.check_timers,
            shared=None if broadcast is None else broadcast.shared,
        )
        keys = Keys.of(self.keys, self.process.state, old_keys, arrays, len(bundle), scene)
        calls = Calls(process=self.process, scene=scene, contexts=keys.contexts)
        calls.processing_timers(clocks.now)
        calls.rows(keys.row_codes, bundle, broadcast)
        calls.event_timers(end)
        panes = emitted_table(scene.emitted, self.process, keys.columns, self.output_schema)
        if end < MAX_TIME:
            table, wake = keys.table(self.process.name)
            store = store.put(self.hashes("keys", table), table, wake)
        return panes, {"keys": store}, min(clocks.after, store.least("hold"))

    def next_timer(self, state: OperatorState) -> int | None:
        """The time of the next timer of processing time; None if there is none."""
        due = store_of(state, "keys").least("processing")
        return None if due == NEVER else due

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the keys are found again."""
        return key_hashes(key_arrays(rows, [f"key.{i}" for i in range(len(self.keys))]), rows.num_rows)

    def _ordered(self, bundle: AdmittedRows) -> AdmittedRows:
        """The rows by event time, retractions first, and in order of arrival; those of a changelog netted."""
        times, weights = bundle.times, bundle.weights
        if weights is None:
            places = np.argsort(times, kind="stable")
        else:
            _, first, sums = netted(*self.columns.row_hashes(bundle.rows), weights)
            nonzero = np.flatnonzero(sums)
            first, sums = first[nonzero], sums[nonzero]
            order = np.lexsort((first, sums > 0, times[first]))
            places, weights = first[order], sums[order]
        rows = bundle.rows.take(pa.array(places))
        return AdmittedRows(rows=rows, times=times[places], weights=weights, late=bundle.late, bad=bundle.bad)


__all__ = ["ProcessOperator"]

"""The operator of `process` with broadcast rows, which change a state that all keys of a shard read.

The idea: every shard gets the same broadcast rows in the same bundles, and calls the same function for them in the
same order. So each shard keeps the shared state by itself, as one row of a store of its own, and no shard asks another.
Not promised: that a function which reads a clock or draws numbers makes the same state in each.

Guarded by tests/panes/process/test_broadcast.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...windows.times import MAX_TIME, MIN_TIME
from ..parcels import Parcel
from ..rows.clocks import Clocks
from ..rows.operator import Stores, step_result, store_of
from ..rows.options import AdmittedRows
from ..state.operator_state import OF_ALL_SHARDS, OperatorState, StepResult
from .broadcast import BroadcastRows, in_order
from .operator import ProcessOperator
from .process import Process
from .shared import Shared, shared_store


class BroadcastOperator(ProcessOperator):
    """`Process` with `broadcast` for the schemas of its two inputs.

    >>> import pyarrow as pa
    >>> from uncombine.panes.process.broadcast import BroadcastInput
    >>> from uncombine.panes.process.process import Process
    >>> class Above:
    ...     output, state = pa.schema({"x": pa.int64()}), pa.schema({})
    ...     shared = pa.schema({"bound": pa.int64()})
    ...     def on_broadcast(self, row, shared, ctx):
    ...         shared["bound"] = row["bound"]
    ...     def on_row(self, row, state, ctx):
    ...         if row["x"] > ctx.shared["bound"]:
    ...             ctx.emit({"x": row["x"]})
    >>> time = pa.timestamp("us", "UTC")
    >>> keyed, bounds = pa.schema({"ts": time, "x": pa.int64()}), pa.schema({"ts": time, "bound": pa.int64()})
    >>> op = BroadcastOperator(Process(Above, broadcast=BroadcastInput("ts")), keyed, bounds)
    >>> rows = pa.table({"ts": [5, 5], "x": [1, 9]}).cast(keyed), pa.table({"ts": [5], "bound": [4]}).cast(bounds)
    >>> op.step(op.initial(), rows, watermark=0).panes["x"].to_pylist()
    [9]
    """

    def __init__(self, process: Process, schema: pa.Schema, broadcast: pa.Schema) -> None:
        super().__init__(process, schema)
        assert process.broadcast is not None
        self.broadcast = process.broadcast.columns(broadcast)
        self.schemas = (schema, broadcast)

    def initial(self) -> OperatorState:
        """The state before any row."""
        state = super().initial()
        return replace(state, stores={**state.stores, OF_ALL_SHARDS: shared_store(self.process.shared)})

    def bundle(self, rows: Sequence[pa.Table], cells: Sequence[Parcel], at: int) -> Any:
        """The rows of both inputs of one processing time."""
        return tuple(rows)

    def count_entries(self, state: OperatorState) -> int:
        """The number of keys in the state."""
        return len(store_of(state, "keys"))

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the keys are found again; the shared state is one row."""
        return np.zeros(rows.num_rows, np.uint64) if store == OF_ALL_SHARDS else super().hashes(store, rows)

    def step(
        self,
        state: OperatorState,
        bundle: Any,
        watermark: int,
        processing_time: int = MIN_TIME,
        percentiles: Mapping[float, int] | None = None,
        each_batch: bool = False,
    ) -> StepResult:
        """Take one bundle of both inputs."""
        clocks = Clocks.of(state, watermark, processing_time, each_batch)
        keyed, broadcast = bundle
        rows = self.columns.take(keyed, clocks)
        told = self.broadcast.take(broadcast, replace(clocks, before=MIN_TIME))  # none of them is late
        taken = self._taken(state, rows, clocks, in_order(told, self.broadcast))
        bad = np.concatenate([rows.bad, told.bad + keyed.num_rows])
        return step_result(state, clocks, replace(rows, bad=bad), taken)

    def _taken(
        self, state: OperatorState, rows: AdmittedRows, clocks: Clocks, told: AdmittedRows
    ) -> tuple[pa.Table, Stores, int]:
        shared, process = Shared(store_of(state, OF_ALL_SHARDS)), self.process
        calls_keys = bool(len(told)) and process.calls_keys
        panes, stores, hold = self.called(state, rows, clocks, BroadcastRows(told, shared, calls_keys))
        after = shared.stored(process.name) if len(told) else shared.store
        if not clocks.each_batch and clocks.after == MAX_TIME:
            after = shared_store(process.shared)
        return panes, {**stores, OF_ALL_SHARDS: after}, hold


__all__ = ["BroadcastOperator"]

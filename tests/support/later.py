"""An operator that is no grouping, for tests of what every operator goes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

import uncombine as uc
from uncombine.combiners.rows.columns import Column, flat
from uncombine.combiners.rows.hashing import hash_rows
from uncombine.panes.parcels import Parcel
from uncombine.panes.state.hashes import lookup
from uncombine.panes.state.operator_state import OperatorState, StepResult
from uncombine.panes.state.store import Store

SCHEMA = pa.schema({"id": pa.string(), "due": pa.int64()})


class Later:
    """Keeps each row until the processing time in its column `due`; a row of the same id takes its place."""

    schemas = (SCHEMA,)
    output_schema = SCHEMA
    percents: Sequence[float] = ()

    def initial(self) -> OperatorState:
        return OperatorState({"rows": Store(SCHEMA), "unused": None})

    def bundle(self, rows: Sequence[pa.Table], cells: Sequence[Parcel], at: int) -> pa.Table:
        return rows[0]

    def step(
        self,
        state: OperatorState,
        bundle: pa.Table,
        watermark: int,
        processing_time: int,
        percentiles: Mapping[float, int],
        each_batch: bool,
    ) -> StepResult:
        held = self._rows(state)
        touched = lookup(self.hashes("rows", bundle))
        found, rest = held.take(touched, {"processing": processing_time})
        table = pa.concat_tables([found, bundle])
        last = {row["id"]: row for row in table.to_pylist()}
        due = [row for row in last.values() if row["due"] <= processing_time]
        kept = pa.Table.from_pylist([row for row in last.values() if row["due"] > processing_time], SCHEMA)
        if kept.num_rows:
            rest = rest.put(self.hashes("rows", kept), kept, {"processing": kept["due"].to_numpy()})
        state = replace(
            state,
            stores={"rows": rest, "unused": None},
            watermark=max(state.watermark, watermark),
            processing_time=processing_time,
            output_watermark=max(state.watermark, watermark),
        )
        return StepResult(pa.Table.from_pylist(due, SCHEMA), state, {})

    def next_timer(self, state: OperatorState) -> int | None:
        due = self._rows(state).least("processing")
        return None if due == uc.windows.MAX_TIME else due

    def hold(self, state: OperatorState) -> int:
        return state.output_watermark

    def count_entries(self, state: OperatorState) -> int:
        return len(self._rows(state))

    def count_waiting(self, state: OperatorState) -> int:
        return 0

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        return hash_rows([Column(flat(rows["id"]))])

    def _rows(self, state: OperatorState) -> Store:
        rows = state.stores["rows"]
        assert rows is not None
        return rows

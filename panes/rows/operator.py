"""The parts of the protocol of operators that are the same for all operators over single rows.

Guarded by tests/panes/distinct/test_distinct.py, tests/panes/in_order/test_in_order.py and
tests/panes/remember/test_remember.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...windows.times import MIN_TIME
from ..parcels import Parcel
from ..state.operator_state import Counts, OperatorState, StepResult
from ..state.store import Store
from .clocks import Clocks
from .options import AdmittedRows, Columns

Stores: TypeAlias = dict[str, Store | None]


class RowOperator(ABC):
    """An operator with one input of rows. A subclass has `initial`, `take_in` and `hashes`.

    A row of output is at most `output_lateness` before the output watermark; a stage after it allows as much lateness.
    """

    percents: Sequence[float] = ()

    def __init__(self, columns: Columns, output_schema: pa.Schema, output_lateness: int) -> None:
        self.columns, self.schema = columns, columns.schema
        self.schemas: Sequence[pa.Schema] = (columns.schema,)
        self.output_schema, self.output_lateness = output_schema, output_lateness

    def bundle(self, rows: Sequence[pa.Table], cells: Sequence[Parcel], at: int) -> Any:
        """The rows of one processing time."""
        return rows[0]

    @abstractmethod
    def initial(self) -> OperatorState:
        """The state before any row."""

    @abstractmethod
    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which rows of a store of the state are looked up."""

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hash by which each row of a store belongs to a shard: that of the keys of the rows it was made of."""
        return self.hashes(store, rows)

    @abstractmethod
    def take_in(self, state: OperatorState, bundle: AdmittedRows, clocks: Clocks) -> tuple[pa.Table, Stores, int]:
        """The rows of output, the stores after the bundle, and the output watermark that they allow."""

    def step(
        self,
        state: OperatorState,
        bundle: Any,
        watermark: int,
        processing_time: int = MIN_TIME,
        percentiles: Mapping[float, int] | None = None,
        each_batch: bool = False,
    ) -> StepResult:
        """Take one bundle."""
        clocks = Clocks.of(state, watermark, processing_time, each_batch)
        rows = self.columns.take(bundle, clocks)
        return step_result(state, clocks, rows, self.take_in(state, rows, clocks))

    def next_timer(self, state: OperatorState) -> int | None:
        """The next processing time at which a timer is due; None where nothing waits for processing time."""
        return None

    def hold(self, state: OperatorState) -> int:
        """The output watermark."""
        return state.output_watermark

    def count_entries(self, state: OperatorState) -> int:
        """The number of entries in the state."""
        return sum(len(store) for store in state.stores.values() if store is not None)

    def count_waiting(self, state: OperatorState) -> int:
        """The number of rows that wait for the watermark; none where a row is given when it comes."""
        return 0


def step_result(
    state: OperatorState, clocks: Clocks, rows: AdmittedRows, taken: tuple[pa.Table, Stores, int]
) -> StepResult:
    """The result of a step: what it gives and keeps of its rows, and counts of those that it leaves out."""
    panes, stores, hold = taken
    counts = Counts(dropped=len(rows.late), bad=len(rows.bad))
    after = clocks.state(state, stores, counts, hold)
    return StepResult(panes=panes, state=after, left_out={"late": rows.late, "bad": rows.bad})


def store_of(state: OperatorState, name: str) -> Store:
    """A store that the operator has for certain."""
    store = state.stores[name]
    assert store is not None
    return store


__all__ = ["RowOperator", "Stores", "step_result", "store_of"]

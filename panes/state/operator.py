"""The interface of an operator that keeps state between bundles, as shards, the chunk log and streams use it.

Guarded by tests/panes/state/test_stateful.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..parcels import Parcel
from .operator_state import OperatorState, StepResult


class StatefulOperator(Protocol):
    """An operator over bundles. It never changes its arguments: a step takes a state and returns a new one.

    The grouping operator is one. `tests/panes/state/test_stateful.py` runs another through shards and the chunk log.
    """

    @property
    def schemas(self) -> Sequence[pa.Schema]:
        """The columns of the rows of each input."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of its output rows."""

    @property
    def percents(self) -> Sequence[float]:
        """The percentiles of the watermark that the operator uses."""

    def initial(self) -> OperatorState:
        """The state before any row."""

    def bundle(self, rows: Sequence[pa.Table], cells: Sequence[Parcel], at: int) -> Any:
        """Make one bundle from the rows of each input and the parcels of one processing time."""

    def step(
        self,
        state: OperatorState,
        bundle: Any,
        watermark: int,
        processing_time: int,
        percentiles: Mapping[float, int],
        each_batch: bool,
    ) -> StepResult:
        """Take one bundle. The watermark and the processing time are those after the bundle."""

    def next_timer(self, state: OperatorState) -> int | None:
        """The next processing time at which a timer is due without new rows; None if there is none."""

    def hold(self, state: OperatorState) -> int:
        """The output watermark: no later output row has an earlier time."""

    def count_entries(self, state: OperatorState) -> int:
        """The number of entries that wait in the state, such as the windows of a grouping."""

    def count_waiting(self, state: OperatorState) -> int:
        """The number of entries that wait for the watermark and have not been shown."""

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which rows of a store of the state are looked up."""

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which rows of a store belong to shards, if all rows of a key are in one."""


__all__ = ["StatefulOperator"]

"""What an operator that keeps state between bundles has: all that shards, the chunk log and streams know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..shard.parcels import Parcel
from .state import OperatorState, Stepped


class StatefulOperator(Protocol):
    """An operator over bundles. It changes nothing that it is given: a step takes a state and gives a new one.

    The grouping operator is one. `tests/panes/test_stateful.py` runs another through shards and the chunk log.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that it takes."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the rows that it gives."""

    @property
    def percents(self) -> Sequence[float]:
        """The percentiles of the watermark that it asks for."""

    def initial(self) -> OperatorState:
        """The state before any row."""

    def bundle(self, rows: pa.Table, cells: Sequence[Parcel], at: int) -> Any:
        """One bundle out of the rows and the parcels of one processing time."""

    def step(
        self,
        state: OperatorState,
        bundle: Any,
        watermark: int,
        processing_time: int,
        percentiles: Mapping[float, int],
        each_batch: bool,
    ) -> Stepped:
        """Take one bundle; the watermark and the processing time are those after it."""

    def next_timer(self, state: OperatorState) -> int | None:
        """The next processing time at which something is due without new rows; None if nothing is."""

    def hold(self, state: OperatorState) -> int:
        """The output watermark: no later row of output has an earlier time."""

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store of the state are found again."""


__all__ = ["StatefulOperator"]

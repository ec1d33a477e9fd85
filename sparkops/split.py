"""A micro-batch of a stream split into the rows of the result and the rows that steps left out.

Guarded by tests/sparkops/test_left_out.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..flows.left_out import LEFT_OUT
from .inputs import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EachBatch: TypeAlias = "Callable[[DataFrame, DataFrame, int], None]"
"""A function of the panes of a micro-batch, of the rows that were left out, and of the number of the batch."""


@dataclass(frozen=True)
class Split:
    """Calls a function with both parts of a micro-batch, which is computed once."""

    function: EachBatch

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch = batch.persist()
        try:
            left_out = column(LEFT_OUT)
            panes = batch.where(left_out.isNull()).drop(LEFT_OUT)
            self.function(panes, batch.where(left_out.isNotNull()).select(f"{LEFT_OUT}.*"), number)
        finally:
            batch.unpersist()

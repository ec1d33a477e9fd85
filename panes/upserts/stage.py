"""The stage of `upserts`: its options and its operator.

Guarded by tests/sparkops/test_steps.py and tests/panes/upserts/test_upserts.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..rows.stage import RowStage
from ..stage import StageInput
from .operator import UpsertsOperator
from .upserts import Upserts


@dataclass(frozen=True)
class UpsertsStage(RowStage):
    options: Upserts

    def operator(self, *schemas: pa.Schema) -> UpsertsOperator:
        (schema,) = schemas
        return UpsertsOperator(self.options, schema)

    def output(self) -> StageInput:
        # Its rows are those of a source with weights.
        options = self.options
        return StageInput(time=options.time, diff=options.diff, max_future=options.max_future)

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        options = self.options
        return frozenset(name for name in (*options.row, *options.order, options.diff) if name is not None)

    @property
    def of_source(self) -> bool:
        return True


__all__ = ["UpsertsStage"]

"""The stage of `process`: its options and its operator.

Guarded by tests/sparkops/test_steps.py and tests/panes/process/test_process.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..rows.stage import RowStage
from .operator import ProcessOperator
from .outputs import OutputRows
from .process import Process


@dataclass(frozen=True)
class ProcessStage(RowStage):
    options: Process

    def operator(self, *schemas: pa.Schema) -> ProcessOperator:
        (schema,) = schemas
        return ProcessOperator(self.options, schema)

    @property
    def shown(self) -> tuple[OutputRows, ...]:
        return self.options.rows_without_name

    @property
    def weighted(self) -> bool:
        return True

    @property
    def wakes(self) -> bool:
        return self.options.wakes

    @property
    def may_wake(self) -> bool:
        return True


__all__ = ["ProcessStage"]

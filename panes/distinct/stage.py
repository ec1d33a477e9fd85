"""The stage of `distinct`: its options and its operator.

Guarded by tests/sparkops/test_steps.py and tests/panes/distinct/test_distinct.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..rows.stage import RowStage
from .distinct import Distinct
from .operator import DistinctOperator


@dataclass(frozen=True)
class DistinctStage(RowStage):
    options: Distinct

    def operator(self, *schemas: pa.Schema) -> DistinctOperator:
        (schema,) = schemas
        return DistinctOperator(self.options, schema)


__all__ = ["DistinctStage"]

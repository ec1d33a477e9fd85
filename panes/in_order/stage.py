"""The stage of `in_order`: its options and its operator.

Guarded by tests/sparkops/test_steps.py and tests/panes/in_order/test_in_order.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ...windows import span
from ..rows.stage import RowStage
from ..stage import StageInput
from .in_order import InOrder
from .operator import InOrderOperator


@dataclass(frozen=True)
class InOrderStage(RowStage):
    options: InOrder

    def operator(self, *schemas: pa.Schema) -> InOrderOperator:
        (schema,) = schemas
        return InOrderOperator(self.options, schema)

    def output(self) -> StageInput:
        # No row comes again, and none that the step gives is before the watermark.
        return replace(super().output(), retracts=False, allowed_lateness=span("0 seconds"))


__all__ = ["InOrderStage"]

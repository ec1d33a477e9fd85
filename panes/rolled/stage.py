"""The stage of `rolling(...).combine(...)`: its options and its operator.

Guarded by tests/panes/rolled/test_rolled.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ...windows import Span, span
from ..grouping.grouping import DIFF
from ..rows.stage import RowStage
from ..stage import StageInput
from .operator import RolledOperator
from .rolled import Rolled
from .tick_operator import TickOperator


@dataclass(frozen=True)
class RolledStage(RowStage):
    options: Rolled

    def operator(self, *schemas: pa.Schema) -> RolledOperator | TickOperator:
        (schema,) = schemas
        kind = RolledOperator if self.options.every is None else TickOperator
        return kind(self.options, schema)

    def output(self) -> StageInput:
        if self.options.final:
            # No row comes again, and none that the step gives is before the watermark.
            return replace(super().output(), retracts=False, allowed_lateness=span("0 seconds"))
        # A row that comes late corrects others, so that rows are retracted even if the input has only additions.
        return replace(super().output(), diff=DIFF, retracts=True)

    def describe(self) -> list[str]:
        return [self.options.words, self.options.state_words]

    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        options = dict(super().state_options(*schemas))
        # A step with combiners of this name is a grouping.
        options["results"] = options.pop("combiners")
        looks = [f"{name} {one.words}, {one.closed}".strip() for name, one in self.options.lookbacks.items()]
        options["lookbacks"] = "; ".join(looks)
        # Rows that wait would be lost by a step that shows rows as they come.
        options["emit"] = "final" if self.options.final else "at_once"
        if self.options.every is not None:
            options["every"] = f"{Span(self.options.every)}"
        return options


__all__ = ["RolledStage"]

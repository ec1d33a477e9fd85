"""The stage of an as-of join: its options and its operator, with a port for each side.

Guarded by tests/panes/join_asof/test_join_asof_flows.py and tests/sparkops/test_join_asof.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ..grouping.grouping import DIFF
from ..join.stage import JoinStage
from ..stage import StageInput
from .join_asof import JoinAsof
from .operator import JoinAsofOperator


@dataclass(frozen=True)
class JoinAsofStage(JoinStage):
    """An as-of join of two inputs; each has its transforms in its own flow."""

    join: JoinAsof

    def operator(self, *schemas: pa.Schema) -> JoinAsofOperator:
        left, right = schemas
        return JoinAsofOperator(self.join, left, right)

    @property
    def corrects(self) -> bool:
        """True if a row that was given may be retracted: if it does not wait until its match is certain."""
        return not self.join.final

    def output(self) -> StageInput:
        # A left row counts as often as its weight says, also where it is given once and for all.
        weighted = self.corrects or self.join.left_diff is not None
        return replace(super().output(), diff=DIFF if weighted else None)

    def describe(self) -> list[str]:
        return [self.join.words, self.join.state_words]


__all__ = ["JoinAsofStage"]

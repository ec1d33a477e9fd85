"""The stage of an as-of join: its options and its operator, with a port for each side.

Guarded by tests/panes/join_asof/test_join_asof_flows.py and tests/sparkops/test_join_asof.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..join.stage import JoinStage
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

    def describe(self) -> list[str]:
        return [self.join.words, self.join.state_words]


__all__ = ["JoinAsofStage"]

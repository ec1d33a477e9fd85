"""The stage of a lookup join: its options and its operator, with a port for each side.

Guarded by tests/panes/lookup/test_lookup_flows.py and tests/sparkops/test_lookup.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ..grouping.grouping import DIFF
from ..join.stage import JoinStage
from ..stage import StageInput
from .lookup import Lookup
from .operator import LookupOperator


@dataclass(frozen=True)
class LookupStage(JoinStage):
    """A lookup join of two inputs; each has its transforms in its own flow."""

    join: Lookup

    def operator(self, *schemas: pa.Schema) -> LookupOperator:
        left, right = schemas
        return LookupOperator(self.join, left, right)

    @property
    def corrects(self) -> bool:
        """True if a row that was given may be retracted: if its left row may."""
        return self.join.left_diff is not None

    def output(self) -> StageInput:
        # A right row counts as often as its weight says, also where nothing is ever retracted.
        weighted = self.corrects or self.join.right_diff is not None
        return replace(super().output(), diff=DIFF if weighted else None)

    @property
    def all_at_once(self) -> bool:
        return True

    def describe(self) -> list[str]:
        return [self.join.words, self.join.state_words]


__all__ = ["LookupStage"]

"""The stage of a join: its options and its operator, with a port for each side.

Guarded by tests/panes/join/test_join_flows.py and tests/sparkops/test_join.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...windows import span
from ..grouping.grouping import DIFF, EVENT_TIME
from ..row_lift import RowLift
from ..stage import Stage, StageInput
from .join import JoinOptions
from .kept import KeptJoin
from .operator import JoinOperator


@dataclass(frozen=True)
class JoinStage(Stage):
    """A join of two inputs; each has its transforms in its own flow."""

    join: JoinOptions

    def operator(self, *schemas: pa.Schema) -> JoinOperator:
        left, right = schemas
        return JoinOperator(self.join, left, right)

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> RowLift:
        return RowLift([pair[port] for pair in self.join.on], shards)

    @property
    def corrects(self) -> bool:
        """True if a row that was given may be retracted."""
        join = self.join
        weighted = join.left_diff is not None or join.right_diff is not None
        return weighted or (not join.final and (join.alone("left") or join.alone("right")))

    def output(self) -> StageInput:
        changes = self.corrects
        return StageInput(
            time=EVENT_TIME,
            diff=DIFF if changes else None,
            panes=True,
            retracts=changes,
            # The output watermark is held by the lateness of the join, so that a later stage needs none.
            allowed_lateness=span("0 seconds"),
            max_future=None,
        )

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        return None

    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        columns = [[[f.name, str(f.type)] for f in schema] for schema in schemas]
        return {"step": repr(self.join), "columns": columns}

    @property
    def code(self) -> Mapping[str, Any]:
        return {}

    @property
    def all_at_once(self) -> bool:
        # Rows that wait for the end of the input of another step must not miss those that have left by then.
        return isinstance(self.join, KeptJoin)

    def describe(self) -> list[str]:
        return [self.join.words, self.join.state_words] if isinstance(self.join, KeptJoin) else [self.join.words]

    @property
    def max_future(self) -> None:
        return None

    @property
    def wakes(self) -> bool:
        return False


__all__ = ["JoinStage"]

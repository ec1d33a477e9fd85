"""The stage of a step over single rows, as far as such steps are alike.

Guarded by tests/sparkops/test_steps.py and tests/local/test_local_flows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...windows import Span, span
from ..grouping.grouping import DIFF, EVENT_TIME
from ..row_lift import RowLift
from ..stage import Stage, StageInput
from .options import RowOptions


@dataclass(frozen=True)
class RowStage(Stage):
    """A step over single rows, and the transforms before it."""

    options: RowOptions

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> RowLift:
        return RowLift(self.keys(schema), shards)

    def keys(self, schema: pa.Schema) -> Sequence[str]:
        """The columns of which equal values must meet in one shard."""
        return tuple(getattr(self.options, "by", ()))

    @property
    def weighted(self) -> bool:
        """True if the rows of the step can be retracted."""
        return self.options.diff is not None

    def output(self) -> StageInput:
        return StageInput(
            time=EVENT_TIME,
            diff=DIFF if self.weighted else None,
            panes=True,
            retracts=self.weighted,
            allowed_lateness=span(self.options.allowed_lateness),
            max_future=None,
        )

    def columns(self, schema: pa.Schema) -> frozenset[str] | None:
        return None

    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        (schema,) = schemas
        # The state has times to which the allowed lateness was added.
        may_change = ("max_future", "bounded", "by", "keep_deletes", "outputs")
        options = {name: text for name, text in self.options.explicit_options().items() if name not in may_change}
        by = [[name, str(schema.field(name).type)] for name in getattr(self.options, "by", ())]
        columns = [[f.name, str(f.type)] for f in schema]
        return {"step": type(self.options).__name__, "by": by, **options, "columns": columns}

    @property
    def code(self) -> Mapping[str, Any]:
        return {"function": self.options}

    def describe(self) -> list[str]:
        return [repr(self.options)]

    @property
    def time(self) -> str:
        return self.options.time

    @property
    def max_future(self) -> Span | None:
        return None if self.options.max_future is None else span(self.options.max_future)

    @property
    def wakes(self) -> bool:
        return False


__all__ = ["RowStage"]

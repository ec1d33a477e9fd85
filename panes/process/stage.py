"""The stage of `process`: its options and its operator.

With `broadcast=` it has a second port, whose rows go to every shard.

Guarded by tests/sparkops/test_steps.py, tests/panes/process/test_process.py and
tests/panes/process/test_broadcast.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...windows import Span
from ..row_lift import EveryShardLift, RowLift
from ..rows.stage import RowStage
from .broadcast import PORTS
from .broadcast_operator import BroadcastOperator
from .operator import ProcessOperator
from .outputs import OutputRows
from .process import Process


@dataclass(frozen=True)
class ProcessStage(RowStage):
    options: Process

    def operator(self, *schemas: pa.Schema) -> ProcessOperator:
        schema, *broadcast = schemas
        return (
            BroadcastOperator(self.options, schema, *broadcast) if broadcast else ProcessOperator(self.options, schema)
        )

    def lift(self, schema: pa.Schema, shards: int, timed: bool, port: int = 0, rows: bool = False) -> RowLift:
        if port == 0:
            return super().lift(schema, shards, timed, port, rows)
        assert self.options.broadcast is not None
        return EveryShardLift(self.options.broadcast.time, shards)

    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        schema, *others = schemas
        options = dict(super().state_options(schema))
        if self.options.broadcast is not None:
            (broadcast,) = others
            # The time of a source is compared with the source.
            options["broadcast"] = [[f.name, str(f.type)] for f in broadcast]
            options["broadcast_diff"] = repr(self.options.broadcast.diff)
        return options

    @property
    def sides(self) -> tuple[str, ...]:
        return PORTS

    @property
    def all_at_once(self) -> bool:
        return self.options.broadcast is not None

    @property
    def max_future(self) -> Span | None:
        # As in a join, each source has its own.
        return None if self.options.broadcast is not None else super().max_future

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

"""The join operator: two changelogs by key and time, without an engine.

A step takes one table for each input and gives the exact difference that they make to the join of all rows so far, as a
changelog. It changes none of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...errors import InvalidArgument, TypeMismatch
from ...windows.times import MIN_TIME
from ..parcels import Parcel
from ..state.hashes import key_hashes
from ..state.operator_state import OperatorState, StepResult
from ..state.store import Store
from .compiled import CompiledJoin
from .join import JoinOptions
from .step import Step


class JoinOperator:
    """A join compiled against the schemas of its inputs.

    >>> import pyarrow as pa
    >>> from uncombine.panes.join.join import Join
    >>> from uncombine.panes.join.operator import JoinOperator
    >>> ads = pa.schema({"ad": pa.string(), "ts": pa.timestamp("us", "UTC")})
    >>> clicks = pa.schema({"ad": pa.string(), "ts": pa.timestamp("us", "UTC"), "user": pa.string()})
    >>> op = JoinOperator(Join("ad", how="left", within=("0 s", "1 min")), ads, clicks)
    >>> ad = pa.table({"ad": ["a"], "ts": [0]}).cast(ads)
    >>> click = pa.table({"ad": ["a"], "ts": [7], "user": ["u"]}).cast(clicks)
    >>> first = op.step(op.initial(), (ad, clicks.empty_table()), watermark=0)
    >>> first.panes.select(["ad", "user", "diff"]).to_pylist()
    [{'ad': 'a', 'user': None, 'diff': 1}]
    >>> then = op.step(first.state, (ads.empty_table(), click), watermark=0)
    >>> then.panes.select(["ad", "user", "diff"]).to_pylist()
    [{'ad': 'a', 'user': None, 'diff': -1}, {'ad': 'a', 'user': 'u', 'diff': 1}]
    """

    percents: Sequence[float] = ()

    def __init__(self, join: JoinOptions, left: pa.Schema, right: pa.Schema) -> None:
        self.compiled = compiled = CompiledJoin.of(join, left, right)
        self.join, self.schemas, self.output_schema = join, (left, right), compiled.output_schema

    def initial(self) -> OperatorState:
        """The state before any row."""
        stores: dict[str, Store | None] = {}
        for side in self.compiled.sides:
            stores[side.name] = Store(side.stored)
            stores[f"{side.name}_early"] = None if side.diff is None else Store(side.stored)
            stores[f"{side.name}_seen"] = None if side.witness is None else Store(side.witnessed)
        return OperatorState(stores)

    def bundle(self, rows: Sequence[pa.Table], cells: Sequence[Parcel], at: int) -> tuple[pa.Table, ...]:
        """The rows of both inputs that reach a shard at one processing time."""
        return tuple(rows)

    def step(
        self,
        state: OperatorState,
        bundle: Sequence[pa.Table],
        watermark: int,
        processing_time: int = MIN_TIME,
        percentiles: Mapping[float, int] | None = None,
        each_batch: bool = False,
    ) -> StepResult:
        """Take one bundle: a table of each input."""
        if each_batch:
            raise InvalidArgument(
                "a join needs a watermark that says which rows can still come, and watermark='each_batch' says nothing "
                "of the kind: give both inputs another strategy"
            )
        if len(bundle) != 2:
            raise TypeMismatch(f"a join takes a bundle of two tables, left and right, not of {len(bundle)}")
        for side, table in zip(self.compiled.sides, bundle, strict=True):
            if table.schema.names != side.schema.names:
                raise TypeMismatch(
                    f"the {side.name} table of the bundle has columns {table.schema.names}, but the join was built for "
                    f"{side.schema.names}: select these, in this order"
                )
        now = max(state.processing_time, processing_time)
        return self._step(state, bundle, max(state.watermark, watermark), now)

    def _step(self, state: OperatorState, bundle: Sequence[pa.Table], after: int, now: int) -> StepResult:
        step = Step(compiled=self.compiled, stores=state.stores, before=state.watermark, watermark=after)
        return step.run(state, bundle, now)

    def next_timer(self, state: OperatorState) -> int | None:
        """None: only rows and the watermark make a join emit."""
        return None

    def hold(self, state: OperatorState) -> int:
        """The output watermark: no later row has an earlier time."""
        return state.output_watermark

    def count_entries(self, state: OperatorState) -> int:
        """The number of rows in the state."""
        return sum(len(store) for store in state.stores.values() if store is not None)

    def count_waiting(self, state: OperatorState) -> int:
        """None: a row that waits for a match may get none."""
        return 0

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store are found again."""
        keys = [flat(rows[f"key.{i}"]) for i in range(len(self.compiled.left.keys))]
        return key_hashes(keys, rows.num_rows)

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hash by which each row of a store belongs to a shard."""
        return self.hashes(store, rows)


__all__ = ["JoinOperator"]

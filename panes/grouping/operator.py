"""The grouping operator: windows, triggers and panes over bundles of rows, without an engine.

A step takes a state, a bundle, the watermark after it and the processing time, and gives panes and a new state. It
changes none of its arguments. `step.py` has the phases of a step in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...errors import TypeMismatch
from ...triggers import AfterWatermark, walk
from ...windows.times import MIN_TIME, NEVER
from ..parcels import Parcel
from ..signals import SignalInput
from ..state.hashes import key_hashes
from ..state.operator_state import OperatorState, StepResult
from ..state.store import Store
from .atoms import atom_schema
from .bundle import Bundle, Signalled
from .cells import Cells
from .clocks import Clocks
from .compiled import CompiledGrouping
from .contents import deposit_schema
from .grouping import Grouping
from .lift import joined
from .rows import latest_time
from .step import Step


class Operator:
    """A grouping compiled against the schema of its input.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes import Grouping, Operator
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    >>> op = Operator(Grouping({"n": uc.Sum("x")}, uc.Fixed("1 minute")), schema)
    >>> bundle = pa.table({"ts": [0, 30_000_000], "x": [1, 2]}).cast(schema)
    >>> result = op.step(op.initial(), bundle, watermark=60_000_000, processing_time=0)
    >>> result.panes.select(["n", "diff"]).to_pylist()
    [{'n': 3, 'diff': 1}]
    """

    def __init__(
        self, grouping: Grouping, schema: pa.Schema, *signals: pa.Schema, inputs: Sequence[SignalInput] = ()
    ) -> None:
        self.compiled = compiled = CompiledGrouping.of(grouping, schema)
        self.grouping, self.schema, self.output_schema = grouping, schema, compiled.output_schema
        self.schemas, self.inputs = (schema, *signals), inputs
        self.plan, self.facts, self.percents = compiled.plan, compiled.facts, compiled.percents
        self.shape, self.splits = compiled.shape, grouping.splits

    def initial(self) -> OperatorState:
        """The state before any row."""
        atoms = None
        if self.splits:
            atoms = Store(atom_schema(self.shape))
        stores = {"windows": Store(self.shape.schema), "atoms": atoms}
        deposits = deposit_schema(self.compiled)
        return OperatorState(stores if deposits is None else {**stores, "deposits": Store(deposits)})

    def bundle(self, rows: Sequence[pa.Table], cells: Sequence[Parcel], at: int) -> pa.Table | Cells | Signalled:
        """The rows, and the cells that other tasks made of rows, that reach a shard at one processing time."""
        contents, signals = joined(self.compiled, rows[0], cells, at), rows[1:]
        if not any(table.num_rows for table in signals):
            return contents
        return Signalled(contents=contents, tables=signals, before=rows[0].num_rows)

    def step(
        self,
        state: OperatorState,
        bundle: pa.Table | Cells | Signalled,
        watermark: int,
        processing_time: int = MIN_TIME,
        percentiles: Mapping[float, int] | None = None,
        each_batch: bool = False,
    ) -> StepResult:
        """Take one bundle, of rows or of cells that were made elsewhere, through the operator."""
        signals = bundle if isinstance(bundle, Signalled) else None
        bundle = bundle.contents if isinstance(bundle, Signalled) else bundle
        if isinstance(bundle, pa.Table) and bundle.schema.names != self.schema.names:
            raise TypeMismatch(
                f"the bundle has columns {bundle.schema.names}, but the operator was built for {self.schema.names}: "
                "select these, in this order"
            )
        if each_batch:
            self.grouping.check_trigger(each_batch)
        compiled = replace(self.compiled, since=state.since) if state.since else self.compiled
        clocks = Clocks.of(compiled, state, watermark, processing_time, percentiles or {}, each_batch)
        made = Bundle.of(compiled, bundle, clocks)
        if signals is not None:
            made = replace(made, told=signals.told(self.inputs, latest_time(self.grouping, clocks.now)))
        return Step(compiled=compiled, clocks=clocks, bundle=made).run(state)

    def next_timer(self, state: OperatorState) -> int | None:
        """The next processing time at which a window has a deadline; None if there is none."""
        due = state.windows.least("processing")
        return None if due == NEVER else due

    def hold(self, state: OperatorState) -> int:
        """The output watermark: no later pane has an earlier time."""
        return state.output_watermark

    def count_entries(self, state: OperatorState) -> int:
        """The number of windows in the state."""
        return len(state.windows)

    def count_waiting(self, state: OperatorState) -> int:
        """The number of windows with rows that no pane has shown, and that the end of the input will show."""
        ends = any(isinstance(trigger, AfterWatermark) for trigger in walk(self.grouping.effective_trigger))
        if self.grouping.closing == "never" and not ends:
            return 0
        return int(np.count_nonzero(flat(state.windows.rows()["num.fresh"])))

    def hashes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store are found again."""
        keys = [flat(rows[f"key.{i}"]) for i in range(len(self.shape.key_types))]
        return self.compiled.hashes(keys, rows["num.start"].to_numpy())

    def routes(self, store: str, rows: pa.Table) -> np.ndarray:
        """The hashes by which the rows of a store belong to shards, if all windows of a key are in one."""
        return key_hashes([flat(rows[f"key.{i}"]) for i in range(len(self.shape.key_types))], rows.num_rows)

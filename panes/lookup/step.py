"""One step of a lookup join: right rows are taken in first, and then each left row meets those of its key.

Right rows stay until they are retracted. Left rows stay only if they can be retracted, until the watermark passes them.

Guarded by tests/panes/lookup/test_lookup.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat, int64_column
from ...combiners.rows.ordering import order_keys
from ...windows import timestamps
from ...windows.times import MAX_TIME, MIN_TIME
from ..join.compiled import CompiledJoin
from ..join.difference import Difference, Keys, require_products
from ..join.loaded_rows import LoadedRows
from ..join.output import PIECE, output
from ..join.ranges import Layout, RowOrder
from ..join.side_changes import ChangedRows, all_new, netted
from ..join.side_rows import Rows, take_in
from ..state.hashes import lookup
from ..state.operator_state import Counts, OperatorState, StepResult
from ..state.store import Store
from ..state.store_rows import StoreRows
from .given import MET, TIMES, Settled, remembered, settle

_NOTHING = np.empty(0, np.uint32)
_ENDS = (MIN_TIME, MAX_TIME)


@dataclass(frozen=True)
class LookupStep:
    """One step, with the watermark before and after its bundle."""

    compiled: CompiledJoin
    stores: Mapping[str, Store | None]
    before: int
    watermark: int

    def run(self, state: OperatorState, bundle: Sequence[pa.Table], processing_time: int) -> StepResult:
        """The output of the step, and the state after it."""
        sides = zip(self.compiled.sides, bundle, strict=True)
        left, right = (take_in(side, table, self.before) for side, table in sides)
        stores = dict(self.stores)
        valid = self._valid(right, left, stores)
        settled = self._settled(left, stores)
        parts = [] if settled is None else [self._retracted(settled)]
        new = all_new(left) if settled is None else settled.new
        if len(new):
            panes, ranges, partners = self._met(new, valid)
            parts.append(panes)
            if settled is not None:
                stores["left"] = remembered(settled, valid, ranges, partners, self.watermark)
        due = {"event": self.watermark}
        stores = {name: None if store is None else store.without_due(due) for name, store in stores.items()}
        after = replace(
            state,
            stores=stores,
            watermark=self.watermark,
            processing_time=processing_time,
            output_watermark=max(state.output_watermark, self._hold()),
            counts=state.counts + Counts(dropped=len(left.late), bad=len(left.bad) + len(right.bad)),
        )
        first = bundle[0].num_rows
        left_out = {"late": left.late, "bad": np.concatenate([left.bad, right.bad + first])}
        panes = pa.concat_tables([self.compiled.output_schema.empty_table(), *parts])
        return StepResult(panes=panes, state=after, left_out=left_out)

    def _hold(self) -> int:
        """The time before which no later row of output lies: that of a left row."""
        return self.watermark if self.watermark in _ENDS else self.compiled.left.earliest(self.watermark)

    def _valid(self, rows: Rows, left: Rows, stores: dict[str, Store | None]) -> LoadedRows:
        """The right rows of the keys of the left ones, after the bundle has changed them; puts the stores."""
        side, early = self.compiled.right, stores["right_early"]
        nets = early is not None and len(rows) > 0 and (len(early) > 0 or int(rows.weights.min()) < 0)
        touched = lookup(np.concatenate([left.hashes, rows.hashes] if nets else [left.hashes]))
        held = StoreRows.of(stores["right"], touched, {}, side.stored)
        changed = all_new(rows)
        if nets:
            waiting = StoreRows.of(early, touched, {}, side.stored)
            changed, replaced, met = netted(rows, held, waiting)
            stores["right"], stores["right_early"] = held.where(replaced).removed(), waiting.where(met).removed()
            held = held.where(~replaced)
        for name, chosen in (("right", changed.sums > 0), ("right_early", changed.sums < 0)):
            if chosen.any():
                stores[name] = _put(stores[name], changed, chosen)
        return LoadedRows.of(side, held, changed, None, self.watermark)

    def _settled(self, rows: Rows, stores: dict[str, Store | None]) -> Settled | None:
        """The left rows netted with those that were given, and puts the stores; None if none can be retracted."""
        given, early = stores["left"], stores["left_early"]
        if given is None or early is None:
            return None
        settled = settle(self.compiled.left, rows, given, early)
        stores["left"], stores["left_early"] = settled.given, settled.early
        return settled

    def _met(self, new: ChangedRows, right: LoadedRows) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """The output of new left rows; for each, the number of right rows that it meets; and these in their order."""
        compiled = self.compiled
        left = LoadedRows.of(
            compiled.left, StoreRows.of(None, _NOTHING, {}, compiled.left.stored), new, None, self.watermark
        )
        keys, count = Keys.of(left, right, windowed=False), len(left)
        layout = Layout(keys.count)
        ordered = RowOrder.of(layout, keys.codes[count:], right.times).where(right.after > 0)
        able = None if keys.non_null is None else keys.non_null[:count]
        ranges = ordered.matches(layout, keys.codes[:count], left.times, 0, 0, able)
        asking, partners = ranges.pairs(np.arange(count), ordered.order)
        require_products(left, right)
        weights = left.after.take(asking, mode="clip")
        weights = weights * right.after.take(partners, mode="clip") if len(partners) else weights
        parts = [Difference(left=asking, right=partners, weights=weights)]
        if compiled.join.alone("left"):
            alone = np.flatnonzero(ranges.sizes == 0)
            parts.append(Difference.of_one("left", alone, left.after[alone]))
        panes = output(compiled, left, right, keys, Difference.joined(parts), of_left=True)
        return panes, ranges.sizes, partners

    def _retracted(self, settled: Settled) -> pa.Table:
        """The retractions of what was given of left rows, by time and key."""
        compiled, table, taken = self.compiled, settled.back, settled.taken
        times = int64_column(table[TIMES])
        if not compiled.join.alone("left") and not times.all():
            table, taken = table.filter(pa.array(times > 0)), taken[times > 0]
            times = times[times > 0]
        at = int64_column(table["time"])
        keys = [flat(table[f"key.{i}"]) for i in range(len(compiled.left.keys))]
        order = np.lexsort((order_keys([Column(key) for key in keys]).keys, at)) if len(at) else np.arange(0)
        names = [name for name in table.column_names if name.startswith(("key.", "value.", MET))]
        pieces = [compiled.output_schema.empty_table()]
        for first in range(0, len(order), PIECE):
            some = order[first : first + PIECE]
            columns = table.select(names).take(pa.array(some)).columns
            columns += [timestamps(at[some]), pa.array(-taken[some] * np.maximum(times[some], 1))]
            pieces.append(pa.Table.from_arrays(columns, schema=compiled.output_schema))
        return pa.concat_tables(pieces)


def _put(store: Store | None, changed: ChangedRows, chosen: np.ndarray) -> Store:
    """The store with the chosen rows."""
    assert store is not None
    table, hashes, expiry = changed.table, changed.hashes, changed.expiry
    if not chosen.all():
        table, hashes, expiry = table.filter(pa.array(chosen)).combine_chunks(), hashes[chosen], expiry[chosen]
    return store.put(hashes, table, {"event": expiry})


__all__ = ["LookupStep"]

"""One step of a join: rows are taken in, meet those that the state has, and leave as the watermark passes them.

A bundle is judged by the watermark from before it. Only rows of the state with the keys of the bundle are read, and, if
rows without a match wait for the watermark, those that it passes and their matches.

Guarded by tests/panes/join/test_join.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import int64_column
from ...windows.times import MAX_TIME, MIN_TIME
from ..state.hashes import lookup
from ..state.operator_state import Counts, OperatorState, StepResult
from ..state.store import Store
from ..state.store_rows import StoreRows
from .compiled import CompiledJoin, Side
from .difference import Keys, difference
from .loaded_rows import LoadedRows
from .output import output
from .side_changes import ChangedRows, all_new, netted
from .side_rows import Rows, take_in

Stores = Mapping[str, Store | None]


@dataclass(frozen=True)
class Step:
    """One step, with the watermark before and after its bundle."""

    compiled: CompiledJoin
    stores: Stores
    before: int
    watermark: int

    def run(self, state: OperatorState, bundle: Sequence[pa.Table], processing_time: int) -> StepResult:
        """The output of the step, and the state after it."""
        compiled = self.compiled
        rows = [take_in(side, table, self.before) for side, table in zip(compiled.sides, bundle, strict=True)]
        touched = self._touched(rows)
        stores: dict[str, Store | None] = {}
        hands = []
        for i, side in enumerate(compiled.sides):
            changed, old_rows = self._changed(side, rows[i], touched[i], stores)
            seen = StoreRows.of(self.stores[f"{side.name}_seen"], touched[i], {}, side.witnessed)
            hands.append(LoadedRows.of(side, old_rows, changed, seen, self.watermark))
        panes = compiled.output_schema.empty_table()
        left, right = hands
        if (len(left) and len(right)) or compiled.join.alone("left") or compiled.join.alone("right"):
            keys = Keys.of(left, right, compiled.left.windowed)
            panes = output(compiled, left, right, keys, difference(compiled, left, right, keys))
        for side, hand in zip(compiled.sides, hands, strict=True):
            self._leave(side, hand.changed, stores)
        after = replace(
            state,
            stores=stores,
            watermark=self.watermark,
            processing_time=processing_time,
            counts=state.counts + Counts(dropped=sum(len(r.late) for r in rows), bad=sum(len(r.bad) for r in rows)),
        )
        after = replace(after, output_watermark=max(state.output_watermark, hold(compiled, after)))
        (one, other), first = rows, bundle[0].num_rows
        left_out = {"late": (one.late, other.late + first), "bad": (one.bad, other.bad + first)}
        return StepResult(
            panes=panes, state=after, left_out={why: np.concatenate(places) for why, places in left_out.items()}
        )

    def _touched(self, rows: list[Rows]) -> list[np.ndarray]:
        """For each side, the hashes of the rows of its state that the step reads, in the form for a look-up."""
        touched = []
        for i, side in enumerate(self.compiled.sides):
            other = self.compiled.sides[1 - i]
            if not any(len(self.stores[f"{side.name}{kind}"] or ()) for kind in ("", "_early", "_seen")):
                touched.append(np.empty(0, np.uint32))
                continue
            hashes = [rows[1 - i].hashes]
            if other.counted or self._nets(side, rows[i]):
                hashes.append(rows[i].hashes)
            if other.alone and self.compiled.join.final:
                due = StoreRows.of(self.stores[other.name], np.empty(0, np.uint32), self._clocks, other.stored)
                hashes.append(due.hashes())
            touched.append(lookup(np.concatenate(hashes)))
        return touched

    @property
    def _clocks(self) -> dict[str, int]:
        return {"event": self.watermark}

    def _nets(self, side: Side, rows: Rows) -> bool:
        """True if rows of the bundle may be retractions, or may have been retracted before they came."""
        early = self.stores[f"{side.name}_early"]
        return early is not None and len(rows) > 0 and (len(early) > 0 or int(rows.weights.min()) < 0)

    def _changed(
        self, side: Side, rows: Rows, touched: np.ndarray, stores: dict[str, Store | None]
    ) -> tuple[ChangedRows, StoreRows]:
        """The rows that the bundle changes and those that are only read; puts the stores without the former."""
        clocks = self._clocks if side.alone and self.compiled.join.final else {}
        old_rows = StoreRows.of(self.stores[side.name], touched, clocks, side.stored)
        stores[side.name], stores[f"{side.name}_early"] = old_rows.store, self.stores[f"{side.name}_early"]
        if not self._nets(side, rows):
            return all_new(rows), old_rows
        early = StoreRows.of(self.stores[f"{side.name}_early"], touched, {}, side.stored)
        changed, replaced, met = netted(rows, old_rows, early)
        stores[f"{side.name}_early"] = early.where(met).removed()
        if replaced.any():
            stores[side.name] = old_rows.where(replaced).removed()
            old_rows = old_rows.where(~replaced)
        return changed, old_rows

    def _leave(self, side: Side, changed: ChangedRows, stores: dict[str, Store | None]) -> None:
        """Put the rows that stay into the stores of a side, and let the others leave, as witnesses if need be."""
        stays = changed.expiry > self.watermark
        for kind, chosen in (("", changed.sums > 0), ("_early", changed.sums < 0)):
            store = stores[f"{side.name}{kind}"]
            if store is None:
                continue
            due = StoreRows.of(store, np.empty(0, np.uint32), self._clocks, side.stored)
            store = due.removed() if len(due) else store
            stores[f"{side.name}{kind}"] = _put(store, changed, chosen & stays)
            if kind == "":
                stores[f"{side.name}_seen"] = self._witnesses(side, due, changed, chosen & ~stays)

    def _witnesses(self, side: Side, due: StoreRows, changed: ChangedRows, leaving: np.ndarray) -> Store | None:
        """The witnesses of a side after rows of the state and of the bundle have left."""
        seen = self.stores[f"{side.name}_seen"]
        if seen is None:
            return None
        old = StoreRows.of(seen, np.empty(0, np.uint32), self._clocks, side.witnessed)
        seen = old.removed() if len(old) else seen
        for table, hashes in (
            (due.read(side.narrow), due.hashes()),
            (changed.table.select(side.narrow).filter(pa.array(leaving)), changed.hashes[leaving]),
        ):
            expiry = side.witness_expiry(int64_column(table["time"]))
            stays = expiry > self.watermark
            if stays.any():
                table = table.filter(pa.array(stays)).combine_chunks()
                seen = seen.put(hashes[stays], table, {"event": expiry[stays]})
        return seen


def _put(store: Store, changed: ChangedRows, chosen: np.ndarray) -> Store:
    """The store with the chosen rows."""
    table, hashes, expiry = changed.table, changed.hashes, changed.expiry
    if not chosen.all():
        table, hashes, expiry = table.filter(pa.array(chosen)).combine_chunks(), hashes[chosen], expiry[chosen]
    return store.put(hashes, table, {"event": expiry, "hold": int64_column(table["time"])})


def hold(compiled: CompiledJoin, state: OperatorState) -> int:
    """The time before which no later row of output lies.

    A pair has the time of its later row, so that only rows that still come bound it. A row whose having a match may
    change has its own time, and bounds it while it is in the state.
    """
    if not MIN_TIME < state.watermark < MAX_TIME:
        return state.watermark
    least = max(side.earliest(state.watermark) for side in compiled.sides)
    for side in compiled.sides:
        store = state.stores[side.name]
        if side.counted and store is not None:
            least = store.least("hold", below=least)
    return least


__all__ = ["Step", "hold"]
